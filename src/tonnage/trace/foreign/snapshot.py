"""Snapshots of PyTorch's allocator: torch.cuda.memory._dump_snapshot, as pickle or JSON.

The form is that of torch/cuda/memory.py (_snapshot) and torch/csrc/cuda/memory_snapshot.cpp: segments with their blocks
as they are now, and for each device a ring of the last actions: alloc, free_requested, free_completed, segment_alloc,
segment_free, segment_map, segment_unmap, oom, snapshot. Sizes of alloc and free are as requested. Addresses repeat, so
the order tells which allocation is meant; what the ring no longer holds is inferred, as in the viewer
(torch/utils/viz/MemoryViz.js), from frees of unknown addresses and from blocks that are in use now.
torch.cuda._memory_viz.profile_plot writes the same form with a category for each allocation.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.trace.allocator import Allocator, Settings, parse_settings
from tonnage.trace.events import Allocation, Category, Mark
from tonnage.trace.foreign._foreign import Device, Foreign, Segment
from tonnage.trace.foreign._history import MAX_MARKS, History, checked, notes_of, walk
from tonnage.trace.foreign._lifetimes import BACKWARD, FORWARD, sort_by_lifetime
from tonnage.trace.foreign.frames import NOWHERE, WORDS, Origin, origin

FORMAT = "PyTorch memory snapshot"
KEYS = frozenset({"segments", "device_traces"})
_IN_USE = ("active_allocated", "active_pending_free", "active_awaiting_free")
_GROWS = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


class _Entry(Struct):
    """One action. `frames` and `category` are checked one by one."""

    action: str
    size: int = 0
    addr: int = 0
    stream: int = 0
    device_free: int = 0
    time_us: int = 0
    frames: Any = None
    category: Any = None


class _Block(Struct):
    size: int
    state: str
    address: int | None = None
    requested_size: int | None = None
    frames: Any = None
    history: Any = None  # of snapshots before 2.1


class _Segment(Struct):
    address: int
    total_size: int
    blocks: list[_Block]
    device: int = 0
    stream: int = 0
    segment_type: str = "large"
    is_expandable: bool = False


class _Annotation(Struct):
    time_us: int = 0
    device: int = 0
    stage: str = ""
    name: str = ""


class _Snapshot(Struct):
    segments: list[_Segment] = []
    device_traces: list[list[_Entry]] = []
    allocator_settings: Any = None
    external_annotations: Any = None


def from_data(data: Any, where: str, device: int | None = None) -> Foreign:
    """The memory of one device: `device`, or the one with most data. Raises InvalidInput."""
    if isinstance(data, list):  # torch.cuda.memory_snapshot(): segments alone
        data = {"segments": data}
    if not isinstance(data, Mapping) or not KEYS & set(data):
        raise InvalidInput("{where} holds no memory snapshot: it has neither segments nor device_traces.", where=where)
    try:
        snapshot = msgspec.convert(data, _Snapshot)
    except msgspec.ValidationError as error:
        raise InvalidInput("{where} is no memory snapshot: {error}.", where=where, error=error) from None
    devices = _devices(snapshot, where)
    chosen = _choose(devices, device, where)
    return _Reader(snapshot, chosen, where).read(tuple(devices.values()), devices[chosen].name)


def _devices(snapshot: _Snapshot, where: str) -> dict[int, Device]:
    held: Counter[int] = Counter()
    for segment in snapshot.segments:
        held[segment.device] += checked(segment.total_size, where, "a segment")
    numbers = sorted({*held, *(number for number, trace in enumerate(snapshot.device_traces) if trace)})
    traces = snapshot.device_traces
    return {
        number: Device(f"cuda:{number}", len(traces[number]) if 0 <= number < len(traces) else 0, held[number])
        for number in numbers or [0]
    }


def _choose(devices: dict[int, Device], wanted: int | None, where: str) -> int:
    if wanted is None:
        return max(devices, key=lambda number: (devices[number].actions, devices[number].bytes, -number))
    if wanted not in devices:
        raise InvalidInput(
            "{where} tells nothing of device {wanted}. It knows {actions}.",
            where=where,
            wanted=wanted,
            actions=listed(map(str, devices)),
        )
    return wanted


class _Reader:
    """One device of a snapshot."""

    def __init__(self, snapshot: _Snapshot, device: int, where: str):
        self.where, self.device = where, device
        self.entries = snapshot.device_traces[device] if 0 <= device < len(snapshot.device_traces) else []
        self.segments = [segment for segment in snapshot.segments if segment.device == device]
        self.annotations = snapshot.external_annotations
        self.settings, self.notes = _settings(snapshot.allocator_settings)
        self.history = History()
        self.times: list[int] = []
        self._origins: dict[int, Origin] = {}
        self._has_frames = any(entry.frames for entry in self.entries if entry.action == "alloc")

    def read(self, devices: tuple[Device, ...], name: str) -> Foreign:
        self._play()
        self._add_blocks()
        history = self.history
        count, size = history.finish()
        self.notes += notes_of(history, count, size)
        self._mark()
        ours = any(origin_.ours for origin_ in self._origins.values())
        if not ours and sort_by_lifetime(history, ended=not self._failed()):
            self.notes.append("phases are told by stack frames, and categories by the phase that frees an allocation")
        history.settle()
        return self._result(devices, name)

    def _result(self, devices: tuple[Device, ...], name: str) -> Foreign:
        history, segments = self.history, tuple(map(_segment, self.segments))
        allocated_end = sum(segment.allocated_bytes for segment in segments)
        reserved_end = sum(segment.bytes for segment in segments)
        peak, position, end, stages = walk(history, Allocator(self.settings).rounded)
        if not self.entries:
            self.notes.append(
                "no actions were recorded (_record_memory_history records them): the figures are those of the end"
            )
        if allocated_end > end and self.segments:
            self.notes.append(
                Message(
                    "blocks that were not split hold {allocated_end:,} bytes more at the end than was asked "
                    "for; at the peak this is not told",
                    allocated_end=allocated_end - end,
                )
            )
        return Foreign(
            format=FORMAT,
            source=self.where,
            device=name,
            devices=devices,
            events=history.events if self.entries else None,
            allocated_peak=max(peak, allocated_end),
            reserved_peak=max((held for _, held in history.reserved), default=reserved_end),
            allocated_end=allocated_end,
            reserved_end=reserved_end,
            by_category=history.by_category(position),
            told=history.known_categories(),
            segments=segments,
            stages=stages,
            settings=self.settings,
            notes=tuple(self.notes),
        )

    def _play(self) -> None:
        """Replay all actions in order. Memory counts as free when the allocator may hand it out again."""
        history = self.history
        ends = "free_completed" if any(entry.action == "free_completed" for entry in self.entries) else "free_requested"
        grown, steps = 0, [(0, 0)]
        for entry in self.entries:
            size = checked(entry.size, self.where)
            if entry.action == "alloc":
                self._allocate(entry, size)
            elif entry.action in (ends, "free"):
                phase = self._origin(entry.frames).phase or None
                history.free(entry.addr, Allocation(size, entry.stream), phase)
                self.times.append(entry.time_us)
            elif entry.action in _GROWS:
                grown += _GROWS[entry.action] * size
                steps.append((len(history.events) + 1, grown))  # done for the allocation that follows
            elif entry.action == "oom":
                self.notes.append(
                    Message(
                        "after {count:,} events memory ran out: {size:,} bytes were wanted, the device had "
                        "{checked:,} free",
                        count=len(history.events),
                        size=size,
                        checked=checked(entry.device_free, self.where, "what was free"),
                    )
                )
        # history tells changes; what is held now tells how much there was before the first of them
        now = sum(segment.total_size for segment in self.segments)
        lowest = min(held for _, held in steps)
        start = max(now - grown, -lowest)
        history.reserved = [(position, start + held) for position, held in steps]

    def _allocate(self, entry: _Entry, size: int) -> None:
        source = self._origin(entry.frames)
        phase = source.phase
        if (
            not entry.frames
            and self._has_frames
            and self.history.phases
            and self.history.phases[-1] in (FORWARD, BACKWARD)
        ):
            phase = BACKWARD  # only the engine's own thread has no frames
        category = _category(entry.category) or source.category
        allocation = Allocation(size, entry.stream, source.operation, source.module, phase, overlay=source.overlay)
        number = self.history.allocate(entry.addr, allocation, category)
        if source.recomputed:
            self.history.recomputed.add(number)
        self.times.append(entry.time_us)

    def _origin(self, frames: Any) -> Origin:
        """The origin of frames. Frames of one context are one object in a pickle, so each is parsed once."""
        if not frames:
            return NOWHERE
        known = self._origins.get(id(frames))
        if known is None:
            known = self._origins[id(frames)] = origin(frames)
        return known

    def _add_blocks(self) -> None:
        """Add blocks in use that no action made: they were there before the history began."""
        for segment in self.segments:
            for address, block in _blocks(segment):
                checked(block.size, self.where, "a block")
                if block.state in _IN_USE and address not in self.history.live:
                    size, frames = _requested(block)
                    source = self._origin(frames)
                    allocation = Allocation(checked(size, self.where), segment.stream, source.operation, source.module)
                    self.history.before(allocation, source.category)

    def _mark(self) -> None:
        """Add the stages that the program named: the ends of its annotations."""
        try:
            annotations = msgspec.convert(self.annotations or [], list[_Annotation])
        except msgspec.ValidationError:
            return
        events, before = self.history.events, len(self.history.events) - len(self.times)
        times = sorted(self.times)
        ends = [
            annotation
            for annotation in annotations
            if annotation.stage == "END" and annotation.device == self.device and annotation.name
        ]
        if times and len(ends) <= MAX_MARKS:
            positions = sorted((before + bisect_left(times, end.time_us), number) for number, end in enumerate(ends))
            events.marks = [Mark(position, ends[number].name) for position, number in positions]

    def _failed(self) -> bool:
        return any(entry.action == "oom" for entry in self.entries[-3:])


def _category(word: Any) -> Category | None:
    return WORDS.get(word) if isinstance(word, str) else None


def _blocks(segment: _Segment) -> Iterator[tuple[int, _Block]]:
    address = segment.address
    for block in segment.blocks:
        yield (address if block.address is None else block.address), block
        address += block.size


def _requested(block: _Block) -> tuple[int, Any]:
    """Bytes as requested, and the frames; older snapshots hold both in a history."""
    past = block.history
    if isinstance(past, list) and past and isinstance(past[0], dict):
        return past[0].get("real_size", block.size), past[0].get("frames")
    return block.size if block.requested_size is None else block.requested_size, block.frames


def _segment(segment: _Segment) -> Segment:
    used = sum(block.size for block in segment.blocks if block.state == "active_allocated")
    free = max((block.size for block in segment.blocks if block.state == "inactive"), default=0)
    return Segment(
        address=segment.address,
        bytes=segment.total_size,
        allocated_bytes=used,
        largest_free_bytes=free,
        stream=segment.stream,
        small=segment.segment_type == "small",
        expandable=segment.is_expandable,
    )


def _settings(raw: Any) -> tuple[Settings, list[str]]:
    """The allocator's settings, from the text of PYTORCH_CUDA_ALLOC_CONF."""
    text = raw.get("PYTORCH_CUDA_ALLOC_CONF") if isinstance(raw, dict) else None
    if not isinstance(text, str) or not text:
        return Settings(), []
    try:
        return parse_settings(text), []
    except TonnageError as error:
        return Settings(), [f"PYTORCH_CUDA_ALLOC_CONF={text[:200]!r} could not be read: {error}"]
