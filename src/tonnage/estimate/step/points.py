"""The moments of a step on one pipeline stage: which unit is at work, which layers keep their tensors, which
gradients are made.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block
from tonnage.estimate.step.rank import Stage
from tonnage.kernel.message import Message
from tonnage.runtimes.parts.base import Moment
from tonnage.tape import Account, Extent, Key, Layer, without


class Point(Struct, frozen=True, eq=False):
    """A moment of the step.

    `place`: moments that differ in `live` alone have the same; `kept`: layers of each kind that keep their tensors, of
    the micro-batch at work; `made`: that have made their gradients; `live`: what the unit at work holds, of which
    `bytes` by extent; `everything`: every layer of the stage still keeps all of its own.
    `position`: of the layer at work; `is_later`: the backward of a first micro-batch is over; `is_last`: no
    other micro-batch is in flight.
    """

    phase: str
    moment: Moment
    operation: str
    kept: Mapping[Block, int]
    made: Mapping[Block, int]
    live: Account
    bytes: Mapping[Extent, float] = {}
    everything: bool = False
    head_made: bool = True
    table_made: bool = False
    place: int = 0
    position: int = -1
    is_later: bool = False
    is_last: bool = False


@lru_cache(maxsize=4096)
def points(
    stage: Stage,
    kinds: tuple[tuple[Block, Layer], ...],
    loss: Layer | None,
    frozen: int,
    gradients_count: bool,
    table: tuple[tuple[Key, float], ...] | None,
) -> tuple[Point, ...]:
    """The moments at which a stage can be fullest.

    `kinds`: every kind of layer on the tape; `loss`: what comes after them, on the last stage; `frozen`: layers from
    the model's first on that keep nothing; `gradients_count`: moments differ in the gradients that they have made;
    `table`: embeddings train here, and hold this when their gradient is made.
    """
    moments = tuple(_points(stage, dict(kinds), loss, frozen, gradients_count, table))
    places: dict[tuple[str, int], int] = {}
    return tuple(
        replace(point, place=places.setdefault((point.phase, id(point.kept)), len(places))) for point in moments
    )


@lru_cache(maxsize=4096)
def by_place(every: tuple[Point, ...]) -> tuple[tuple[Point, ...], ...]:
    """Moments that differ in `live` alone, together."""
    places: dict[int, list[Point]] = {}
    for point in every:
        places.setdefault(point.place, []).append(point)
    return tuple(map(tuple, places.values()))


def running(stage: Stage, frozen: int) -> tuple[Block, ...]:
    """The layers that keep something for backward: all, but for those below the first that trains."""
    return stage.order[max(frozen - stage.first_layer, 0) :]


def _points(
    stage: Stage,
    layers: dict[Block, Layer],
    loss: Layer | None,
    frozen: int,
    gradients_count: bool,
    table: tuple[tuple[Key, float], ...] | None,
) -> Iterator[Point]:
    order = running(stage, frozen)
    counts = Counter(order)
    yield Point("forward", "loss", "the last layer", counts, {}, {}, everything=True, head_made=False)
    for phase, operation, live, sizes in _moments(loss, gradients_count):
        name = "forward" if phase else "loss"
        yield Point(name, "loss", operation, counts, {}, live, sizes, everything=True, head_made=False)
    for position in sorted(_ends(order), reverse=True):
        block = order[position]
        below, above = Counter(order[:position]), Counter(order[position + 1 :])
        moment: Moment = "first layer of backward" if position else "last layer of backward"
        name = _name(order, position)
        for forward, operation, live, sizes in _moments(layers[block], gradients_count):
            if not forward:
                yield Point(name, moment, operation, below, above, live, sizes, position=position)
            else:
                yield Point("forward", "loss", operation, below, {}, live, sizes, head_made=False, position=position)
    if table is not None:
        live = dict(table)
        yield Point(
            "embedding", "last layer of backward", "embed_tokens", {}, counts, live, by_extent(live), table_made=True
        )


def _moments(layer: Layer | None, gradients_count: bool) -> Iterator[tuple[bool, str, Account, Mapping[Extent, float]]]:
    """(forward or not, operation, account, its bytes by extent) of the moments that no other exceeds in all that
    counts.
    """
    left: list[tuple[bool, str, Account, Mapping[Extent, float]]] = []
    for moment in layer.moments if layer is not None else ():
        live = moment.live if gradients_count else without(moment.live, "gradient")
        sizes = by_extent(live)
        if any(forward == moment.forward and _covers(more, sizes) for forward, _, _, more in left):
            continue
        left = [other for other in left if other[0] != moment.forward or not _covers(sizes, other[3])]
        left.append((moment.forward, moment.name, live, sizes))
    yield from left


def _covers(more: Mapping[Extent, float], less: Mapping[Extent, float]) -> bool:
    return all(more.get(extent, 0) >= size for extent, size in less.items())


def by_extent(live: Account) -> dict[Extent, float]:
    """Bytes of an account, whatever their kind."""
    sizes: dict[Extent, float] = {}
    for key, size in live.items():
        sizes[key.extent] = sizes.get(key.extent, 0) + size
    return sizes


def _name(order: tuple[Block, ...], position: int) -> str:
    if position == len(order) - 1:
        return "first layer of backward"
    if not position:
        return "last layer of backward"
    return (
        Message("backward of the last {order}", order=order[position].name)
        if order.index(order[position]) != position
        else Message("backward of the first {order}", order=order[position].name)
    )


def _ends(order: tuple[Block, ...]) -> set[int]:
    """The first and the last layer of each kind: between them memory moves one way."""
    first: dict[Block, int] = {}
    last: dict[Block, int] = {}
    for position, block in enumerate(order):
        first.setdefault(block, position)
        last[block] = position
    return {*first.values(), *last.values()}
