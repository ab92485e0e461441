"""Builds events from allocations by address, including those whose allocation the file never recorded."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.trace.events import MAX_ALLOCATION, Allocation, Category, Events
from tonnage.trace.foreign._foreign import NOT_TOLD
from tonnage.trace.replay import Stage

MAX_MARKS = 10_000
BEFORE = "before the history"  # the phase of allocations older than the recording


def checked(size: object, where: str, what: str = "an allocation") -> int:
    """The number of bytes, if it is plausible. Raises InvalidInput."""
    if not isinstance(size, int) or not 0 <= size < MAX_ALLOCATION:
        raise InvalidInput(
            "{where}: {what} has an impossible number of bytes: {size}.",
            where=where,
            what=what,
            size=str(size)[:40],
        )
    return size


class History:
    """Builds events. `categories`: of each allocation, None where nothing tells it; `phases`: of each event,
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

    def allocate(self, key: Hashable, allocation: Allocation, category: Category | None = None) -> int:
        """Allocate at an address. One that is still live there was freed without a record."""
        if key in self.live:
            self.free(key)
            self.lost += 1
        self.categories.append(category)
        self.phases.append(allocation.phase or None)
        number = self.live[key] = self.events.allocate(allocation)
        return number

    def free(self, key: Hashable, unknown: Allocation | None = None, phase: str | None = None) -> int | None:
        """Free the allocation at an address. Without one, `unknown` was there before the history began."""
        number = self.live.pop(key, None)
        if number is None:
            if unknown is None:
                return None
            number = self.before(unknown)
        self.events.free(number)
        self.phases.append(phase)
        return number

    def before(self, allocation: Allocation, category: Category | None = None) -> int:
        """Add an allocation from before the history began; it is live from the start."""
        number = len(self.events.allocations)
        if not allocation.phase:
            allocation.phase = BEFORE
        self.events.allocations.append(allocation)
        self.categories.append(category)
        self._before.append(number)
        return number

    def unseen(self) -> list[int]:
        """Known allocations from before the history."""
        return self._before

    def hold(self, reserved: int) -> None:
        """Note that the allocator holds `reserved` bytes from here on."""
        self.reserved.append((len(self.events), reserved))

    def finish(self) -> tuple[int, int]:
        """Put the earlier allocations in front; returns their number and bytes."""
        first = self._before
        self.events.order[:0] = first
        self.phases[:0] = [None] * len(first)
        self.reserved = [(position + len(first), held) for position, held in self.reserved]
        self._before = []
        return len(first), sum(self.events.allocations[number].bytes for number in first)

    def settle(self) -> None:
        """Write the categories into the events; unknown ones become temporary there."""
        for allocation, category in zip(self.events.allocations, self.categories, strict=True):
            allocation.category = category or "temporary"

    def known_categories(self) -> tuple[str, ...]:
        """Categories that are known of any allocation."""
        return tuple(sorted({category for category in self.categories if category is not None}))

    def by_category(self, position: int) -> dict[str, int]:
        """Requested bytes by category of what is live after `position` events."""
        sums: Counter[str] = Counter()
        for number in self.events.live_at(position):
            sums[self.categories[number] or NOT_TOLD] += self.events.allocations[number].bytes
        return dict(sums)

    def reserved_at(self, position: int) -> int:
        """Bytes that the allocator held after `position` events; 0 where that is unknown."""
        place = bisect_right(self.reserved, position, key=lambda step: step[0])
        return self.reserved[place - 1][1] if place else (self.reserved[0][1] if self.reserved else 0)


def walk(history: History, size: Callable[[int], int]) -> tuple[int, int, int, tuple[Stage, ...]]:
    """(peak bytes, events before the peak, bytes at the end, stages); `size`: a block's bytes for a request."""
    events = history.events
    sizes = [size(allocation.bytes) for allocation in events.allocations]
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
    """Notes on a history that is incomplete."""
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
