"""Choices of a model's own code that affect training memory and no size, from its config and its family.

Source: transformers 5.24, models/*/modeling_*.py.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.architectures._model import Model
from tonnage.tape import Router, Style

ACTIVATIONS = (
    "hidden_act",
    "hidden_activation",
    "activation_function",
    "ffn_activation",
    "activation",
    "mlp_hidden_act",
    "dense_act_fn",
)
# The activation in the code of a family whose config does not name it.
ACTIVATION = {
    "gpt2": "gelu_new",
    "gpt_bigcode": "gelu_pytorch_tanh",
    "gptj": "gelu_new",
    "gpt_neo": "gelu_new",
    "phi": "gelu_new",
    "opt": "relu",
    "falcon": "gelu",
    "bloom": "bloom_gelu",
    "mpt": "gelu",
    "gpt_neox": "gelu",
    "starcoder2": "gelu_pytorch_tanh",
    "gemma": "gelu_pytorch_tanh",
    "gemma2": "gelu_pytorch_tanh",
    "gemma3": "gelu_pytorch_tanh",
    "nemotron": "relu2",
    "modernbert": "gelu",
    "mt5": "gelu_new",
    "t5": "relu",
    "apertus": "xielu",
}
NORMS = {
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3": "gemma",
    "recurrent_gemma": "gemma",
    "qwen3_next": "gemma",
    "qwen3_5": "gemma",
}
WIDE = ("Olmo2ForCausalLM", "Olmo3ForCausalLM")  # the weight multiplies in fp32
UNTURNED = (
    "gpt2",
    "gpt3",
    "opt",
    "bloom",
    "mpt",
    "gpt_bigcode",
    "gpt_neo",
    "baichuan",
    "nemotron_h",
    "jamba",
    "bert",
    "roberta",
    "distilbert",
    "albert",
    "bart",
    "t5",
    "mt5",
)  # positions are learned, or biases of the scores
NARROW_SOFTMAX = ("gpt2", "gpt3", "falcon")
PARTS = ("partial_rotary_factor", "rotary_pct", "rope_pct")
# The defaults of the classes' configurations, for configs without the field.
PART = {
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "stablelm", "gpt_neox"), 0.25
    ),
    **dict.fromkeys(("glm", "glm4", "glm4_moe", "phi", "persimmon", "nemotron", "recurrent_gemma", "bamba"), 0.5),
}
FUSED = {"phi3": "slice", "gpt_neox": "view", "bloom": "view", "modernbert": "in order"}
# How rotary positions are written, by model_type: pairs of neighbours in fp32, each half apart, complex numbers.
TURNS: dict[str, Any] = {
    **dict.fromkeys(("cohere", "cohere2", "modernbert"), "pairs in fp32"),
    **dict.fromkeys(("ernie4_5", "ernie4_5_moe"), "pairs cast"),
    **dict.fromkeys(("deepseek_v3", "kimi_k2", "glm4_moe_lite", "longcat_flash", "gpt_oss", "youtu"), "apart"),
    **dict.fromkeys(("deepseek_v2", "llama4", "llama4_text"), "complex"),
}
SIGMOID = Router(wide=True, held_wide=True, scores="sigmoid", stays_wide=True)  # held so since 5.24
MIXTRAL = Router(stays_wide=True)
ROUTERS = {
    **dict.fromkeys(
        ("deepseek_v3", "kimi_k2", "glm4_moe", "glm4v_moe", "glm4_moe_lite", "dots1", "mimo_v2_flash", "nemotron_h"),
        SIGMOID,
    ),
    **dict.fromkeys(("mixtral", "minimax"), MIXTRAL),
    **dict.fromkeys(("qwen2_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"), Router(shared_first=True)),
    **dict.fromkeys(("granitemoe", "granitemoeshared", "granitemoehybrid", "gpt_oss"), Router(chosen_first=True)),
    **dict.fromkeys(("gemma4", "gemma4_text"), Router(stays_wide=True)),
    **dict.fromkeys(("llama4", "llama4_text"), Router(every_expert=True)),
    "deepseek_v2": Router(wide=True, held_wide=True, stays_wide=True),
    "minimax_m2": Router(scores="sigmoid", stays_wide=True),
    "hunyuan_v1_moe": Router(wide=True, held_wide=True, stays_wide=True, shared_first=True),
    "ernie4_5_moe": Router(wide=True, held_wide=True, shared_first=True),
}


NORM_KINDS = {
    **dict.fromkeys(("t5", "mt5", "umt5"), "narrow"),
    "gpt_oss": "wide",
    "nemotron_h": "cast",
    "gemma4": "gemma4",
    "gemma4_text": "gemma4",
    "glm4": "",
}
LATE_NORMS = ("gemma3", "gemma3_text", "hunyuan_v1_dense", "hunyuan_v1_moe")
TABLES = {"ernie4_5": 1, "ernie4_5_moe": 1, "glm": 1, "glm4": 1, "gptj": 2}
LAYER_NORMS: dict[str, Any] = {"cohere": "written out", "cohere2": "written out", "olmo": "wide"}
LAYER_NORMED_HEADS = ("stablelm", "cohere", "phi", "persimmon")
BIASED = ("t5", "mt5", "umt5")  # their attention adds a learned number for each distance
EAGER = ("bloom", "mpt", "gptj", "gpt_oss", "mimo_v2_flash")  # transformers has no other attention for them


def style_of(model: Model) -> Style:
    """The style of transformers' code for this model."""
    text = model.config.get("text_config")
    config: Mapping[str, Any] = {**model.config, **text} if isinstance(text, Mapping) else model.config
    kind = _kind(config)
    activation = next(
        (config[name] for name in ACTIVATIONS if isinstance(config.get(name), str)),
        ACTIVATION.get(model.family, "silu"),
    )
    norm = "wide" if model.architecture in WIDE else NORM_KINDS.get(kind, NORMS.get(model.family, ""))
    own_scores = kind in ("gpt_oss", "mimo_v2_flash")
    return Style(
        activation=activation,
        norm=norm,
        rotary=_rotary(model.family, config),
        soft_capped=bool(config.get("attn_logit_softcapping", model.family == "gemma2")),
        fused=_fused(model.family, config),
        query_scaled=model.family == "opt",
        eager_alone=kind in EAGER,
        upcasts_softmax=model.family not in NARROW_SOFTMAX and not own_scores,
        subtracts_max=own_scores,
        residual_scaled=model.family.startswith("granite") and config.get("residual_multiplier", 1) != 1,
        turns=TURNS.get(kind, "halves"),
        turns_whole=kind == "gpt_oss",
        router=ROUTERS.get(kind, Router()),
        shares_openly=model.family == "falcon",
        always_masked=model.family == "falcon",
        norms_late=kind in LATE_NORMS,
        values_normed=kind.startswith("gemma4"),
        values_scaled=kind == "mimo_v2_flash",
        tables=TABLES.get(kind, 0),
        layer_norm=LAYER_NORMS.get(kind, ""),
        wide_scores=kind == "gptj",
        head_norm="layer" if kind in LAYER_NORMED_HEADS else "",
        clamped_experts=kind == "gpt_oss",
        biased_positions=kind in BIASED,
        drops_inner=kind in BIASED,
        heads_normed_turned=kind.startswith("llama4") and bool(config.get("use_qk_norm", True)),
    )


def _fused(family: str, config: Mapping[str, Any]) -> Any:
    if family != "falcon":
        return FUSED.get(family, "split")
    if config.get("new_decoder_architecture"):
        return "spread"
    return "picked" if config.get("multi_query", True) else "view"


def _rotary(family: str, config: Mapping[str, Any]) -> float:
    if family in UNTURNED or config.get("alibi"):
        return 0
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    for where in (config, parameters):
        for name in PARTS:
            if isinstance(where.get(name), int | float):
                return float(where[name])
    turned, width, hidden, heads = (_size(config.get(name)) for name in ("rotary_dim", "head_dim", "n_embd", "n_head"))
    if isinstance(config.get("rotary_dim"), int):
        head = width or hidden / (heads or 1)
        return min(1.0, turned / head) if head else 1
    return PART.get(_kind(config), 1)


def _kind(config: Mapping[str, Any]) -> str:
    """Its model_type, or an empty text where it is none, since nothing checks it in a section."""
    model_type = config.get("model_type")
    return model_type if isinstance(model_type, str) else ""


def _size(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
