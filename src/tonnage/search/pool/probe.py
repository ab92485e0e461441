"""Costs of layers from a few stages that the estimator measures: each kind of layer, and what stages, the first and
the last one have besides.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from tonnage.architectures import Model

NOTHING = 1e-12  # of the whole
Measure = Callable[[tuple[int, ...], int], float]  # layers of each stage, and which stage is asked for


class Slopes(NamedTuple):
    """Of each layer, of a stage besides its layers, and what the first and the last one have more than that."""

    layers: tuple[float, ...]
    fixed: float
    first: float
    last: float


def stages_to_probe(layers: int) -> int:
    """A first, a middle and a last stage, as far as there are layers."""
    return min(3, layers)


def slopes(model: Model, measure: Measure) -> Slopes:
    """What a quantity that adds up over layers takes of each. The kind of a layer says all of it.

    What a stage has besides is that of one with all kinds: the largest moment of a pass counts once, however many
    layers have it.
    """
    kinds = _kinds(model)
    count, probes = len(kinds), stages_to_probe(len(kinds))
    head = cache(lambda layers: measure(_layout(count, probes, 0, 0, layers), 0))
    if count == 1:
        return Slopes((0.0,), 0.0, head(1), 0.0)
    by_kind = {}
    for kind, number in {kind: number for number, kind in enumerate(kinds)}.items():
        # its last layer, when what the first one of it brings is there; a kind that only the first layer has is always
        # in the first stage
        if number:
            by_kind[kind] = head(number + 1) - head(number)
    of = tuple(by_kind.get(kind, 0.0) for kind in kinds)
    first = head(count) - sum(of)
    last = measure(_layout(count, probes, probes - 1, 1, count), probes - 1) - sum(of[1:])
    fixed = measure(_layout(count, probes, 1, 1, count - 1), 1) - sum(of[1:-1]) if probes == 3 else min(first, last)
    return Slopes(of, fixed, _more(first, fixed, head(count)), _more(last, fixed, head(count)))


def _more(this: float, than: float, scale: float) -> float:
    """The difference, without what rounding leaves: stages that are alike are so to the last bit."""
    return this - than if abs(this - than) > NOTHING * abs(scale) else 0.0


def _kinds(model: Model) -> Sequence[object]:
    return tuple(model.decoder.layers)


def _layout(count: int, probes: int, place: int, start: int, stop: int) -> tuple[int, ...]:
    """A pipeline in which this place has these layers; others have what is left of them."""
    if probes == 1:
        return (count,)
    if probes == 2 or place != 1:
        ahead = stop if place == 0 else start
        rest = [0] * (probes - 2)
        return (ahead, *rest, count - ahead)
    return (start, stop - start, count - stop)


def dealt_out(runs: Sequence[object]) -> tuple[int, ...]:
    """The number of layers in each stage of a pipeline."""
    return tuple(run.layers for run in runs)  # type: ignore[attr-defined]
