"""How the weights of a served model are stored: bytes of each weight, from the files' headers, the checkpoint's
quantization_config, or what the user asks for."""

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from msgspec import Struct

from tonnage.architectures import Block, Model
from tonnage.errors import UnknownName
from tonnage.ops import Attention, MoE, Op, Weight
from tonnage.precisions import ALIASES, PRECISIONS, Precision, precision
from tonnage.quantization import FILE_TYPES, FileType, Shape, checkpoint_precision, file_type, role, tensor_type
from tonnage.quantization import SOURCE as GGUF
from tonnage.registry import unknown

_DTYPE = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float64": "fp64",
    "float8_e4m3fn": "fp8-e4m3",
    "int8": "int8",
}


class Storage(Struct, frozen=True, eq=False):
    """Bytes of a weight (all its copies) in layer `layer`, None outside the layers; and where that is known from."""

    name: str
    source: str
    bytes_of: Callable[[Weight, int | None], float]
    by_layer: bool = False  # whether layers of one kind can differ


def storage(model: Model, requested: str | None) -> Storage:
    """What the user asked for, else what the headers say, else what the config says."""
    plain = precision(_DTYPE.get(model.dtype or "", "bf16"))
    if requested:
        return _requested(model, requested, plain)
    if model.tensors is not None and model.tensors.num_parameters:
        return _from_headers(model)
    if model.quantization:
        return _from_config(model.quantization, plain)
    return as_in_checkpoint(model)


def as_in_checkpoint(model: Model) -> Storage:
    """Every weight in the checkpoint's own type."""
    plain = precision(_DTYPE.get(model.dtype or "", "bf16"))
    return Storage(
        plain.name,
        "the checkpoint's dtype",
        lambda weight, layer: plain.bytes(weight.rows, weight.columns, weight.copies),
    )


def _requested(model: Model, name: str, plain: Precision) -> Storage:
    """A precision for the matrix products, or a GGUF file type, which is a mixture over roles and layers."""
    try:
        chosen = precision(name)
    except UnknownName:
        kind = gguf_file_type(name)
        shape = _shape(model)
        return Storage(kind.name, GGUF, lambda weight, layer: _gguf(weight, kind, layer, shape), by_layer=True)
    return Storage(chosen.name, chosen.source, lambda weight, layer: _stored(weight, chosen, plain))


def gguf_file_type(name: str) -> FileType:
    """The GGUF file type of this name; the error lists precisions too, since either may be meant."""
    try:
        return file_type(name)
    except UnknownName:
        raise unknown("precision or GGUF file type", name, [*PRECISIONS, *ALIASES, *FILE_TYPES]) from None


def _shape(model: Model) -> Shape:
    ops = [op for block in model.decoder.blocks for op in block.ops]
    attention = next((op for op in ops if isinstance(op, Attention)), None)
    experts = next((op.num_experts for op in ops if isinstance(op, MoE)), 0)
    groups = attention.heads // attention.kv_heads if attention else 1
    return Shape(num_layers=model.num_layers, groups=groups, num_experts=experts, tied=model.tied)


def _gguf(weight: Weight, kind: FileType, layer: int | None, shape: Shape) -> float:
    what = role(weight.name, weight.part, weight.columns)
    chosen = tensor_type(kind, what, layer or 0, shape, weight.columns, weight.part == "experts")
    return chosen.bytes(weight.rows, weight.columns, weight.copies)


def _stored(weight: Weight, chosen: Precision, plain: Precision) -> float:
    used = chosen if weight.quantizable else plain
    return used.bytes(weight.rows, weight.columns, weight.copies)


def _from_headers(model: Model) -> Storage:
    """Each part's own bytes per parameter: scales are in, and so are types that differ between parts."""
    tensors = model.tensors
    assert tensors is not None  # the caller looked
    sizes, counts = tensors.bytes_by_part, tensors.parameters_by_part
    each = {part: sizes[part] / count for part, count in counts.items() if count}
    mean = tensors.total_bytes / tensors.num_parameters
    types = "+".join(sorted({group.dtype.lower() for group in tensors.groups if group.role == "weight"}))
    return Storage(
        types,
        "the headers of the model's files",
        lambda weight, layer: weight.num_parameters * each.get(weight.part, mean),
    )


def _from_config(config: Mapping[str, Any], plain: Precision) -> Storage:
    chosen, excluded = checkpoint_precision(config), _Excluded(config)
    experts_alone = config.get("quant_method") == "mxfp4"  # transformers quantises nothing but experts to it

    def bytes_of(weight: Weight, layer: int | None) -> float:
        if experts_alone:
            used = chosen if weight.part == "experts" and weight.columns > 1 else plain
        else:
            used = chosen if weight.quantizable and not excluded(weight.name, layer) else plain
        return used.bytes(weight.rows, weight.columns, weight.copies)

    return Storage(chosen.name, "the checkpoint's quantization_config", bytes_of, by_layer=excluded.by_layer)


class _Excluded:
    """Whether a module is left unquantised: `ignore`, `exclude_modules`, `modules_to_not_convert`, in their three spellings
    (a name or part of one, a glob, a regular expression after "re:")."""

    _LAYER = re.compile(r"\.layers\.(\d+)(?=$|[.*])")

    def __init__(self, config: Mapping[str, Any]):
        listed: list[str] = []
        for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "llm_int8_skip_modules"):
            value = config.get(key)
            if isinstance(value, list):
                listed += [item for item in value if isinstance(item, str) and len(item) < 500]
        self._anywhere: list[str] = []
        self._in_layer: dict[int, list[str]] = {}
        for pattern in listed:
            found = None if pattern.startswith("re:") else self._LAYER.search("." + pattern)
            if found:
                rest = pattern[found.end() - 1 :].lstrip(".")
                self._in_layer.setdefault(int(found[1]), []).append(rest or "*")
            else:
                self._anywhere.append(pattern)
        self.by_layer = bool(self._in_layer)

    def __call__(self, weight: str, layer: int | None) -> bool:
        module = weight.removesuffix(".weight")
        if any(_matches(pattern, module) for pattern in self._anywhere):
            return True
        return layer is not None and any(_in_module(pattern, module) for pattern in self._in_layer.get(layer, ()))


@lru_cache(maxsize=100_000)
def _matches(pattern: str, module: str) -> bool:
    """A pattern that names no single layer, against a module of a layer."""
    full = f"model.layers.0.{module}"
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], full) is not None
        except re.error:
            return False
    if "*" in pattern:
        return fnmatchcase(full, pattern) or fnmatchcase(f"{full}.weight", pattern) or fnmatchcase(full, f"{pattern}.*")
    return (
        module == pattern
        or module.startswith(f"{pattern}.")
        or module.endswith(f".{pattern}")
        or f".{pattern}." in f".{module}."
    )


@lru_cache(maxsize=100_000)
def _in_module(pattern: str, module: str) -> bool:
    return fnmatchcase(module, pattern) or module == pattern or module.startswith(f"{pattern}.") or (pattern.endswith("*") and module.startswith(pattern[:-1]))  # fmt: skip


def block_bytes(model: Model, stored: Storage, block: Block) -> dict[tuple[str, int], tuple[int, float]]:
    """One layer of this kind: (split, heads) -> (parameters, bytes), the mean over the layers where they can differ.

    Quantisers leave the towers of vision and audio alone.
    """
    if (
        any(block in branch.blocks for branch in model.branches if branch.kind in ("vision", "audio"))
        and not model.tensors
    ):
        stored = as_in_checkpoint(model)
    layers: list[int | None] = [None]
    if stored.by_layer:
        main = model.decoder
        layers = [i for i, index in enumerate(main.layers) if main.blocks[index] is block] or [None]
    totals: dict[tuple[str, int], tuple[int, float]] = {}
    for weight in block.weights():
        size = sum(stored.bytes_of(weight, layer) for layer in layers) / len(layers)
        _add(totals, weight, size)
    return totals


def op_bytes(stored: Storage, op: Op) -> list[tuple[Weight, float]]:
    """Each weight of an op outside the layers with its bytes."""
    return [(weight, stored.bytes_of(weight, None)) for weight in op.weights()]


def _add(totals: dict[tuple[str, int], tuple[int, float]], weight: Weight, size: float) -> None:
    cut = (weight.split, weight.heads if weight.split == "kv" else 0)
    count, total = totals.get(cut, (0, 0.0))
    totals[cut] = (count + weight.num_parameters, total + size)
