"""The result of every reader of another program's memory file."""

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
    """One device of a file: the number of actions recorded there, and its peak of held bytes."""

    name: str
    actions: int
    bytes: int


class Segment(Struct, frozen=True, kw_only=True):
    """Memory that the allocator holds at the end: `allocated_bytes` of it are in use, `largest_free_bytes` are
    contiguous.
    """

    address: int
    bytes: int
    allocated_bytes: int
    largest_free_bytes: int
    stream: int = 0
    small: bool = False
    expandable: bool = False


class Foreign(Struct, frozen=True, kw_only=True):
    """Real memory of one of the `devices` in a file of `format` at `source`.

    `allocated_peak` and `reserved_peak`: the most bytes in use, and held, each None where the file does not state it.
    `by_category`: bytes at the peak; words of `tonnage.trace.events` where the file distinguishes them (`told` lists
    those that it knows anywhere), the file's own words, or "not told". `events`: None where the file has no single
    allocations. `stages`: at named moments; `reserved_bytes` is 0 in them where the file does not state it. `notes`:
    limits of the file.
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
        held = sum(segment.bytes for segment in self.segments)
        return (held - sum(segment.allocated_bytes for segment in self.segments)) / held if held else None

    def to_dict(self) -> dict[str, Any]:
        """The memory as JSON data, without events and single segments."""
        data: dict[str, Any] = builtins(msgspec.structs.replace(self, events=None, segments=(), settings=None))
        del data["events"], data["settings"]
        data["segments"] = {
            "count": len(self.segments),
            "bytes": sum(segment.bytes for segment in self.segments),
            "allocated_bytes": sum(segment.allocated_bytes for segment in self.segments),
            "largest_free_bytes": max((segment.largest_free_bytes for segment in self.segments), default=0),
            "fragmentation": self.fragmentation,
        }
        return data
