"""Pipelines by counts of stages of each kind: how far stages get whose seconds are limited, and the fewest seconds in
all. Exact, and small where a pool has few kinds: what is known of a pipeline before any program is solved.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

Path = tuple[int, int, int]  # of a stage: its kind, its first layer, the layer after its last


class Reach(NamedTuple):
    """How far stages of a kind reach at a place: `stops[start]` is the layer after the last that a stage can have whose
    first layer is `start`; `starts` is the bit mask of the first layers that a stage of one layer at least can have.
    """

    stops: Sequence[int]
    starts: int


def reaches_end(furthest: Callable[[int, int], Reach], most: Sequence[int], stages: int, layers: int) -> bool:
    """Whether some order of so many stages, at most `most` of each kind, has all layers.

    `furthest`: of a kind at a place. For each number of stages of each kind, a bit mask holds the layers that the next
    stage can begin with. The furthest of them alone is not enough: a stage has one layer at least, and the layer there
    may be too large for the only kind that is left.
    """
    front: dict[tuple[int, ...], int] = {(0,) * len(most): 1}
    for place in range(stages):
        last = layers - (stages - 1 - place)
        after: dict[tuple[int, ...], int] = {}
        for used, starts in front.items():
            for kind, room in enumerate(most):
                if used[kind] < room and (stops := _stops(starts, furthest(kind, place), last)):
                    counts = (*used[:kind], used[kind] + 1, *used[kind + 1 :])
                    after[counts] = after.get(counts, 0) | stops
        front = after
    return any(stops >> layers & 1 for stops in front.values())


def _stops(starts: int, reach: Reach, last: int) -> int:
    """The bit mask of the layers, `last` at most, before which a stage can end that begins with one of `starts`.

    A run that begins later or ends earlier takes no more seconds and bytes, so neighbouring first layers end at every
    layer from after the first of them to the furthest of the last.
    """
    stops, left = 0, starts & reach.starts
    while left:
        first = (left & -left).bit_length() - 1
        neighbours = left >> first
        final = first + (~neighbours & (neighbours + 1)).bit_length() - 2
        left &= -1 << (final + 1)
        stop = min(reach.stops[final], last)
        if stop > first:
            stops |= (1 << (stop + 1)) - (1 << (first + 1))
    return stops


def num_states(most: Sequence[int], stages: int) -> int:
    """The number of combinations of stage counts."""
    return prod(min(stages_of_kind, stages) + 1 for stages_of_kind in most)


def least_path(
    seconds: Callable[[int, int], np.ndarray], most: Sequence[int], stages: int, layers: int
) -> list[Path] | None:
    """(kind, start, stop) of each stage of the pipeline of fewest seconds in all; None: there is none.

    `seconds`: of a kind at a place, by first layer and by the layer after the last; inf where that may not be.
    """
    begin = np.full(layers + 1, np.inf)
    begin[0] = 0.0
    fronts: list[dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]]] = []
    front: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {
        (0,) * len(most): (begin, np.zeros(0), np.zeros(0))
    }
    for place in range(stages):
        fronts.append(front)
        after: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        for used, (least, _, _) in front.items():
            for kind, room in enumerate(most):
                if used[kind] >= room:
                    continue
                sums = least[:, None] + seconds(kind, place)
                starts = sums.argmin(axis=0)
                values = sums[starts, np.arange(layers + 1)]
                counts = (*used[:kind], used[kind] + 1, *used[kind + 1 :])
                if counts not in after:
                    after[counts] = values, starts, np.full(layers + 1, kind)
                else:
                    known, froms, kinds = after[counts]
                    better = values < known
                    after[counts] = (
                        np.where(better, values, known),
                        np.where(better, starts, froms),
                        np.where(better, kind, kinds),
                    )
        front = after
    fronts.append(front)
    ends = [(paths[0][layers], counts) for counts, paths in front.items() if paths[0][layers] < np.inf]
    return _walked_back(fronts, min(ends)[1], layers) if ends else None


def _walked_back(
    fronts: Sequence[dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]]],
    counts: tuple[int, ...],
    stop: int,
) -> list[Path]:
    path = []
    for front in reversed(fronts[1:]):
        _, starts, kinds = front[counts]
        kind, start = int(kinds[stop]), int(starts[stop])
        path.append((kind, start, stop))
        counts = (*counts[:kind], counts[kind] - 1, *counts[kind + 1 :])
        stop = start
    return path[::-1]
