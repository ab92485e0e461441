"""Allocations by address, as files tell them, made into events: also those that the file never saw being made."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.trace.events import LARGEST, Allocation, Category, Events
from tonnage.trace.foreign._foreign import NOT_TOLD
from tonnage.trace.replay import Stage

MOST_MARKS = 10_000
BEFORE = "before the history"  # the phase of what was there when recording began


def checked(size: object, where: str, what: str = "an allocation") -> int:
    """A number of bytes that can be one. Raises InvalidInput."""
    if not isinstance(size, int) or not 0 <= size < LARGEST:
        raise InvalidInput(
            Message(
                "{where}: {what} has an impossible number of bytes: {size}.",
                where=where,
                what=what,
                size=str(size)[:40],
            )
        )
    return size


class History:
    """Builds events. `categories`: of each allocation, None where nothing tells it; `phases`: of each event, None
    likewise.
    """

    def __init__(self) -> None:
        self.events = Events()
        self.categories: list[Category | None] = []
        self.phases: list[str | None] = []
        self.recomputed: set[int] = set()
        self.live: dict[Hashable, int] = {}
        self.reserved: list[tuple[int, int]] = []  # (events before it, bytes held from then on)
        self.lost = 0  # frees that were not recorded
        self._before: list[int] = []

    def allocate(self, key: Hashable, made: Allocation, category: Category | None = None) -> int:
        """An allocation at an address. One that is still live there was freed without a record."""
        if key in self.live:
            self.free(key)
            self.lost += 1
        self.categories.append(category)
        self.phases.append(made.phase or None)
        number = self.live[key] = self.events.allocate(made)
        return number

    def free(self, key: Hashable, unknown: Allocation | None = None, phase: str | None = None) -> int | None:
        """Frees what is at an address. Where nothing is, `unknown` was there before the history began."""
        number = self.live.pop(key, None)
        if number is None:
            if unknown is None:
                return None
            number = self.before(unknown)
        self.events.free(number)
        self.phases.append(phase)
        return number

    def before(self, made: Allocation, category: Category | None = None) -> int:
        """An allocation that was there before the history began; it is live from the start."""
        number = len(self.events.allocations)
        if not made.phase:
            made.phase = BEFORE
        self.events.allocations.append(made)
        self.categories.append(category)
        self._before.append(number)
        return number

    def unseen(self) -> list[int]:
        """Allocations that were there before, as far as they are known by now."""
        return self._before

    def hold(self, reserved: int) -> None:
        """From here on the allocator holds so many bytes."""
        self.reserved.append((len(self.events), reserved))

    def finish(self) -> tuple[int, int]:
        """Puts what was there before in front; gives how many allocations and bytes that are."""
        first = self._before
        self.events.order[:0] = first
        self.phases[:0] = [None] * len(first)
        self.reserved = [(position + len(first), held) for position, held in self.reserved]
        self._before = []
        return len(first), sum(self.events.allocations[number].bytes for number in first)

    def settle(self) -> None:
        """Writes the categories into the events; what nothing tells is temporary there."""
        for made, category in zip(self.events.allocations, self.categories, strict=True):
            made.category = category or "temporary"

    def told(self) -> tuple[str, ...]:
        """Categories that are told of any allocation."""
        return tuple(sorted({category for category in self.categories if category is not None}))

    def by_category(self, position: int) -> dict[str, int]:
        """Bytes as requested of what is live after so many events."""
        made: Counter[str] = Counter()
        for number in self.events.live_at(position):
            made[self.categories[number] or NOT_TOLD] += self.events.allocations[number].bytes
        return dict(made)

    def reserved_at(self, position: int) -> int:
        """Bytes that the allocator held after so many events; 0 where nobody says."""
        place = bisect_right(self.reserved, position, key=lambda step: step[0])
        return self.reserved[place - 1][1] if place else (self.reserved[0][1] if self.reserved else 0)


def walk(history: History, size: Callable[[int], int]) -> tuple[int, int, int, tuple[Stage, ...]]:
    """The most bytes, after how many events, the bytes at the end, and the stages; `size`: a block's, for a request."""
    events = history.events
    sizes = [size(each.bytes) for each in events.allocations]
    now = peak = position = stage_peak = start = 0
    stages = []
    for name, end in [*((mark.name, mark.position) for mark in events.marks), ("", len(events.order))]:
        for at in range(start, end):
            event = events.order[at]
            now += sizes[event] if event >= 0 else -sizes[~event]
            if now > stage_peak:
                stage_peak = now
                if now > peak:
                    peak, position = now, at + 1
        start = end
        if name:
            stages.append(Stage(name, now, history.reserved_at(end), stage_peak))
            stage_peak = now
    return peak, position, now, tuple(stages)


def notes_of(history: History, count: int, size: int) -> Iterable[str]:
    """What has to be said of a history that is not whole."""
    if count:
        yield (
            Message(
                "the history began late: {count:,} allocations of {size:,} bytes were there before, and "
                "their makers are not told",
                count=count,
                size=size,
            )
        )
    if history.lost:
        yield Message("{lost:,} frees were not recorded: their addresses were given out again", lost=history.lost)
