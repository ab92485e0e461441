"""GGUF file types: the precision that each one stores a tensor in.

A GGUF file type such as Q4_K_M is a mixture: `llama-quantize` gives each tensor a type by its role, its layer and the
model's shape. `tensor_type` restates that choice (llama.cpp, src/llama-quant.cpp, read at commit 007dbbf on
2026-11-21), without Falcon's exceptions. Whether an importance matrix was at hand changes some of it. Files made before
these rules (8784689 has the older ones) differ where queries, keys and values are one matrix: Phi-3 by up to 6 %.
"""

from functools import lru_cache

from msgspec import Struct

from tonnage.kernel.registry import Registry
from tonnage.numerics.precisions import PRECISIONS, Precision

SOURCE = "llama.cpp, src/llama-quant.cpp"


class FileType(Struct, frozen=True, kw_only=True):
    """A GGUF file type: the type of most tensors, and of embedding and head where the publisher fixes them (`_L`
    files).
    """

    name: str
    base: str
    tables: str = ""
    mixture: str = ""  # the file type whose rules hold, where the name adds only `tables`


class Shape(Struct, frozen=True, kw_only=True):
    """The facts of a model that the rules depend on. `num_values`: layers with values (attn_v, attn_qkv), where not all
    have them; `groups`: query heads a KV head; `tied`: no output matrix of its own; `imatrix`: an importance matrix was
    used.
    """

    num_layers: int
    num_values: int | None = None
    groups: int = 1
    num_experts: int = 0
    tied: bool = False
    imatrix: bool = False

    @property
    def is_70b(self) -> bool:
        """Whether the model is Llama 70B, which llama.cpp recognises by its 80 layers and grouped attention."""
        return self.num_layers == 80 and self.groups > 1


FILE_TYPES: Registry[FileType] = Registry("GGUF file type")
_BASES = {
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "q4_0": "q4_0",
    "q4_1": "q4_1",
    "q5_0": "q5_0",
    "q5_1": "q5_1",
    "q8_0": "q8_0",
    "q2_k": "q2_k",
    "q2_k_s": "q2_k",
    "q3_k_s": "q3_k",
    "q3_k_m": "q3_k",
    "q3_k_l": "q3_k",
    "q4_k_s": "q4_k",
    "q4_k_m": "q4_k",
    "q5_k_s": "q5_k",
    "q5_k_m": "q5_k",
    "q6_k": "q6_k",
    "iq1_s": "iq1_s",
    "iq1_m": "iq1_m",
    "iq2_xxs": "iq2_xxs",
    "iq2_xs": "iq2_xs",
    "iq2_s": "iq2_xs",
    "iq2_m": "iq2_s",
    "iq3_xxs": "iq3_xxs",
    "iq3_xs": "iq3_s",
    "iq3_s": "iq3_s",
    "iq3_m": "iq3_s",
    "iq4_nl": "iq4_nl",
    "iq4_xs": "iq4_xs",
    "tq1_0": "tq1_0",
    "tq2_0": "tq2_0",
    "q1_0": "q1_0",
    "q2_0": "q2_0",
    "mxfp4_moe": "mxfp4",
}
for _name, _base in _BASES.items():
    FILE_TYPES.add(_name, FileType(name=_name, base=_base))
_LARGE = {"q2_k_l": "q2_k", "q3_k_xl": "q3_k_l", "q4_k_l": "q4_k_m", "q5_k_l": "q5_k_m", "q6_k_l": "q6_k"}
for _name, _like in _LARGE.items():
    FILE_TYPES.add(_name, FileType(name=_name, base=_BASES[_like], tables="q8_0", mixture=_like))
ALIASES = {"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m", "fp16": "f16", "fp32": "f32", "mxfp4": "mxfp4_moe"}


def file_type(name: str) -> FileType:
    """The file type of this name: Q4_K_M, q4-k-m, MOSTLY_Q4_K_M."""
    return FILE_TYPES[_plain(name)]


def is_file_type(name: str) -> bool:
    """Whether there is a file type of this name."""
    return _plain(name) in FILE_TYPES


def _plain(name: str) -> str:
    plain = name.strip().lower().replace("-", "_").removeprefix("mostly_").removeprefix("all_")
    return ALIASES.get(plain, plain)


@lru_cache(maxsize=8192)
def role(name: str, part: str, columns: int) -> str:
    """GGUF's name for a tensor of an op (ops.Weight), as far as the rules tell them apart.

    "plain" is fp32 in every file, "kept" 16 bits wide. The rules treat gate and up the same, so "ffn_up" is both; a
    tensor that they do not know is "other".
    """
    parts = name.removesuffix(".weight").split(".")
    stem = parts[-2] if parts[-1] == "proj" and len(parts) > 2 else parts[-1]
    if columns == 1 or part in ("norm", "router") or not name.endswith(".weight") or any(w in name for w in _PLAIN):
        return "plain"
    if any(word in name for word in _KEPT):
        return "kept"
    if part in ("mlp", "experts"):
        down = stem in _DOWN and name != "mlp.w2.weight"  # Qwen's gate
        return "ffn_down" if down or name.endswith("output.dense.weight") else "ffn_up"
    if part == "attention" or (part == "mixer" and "self_attn." in name):
        return _ATTENTION.get(stem, "other")
    if part == "mixer" and stem == "in_proj_qkv":
        return "attn_qkv"
    return {"embedding": "token_embd", "head": "output"}.get(part, "other")


# What is never quantised: positions and token types, short convolutions; and Gemma 3n's small matrices.
_PLAIN = ("conv1d", "conv.conv", "position_embeddings", "token_type_embeddings", "embed_positions", "wpe.")
_KEPT = ("altup", "laurel", "per_layer_model_projection")
_DOWN = ("down_proj", "w2", "c_proj", "fc2", "fc_out", "dense_4h_to_h", "output_linear", "linear_1", "wo", "Wo")
_ATTENTION = {
    **dict.fromkeys(("q_proj", "q", "query", "q_lin"), "attn_q"),
    **dict.fromkeys(("k_proj", "k", "key", "k_lin"), "attn_k"),
    **dict.fromkeys(("v_proj", "v", "value", "v_lin"), "attn_v"),
    **dict.fromkeys(("qkv_proj", "query_key_value", "Wqkv", "c_attn", "qkv"), "attn_qkv"),
    **dict.fromkeys(("o_proj", "out_proj", "dense", "c_proj", "o", "wo", "Wo", "out_lin", "output"), "attn_output"),
}
VALUES = ("attn_v", "attn_qkv")
_LOW = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m")
_FALLBACK = {
    "q2_k": "q4_0",
    "q3_k": "q4_0",
    "tq1_0": "q4_0",
    "tq2_0": "q4_0",
    "q2_0": "q4_0",
    "q4_k": "q5_0",
    "q5_k": "q5_1",
    "q6_k": "q8_0",
}


def tensor_type(
    kind: FileType, what: str, layer: int, shape: Shape, columns: int = 256, experts: bool = False
) -> Precision:
    """The precision of a tensor of role `what` in the `layer`-th layer that has one."""
    if what == "plain":
        return PRECISIONS["fp32"]
    if kind.base in ("fp32", "fp16", "bf16"):
        return PRECISIONS[kind.base]
    if what == "kept":
        return PRECISIONS["fp16"]
    fixed = kind.tables if what in ("token_embd", "output") else ""
    chosen = fixed or _mixture(kind, what, layer, shape, columns, experts)
    block = PRECISIONS[chosen].block
    if columns % block:
        chosen = _FALLBACK.get(chosen, "iq4_nl")
        chosen = "fp16" if columns % PRECISIONS[chosen].block else chosen
    return PRECISIONS[chosen]


def _mixture(kind: FileType, what: str, layer: int, shape: Shape, columns: int, experts: bool) -> str:
    name = kind.mixture or kind.name
    if what == "output" or (what == "token_embd" and shape.tied):
        return _output(name, kind.base, columns)
    if name == "mxfp4_moe":
        return "mxfp4" if experts else "q8_0"
    if what == "token_embd":
        return _EMBEDDING.get(name, kind.base)
    if name in _LOW:
        return _low(name, kind.base, what, layer, shape)
    if what in VALUES:
        return _values(name, kind.base, layer, shape)
    if what == "ffn_down":
        return _down(name, kind.base, layer, shape)
    if what == "attn_output":
        return _attention_output(name, kind.base, shape)
    if what in ("attn_q", "attn_k"):
        return _queries(name, kind.base, what, shape)
    middle = shape.num_layers // 8 <= layer < 7 * shape.num_layers // 8
    return "iq3_xxs" if name == "iq3_xs" and what == "ffn_up" and middle else kind.base


_EMBEDDING = {
    "iq1_s": "q2_k",
    "iq1_m": "q2_k",
    "iq2_xxs": "q2_k",
    "iq2_xs": "q2_k",
    "iq2_s": "iq3_s",
    "iq2_m": "iq3_s",
    "iq3_xxs": "iq3_s",
    "tq1_0": "q4_k",
    "tq2_0": "q4_k",
    "q2_0": "q4_k",
}


def more_bits(layer: int, layers: int) -> bool:
    """Whether the _M mixtures spend more bits on this layer: the first and last eighth, and every third between."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def _output(name: str, base: str, columns: int) -> str:
    if name == "mxfp4_moe" or base == "q8_0" or columns % PRECISIONS[base].block:
        return "q8_0"
    return "q5_k" if name in (*_LOW, "iq3_xxs") else "q6_k"


def _low(name: str, base: str, what: str, layer: int, shape: Shape) -> str:
    """The precision of a tensor in file types below three bits."""
    wide = "iq3_s" if name in ("iq2_s", "iq2_m") else "q2_k"
    if what in VALUES:
        return "q4_k" if shape.groups >= 4 or shape.num_experts >= 4 else wide
    if what == "attn_k":
        return "q4_k" if shape.num_experts == 8 else base
    if what == "ffn_down":
        return wide if layer < shape.num_layers // 8 else base
    if what == "attn_output":
        if shape.num_experts == 8:
            return "q5_k"
        return {"iq1_s": "iq2_xxs", "iq1_m": "iq2_xxs", "iq2_s": "iq3_s", "iq2_m": "iq3_s"}.get(name, base)
    return base


def _values(name: str, base: str, layer: int, shape: Shape) -> str:
    """The precision of attn_v, which is small under grouped attention, sensitive, and gets more bits than the rest.
    `layer`: counted among the layers that have it.
    """
    wide = shape.groups >= 4
    more = more_bits(layer, shape.num_layers if shape.num_values is None else shape.num_values)
    chosen = {
        "q2_k": "q4_k" if wide else "q3_k",
        "q2_k_s": "q4_k" if wide else base,
        "q3_k_m": "q5_k" if layer < 2 else "q4_k",
        "q3_k_l": "q5_k",
        "q4_k_s": "q5_k" if layer < 4 else base,
        "q4_k_m": "q6_k" if more else base,
        "q5_k_m": "q6_k" if more else base,
        "iq3_xxs": "q4_k" if wide else "iq3_xxs" if shape.imatrix else "iq3_s",
        "iq3_xs": "q4_k" if wide else base,
        "iq3_s": "q4_k" if wide else base,
        "iq3_m": "q4_k",
        "iq4_nl": "q5_k" if wide else base,
        "iq4_xs": "q5_k" if wide else base,
    }.get(name, base)
    if shape.is_70b and chosen in ("q3_k", "q4_k"):
        chosen = "q5_k"
    return "q8_0" if shape.num_experts == 8 else chosen


def _down(name: str, base: str, layer: int, shape: Shape) -> str:
    """The precision of ffn_down, also sensitive: more bits in the first eighth of the layers, or in most."""
    first, most = layer < shape.num_layers // 8, more_bits(layer, shape.num_layers)
    plain = not shape.imatrix
    if name == "iq3_m" and not first and shape.num_experts == 8 and most:
        return "q4_k"
    return {
        "q2_k": "q3_k",
        "q2_k_s": "q4_k" if first else base,
        "iq3_xxs": ("q4_k" if first else "q3_k") if plain else base,
        "q3_k_m": "q5_k" if layer < shape.num_layers // 16 else "q4_k",
        "q3_k_l": "q5_k",
        "iq3_m": "q4_k" if first else base,
        "q4_k_m": "q6_k" if most else base,
        "q5_k_m": "q6_k" if most else base,
        "q4_k_s": "q5_k" if first else base,
        "iq4_nl": "q5_k" if first and plain else base,
        "iq4_xs": "q5_k" if first and plain else base,
        "q4_0": "q4_1" if first and shape.imatrix else base,
        "q5_0": "q5_1" if first and shape.imatrix else base,
    }.get(name, base)


def _attention_output(name: str, base: str, shape: Shape) -> str:
    if shape.num_experts == 8:
        return "q5_k" if name in _EIGHT_EXPERTS else base
    return {"q2_k": "q3_k", "iq3_xxs": "iq3_s", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}.get(name, base)


_EIGHT_EXPERTS = (
    "q2_k",
    "iq3_xs",
    "iq3_xxs",
    "q3_k_s",
    "q3_k_m",
    "iq4_nl",
    "q4_k_s",
    "q4_k_m",
    "iq3_s",
    "iq3_m",
    "iq4_xs",
)


def _queries(name: str, base: str, what: str, shape: Shape) -> str:
    if what == "attn_k" and shape.num_experts == 8:
        return "q8_0"
    return {"iq3_xs": "iq3_xxs", "iq3_xxs": "iq2_s"}.get(name, base)
