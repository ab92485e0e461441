"""Pipelines by counts of stages of each kind: how far stages get whose seconds are limited, and the fewest seconds in
all. Exact, and small where a pool has few kinds: what is known of a pipeline before any program is solved.
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

Path = tuple[int, int, int]  # of a stage: its kind, its first layer, the layer after its last
Furthest = Callable[
    [int, int, int], int
]  # of a kind, at a place, from a layer on: the layer after the last that it can have


def reaches_end(furthest: Furthest, most: Sequence[int], stages: int, layers: int) -> bool:
    """Whether some order of so many stages, at most `most` of each kind, has all layers.

    A run that begins later or ends earlier takes no more seconds and bytes, so of equal counts of stages the furthest
    layer is all that matters.
    """
    front: dict[tuple[int, ...], int] = {(0,) * len(most): 0}
    for place in range(stages):
        later = stages - 1 - place
        after: dict[tuple[int, ...], int] = {}
        for used, start in front.items():
            for kind, room in enumerate(most):
                if used[kind] >= room:
                    continue
                stop = min(furthest(kind, place, start), layers - later)
                if stop > start:
                    counts = (*used[:kind], used[kind] + 1, *used[kind + 1 :])
                    if after.get(counts, 0) < stop:
                        after[counts] = stop
        front = after
    return any(stop >= layers for stop in front.values())


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
