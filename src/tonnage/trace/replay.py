"""Replays events through the allocator: stages, peaks, and where memory would run out."""

from typing import Literal

from msgspec import Struct

from tonnage.kernel.units import MIB
from tonnage.trace.allocator import Allocator, OutOfMemory, Settings, out_of_memory_message
from tonnage.trace.allocator.blocks import Block
from tonnage.trace.events import Events


class Stage(Struct, frozen=True):
    """At a mark: allocated and reserved bytes, and the peak since the mark before."""

    name: str
    allocated_bytes: int
    reserved_bytes: int
    peak_allocated_bytes: int


class Failure(Struct, frozen=True, kw_only=True):
    """Where memory ran out. `need`: the program wants more than there is; `fragmentation`: it would fit if free memory
    were contiguous.
    """

    position: int
    allocation: int
    reason: Literal["need", "fragmentation"]
    message: str
    allocated_bytes: int
    reserved_bytes: int


class Replay(Struct, frozen=True, kw_only=True):
    """The result of a replay. `peak_position`: number of events before the peak of allocated bytes."""

    stages: tuple[Stage, ...]
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_requested_bytes: int
    peak_position: int
    retries: int
    segments: int
    failure: Failure | None
    allocator: Allocator


def replay(
    events: Events,
    settings: Settings | None = None,
    *,
    capacity: int | None = None,
    total: int | None = None,
    outside: int = 0,
    torch: tuple[int, int] = (2, 13),
    record: bool = False,
) -> Replay:
    """Replay the events. `capacity`: bytes of the accelerator that the program may use, `outside`: of these, the ones
    outside the allocator (CUDA context, NCCL buffers); `total`: of the accelerator, as the message prints it.
    """
    room = None if capacity is None else max(capacity - outside, 0)
    allocator = Allocator(settings, room, total or capacity, record)
    run = _Run(events, allocator)
    stages = []
    for name, end in [*((mark.name, mark.position) for mark in events.marks), ("", len(events.order))]:
        run.until(end)
        if run.error is not None:
            break
        if name:
            stages.append(Stage(name, allocator.allocated, allocator.reserved, run.take_peak()))
    failure = (
        None if run.error is None else _failure(run, events, total or capacity or 0, capacity or 0, outside, torch)
    )
    return Replay(
        stages=tuple(stages),
        peak_allocated_bytes=allocator.peak_allocated,
        peak_reserved_bytes=allocator.peak_reserved,
        peak_requested_bytes=allocator.peak_requested,
        peak_position=run.peak_position,
        retries=allocator.retries,
        segments=allocator.segments,
        failure=failure,
        allocator=allocator,
    )


class _Run:
    """One pass over the events, up to successive ends."""

    def __init__(self, events: Events, allocator: Allocator):
        self.events, self.allocator = events, allocator
        self.blocks: list[Block | None] = [None] * len(events.allocations)
        self.sizes = [allocation.bytes for allocation in events.allocations]
        self.streams = [allocation.stream for allocation in events.allocations]
        self.position = self.peak_position = self.peak = self.stage_peak = 0
        self.error: OutOfMemory | None = None

    def until(self, end: int) -> None:
        allocator, sizes, streams, blocks = self.allocator, self.sizes, self.streams, self.blocks
        allocate, free = allocator.allocate, allocator.free
        peak, stage_peak = self.peak, max(self.stage_peak, allocator.allocated)
        context = allocator.trace is not None
        for position in range(self.position, end):
            event = self.events.order[position]
            if event < 0:
                free(blocks[~event])
                blocks[~event] = None
                continue
            try:
                blocks[event] = allocate(sizes[event], streams[event], event if context else None)
            except OutOfMemory as error:
                self.error, self.position = error, position
                break
            now = allocator.allocated
            if now > stage_peak:
                stage_peak = now
                if now > peak:
                    peak, self.peak_position = now, position + 1
        else:
            self.position = end
        self.peak, self.stage_peak = peak, stage_peak

    def take_peak(self) -> int:
        """The peak since the last mark; starts a new one."""
        peak, self.stage_peak = self.stage_peak, self.allocator.allocated
        return peak


def _failure(run: _Run, events: Events, total: int, capacity: int, outside: int, torch: tuple[int, int]) -> Failure:
    error, allocator = run.error, run.allocator
    assert error is not None  # the caller looked
    room = allocator.capacity or 0
    fits = most_alive(events, allocator) <= room
    message = out_of_memory_message(
        tried=error.tried,
        total=total,
        free=max(room - allocator.reserved, 0),
        in_use=allocator.reserved + outside,
        allocated=allocator.allocated,
        reserved=allocator.reserved,
        allowed=allocator.allowed,
        torch=torch,
    )
    return Failure(
        position=run.position,
        allocation=events.order[run.position],
        reason="fragmentation" if fits else "need",
        message=message,
        allocated_bytes=allocator.allocated,
        reserved_bytes=allocator.reserved,
    )


def most_alive(events: Events, allocator: Allocator) -> int:
    """The peak of live bytes, each allocation rounded to its block: a lower bound for every allocator."""
    now = most = 0
    for event in events.order:
        size = events.allocations[event if event >= 0 else ~event].bytes
        rounded = allocator.rounded(size) if size else 0
        now += rounded if event >= 0 else -rounded
        most = max(most, now)
    return most


def least_capacity(events: Events, settings: Settings | None = None, step: int = 2 * MIB) -> int:
    """The smallest memory, in steps of the driver's pages, in which the events run, with any number of retries."""
    free = replay(events, settings)
    low, high = free.peak_allocated_bytes // step, -(-free.peak_reserved_bytes // step)
    while low < high:
        middle = (low + high) // 2
        if replay(events, settings, capacity=middle * step).failure is None:
            high = middle
        else:
            low = middle + 1
    return high * step
