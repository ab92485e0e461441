"""Bytes of a model's weights as they are stored: of one weight at a place, of an op, of a layer, of a branch."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tonnage.architectures import Block, Branch, Model
from tonnage.estimate.inputs import Origin
from tonnage.ops import Op, Weight


class WeightPlace(Struct, frozen=True):
    """Where a weight is: in layer `layer` of the language model, beside its layers, in a tower, or in a draft."""

    kind: Literal["layer", "outside", "vision", "audio", "draft"] = "outside"
    layer: int = 0


OUTSIDE = WeightPlace()
Size = Callable[[Weight, WeightPlace], float]


class Storage(Struct, frozen=True, eq=False):
    """Bytes of a weight (all its copies) at a place; and where that is known from.

    `origin`: "default" where nobody said it; `by_layer`: layers of one kind can differ.
    """

    name: str
    source: str
    bytes_of: Size
    origin: Origin = "model"
    by_layer: bool = False
    ops: Mapping[Op, WeightPlace] = {}
    blocks: Mapping[Block, tuple[WeightPlace, ...]] = {}


@lru_cache(maxsize=512)
def block_bytes(model: Model, stored: Storage, block: Block) -> dict[tuple[str, int], tuple[int, float]]:
    """One layer of this kind: (split, heads) -> (parameters, bytes), the mean over the layers where they can differ."""
    places = stored.blocks.get(block) or (OUTSIDE,)
    if not stored.by_layer:
        places = places[:1]
    totals: dict[tuple[str, int], tuple[int, float]] = {}
    for weight in block.weights():
        size = sum(stored.bytes_of(weight, place) for place in places) / len(places)
        _add(totals, weight, size)
    return totals


def op_bytes(stored: Storage, op: Op) -> list[tuple[Weight, float]]:
    """Each weight of an op outside the layers with its bytes."""
    return [(weight, stored.bytes_of(weight, stored.ops.get(op, OUTSIDE))) for weight in op.weights()]


def _add(totals: dict[tuple[str, int], tuple[int, float]], weight: Weight, size: float) -> None:
    cut = (weight.split, weight.heads if weight.split == "kv" else 0)
    count, total = totals.get(cut, (0, 0.0))
    totals[cut] = (count + weight.num_parameters, total + size)


def branch_bytes(model: Model, stored: Storage, branch: Branch) -> float:
    """All weights of a branch of the model."""
    loose = sum(size for op in branch.before + branch.after for _, size in op_bytes(stored, op))
    counts = zip(branch.blocks, branch.counts(), strict=True)
    return loose + sum(size * n for block, n in counts for _, size in block_bytes(model, stored, block).values())
