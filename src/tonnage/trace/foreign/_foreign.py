"""What every reader of another program's memory file gives."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.kernel.encoding import builtins
from tonnage.trace.allocator import Settings
from tonnage.trace.events import Events
from tonnage.trace.replay import Stage

NOT_TOLD = "not told"  # bytes whose category the file does not say


class Device(Struct, frozen=True):
    """One device of a file: how many actions it recorded there, and the most bytes that it saw held."""

    name: str
    actions: int
    bytes: int


class Segment(Struct, frozen=True, kw_only=True):
    """Memory that the allocator holds at the end: `allocated_bytes` of it are in use, `largest_free_bytes` lie
    together.
    """

    address: int
    bytes: int
    allocated_bytes: int
    largest_free_bytes: int
    stream: int = 0
    small: bool = False
    expandable: bool = False


class Foreign(Struct, frozen=True, kw_only=True):
    """Real memory, as a file of `format` at `source` tells it, of one of its `devices`.

    `allocated_peak` and `reserved_peak`: the most bytes in use, and held for use, each None where the file does not
    say.
    `by_category`: bytes at the peak; words of `tonnage.trace.events` where the file distinguishes them (those it knows
    anywhere are `told`), the file's own words, or "not told". `events`: None where allocations are not told one by one.
    `stages`: at moments that have a name; `reserved_bytes` is 0 in them where the file does not say. `notes`: what a
    reader must know.
    """

    format: str
    source: str
    device: str
    devices: tuple[Device, ...] = ()
    events: Events | None = None
    allocated_peak: int | None = None
    reserved_peak: int | None = None
    allocated_end: int | None = None
    reserved_end: int | None = None
    by_category: Mapping[str, int] = {}
    told: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()
    stages: tuple[Stage, ...] = ()
    settings: Settings | None = None
    notes: tuple[str, ...] = ()

    @property
    def fragmentation(self) -> float | None:
        """The share of the held memory that is free at the end."""
        held = sum(each.bytes for each in self.segments)
        return (held - sum(each.allocated_bytes for each in self.segments)) / held if held else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, without the events and the segments one by one."""
        made: dict[str, Any] = builtins(msgspec.structs.replace(self, events=None, segments=(), settings=None))
        del made["events"], made["settings"]
        made["segments"] = {
            "count": len(self.segments),
            "bytes": sum(each.bytes for each in self.segments),
            "allocated_bytes": sum(each.allocated_bytes for each in self.segments),
            "largest_free_bytes": max((each.largest_free_bytes for each in self.segments), default=0),
            "fragmentation": self.fragmentation,
        }
        return made
