"""Qwen2-VL, 2.5-VL, 3-VL, 3.5 and 3.6 with their towers, Qwen2-Audio, and the thinkers of the Omni models.

Structure: transformers 5.23,
models/{qwen2_vl,qwen2_5_vl,qwen3_vl,qwen3_vl_moe,qwen3_5,qwen3_5_moe,qwen2_audio,qwen2_5_omni,
qwen3_omni_moe,exaone4_5}. The towers end in the text model's width, so nothing stands between. Qwen2-VL's first files
are flat.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, linear, projected, tower

THINKER = "Only the thinker is counted, as serving engines load it: the talker and the vocoder that speak are not."


@architecture("Qwen2VLForConditionalGeneration", model_types=("qwen2_vl",))
def qwen2_vl(c: Config) -> Model:
    return joined(language_model(c, "qwen2_vl_text"), "qwen_vl", tower(c, "qwen2_vl"))


@architecture("Qwen2_5_VLForConditionalGeneration", model_types=("qwen2_5_vl",))
def qwen2_5_vl(c: Config) -> Model:
    return joined(language_model(c, "qwen2_5_vl_text"), "qwen_vl", tower(c, "qwen2_5_vl"))


@architecture("Qwen3VLForConditionalGeneration", model_types=("qwen3_vl",))
def qwen3_vl(c: Config) -> Model:
    return joined(language_model(c, "qwen3_vl_text"), "qwen_vl", tower(c, "qwen3_vl"))


@architecture("Qwen3VLMoeForConditionalGeneration", model_types=("qwen3_vl_moe",))
def qwen3_vl_moe(c: Config) -> Model:
    return joined(language_model(c, "qwen3_vl_moe_text"), "qwen_vl", tower(c, "qwen3_vl_moe"))


@architecture("Qwen3_5ForConditionalGeneration", model_types=("qwen3_5",))
def qwen3_5(c: Config) -> Model:
    return joined(language_model(c, "qwen3_5_text"), "qwen3_5", tower(c, "qwen3_5"))


@architecture("Qwen3_5MoeForConditionalGeneration", model_types=("qwen3_5_moe",))
def qwen3_5_moe(c: Config) -> Model:
    return joined(language_model(c, "qwen3_5_moe_text"), "qwen3_5", tower(c, "qwen3_5_moe"))


@architecture("Qwen2AudioForConditionalGeneration", model_types=("qwen2_audio",))
def qwen2_audio(c: Config) -> Model:
    text, audio = language_model(c, "qwen2"), tower(c, "qwen2_audio_encoder", "audio_config")
    return joined(
        text,
        "qwen2_audio",
        projected(audio, linear("multi_modal_projector.linear", audio.hidden_size, text.hidden_size)),
    )


@architecture("Qwen2_5OmniThinkerForConditionalGeneration", model_types=("qwen2_5_omni_thinker",))
def qwen2_5_omni_thinker(c: Config) -> Model:
    towers = tower(c, "qwen2_5_omni_vision_encoder"), tower(c, "qwen2_5_omni_audio_encoder", "audio_config")
    return joined(language_model(c, "qwen2_5_omni_text"), "qwen_omni", *towers)


@architecture("Qwen2_5OmniModel", "Qwen2_5OmniForConditionalGeneration", model_types=("qwen2_5_omni",))
def qwen2_5_omni(c: Config) -> Model:
    return joined(qwen2_5_omni_thinker(c.section("thinker_config")), "qwen_omni", notes=(THINKER,))


@architecture("Qwen3OmniMoeThinkerForConditionalGeneration", model_types=("qwen3_omni_moe_thinker",))
def qwen3_omni_thinker(c: Config) -> Model:
    towers = tower(c, "qwen3_omni_moe_vision_encoder"), tower(c, "qwen3_omni_moe_audio_encoder", "audio_config")
    return joined(language_model(c, "qwen3_omni_moe_text"), "qwen_omni", *towers)


@architecture("Qwen3OmniMoeForConditionalGeneration", model_types=("qwen3_omni_moe",))
def qwen3_omni(c: Config) -> Model:
    return joined(qwen3_omni_thinker(c.section("thinker_config")), "qwen_omni", notes=(THINKER,))


@architecture("Exaone4_5_ForConditionalGeneration", model_types=("exaone4_5",))
def exaone4_5(c: Config) -> Model:
    """EXAONE 4.5 with its tower, a variant of Qwen2.5-VL's."""
    return joined(language_model(c, "exaone4_5_text"), "exaone4_5", tower(c, "exaone4_5_vision"))
