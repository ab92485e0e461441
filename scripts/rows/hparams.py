"""Hyper-parameters as rows of published counts write them -> the fields of a config.json.

Two dialects: Hugging Face's own names, and a neutral one (hidden, layers, heads, kv_heads, mlp, norm, bias...) that
follows litgpt's configuration. What a row leaves out is as in a Llama-like decoder.
"""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import InvalidInput

_NEUTRAL = {
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate": "intermediate_size",
    "vocab": "vocab_size",
    "context": "max_position_embeddings",
    "tied_embeddings": "tie_word_embeddings",
    "experts": "num_experts",
    "n_routed_experts": "num_experts",
    "experts_per_token": "num_experts_per_tok",
    "num_experts_per_tok": "num_experts_per_tok",
    "topk": "num_experts_per_tok",
    "top_k": "num_experts_per_tok",
    "first_dense": "first_k_dense_replace",
    "moe_intermediate": "moe_intermediate_size",
    "n_shared_experts": "n_shared_experts",
    "lm_head_bias": "lm_head_bias",
    "first_k_dense_replace": "first_k_dense_replace",
    "kv_lora_rank": "kv_lora_rank",
    "q_lora_rank": "q_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "post_norms": "post_norms",
    "shared_attention_norm": "shared_attention_norm",
    "sliding_layers": "sliding_layers",
    "router_bias": "router_correction_bias",
    "d_inner": "inner_size",
    "expand": "expand",
    "state_size": "state_size",
    "d_state": "state_size",
    "conv_kernel": "conv_kernel",
    "d_conv": "conv_kernel",
    "dt_rank": "time_step_rank",
}
_HUGGING_FACE = {
    "interleave_moe_layer_step": "llama4_text",
    "hybrid_override_pattern": "nemotron_h",
    "kv_lora_rank": "deepseek_v3",
}
# A gated feed-forward in litgpt's and other sources' words; anything else that names an mlp has two matrices.
_GATED = ("llamamlp", "gemmamlp", "llamamoe", "swiglu", "geglu", "gated")
KERAS = "keras-team/keras-hub"


def config(hparams: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A config.json's fields. `source` says who counted, since conventions of counting differ.

    Raises InvalidInput for a hyper-parameter that this dialect does not have: a wrong count would pass for a measured
    error.
    """
    if "hidden_size" in hparams:
        return _hugging_face(hparams)
    if "hidden" not in hparams:
        raise InvalidInput("the row has no hyper-parameters")
    return _neutral(hparams, source)


def _hugging_face(hparams: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in hparams.items() if name not in ("source", "note", "norms")}
    for name, model_type in _HUGGING_FACE.items():
        if name in hparams:
            # V2's own config has no num_key_value_heads, and its router no correction bias
            v2 = model_type == "deepseek_v3" and hparams.get("num_key_value_heads") is None
            return {"tie_word_embeddings": False, **fields, "model_type": "deepseek_v2" if v2 else model_type}
    return {"tie_word_embeddings": False, **fields, "model_type": "llama"}


def _neutral(hparams: Mapping[str, Any], source: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"model_type": "generic"}
    for name, value in hparams.items():
        if name in _NEUTRAL and not isinstance(value, str):
            fields[_NEUTRAL[name]] = value
    fields |= _shared_experts(hparams) | _tied(hparams)
    bias = bool(hparams.get("bias", False))
    fields["mlp"], fields["mlp_bias"] = _mlp(hparams), bias
    fields["attention_bias"], fields["attention_out_bias"] = bool(hparams.get("attn_bias", bias)), bias
    fields |= _norms(hparams) | _positions(hparams, source)
    if isinstance(hparams.get("sliding_window"), int):
        fields["sliding_window"] = hparams["sliding_window"]
    return fields


def _shared_experts(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Shared experts said by the width of all of them together."""
    width, one = hparams.get("shared_intermediate"), hparams.get("moe_intermediate") or hparams.get("intermediate")
    if not isinstance(width, int) or not isinstance(one, int) or one < 1 or isinstance(width, bool):
        return {}
    if width % one:
        raise InvalidInput(f"shared_intermediate ({width}) is no multiple of an expert's width ({one})")
    return {"n_shared_experts": width // one}


def _tied(hparams: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the head is the table, where that is said in words ("tied (untied storage when PP>1)")."""
    said = hparams.get("tied_embeddings")
    return (
        {"tie_word_embeddings": said.strip().lower().startswith(("tied", "true", "yes"))}
        if isinstance(said, str)
        else {}
    )


def _mlp(hparams: Mapping[str, Any]) -> str:
    named = str(hparams.get("mlp", "")).lower()
    if named:
        return "gated" if any(word in named for word in _GATED) else "plain"
    # sources that do not name it: layers with biases are GPT's, all others gated
    return "plain" if hparams.get("bias") else "gated"


def _norms(hparams: Mapping[str, Any]) -> dict[str, Any]:
    named = str(hparams.get("norm", "LayerNorm" if hparams.get("bias") else "RMSNorm")).lower()
    fields: dict[str, Any] = {
        "norm": "layer" if named.startswith("layernorm") else "rms",
        "embedding_norm": "embedding" in named,
    }
    qk = hparams.get("qk_norm", False)
    full = (isinstance(qk, str) and qk.startswith("full")) or hparams.get("qk_norm_type") == "olmo2"
    fields["qk_norm"] = "full" if full else "head" if qk else ""
    if hparams.get("no_pre_norms") or hparams.get("norms") == "post-norm":
        fields["pre_norms"], fields["post_norms"] = False, True
    return fields


def _positions(hparams: Mapping[str, Any], source: str) -> dict[str, Any]:
    named = str(hparams.get("pos_emb", "rotary"))
    if not named.startswith("learned"):
        return {"position_embeddings": "alibi" if named.startswith("alibi") else "rotary"}
    fields: dict[str, Any] = {"position_embeddings": "learned"}
    offset = re.search(r"\+\s*(\d+) offset", named)
    if offset and KERAS not in source:  # keras-hub's tables do not have OPT's offset rows
        fields["position_offset"] = int(offset[1])
    if "context" not in hparams:
        length = re.search(r"seq(?:uence)?[ _]len(?:gth)? (\d+)", source)
        if length is None:
            raise InvalidInput("the row has learned positions and does not say how many")
        fields["max_position_embeddings"] = int(length[1])
    return fields
