"""The event format of a recorded program: its allocations, the order in which they are made and freed, and marks.

Both front ends and every reader of foreign files write it; the allocator's model, the fold and the timeline read it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tonnage.kernel.encoding import encode as encode_document
from tonnage.kernel.errors import InvalidInput

Category = Literal["parameter", "gradient", "optimizer", "activation", "temporary", "buffer"]
CATEGORIES: tuple[Category, ...] = ("parameter", "gradient", "optimizer", "activation", "temporary", "buffer")
SCHEMA = "tonnage/events/1"
MAX_ALLOCATION = 2**50  # bytes of one allocation; more is a broken file


class Allocation(Struct, array_like=True, gc=False):
    """One allocation. `bytes` as requested, `stream` 0 is the default one; `operation`, `module` and `phase` are its
    origin; `overlay`: a temporary inside the operation's kernel, which no tensor shows.
    """

    bytes: int
    stream: int = 0
    operation: str = ""
    module: str = ""
    phase: str = ""
    category: Category = "temporary"
    overlay: bool = False


class Mark(Struct, frozen=True, array_like=True):
    """The end of a stage, after `position` events."""

    position: int
    name: str


class Events(Struct, kw_only=True):
    """`order` holds i where allocation i is made and ~i where it is freed."""

    allocations: list[Allocation] = []
    order: list[int] = []
    marks: list[Mark] = []

    def __len__(self) -> int:
        return len(self.order)

    def allocate(self, allocation: Allocation) -> int:
        """Add an allocation at the end; returns its number."""
        number = len(self.allocations)
        self.allocations.append(allocation)
        self.order.append(number)
        return number

    def free(self, number: int) -> None:
        self.order.append(~number)

    def mark(self, name: str) -> None:
        """End a stage here."""
        self.marks.append(Mark(len(self.order), name))

    def live_at(self, position: int) -> list[int]:
        """Allocations that are alive after the first `position` events, in the order of allocation."""
        alive: dict[int, None] = {}
        for event in self.order[:position]:
            if event >= 0:
                alive[event] = None
            else:
                alive.pop(~event, None)
        return list(alive)

    def sequence(self) -> Iterator[tuple[bool, int]]:
        """(is an allocation, bytes) of each event: equal for two traces of the same program, whatever their numbers."""
        for event in self.order:
            yield event >= 0, self.allocations[event if event >= 0 else ~event].bytes


class _File(Struct):
    """The file: columns and one table of names, which is small on disk."""

    schema: str
    names: list[str]
    bytes: list[int]
    streams: list[int]
    operations: list[int]
    modules: list[int]
    phases: list[int]
    categories: list[int]
    overlays: list[int]
    order: list[int]
    marks: list[Mark]
    about: dict[str, Any] = {}


def encode(events: Events, about: dict[str, Any] | None = None) -> bytes:
    """The JSON form, with the writer's data in `about`."""
    names: dict[str, int] = {}

    def at(name: str) -> int:
        return names.setdefault(name, len(names))

    allocations = events.allocations
    file = _File(
        schema=SCHEMA,
        names=[],
        bytes=[a.bytes for a in allocations],
        streams=[a.stream for a in allocations],
        operations=[at(a.operation) for a in allocations],
        modules=[at(a.module) for a in allocations],
        phases=[at(a.phase) for a in allocations],
        categories=[CATEGORIES.index(a.category) for a in allocations],
        overlays=[i for i, a in enumerate(allocations) if a.overlay],
        order=events.order,
        marks=events.marks,
        about=about or {},
    )
    file.names = list(names)
    return encode_document(file)


def decode(data: bytes, where: str = "the file") -> tuple[Events, dict[str, Any]]:
    """The events of a JSON form, and its `about`. Raises InvalidInput."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError as error:
        raise InvalidInput("{where} holds no events: {error}.", where=where, error=error) from None
    if file.schema != SCHEMA:
        raise InvalidInput(
            "{where}: schema must be {schema!r}. Got {schema2!r}.",
            where=where,
            schema=SCHEMA,
            schema2=file.schema[:40],
        )
    columns = (file.bytes, file.streams, file.operations, file.modules, file.phases, file.categories)
    if len({len(column) for column in columns}) > 1:
        raise InvalidInput("{where}: the columns of its allocations differ in length.", where=where)
    if any(not 0 <= size < MAX_ALLOCATION for size in file.bytes):
        raise InvalidInput(
            "{where}: an allocation has less than 0 or more than {largest} bytes.",
            where=where,
            largest=MAX_ALLOCATION,
        )
    _within(where, "names", (*file.operations, *file.modules, *file.phases), len(file.names))
    _within(where, "categories", file.categories, len(CATEGORIES))
    hidden = set(file.overlays)
    allocations = [
        Allocation(
            size,
            stream,
            file.names[operation],
            file.names[module],
            file.names[phase],
            CATEGORIES[category],
            i in hidden,
        )
        for i, (size, stream, operation, module, phase, category) in enumerate(zip(*columns, strict=True))
    ]
    events = Events(allocations=allocations, order=file.order, marks=file.marks)
    check(events, where)
    return events, file.about


def _within(where: str, what: str, numbers: Iterable[int], count: int) -> None:
    for number in numbers:
        if not 0 <= number < count:
            raise InvalidInput(
                "{where}: {what} has {count} entries, and entry {number} is asked for.",
                where=where,
                what=what,
                count=count,
                number=number,
            )


def check(events: Events, where: str = "the events") -> None:
    """Check that every allocation is made once, and freed at most once and later. Raises InvalidInput."""
    state = bytearray(len(events.allocations))
    for position, event in enumerate(events.order):
        number = event if event >= 0 else ~event
        if number >= len(state) or state[number] != (0 if event >= 0 else 1):
            what = "makes" if event >= 0 else "frees"
            raise InvalidInput(
                "{where}: event {position} {what} allocation {number} out of turn.",
                where=where,
                position=position,
                what=what,
                number=number,
            )
        state[number] += 1
    _check_marks(events.marks, len(events.order), where)


def _check_marks(marks: Sequence[Mark], length: int, where: str) -> None:
    positions = [mark.position for mark in marks]
    if positions != sorted(positions) or any(not 0 <= position <= length for position in positions):
        raise InvalidInput("{where}: marks must ascend and lie within its {length} events.", where=where, length=length)
