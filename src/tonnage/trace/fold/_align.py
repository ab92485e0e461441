"""Aligns three traces: the events common to all, and the loops that run once more in each."""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from tonnage.kernel.message import Message
from tonnage.trace.events import Events
from tonnage.trace.fold._errors import DoesNotFold

NUMBERS = re.compile(r"\d+")
_WAYS = 500  # alignments tried before a stage is given up
_REST = "after the last mark"


class Piece(Struct, frozen=True):
    """A part of a stage: `length` events, once (`count` None), or `count` times in the first trace and once more in
    each later one. `ends`: its stage ends with it. `begun`: it is the end of a repetition of the next loop, without its
    beginning.
    """

    stage: str
    length: int
    count: int | None = None
    ends: bool = False
    begun: bool = False

    def times(self, more: int) -> int:
        return 1 if self.count is None else self.count + more


class _Stream(Struct, frozen=True):
    """One trace's events as comparable numbers: `kinds` without bytes, `tokens` with them."""

    kinds: list[int]
    tokens: list[tuple[int, int]]


def pieces(traces: Sequence[Events]) -> list[Piece]:
    """The parts of all stages, in order. Raises DoesNotFold."""
    names: dict[object, int] = {}
    streams = [_stream(trace, names) for trace in traces]
    parts: list[Piece] = []
    for stage, *bounds in _stages(traces):
        part = _Stage(stage, streams, bounds)
        parts += part.pieces()
    return parts


def _stages(traces: Sequence[Events]) -> Iterator[tuple[str, tuple[int, int], tuple[int, int], tuple[int, int]]]:
    """Each stage's name, and its first event and end in each trace."""
    names = [[mark.name for mark in trace.marks] for trace in traces]
    if not all(stage_names == names[0] for stage_names in names):
        raise DoesNotFold(next(iter(names[0]), _REST), "the traces end other stages.")
    ends = [[0, *(mark.position for mark in trace.marks), len(trace.order)] for trace in traces]
    yield from zip([*names[0], _REST], *(pairwise(positions) for positions in ends), strict=True)


def _stream(events: Events, names: dict[object, int]) -> _Stream:
    kind_of, sizes = [], []
    for allocation in events.allocations:
        module = NUMBERS.sub("#", allocation.module)
        label = (
            allocation.stream,
            allocation.operation,
            module,
            allocation.phase,
            allocation.category,
            allocation.overlay,
        )
        kind_of.append(2 * names.setdefault(label, len(names)))
        sizes.append(allocation.bytes)
    kinds = [kind_of[event] if event >= 0 else kind_of[~event] + 1 for event in events.order]
    tokens = [(kind, sizes[event if event >= 0 else ~event]) for kind, event in zip(kinds, events.order, strict=True)]
    return _Stream(kinds, tokens)


class _Stage:
    """One stage of the three traces. A place is a position in each of them."""

    def __init__(self, stage: str, streams: Sequence[_Stream], bounds: Sequence[tuple[int, int]]):
        self.stage = stage
        self.kinds = [stream.kinds[first:end] for stream, (first, end) in zip(streams, bounds, strict=True)]
        self.tokens = [stream.tokens[first:end] for stream, (first, end) in zip(streams, bounds, strict=True)]
        self.ends = [end - first for first, end in bounds]

    def pieces(self) -> list[Piece]:
        """Advance in all three until they differ, which is where a loop continues in the longer ones.

        A loop's length may be ambiguous; the next best one is tried where the first choice fails.
        """
        ways: list[tuple[list[int], list[Piece]]] = [([0, 0, 0], [])]
        furthest = 0
        for _ in range(_WAYS):
            if not ways:
                break
            start, before = ways.pop()
            common = self._count_common(start)
            place = [position + common for position in start]
            if place == self.ends:
                return [*before, Piece(self.stage, common, ends=True)]
            furthest = max(furthest, place[0])
            for length in reversed(self._lengths(place)):
                after = [position + more * length for more, position in enumerate(place)]
                ways.append((after, [*before, *self._loop(start[2], place[2], length)]))
        raise DoesNotFold(
            self.stage,
            Message("after {furthest} of its events, what more layers add does not repeat.", furthest=furthest),
        )

    def _loop(self, start: int, place: int, length: int) -> Iterator[Piece]:
        """The pieces between two places of the third trace: events, and repetitions up to the second place."""
        first = self._first_repeated(start, place, length)
        count, begun = divmod(place - first, length)
        yield Piece(self.stage, first - start)
        yield Piece(self.stage, begun, begun=True)
        yield Piece(self.stage, length, count)

    def _count_common(self, place: Sequence[int]) -> int:
        """Number of events that the three have in common from here. Bytes may grow by an equal step from trace to
        trace.
        """
        a, b, c = self.tokens
        i, j, k = place
        count = 0
        for (kind, size), (kind_b, size_b), (kind_c, size_c) in zip(a[i:], b[j:], c[k:], strict=False):
            if not kind == kind_b == kind_c or size_c - size_b != size_b - size:
                break
            count += 1
        return count

    def _lengths(self, place: Sequence[int]) -> list[int]:
        """Lengths that the second trace has here once and the third twice; first those that have most events in
        common after.
        """
        i, j, k = place
        rest, rest_b, rest_c = (end - position for end, position in zip(self.ends, place, strict=True))
        candidates: list[tuple[float, int]] = []
        (_, kinds, kinds_c), tokens = self.kinds, self.tokens[2]
        for length in range(1, min(rest_b - rest, (rest_c - rest) // 2) + 1):
            if tokens[k] != tokens[k + length] or kinds[j] != kinds_c[k]:
                continue
            if kinds[j : j + length] != kinds_c[k : k + length]:
                continue
            if tokens[k : k + length] != tokens[k + length : k + 2 * length]:
                continue
            after = [i, j + length, k + 2 * length]
            common = math.inf if after == self.ends else self._count_common(after)
            if common:
                candidates.append((-common, length))
        return [length for _, length in sorted(candidates)]

    def _first_repeated(self, start: int, place: int, length: int) -> int:
        """How far back the repetition extends in the third trace."""
        tokens = self.tokens[2]
        while place > start and tokens[place - 1] == tokens[place - 1 + length]:
            place -= 1
        return place
