"""The rule of an event of a piece, by its repetition and the number of repetitions."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec import Struct

from tonnage.trace.events import Allocation
from tonnage.trace.fold._align import NUMBERS


class Point(Struct, frozen=True):
    """An observed event: in repetition `i`, in the trace with `more` repetitions than the first.

    For an allocation, `allocation` is it; for a free, `freed` is the (piece, place in it, repetition) of its
    allocation.
    """

    i: int
    more: int
    allocation: Allocation | None
    freed: tuple[int, int, int]


class Line(Struct, frozen=True):
    """A whole number that starts at `base`, and grows along repetitions and with their number."""

    base: int
    along: int = 0
    total: int = 0

    def at(self, i: int, more: int) -> int:
        return self.base + self.along * i + self.total * more


class AllocationRule(Struct, frozen=True):
    """An allocation: `like` another except its bytes and the numbers in its module's name."""

    like: Allocation
    bytes: Line
    module: tuple[str, ...]
    numbers: tuple[Line, ...]

    def at(self, i: int, more: int) -> Allocation:
        like = self.like
        module = self.module[0]
        for number, text in zip(self.numbers, self.module[1:], strict=True):
            module += f"{number.at(i, more)}{text}"
        size = self.bytes.at(i, more)
        return Allocation(size, like.stream, like.operation, module, like.phase, like.category, like.overlay)


class FreeRule(Struct, frozen=True):
    """A free of the allocation at a place of a piece, in some repetition of it."""

    piece: int
    place: int
    repetition: Line


Rule = AllocationRule | FreeRule


class Loop(Struct, frozen=True):
    """The rules of one place: of the first repetitions, of the last (from the end), and of all between."""

    head: tuple[Rule, ...] = ()
    middle: Rule | None = None
    tail: tuple[Rule, ...] = ()

    def at(self, i: int, times: int) -> Rule:
        if i < len(self.head):
            return self.head[i]
        if times - 1 - i < len(self.tail):
            return self.tail[times - 1 - i]
        assert self.middle is not None  # learned with repetitions between head and tail
        return self.middle


# How many repetitions at the beginning and at the end may differ from those between; the fewest that fit are taken.
_EDGES = sorted(((head, tail) for head in range(4) for tail in range(4)), key=lambda edge: (sum(edge), edge))


def once(points: Sequence[Point], step: int) -> Loop | None:
    """The rule of an event outside of loops, seen once in each trace."""
    rule = _rule(points, _fixed(step), _fixed(1))
    return None if rule is None else Loop(head=(rule,))


def looped(points: Sequence[Point], count: int, step: int) -> Loop | None:
    """The rules of one place of a loop that runs `count` times in the first trace."""
    for head, tail in _EDGES:
        if head + tail > count:
            continue
        rules = _with_edges(points, count, head, tail, step)
        if rules is not None:
            return rules
    return None


def _with_edges(points: Sequence[Point], count: int, head: int, tail: int, step: int) -> Loop | None:
    between = [point for point in points if head <= point.i < count + point.more - tail]
    middle = _rule(between, _moving(step), _moving(1))
    if middle is None:
        return None
    first = [_rule([p for p in points if p.i == i], _fixed(step), _fixed(1)) for i in range(head)]
    last = [_rule([p for p in points if count + p.more - 1 - p.i == i], _fixed(step), _fixed(1)) for i in range(tail)]
    if None in first or None in last:
        return None
    return Loop(tuple(filter(None, first)), middle, tuple(filter(None, last)))


Slopes = tuple[tuple[int, int], ...]


def _fixed(step: int) -> Slopes:
    """Slopes of a number counted from the beginning, or from the end."""
    return ((0, 0), (0, step))


def _moving(step: int) -> Slopes:
    """Slopes of a number that is equal in all repetitions, grows with them, or falls with them from the end."""
    return ((0, 0), (step, 0), (-step, step))


def _rule(points: Sequence[Point], modules: Slopes, repetitions: Slopes) -> Rule | None:
    if points[0].allocation is None:
        return _free_rule(points, repetitions)
    return _allocation_rule(points, points[0].allocation, modules)


def _free_rule(points: Sequence[Point], slopes: Slopes) -> FreeRule | None:
    piece, place, _ = points[0].freed
    if any(point.freed[:2] != (piece, place) for point in points):
        return None
    repetition = _line(points, lambda point: point.freed[2], slopes)
    return None if repetition is None else FreeRule(piece, place, repetition)


def _allocation_rule(points: Sequence[Point], like: Allocation, slopes: Slopes) -> AllocationRule | None:
    size = _line(points, lambda point: _allocation(point).bytes, _growth(points))
    texts = NUMBERS.split(like.module)
    numbers = [_line(points, partial(_number, index), slopes) for index in range(len(texts) - 1)]
    lines = tuple(line for line in numbers if line is not None)
    return None if size is None or len(lines) < len(numbers) else AllocationRule(like, size, tuple(texts), lines)


def _number(index: int, point: Point) -> int:
    """The `index`-th number in the module's name."""
    return int(NUMBERS.findall(_allocation(point).module)[index])


def _growth(points: Iterable[Point]) -> Slopes:
    """The growth of bytes with the number of layers (a stack of one figure for each parameter), if three traces show
    it.
    """
    sizes = {point.more: _allocation(point).bytes for point in points}
    return ((0, sizes[1] - sizes[0]),) if len(sizes) == 3 else ((0, 0),)


def _allocation(point: Point) -> Allocation:
    assert point.allocation is not None  # points of one place are all allocations or all frees
    return point.allocation


def _line(points: Sequence[Point], value: Callable[[Point], int], slopes: Slopes) -> Line | None:
    values = [value(point) for point in points]
    for along, total in slopes:
        base = values[0] - along * points[0].i - total * points[0].more
        line = Line(base, along, total)
        if all(line.at(point.i, point.more) == number for point, number in zip(points, values, strict=True)):
            return line
    return None
