"""Multimodal families and towers against the real classes of transformers, built on the meta device."""

import importlib

import pytest
import torch
import transformers

from architectures.multimodal_configs import gemma3n
from architectures.multimodal_more import CASES
from architectures.seeing import of_kind, size
from oracles.transformers_count import count, known
from tonnage.architectures import TOWERS, Config, build, load_all

# The class ties where the file says nothing; the released checkpoint does not (see mistral3.py).
SAID = {"mistralai/Mistral-Small-3.1-24B-Instruct-2503": {"tie_word_embeddings": False}}
WITH_CLASS = [name for name, case in CASES.items() if known(case.fields)]
TOWER_CLASSES = {
    "clip_vision_model": "clip.CLIPVisionModel",
    "siglip_vision_model": "siglip.SiglipVisionModel",
    "siglip2_vision_model": "siglip2.Siglip2VisionModel",
    "idefics2_vision": "idefics2.Idefics2VisionTransformer",
    "idefics3_vision": "idefics3.Idefics3VisionTransformer",
    "phi4_multimodal_vision": "phi4_multimodal.Phi4MultimodalVisionModel",
    "phi4_multimodal_audio": "phi4_multimodal.Phi4MultimodalAudioModel",
    "pixtral": "pixtral.PixtralVisionModel",
    "mllama_vision_model": "mllama.MllamaVisionModel",
    "llama4_vision_model": "llama4.Llama4VisionModel",
    "qwen2_vl_vision": "qwen2_vl.Qwen2VisionTransformerPretrainedModel",
    "qwen2_5_vl_vision": "qwen2_5_vl.Qwen2_5_VisionTransformerPretrainedModel",
    "qwen3_vl_vision": "qwen3_vl.Qwen3VLVisionModel",
    "qwen3_vl_moe_vision": "qwen3_vl_moe.Qwen3VLMoeVisionModel",
    "qwen3_5_vision": "qwen3_5.Qwen3_5VisionModel",
    "qwen3_omni_moe_vision_encoder": "qwen3_omni_moe.Qwen3OmniMoeVisionEncoder",
    "exaone4_5_vision": "exaone4_5.Exaone4_5_VisionModel",
    "internvl_vision": "internvl.InternVLVisionModel",
    "glm4v_vision": "glm4v.Glm4vVisionModel",
    "glm4v_moe_vision": "glm4v_moe.Glm4vMoeVisionModel",
    "kimi_k25_vision": "kimi_k25.Kimi_K25VisionModel",
    "gemma4_vision": "gemma4.Gemma4VisionModel",
    "gemma4_audio": "gemma4.Gemma4AudioModel",
    "gemma3n_audio": "gemma3n.Gemma3nAudioEncoder",
    "whisper": "whisper.WhisperEncoder",
    "qwen2_audio_encoder": "qwen2_audio.Qwen2AudioEncoder",
    "qwen2_5_omni_audio_encoder": "qwen2_5_omni.Qwen2_5OmniAudioEncoder",
    "qwen3_omni_moe_audio_encoder": "qwen3_omni_moe.Qwen3OmniMoeAudioEncoder",
    "voxtral_encoder": "voxtral.VoxtralEncoder",
    "voxtral_realtime_encoder": "voxtral_realtime.VoxtralRealtimeEncoder",
    "audioflamingo3_encoder": "audioflamingo3.AudioFlamingo3Encoder",
    "glmasr_encoder": "glmasr.GlmAsrEncoder",
    "granite_speech_encoder": "granite_speech.GraniteSpeechCTCEncoder",
}
CHANGED = {  # fields that change a tower's shape and that released models leave at their defaults
    "siglip_vision_model": {"vision_use_head": False, "image_size": 384},
    "internvl_vision": {
        "attention_bias": True,
        "use_qk_norm": True,
        "use_mask_token": True,
        "use_mean_pooling": False,
        "norm_type": "rms_norm",
    },
    "gemma4_vision": {"use_clipped_linears": True, "standardize": True, "num_key_value_heads": 4},
    "gemma4_audio": {"use_clipped_linears": False, "subsampling_conv_channels": [64, 16], "conv_kernel_size": 7},
    "gemma3n_audio": {"sscp_conv_channel_size": [64, 16], "input_feat_size": 80},
    "glm4v_vision": {"attention_bias": True, "spatial_merge_size": 4},
    "mllama_vision_model": {"num_global_layers": 2, "image_size": 560},
    "phi4_multimodal_audio": {"bias_symmetric": True, "time_reduction": 4, "input_size": 96, "kernel_size": 5},
    "qwen3_vl_vision": {"deepstack_visual_indexes": [1], "patch_size": 14},
    "qwen3_omni_moe_audio_encoder": {"num_mel_bins": 80, "downsample_hidden_size": 96},
    "voxtral_realtime_encoder": {"num_mel_bins": 80, "head_dim": 32},
    "granite_speech_encoder": {"conv_kernel_size": 7, "conv_expansion_factor": 1, "output_dim": 256, "dim_head": 64},
}


def stored(module: torch.nn.Module) -> int:
    """Parameters and persistent buffers."""
    total = {id(parameter): parameter.numel() for parameter in module.parameters()}
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and name not in part._non_persistent_buffers_set:
                total[id(buffer)] = buffer.numel()
    return sum(total.values())


def on_meta(model_class: type, config: transformers.PreTrainedConfig) -> torch.nn.Module:
    config._attn_implementation = "eager"
    with torch.device("meta"):
        return model_class(config)


def class_of(path: str) -> type:
    package, name = path.split(".")
    return getattr(importlib.import_module(f"transformers.models.{package}.modeling_{package}"), name)


@pytest.mark.parametrize("name", WITH_CLASS)
def test_a_multimodal_model_has_as_many_parameters_as_its_class(name):
    fields = CASES[name].fields | SAID.get(name, {})
    assert build(fields, name).num_parameters() == count(fields)


@pytest.mark.parametrize("changes", [{}, CHANGED], ids=["defaults", "changed"])
@pytest.mark.parametrize("model_type", TOWER_CLASSES)
def test_a_tower_has_as_many_parameters_as_its_class(model_type, changes):
    load_all()
    model_class = class_of(TOWER_CLASSES[model_type])
    config = model_class.config_class(**changes.get(model_type, {}))
    assert size(TOWERS[model_type](Config(config.to_dict(), model_type))) == stored(on_meta(model_class, config))


@pytest.mark.parametrize("name", ["moonshotai/Kimi-VL-A3B-Instruct", "moonshotai/Kimi-K2.5"])
def test_kimis_text_tower_and_projector_are_those_of_the_class_whose_names_differ(name):
    from transformers.models.kimi_k25 import Kimi_K25Config, Kimi_K25ForConditionalGeneration

    fields = CASES[name].fields
    text = {key: value for key, value in fields["text_config"].items() if key != "architectures"} | {
        "model_type": "deepseek_v3"
    }
    config = Kimi_K25Config(text_config=text, vision_config={}, tie_word_embeddings=False)
    assert build(fields, name).num_parameters() == stored(on_meta(Kimi_K25ForConditionalGeneration, config))


def test_gemma_3n_without_its_convolutional_eye_is_that_of_the_classes():
    """The eye is timm's, which is not among this project's packages: its count stands in tests/architectures."""
    from transformers.models.gemma3n.modeling_gemma3n import Gemma3nMultimodalEmbedder

    model, config = build(gemma3n(), "google/gemma-3n-E4B-it"), transformers.Gemma3nConfig()
    ears = stored(on_meta(class_of("gemma3n.Gemma3nAudioEncoder"), config.audio_config))
    with torch.device("meta"):
        joints = [
            stored(Gemma3nMultimodalEmbedder(part, config.text_config))
            for part in (config.vision_config, config.audio_config)
        ]
    assert size(model.decoder) == stored(on_meta(transformers.Gemma3nTextModel, config.text_config))
    assert size(of_kind(model, "audio")) == ears + joints[1]
    assert size(of_kind(model, "vision")) == 294_126_912 + joints[0]
