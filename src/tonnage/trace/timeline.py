"""Memory by category over time, and by module at one moment, in requested bytes."""

from collections.abc import Sequence

from msgspec import Struct

from tonnage.trace.events import CATEGORIES, Category, Events


class Timeline(Struct, frozen=True):
    """`positions`: numbers of events; `bytes_by_category`: live bytes after so many, one list a category."""

    positions: tuple[int, ...]
    bytes_by_category: dict[Category, tuple[int, ...]]

    @property
    def totals(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(*self.bytes_by_category.values(), strict=True)))


def timeline(events: Events, points: int = 2000) -> Timeline:
    """About `points` moments: the peak of each run of events, and every mark."""
    columns: dict[Category, list[int]] = {category: [] for category in CATEGORIES}
    alive = dict.fromkeys(CATEGORIES, 0)
    positions: list[int] = []
    total = best = -1
    best_at, best_state = 0, dict(alive)
    total = 0
    stops = _stops(events, points)
    for position, event in enumerate(events.order, 1):
        allocation = events.allocations[event if event >= 0 else ~event]
        change = allocation.bytes if event >= 0 else -allocation.bytes
        alive[allocation.category] += change
        total += change
        if total > best:
            best, best_at, best_state = total, position, dict(alive)
        if position in stops:
            for at, state in ((best_at, best_state), (position, alive)):
                if not positions or at > positions[-1]:
                    positions.append(at)
                    for category in CATEGORIES:
                        columns[category].append(state[category])
            best = -1
    return Timeline(tuple(positions), {category: tuple(column) for category, column in columns.items()})


def _stops(events: Events, points: int) -> set[int]:
    length = len(events.order)
    step = max(1, 2 * length // max(points, 2))
    return {*range(step, length + 1, step), length, *(mark.position for mark in events.marks)}


class Share(Struct, frozen=True):
    """The share of one module, or of all of a category, at a moment: bytes in a number of allocations."""

    name: str
    category: Category
    bytes: int
    allocations: int


def by_category(events: Events, numbers: Sequence[int]) -> dict[Category, int]:
    """Bytes of these allocations by category; only categories that have any."""
    totals = dict.fromkeys(CATEGORIES, 0)
    for number in numbers:
        allocation = events.allocations[number]
        totals[allocation.category] += allocation.bytes
    return {category: size for category, size in totals.items() if size}


def by_module(events: Events, numbers: Sequence[int]) -> list[Share]:
    """Bytes by module and category, largest first. Allocations without a module are under their operation."""
    totals: dict[tuple[str, Category], list[int]] = {}
    for number in numbers:
        allocation = events.allocations[number]
        entry = totals.setdefault((allocation.module or allocation.operation, allocation.category), [0, 0])
        entry[0] += allocation.bytes
        entry[1] += 1
    shares = [Share(name, category, size, count) for (name, category), (size, count) in totals.items()]
    return sorted(shares, key=lambda share: (-share.bytes, share.name))
