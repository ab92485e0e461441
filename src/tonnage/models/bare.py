"""A model of an unknown architecture: its layers from its tensors alone, with exact weights and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.architectures import Block, Branch, BranchKind, Model, TensorSummary
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message
from tonnage.models import overrides as fields_of
from tonnage.models.contents import Contents
from tonnage.models.tensors import Facts, Item, describe, observe, packed_bits, summarize
from tonnage.ops import (
    Core,
    Embedding,
    Head,
    Kernels,
    Op,
    Parameter,
    Part,
    Saved,
    Split,
    StateCache,
    TokenCache,
    Weight,
)

_NOT_KNOWN = "its architecture is not known, so its tensors tell its weights and nothing else"
_PARTS: dict[str, Part] = {
    "attention": "attention",
    "mixer": "mixer",
    "mlp": "mlp",
    "experts": "experts",
    "router": "router",
    "norm": "norm",
    "embedding": "embedding",
    "head": "head",
    "vision": "vision",
}
FLOATS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}


class StoredLayer(Op, frozen=True, eq=False, kw_only=True):
    """The tensors of a layer whose operations are unknown: weights are exact, everything else raises an error."""

    name: str
    items: tuple[Weight, ...]

    def weights(self) -> tuple[Weight, ...]:
        return self.items

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        raise MissingDatum(
            "what {name} keeps of each token is not known: {not_known}.", name=self.name, not_known=_NOT_KNOWN
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        raise MissingDatum(
            "what {name} keeps for backward is not known: {not_known}.", name=self.name, not_known=_NOT_KNOWN
        )

    def core(self) -> tuple[Core, ...]:
        raise MissingDatum("what {name} computes is not known: {not_known}.", name=self.name, not_known=_NOT_KNOWN)


def model_of_tensors(contents: Contents, fields: Mapping[str, Any], why: str) -> Model:
    """The Model whose branches are the stored tensors."""
    items = describe(contents.tensors or [], packed_bits(fields))
    facts = observe(items)
    summary = summarize(items, contents.form, contents.files, facts.model_layers or None)
    note = Message(
        "Built from the tensors alone, because {why}: weights are exact; caches, activations and FLOPs are not known.",
        why=why,
    )
    return Model(
        name=contents.name,
        family="tensors",
        architecture=_class_name(fields),
        hidden_size=facts.width or 0,
        vocab_size=facts.rows or 0,
        context=_size(fields, "max_position_embeddings"),
        branches=tuple(_branches(items, facts, fields)),
        tied=not facts.head and facts.rows is not None,
        dtype=dominant_float(summary),
        quantization=_section(fields, "quantization_config"),
        config=fields,
        notes=(*contents.notes, note),
        tensors=summary,
        source=contents.source,
    )


def dominant_float(summary: TensorSummary) -> str | None:
    """The plain float type that most parameters are stored in; None where most are not plain floats."""
    by_type = summary.parameters_by_dtype
    return FLOATS.get(max(by_type, key=by_type.__getitem__, default=""))


def _class_name(fields: Mapping[str, Any]) -> str:
    names = fields.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    return str(fields.get("model_type") or "")[:100]


def _size(fields: Mapping[str, Any], key: str) -> int | None:
    value = fields_of.get(fields, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _section(fields: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else None


def _branches(items: Sequence[Item], facts: Facts, fields: Mapping[str, Any]) -> list[Branch]:
    sides: dict[BranchKind, list[Item]] = {"vision": [], "audio": [], "draft": []}
    layers: dict[int, list[Item]] = {}
    rest: list[Item] = []
    for item in items:
        if item.role != "weight":
            continue
        if item.draft or (item.layer is not None and item.layer >= facts.model_layers):
            sides["draft"].append(item)
        elif item.part in ("vision", "audio"):
            sides["vision" if item.part == "vision" else "audio"].append(item)
        elif item.layer is not None:
            layers.setdefault(item.layer, []).append(item)
        else:
            rest.append(item)
    others = [_side(kind, members, facts) for kind, members in sides.items() if members]
    return [_decoder(rest, layers, facts, fields), *others]


def _side(kind: BranchKind, items: list[Item], facts: Facts) -> Branch:
    part: Part = "vision" if kind == "vision" else "other"
    ops = tuple(Parameter(name=item.tensor.name, elements=item.parameters, part=part) for item in items)
    return Branch(name=kind, kind=kind, hidden_size=facts.width or 0, before=ops)


def _decoder(rest: list[Item], layers: dict[int, list[Item]], facts: Facts, fields: Mapping[str, Any]) -> Branch:
    before: list[Op] = []
    after: list[Op] = []
    for item in rest:
        name, shape = item.tensor.name.removesuffix(".weight"), item.tensor.shape
        plain = len(shape) == 2 and item.parameters == item.tensor.elements
        if plain and item.part == "embedding":
            before.append(Embedding(name=name, num_embeddings=shape[0], width=shape[1]))
        elif plain and item.part == "head":
            after.append(Head(name=name, width=shape[1], vocab_size=shape[0]))
        else:
            after.append(Parameter(name=item.tensor.name, elements=item.parameters, part=_part(item.part)))
    if not facts.head and facts.rows and facts.width:
        after.append(Head(width=facts.width, vocab_size=facts.rows, tied=True))
    blocks, order = _blocks(layers, fields)
    return Branch(
        name="decoder",
        kind="decoder",
        hidden_size=facts.width or 0,
        before=tuple(before),
        blocks=blocks,
        layers=order,
        after=tuple(after),
    )


def _blocks(layers: dict[int, list[Item]], fields: Mapping[str, Any]) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    """One block per kind of layer: layers with equal names and shapes are one kind."""
    kinds: dict[tuple[tuple[str, tuple[int, ...], int], ...], int] = {}
    blocks: list[Block] = []
    order: list[int] = []
    for number, items in sorted(layers.items()):
        named = [(item.tensor.name.partition(f".{number}.")[2], item) for item in items]
        kind = tuple(sorted((name, item.tensor.shape, item.parameters) for name, item in named))
        if kind not in kinds:
            kinds[kind] = len(blocks)
            name = Message("layers like {number}", number=number)
            blocks.append(Block(name, (StoredLayer(name=name, items=_weights(named, fields)),)))
        order.append(kinds[kind])
    return tuple(blocks), tuple(order)


def _weights(named: list[tuple[str, Item]], fields: Mapping[str, Any]) -> tuple[Weight, ...]:
    """The weights of a layer; equal tensors of numbered experts are copies of one."""
    copies: dict[tuple[str, int, int, int], int] = {}
    parts: dict[str, str] = {}
    for name, item in named:
        stem, dot, tail = name.partition("experts.")
        number, _, last = tail.partition(".")
        grouped = f"{stem}experts.{last}" if dot and number.isdecimal() else name
        key = (grouped, *_matrix(item))
        copies[key] = copies.get(key, 0) + 1
        parts[grouped] = item.part
    chosen = _size(fields, "num_experts_per_tok")
    return tuple(_weight(key, count, _part(parts[key[0]]), chosen) for key, count in copies.items())


def _weight(key: tuple[str, int, int, int], count: int, part: Part, chosen: int | None) -> Weight:
    name, stacked, rows, columns = key
    total = stacked * count
    active = min(chosen, total) if chosen and part == "experts" else None
    split: Split = "expert" if part == "experts" else "replicated"
    return Weight(name, rows, columns, total, active, split, linear=columns > 1 and part != "norm", part=part)


def _matrix(item: Item) -> tuple[int, int, int]:
    """Number of matrices in the tensor (over one for stacked experts), and their rows and columns.

    A packed tensor keeps its stored number of rows, where that divides its parameters.
    """
    shape, count = item.tensor.shape, item.parameters
    stacked, rows = (
        (shape[0], shape[1])
        if len(shape) == 3 and item.part == "experts"
        else (1, shape[0] if len(shape) > 1 else count)
    )
    if stacked * rows and count % (stacked * rows) == 0:
        return stacked, rows, count // (stacked * rows)
    return 1, count, 1


def _part(name: str) -> Part:
    return _PARTS.get(name, "other")
