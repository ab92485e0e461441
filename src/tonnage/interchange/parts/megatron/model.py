"""The model that dimensions of Megatron-LM describe, as a config of a generic decoder."""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.megatron.values import switch
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message

KEYS = (
    "num-layers",
    "decoder-num-layers",
    "hidden-size",
    "num-attention-heads",
    "group-query-attention",
    "num-query-groups",
    "kv-channels",
    "ffn-hidden-size",
    "vocab-size",
    "padded-vocab-size",
    "make-vocab-size-divisible-by",
    "no-pad-vocab-size",
    "disable-pad-vocab-size",
    "max-position-embeddings",
    "untie-embeddings-and-output-weights",
    "swiglu",
    "quick-geglu",
    "openai-gelu",
    "squared-relu",
    "normalization",
    "disable-bias-linear",
    "add-qkv-bias",
    "qk-layernorm",
    "position-embedding-type",
    "use-rotary-position-embeddings",
    "no-position-embedding",
    "relative-attention-num-buckets",
    "window-size",
    "window-attn-skip-freq",
    "num-experts",
    "moe-router-topk",
    "moe-ffn-hidden-size",
    "moe-shared-expert-intermediate-size",
    "moe-layer-freq",
    "moe-router-enable-expert-bias",
    "multi-latent-attention",
    "q-lora-rank",
    "kv-lora-rank",
    "qk-head-dim",
    "qk-pos-emb-head-dim",
    "v-head-dim",
    "tokenizer-type",
    "tokenizer-model",
)
# Of a generic decoder, the fields that are options of a question; with others the model is a config.
OPTIONS = {
    "num_hidden_layers": ("num-layers", "decoder-num-layers"),
    "hidden_size": ("hidden-size",),
    "num_attention_heads": ("num-attention-heads",),
    "num_key_value_heads": ("group-query-attention", "num-query-groups"),
    "head_dim": ("kv-channels",),
    "intermediate_size": ("ffn-hidden-size", "swiglu"),
    "vocab_size": (
        "vocab-size",
        "padded-vocab-size",
        "make-vocab-size-divisible-by",
        "no-pad-vocab-size",
        "disable-pad-vocab-size",
        "tokenizer-type",
        "tokenizer-model",
    ),
    "max_position_embeddings": ("max-position-embeddings",),
    "tie_word_embeddings": ("untie-embeddings-and-output-weights",),
    "num_experts": ("num-experts",),
    "num_experts_per_tok": ("moe-router-topk",),
    "moe_intermediate_size": ("moe-ffn-hidden-size",),
}
# A decoder of GPT-2 has these, and is a family of its own.
OF_GPT2 = {
    "norm": "layer",
    "mlp": "plain",
    "mlp_bias": True,
    "attention_bias": True,
    "attention_out_bias": True,
    "position_embeddings": "learned",
}
# What a config says of parts that a Llama has, so that none of it is left to defaults.
LIKE_LLAMA = {
    "norm": "rms",
    "mlp": "gated",
    "mlp_bias": False,
    "attention_bias": False,
    "attention_out_bias": False,
    "embedding_norm": False,
    "lm_head_bias": False,
    "position_embeddings": "rotary",
    "pre_norms": True,
    "post_norms": False,
    "shared_attention_norm": False,
}
OF_ATTENTION = ("num_key_value_heads", "head_dim", "qk_norm", "sliding_window", "sliding_layers")
VOCABULARIES = {  # tokens of tokenizers that are one alone
    "GPT2BPETokenizer": 50257,
    "Llama2Tokenizer": 32000,
    "BertWordPieceLowerCase": 30522,
    "BertWordPieceCase": 28996,
}
POSITIONS = {
    "learned_absolute": "learned",
    "rope": "rotary",
    "yarn": "rotary",
    "mrope": "rotary",
    "none": "none",
    "relative": "relative",
}
NORMS = {"LayerNorm": "layer", "RMSNorm": "rms"}
LARGEST = 2**34  # of a dimension
_PATTERN = re.compile(r"\(?\[0\]\*?(\d*)\+\[1\]\*?(\d*)\)?")


def read_model(r: Reading, tensor: int) -> None:
    """Read the model: one that whoever asks names, else one of these dimensions."""
    present = [key for key in KEYS if key in r.values]
    if r.asker.model:
        _compare(r)
    if r.asker.model or r.question.get("model"):
        r.put("model", None, *present)
        return
    if not (r.has("num-layers") or r.has("decoder-num-layers") or r.has("hidden-size")):
        raise InvalidInput(
            "{file} has no dimensions of a model, such as --num-layers: name it with --model.", file=r.source.name
        )
    fields = decoder_of(r, tensor)
    rest = {name: value for name, value in fields.items() if name not in OPTIONS}
    family = "generic" if not rest else "gpt2" if _is_gpt2(fields, rest) else ""
    if not family:
        r.put("model", {"model_type": "generic", **LIKE_LLAMA, **fields}, *present)
        return
    r.put("family", family, *present)
    for name, keys in OPTIONS.items():
        if name in fields and not (family == "gpt2" and name in ("num_key_value_heads", "head_dim")):
            r.put(name, fields[name], *(key for key in keys if r.has(key)))


def decoder_of(r: Reading, tensor: int) -> dict[str, Any]:
    """Fields of a generic decoder (architectures/generic.py) for the dimensions of a source."""
    layers = _size(r, "num-layers") or _size(r, "decoder-num-layers")
    hidden, heads = _size(r, "hidden-size"), _size(r, "num-attention-heads")
    missing = [
        name
        for name, value in (("num-layers", layers), ("hidden-size", hidden), ("num-attention-heads", heads))
        if not value
    ]
    if missing:
        raise InvalidInput(
            "{file} has dimensions of a model, but no --{name}: say it, or name the model with --model.",
            file=r.source.name,
            name=missing[0],
        )
    gated = switch(r, "swiglu") or switch(r, "quick-geglu")
    inner = _size(r, "ffn-hidden-size") or (hidden * 8 // 3 // 64 * 64 if switch(r, "swiglu") else 4 * hidden)
    groups = _size(r, "num-query-groups")
    fields: dict[str, Any] = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": groups if groups and _is_grouped(r) else heads,
        "head_dim": _size(r, "kv-channels") or max(1, hidden // heads),
        "intermediate_size": inner,
        "vocab_size": vocabulary(r, tensor),
        "tie_word_embeddings": not switch(r, "untie-embeddings-and-output-weights"),
    }
    if r.has("max-position-embeddings"):
        fields["max_position_embeddings"] = _size(r, "max-position-embeddings")
    fields |= _style(r, gated) | _windows(r, layers) | _experts(r, inner, layers)
    if "num_experts" in fields and "first_k_dense_replace" not in fields:
        del fields["intermediate_size"]  # no layer has it
    latent = _latent(r)
    if latent:  # it has norms and widths of its own
        return {name: fields[name] for name in fields if name not in OF_ATTENTION} | latent
    return fields


def vocabulary(r: Reading, tensor: int) -> int:
    """Rows of the table: the padded vocabulary."""
    if r.has("padded-vocab-size"):
        return _size(r, "padded-vocab-size")
    tokens = _size(r, "vocab-size") or _of_tokenizer(r)
    if not tokens:
        raise InvalidInput(
            "{file} does not say how many tokens the vocabulary has: add --vocab-size, or name the model with --model.",
            file=r.source.name,
        )
    if switch(r, "no-pad-vocab-size") or switch(r, "disable-pad-vocab-size"):
        return tokens
    r.assume("make-vocab-size-divisible-by", 128)
    multiple = max(1, _size(r, "make-vocab-size-divisible-by") or 128) * tensor
    return -(-tokens // multiple) * multiple


def _of_tokenizer(r: Reading) -> int:
    kind = r.text("tokenizer-type") if r.has("tokenizer-type") else ""
    if kind in VOCABULARIES:
        return VOCABULARIES[kind]
    name = r.text("tokenizer-model") if r.has("tokenizer-model") else ""
    if not name:
        return 0
    from tonnage.models import kind as kind_of
    from tonnage.models import read

    try:
        return read(name, offline=True).vocab_size or 0 if kind_of(name) == "catalogue" else 0
    except TonnageError:
        return 0


def _size(r: Reading, key: str) -> int:
    """A size; 0 where it is not said."""
    return r.size(key, largest=LARGEST)


def _is_grouped(r: Reading) -> bool:
    """Groups count with --group-query-attention, or in a file that has no such key."""
    return switch(r, "group-query-attention") or r.source.kind in ("yaml", "json")


def _style(r: Reading, gated: bool) -> dict[str, Any]:
    """Norms, biases and positions, where they are not a Llama's."""
    fields: dict[str, Any] = {}
    if r.choice("normalization", NORMS, "layer") == "layer":
        fields["norm"] = "layer"
    if not gated:
        fields["mlp"] = "plain"
    biases = not switch(r, "disable-bias-linear")
    if biases:
        fields |= {"mlp_bias": True, "attention_out_bias": True}
    if biases or switch(r, "add-qkv-bias"):
        fields["attention_bias"] = True
    if switch(r, "qk-layernorm"):
        fields["qk_norm"] = "head"
    positions = r.choice("position-embedding-type", POSITIONS, "learned")
    if switch(r, "use-rotary-position-embeddings"):
        positions = "rotary"
    if positions == "learned" and switch(r, "no-position-embedding"):
        positions = "none"
    if positions == "relative":
        r.unsure("position-embedding-type", "relative positions are not estimated in a decoder")
        positions = "none"
    if positions != "rotary":
        fields["position_embeddings"] = positions
    if positions == "learned" and not r.has("max-position-embeddings"):
        fields["max_position_embeddings"] = _size(r, "seq-length")
    return fields


def _windows(r: Reading, layers: int) -> dict[str, Any]:
    if not r.has("window-size"):
        return {}
    window = r.get("window-size")
    numbers = re.findall(r"-?\d+", str(window))
    if not numbers or int(numbers[0]) < 0:
        return {}
    fields: dict[str, Any] = {"sliding_window": min(LARGEST, int(numbers[0]) + 1)}  # and the token itself
    every = r.get("window-attn-skip-freq")
    if every is None:
        return fields
    if str(every).strip().isdecimal() and int(every) > 0:
        return {**fields, "sliding_layers": layers - layers // int(every)}
    r.unsure("window-attn-skip-freq", "only one full layer in so many is estimated, not a list of layers")
    return fields


def _experts(r: Reading, inner: int, layers: int) -> dict[str, Any]:
    if not r.has("num-experts"):
        return {}
    expert = _size(r, "moe-ffn-hidden-size") or inner
    r.assume("moe-router-topk", 2)
    fields: dict[str, Any] = {
        "num_experts": _size(r, "num-experts"),
        "num_experts_per_tok": _size(r, "moe-router-topk") or 2,
        "moe_intermediate_size": expert,
    }
    shared = _size(r, "moe-shared-expert-intermediate-size")
    if shared:
        if shared % expert:
            r.unsure(
                "moe-shared-expert-intermediate-size",
                Message("only a multiple of an expert's width, {expert}, is estimated", expert=expert),
            )
        fields["n_shared_experts"] = max(1, shared // expert)
    if switch(r, "moe-router-enable-expert-bias"):
        fields["router_correction_bias"] = True
    dense = _dense_layers(r, layers)
    if dense:
        fields["first_k_dense_replace"] = dense
    return fields


def _dense_layers(r: Reading, layers: int) -> int:
    """How many layers before all others have no experts."""
    text = re.sub(r"\s", "", str(r.get("moe-layer-freq", 1)))
    if text in ("1", "[1]"):
        return 0
    if match := _PATTERN.fullmatch(text):
        dense, mixed = int(match[1] or 1), int(match[2] or 1)
        if dense + mixed == layers:
            return dense
    if re.fullmatch(r"\[(0,)*(1,)*1\]", text):
        return text.count("0")
    r.unsure("moe-layer-freq", "only layers without experts before all others are estimated")
    return 0


def _latent(r: Reading) -> dict[str, Any]:
    if not switch(r, "multi-latent-attention"):
        return {}
    for key, value in (("kv-lora-rank", 32), ("qk-head-dim", 128), ("qk-pos-emb-head-dim", 64), ("v-head-dim", 128)):
        r.assume(key, value)
    fields = {
        "kv_lora_rank": _size(r, "kv-lora-rank") or 32,
        "qk_nope_head_dim": _size(r, "qk-head-dim") or 128,
        "qk_rope_head_dim": _size(r, "qk-pos-emb-head-dim") or 64,
        "v_head_dim": _size(r, "v-head-dim") or 128,
    }
    rank = _size(r, "q-lora-rank")
    return {**fields, "q_lora_rank": rank} if rank else fields


def _is_gpt2(fields: Mapping[str, Any], rest: Mapping[str, Any]) -> bool:
    if dict(rest) != OF_GPT2 or not fields["tie_word_embeddings"] or "num_experts" in fields:
        return False
    heads = fields["num_attention_heads"]
    return bool(fields["num_key_value_heads"] == heads and fields["head_dim"] * heads == fields["hidden_size"])


def _compare(r: Reading) -> None:
    """A note where the model that is named has other dimensions than the file."""
    from tonnage.models import read

    try:
        model = read(r.asker.model, offline=True)
    except TonnageError:
        return
    for key, value in (("num-layers", model.decoder.num_layers), ("hidden-size", model.hidden_size)):
        if r.has(key) and r.integer(key) != value:
            r.notes.append(
                Message(
                    "{key} is {given} in {file}, and {value} of {model}, which is estimated.",
                    key=key,
                    given=r.integer(key),
                    file=r.source.name,
                    value=value,
                    model=r.asker.model,
                )
            )
