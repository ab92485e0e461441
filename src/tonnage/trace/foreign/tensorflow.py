"""Memory profiles of TensorFlow's and XLA's profiler: the JSON of its memory_profile tool.

The form is plugin/xprof/protobuf/memory_profile.proto of openxla/xprof in JSON of proto3 (names in camelCase, 64-bit
numbers as texts): for each allocator a summary with the peak, and the allocations at the peak, through
`activeAllocations` in `memoryProfileSnapshots` and `specialAllocations`. Regions ("output", "temp", "persist",
"dynamic") are its categories of memory.
"""

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.trace.events import Allocation, Events
from tonnage.trace.foreign._foreign import NOT_TOLD, Device, Foreign
from tonnage.trace.foreign._history import checked

FORMAT = "TensorFlow memory profile"
KEY = "memoryProfilePerAllocator"
MAX_OCCURRENCES = 1_000_000


class _Camel(Struct, frozen=True, rename="camel"):
    pass


class _Stats(_Camel, frozen=True):
    stack_reserved_bytes: int = 0
    heap_allocated_bytes: int = 0
    free_memory_bytes: int = 0
    fragmentation: float = 0.0
    peak_bytes_in_use: int = 0


class _Activity(_Camel, frozen=True):
    memory_activity: str = ""
    requested_bytes: int = 0
    allocation_bytes: int = 0
    tf_op_name: str = ""
    region_type: str = ""
    tensor_shape: str = ""


class _Moment(_Camel, frozen=True):
    time_offset_ps: int = 0
    aggregation_stats: _Stats = _Stats()
    activity_metadata: _Activity = _Activity()


class _Summary(_Camel, frozen=True):
    peak_bytes_usage_lifetime: int = 0
    peak_stats: _Stats = _Stats()
    memory_capacity: int = 0


class _Active(_Camel, frozen=True):
    snapshot_index: int = -1
    special_index: int = -1
    num_occurrences: int = 1


class _Allocator(_Camel, frozen=True):
    memory_profile_snapshots: list[_Moment] = []
    sampled_timeline_snapshots: list[_Moment] = []
    profile_summary: _Summary = _Summary()
    active_allocations: list[_Active] = []
    special_allocations: list[_Activity] = []


class _Profile(_Camel, frozen=True):
    memory_profile_per_allocator: dict[str, _Allocator]


def from_data(data: Any, where: str, device: int | None = None) -> Foreign:
    """The memory of one allocator: number `device` in their order, or the accelerator's with the highest peak."""
    try:  # 64-bit numbers are texts in JSON of proto3
        profile = msgspec.convert(data, _Profile, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput("{where} is no memory profile of TensorFlow: {error}.", where=where, error=error) from None
    allocators = profile.memory_profile_per_allocator
    if not allocators:
        raise InvalidInput("{where}: {key} is empty: no allocator was profiled.", where=where, key=KEY)
    names = sorted(allocators)
    if device is not None and not 0 <= device < len(names):
        raise InvalidInput(
            "{where} tells nothing of allocator {device}. It knows {names}.",
            where=where,
            device=device,
            names=listed(names),
        )
    chosen = (
        max(names, key=lambda name: (_on_accelerator(name), _peak(allocators[name])))
        if device is None
        else names[device]
    )
    devices = tuple(
        Device(name, len(allocators[name].memory_profile_snapshots), checked(_peak(allocators[name]), where, "a peak"))
        for name in names
    )
    return _read(allocators[chosen], chosen, devices, where)


def _on_accelerator(name: str) -> bool:
    return name.isdecimal() or (name.upper().startswith(("GPU_", "TPU", "/DEVICE:")) and "HOST" not in name.upper())


def _peak(allocator: _Allocator) -> int:
    stats = allocator.profile_summary.peak_stats
    return stats.peak_bytes_in_use or stats.heap_allocated_bytes + stats.stack_reserved_bytes


def _read(allocator: _Allocator, name: str, devices: tuple[Device, ...], where: str) -> Foreign:
    peak, stats = _peak(allocator), allocator.profile_summary.peak_stats
    events, regions = _active(allocator, where)
    rest = peak - sum(regions.values())
    if rest > 0:
        regions[NOT_TOLD] += rest
    moments = allocator.sampled_timeline_snapshots or allocator.memory_profile_snapshots
    last = moments[-1].aggregation_stats if moments else None
    notes = ["regions are TensorFlow's words; it does not tell parameters from optimizer states"]
    lifetime = allocator.profile_summary.peak_bytes_usage_lifetime
    if lifetime > peak:
        notes.append(
            Message("before or after what was profiled the allocator held more: {lifetime:,} bytes", lifetime=lifetime)
        )
    if allocator.profile_summary.memory_capacity:
        notes.append(
            Message(
                "the allocator may hold {memory_capacity:,} bytes; how many it held is not told",
                memory_capacity=allocator.profile_summary.memory_capacity,
            )
        )
    if stats.fragmentation:
        notes.append(Message("fragmentation at the peak: {fragmentation:.1%}", fragmentation=stats.fragmentation))
    return Foreign(
        format=FORMAT,
        source=where,
        device=name,
        devices=devices,
        events=events if events.allocations else None,
        allocated_peak=peak,
        allocated_end=None if last is None else checked(last.heap_allocated_bytes + last.stack_reserved_bytes, where),
        by_category=dict(regions),
        notes=tuple(notes),
    )


def _active(allocator: _Allocator, where: str) -> tuple[Events, Counter[str]]:
    """Allocations at the peak, and their bytes by region."""
    events, regions, count = Events(), Counter[str](), 0
    moments, special = allocator.memory_profile_snapshots, allocator.special_allocations
    for active in allocator.active_allocations:
        if 0 <= active.snapshot_index < len(moments):
            activity = moments[active.snapshot_index].activity_metadata
        elif 0 <= active.special_index < len(special):
            activity = special[active.special_index]
        else:
            continue
        count += active.num_occurrences
        if active.num_occurrences < 0 or count > MAX_OCCURRENCES:
            raise InvalidInput(
                "{where}: more than {most_occurrences:,} allocations at the peak, or fewer than none.",
                where=where,
                most_occurrences=MAX_OCCURRENCES,
            )
        size = checked(activity.allocation_bytes or activity.requested_bytes, where)
        for _ in range(active.num_occurrences):
            events.allocate(Allocation(size, 0, activity.tf_op_name[:200], "", activity.region_type[:40]))
        regions[activity.region_type[:40] or NOT_TOLD] += size * active.num_occurrences
    return events, regions
