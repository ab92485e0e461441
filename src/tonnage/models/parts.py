"""The part of a model that a tensor belongs to, by its name in checkpoints and GGUF files."""

_VISION = ("vision_tower", "visual.", "vision_model", "vision_encoder", "vision_embed", "mm_projector", "embed_vision",
           "multi_modal_projector", "image_newline", "view_seperator", "patch_merger", "vision_adapter")  # fmt: skip
_AUDIO = ("audio_tower", "audio_model", "audio_encoder", "embed_audio", "audio_projector", "speech_encoder")
_EMBEDDINGS = ("embed_tokens", "wte", "wpe", "word_embeddings", "tok_embeddings", "token_embd", "embed_in", "embed",
               "embeddings", "embed_positions", "position_embd", "position_embeddings", "embed_tokens_per_layer",
               "token_type_embeddings", "per_layer_token_embd", "shared", "token_types")  # fmt: skip
_HEADS = ("lm_head", "output", "embed_out", "head", "score", "classifier")
_NORMS = ("norm", "ln_", "layernorm", "layer_norm")
_ATTENTION = ("attn", "attention", "q_proj", "k_proj", "v_proj", "o_proj", "qkv")
_MIXERS = ("mixer", "mamba", "ssm_", "linear_attn", "conv1d", "short_conv", "shortconv", "time_mix", "rglru")
_MLPS = ("mlp", "ffn", "feed_forward", "fc1", "fc2", "dense_h_to_4h", "dense_4h_to_h", "block_sparse_moe", "moe")
_ROUTERS = (
    "gate",
    "router",
    "gate_inp",
    "ffn_gate_inp",
    "exp_probs_b",
    "shared_expert_gate",
    "ffn_gate_inp_shexp",
    "wg",
)


def part_of(name: str) -> str:
    """The part by name alone. Layers' numbers may stand as they are or as N.

    >>> part_of("model.layers.3.mlp.experts.17.gate_proj.weight")
    'experts'
    >>> part_of("blk.0.attn_norm.weight")
    'norm'
    """
    if any(word in name for word in _VISION) or name.startswith(("v.", "mm.")):
        return "vision"
    if any(word in name for word in _AUDIO) or name.startswith("a."):
        return "audio"
    names = name.split(".")
    module = names[-2] if len(names) > 1 and names[-1] in ("weight", "bias", "qweight", "weight_packed") else names[-1]
    if any(part.isdigit() or part == "N" for part in names):
        return _in_layer(name, names, module)
    if module in _EMBEDDINGS:
        return "embedding"
    if module in _HEADS or names[0] == "lm_head":
        return "head"
    return "norm" if _any(_NORMS, module) else "other"


def _in_layer(name: str, names: list[str], module: str) -> str:
    if "_exps" in module or ("experts" in names and not module.startswith("shared")):
        return "experts"
    if (
        (module in _ROUTERS and _any((*_MLPS, "gate_inp", "router", "mixer"), name))
        or "e_score_correction_bias" in names
        or "router" in names
    ):
        return "router"
    if _any(_NORMS, module):
        return "norm"
    if module in ("embed_tokens", "shared_head") or names[-3:-1] == ["shared_head", "head"]:
        return "head" if "head" in names else "embedding"
    for part, words in (("mixer", _MIXERS), ("attention", _ATTENTION), ("mlp", _MLPS)):
        if _any(words, name):
            return part
    return "other"


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)
