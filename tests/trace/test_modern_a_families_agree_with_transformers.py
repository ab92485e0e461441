"""Every family against its class of transformers on the meta device, with the fields of real configs and with
the class's own.
"""

import importlib

import pytest
import torch

from architectures.modern_a_configs import CONFIGS
from architectures.modern_a_more import MORE
from oracles.transformers_count import count, known
from tonnage.architectures import build

ALL = {**CONFIGS, **MORE}
# Kimi K3 adds to the class of Kimi-Linear; LongCat's class allocates matrices for experts that have none.
APART = {"moonshotai/Kimi-K3 text", "meituan-longcat/LongCat-Flash-Chat"}


@pytest.mark.parametrize("name", [name for name, fields in ALL.items() if known(fields) and name not in APART])
def test_a_config_has_as_many_parameters_as_its_class(name: str):
    assert build(ALL[name], name).num_parameters() == count(ALL[name])


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Gemma4ForCausalLM", {}),
        ("Gemma4ForCausalLM", {"num_kv_shared_layers": 12, "use_double_wide_mlp": True}),
        ("Gemma3nForCausalLM", {"num_kv_shared_layers": 0}),
        ("Qwen2ForCausalLM", {"use_sliding_window": True, "max_window_layers": 10}),
        ("Qwen2MoeForCausalLM", {"decoder_sparse_step": 3, "mlp_only_layers": [2]}),
        ("Qwen3NextForCausalLM", {"mlp_only_layers": [0, 1]}),
        ("Llama4ForCausalLM", {"moe_layers": [1, 5], "attention_bias": True}),
        (
            "DeepseekV2ForCausalLM",
            {"num_experts_per_tok": 6, "mlp_bias": True, "attention_bias": True, "first_k_dense_replace": 2},
        ),
        ("DeepseekV3ForCausalLM", {"q_lora_rank": None}),
        ("DeepseekV4ForCausalLM", {"num_hidden_layers": 7}),
        ("KimiLinearForCausalLM", {"num_hidden_layers": 9}),
        ("Ernie4_5_MoeForCausalLM", {"use_bias": True, "moe_layer_interval": 2}),
        ("GlmMoeDsaForCausalLM", {"indexer_types": None, "index_topk_freq": 3, "index_skip_topk_offset": 4}),
        ("MiMoV2FlashForCausalLM", {"attention_bias": True}),
        ("HYV3ForCausalLM", {"mlp_bias": True, "attention_bias": True}),
        ("SeedOssForCausalLM", {"attention_out_bias": True, "mlp_bias": True}),
        ("Exaone4ForCausalLM", {"tie_word_embeddings": True}),
        ("ExaoneMoeForCausalLM", {"first_k_dense_replace": 4}),
        ("AfmoeForCausalLM", {"num_dense_layers": 3, "attention_bias": True}),
        ("BailingHybridForCausalLM", {}),
        ("MinistralForCausalLM", {"head_dim": 128}),
        ("GlmForCausalLM", {"attention_bias": False}),
        ("AXK1ForCausalLM", {"num_hidden_layers": 4}),
    ],
)
def test_a_config_as_transformers_saves_it_has_as_many_parameters_as_its_class(kind: str, fields: dict[str, object]):
    import transformers

    config_class = getattr(transformers, kind).config_class
    saved = {**config_class(**fields).to_dict(), "architectures": [kind], "model_type": config_class.model_type}
    assert build(saved, kind).num_parameters() == count(saved)


@pytest.mark.parametrize(
    ("name", "module", "kind"),
    [
        ("stepfun-ai/Step-3.5-Flash", "step3p7.modeling_step3p7", "Step3p7TextModel"),
        ("zai-org/GLM-5.3-Flash text", "glm5_next.modeling_glm5_next", "Glm5NextTextModel"),
    ],
)
def test_a_language_model_inside_a_multimodal_class_has_as_many_parameters(name: str, module: str, kind: str):
    """The classes without a head: its matrix is added."""
    text_class = getattr(importlib.import_module(f"transformers.models.{module}"), kind)
    renamed = [each.replace("deepseek_sparse", "indexed") for each in ALL[name]["layer_types"]]
    config = text_class.config_class.from_dict({**ALL[name], "layer_types": renamed})
    with torch.device("meta"):
        text = text_class(config)
    buffers = sum(
        buffer.numel()
        for part in text.modules()
        for key, buffer in part._buffers.items()
        if buffer is not None and key not in part._non_persistent_buffers_set
    )
    stored = sum(weight.numel() for weight in text.parameters()) + buffers
    assert build(ALL[name], name).num_parameters() == stored + config.vocab_size * config.hidden_size
