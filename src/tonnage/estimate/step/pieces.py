"""Single parameters of a stage: the largest ones, and those below a size. A module's hooks work on one at a time."""

from collections.abc import Iterable
from functools import lru_cache

from tonnage.estimate.step.rank import Group, Shares, Stage, share
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.ops import Op, Weight

PLACES = ("before", "layers", "after")


def largest_weight(stage: Stage, shares: Shares, places: tuple[str, ...]) -> Term:
    """The largest parameter of these places, on one rank; experts of a layer are one parameter."""
    found = [weight for place in places if (weight := _largest(stage, place)) is not None]
    weight = max(found, key=lambda each: each.num_parameters, default=None)
    if weight is None:
        return Term.sum("no parameter", unit="parameters")
    split = "tensor" if weight.split == "vocab" else weight.split
    return share(Group(split, weight.heads, weight.num_parameters), shares).named("largest parameter")


def largest_weights(stage: Stage, shares: Shares) -> Term:
    """The largest parameter of the stage."""
    return largest_weight(stage, shares, PLACES)


@lru_cache(maxsize=4096)
def _largest(stage: Stage, place: str) -> Weight | None:
    return max(_weights(stage, place), key=lambda weight: weight.num_parameters, default=None)


def _weights(stage: Stage, place: str) -> Iterable[Weight]:
    ops: tuple[Op, ...] = {"before": stage.before, "after": stage.after + stage.table}.get(place, ())
    for op in ops:
        yield from op.weights()
    if place == "layers":
        for block, _ in stage.layers:
            yield from block.weights()


def small_parameters(stage: Stage, limit: Number) -> Number:
    """Parameters of the stage in tensors of at most `limit` elements."""
    total: Number = 0
    for size, count in _sizes(stage):
        total = total + (size <= limit) * size * count
    return total


@lru_cache(maxsize=1024)
def _sizes(stage: Stage) -> tuple[tuple[int, int], ...]:
    """(elements, number of such tensors), of the whole stage."""
    counted: dict[int, int] = {}
    for op in (*stage.ops, *stage.tower_ops):
        for weight in op.weights():
            counted[weight.num_parameters] = counted.get(weight.num_parameters, 0) + 1
    for block, count in (*stage.layers, *stage.towers):
        for weight in block.weights():
            counted[weight.num_parameters] = counted.get(weight.num_parameters, 0) + count
    return tuple(counted.items())
