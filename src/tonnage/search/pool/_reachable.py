"""How far stages get whose seconds are limited: exact, by counts of stages of each kind. What is known of a pipeline before any program is solved."""

from bisect import bisect_right
from collections.abc import Callable

Seconds = Callable[[int, int, int, int], float]  # of a kind, at a place, from a layer to another; inf where it does not fit


def reaches_end(seconds: Seconds, most: list[int], places: list[object], layers: int, limit: float) -> bool:
    """Whether some order of so many stages, at most `most` of each kind, has all layers while none takes longer than `limit`.

    A run that begins later or ends earlier takes no more seconds and bytes, so of equal counts of stages the furthest layer is all that
    matters. `places`: what tells a place from another; alike ones are asked once.
    """
    known: dict[tuple[int, object, int], int] = {}
    stages = len(places)

    def furthest(kind: int, place: int, start: int) -> int:
        key = kind, places[place], start
        if key not in known:
            known[key] = start + bisect_right(range(start + 1, layers + 1), limit, key=lambda stop: seconds(kind, place, start, stop))
        return known[key]

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
                    after[counts] = max(after.get(counts, 0), stop)
        front = after
    return any(stop >= layers for stop in front.values())
