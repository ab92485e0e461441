"""XLA's buffer assignment: the memory of a compiled program, as --xla_dump_to writes it.

*-buffer-assignment.txt and *-memory-usage-report.txt (xla/service/buffer_assignment.cc of openxla/xla:
BufferAssignment::ToString, MemoryUsageReport) list allocations such as

allocation 0: size 32768, parameter 0, shape |f32[256,32]| at ShapeIndex {}:
allocation 6: size 512.0KiB, preallocated-temp:

An allocation is shared by many values, so the sum of allocations, not of values, is the program's memory. Sizes in a
report are printed with a unit and one digit, its total is exact; reports of newer versions (jaxlib 0.10) have a total
for each memory space and no allocations. Names are those of JAX's memory_analysis(), whose figures the first form
matches to the byte.
"""

import re
from collections import Counter

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.units import human
from tonnage.trace.events import Allocation, Events
from tonnage.trace.foreign._foreign import NOT_TOLD, Foreign
from tonnage.trace.foreign._history import checked

FORMAT = "XLA buffer assignment"
HEADS = (b"BufferAssignment:", b"Total bytes used:", b"Memory Space:")
HOST = 5  # the memory space of the host: xla/layout.h, Layout::kHostMemorySpace
MAX_ALLOCATIONS = 5_000_000
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LINE = re.compile(r"(?:^|; )allocation (\d{1,10}): size (\d{1,15})(?:(\.\d{1,3})?([KMGT]?i?B))?(?=[,:])(.{0,2000})")
_TOTAL = re.compile(r"^Total bytes(?: used)?: (\d{1,18})\b")
_SPACE = re.compile(r"^Memory Space: .{1,80}\(color=(\d{1,5})\)")
_COLOR = re.compile(r", color (\d{1,5})")


def from_text(data: bytes, where: str) -> Foreign:
    """The memory of one compiled module. Raises InvalidInput."""
    by_number: dict[int, tuple[int, str]] = {}
    totals: dict[int, int] = {}  # by memory space
    space, rounded = 0, False
    for line in data.decode("utf-8", "replace").splitlines():
        if named := _SPACE.match(line):
            space = int(named[1])
        elif written := _TOTAL.match(line):
            totals.setdefault(space, checked(int(written[1]), where, "the total"))
        elif match := _LINE.search(line):
            number, integer, fraction, unit, rest = match.groups()
            size = round(float(f"{integer}{fraction or ''}") * _UNITS.get(unit or "B", 1))
            by_number.setdefault(int(number), (checked(size, where), rest))
            rounded = rounded or (unit or "B") != "B"
            if len(by_number) > MAX_ALLOCATIONS:
                raise InvalidInput(
                    "{where}: more than {most_allocations:,} allocations.",
                    where=where,
                    most_allocations=MAX_ALLOCATIONS,
                )
    if by_number:
        return _result(by_number, sum(totals.values()) if totals else None, rounded, where)
    if not totals:
        raise InvalidInput(
            "{where} lists no allocations: an XLA dump has lines such as 'allocation 0: size 32768, parameter 0'.",
            where=where,
        )
    return _totals_alone(totals, where)


def _totals_alone(totals: dict[int, int], where: str) -> Foreign:
    peak = sum(size for space, size in totals.items() if space != HOST)
    notes = ["the report tells totals alone; *-buffer-assignment.txt beside it lists what they are for"]
    if totals.get(HOST):
        notes.append(
            Message("{totals} lie in the host's memory and are not counted", totals=human(totals[HOST], "bytes"))
        )
    return Foreign(
        format=FORMAT, source=where, device="", allocated_peak=peak, by_category={NOT_TOLD: peak}, notes=tuple(notes)
    )


def _result(by_number: dict[int, tuple[int, str]], total: int | None, rounded: bool, where: str) -> Foreign:
    events, kinds, host = Events(), Counter[str](), 0
    for number, (size, rest) in sorted(by_number.items()):
        if (color := _COLOR.search(rest)) and int(color[1]) == HOST:
            host += size
            continue
        events.allocate(
            Allocation(size, 0, Message("allocation {number}", number=number), rest.strip(" ,:")[:200], kind_of(rest))
        )
        kinds[kind_of(rest)] += size
    listed = sum(kinds.values())
    peak = listed if total is None else total - host
    notes = [
        "XLA's arguments hold weights, optimizer states and the batch; its temporaries hold activations and gradients"
    ]
    if rounded:
        notes.append("sizes of a report are printed with one digit: categories are near, the total is exact")
    elif peak != listed:
        raise InvalidInput(
            "{where}: its allocations sum to {listed:,} bytes, and it says {total:,}: it is not whole.",
            where=where,
            listed=listed + host,
            total=total,
        )
    if host:
        notes.append(Message("{totals} lie in the host's memory and are not counted", totals=human(host, "bytes")))
    return Foreign(
        format=FORMAT,
        source=where,
        device="",
        events=events,
        allocated_peak=max(peak, 0),
        by_category=dict(kinds),
        notes=tuple(notes),
    )


def kind_of(rest: str) -> str:
    """The use of an allocation. An argument that is also a result is donated: it counts once, as an argument."""
    if re.search(r", parameter \d", rest):
        return "argument"
    if ", constant" in rest:
        return "constant"
    if ", thread-local" in rest:
        return "thread-local"
    return "output" if "maybe-live-out" in rest or ", output shape" in rest else "temp"
