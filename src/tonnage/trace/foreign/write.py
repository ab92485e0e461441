"""Writes a replay as a memory snapshot for PyTorch's viewer: python -m torch.cuda._memory_viz trace_plot FILE, or
pytorch.org/memory_viz. Each allocation has four frames: its operation, module, phase and category."""

import pickle
from pathlib import Path
from typing import Any

from tonnage.kernel.message import Message, plain
from tonnage.kernel.units import MIB
from tonnage.trace.allocator import Settings, snapshot
from tonnage.trace.allocator.settings import LARGE_BUFFER, NO_LIMIT
from tonnage.trace.events import Allocation, Events
from tonnage.trace.replay import Replay

PROTOCOL = 4  # the highest that the viewer's own reader of pickles knows


def write_snapshot(replay: Replay, events: Events, path: Path) -> None:
    """Write the recording of `replay(events, record=True)`."""
    path.write_bytes(pickle.dumps(_plain_data(as_snapshot(replay, events)), protocol=PROTOCOL))


def _plain_data(value: Any) -> Any:
    """Texts of other types as `str`: a snapshot is read without this package."""
    if isinstance(value, dict):
        return {_plain_data(key): _plain_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_data(item) for item in value]
    return plain(value) if isinstance(value, Message) else value


def as_snapshot(replay: Replay, events: Events) -> dict[str, Any]:
    """The replay in the form of torch.cuda.memory._snapshot()."""
    trace = replay.allocator.trace
    assert trace is not None, "replay with record=True"
    known: dict[int, list[dict[str, Any]]] = {}

    def frames(number: int) -> list[dict[str, Any]]:
        if number not in known:
            known[number] = frames_of(events.allocations[number], number)
        return known[number]

    data = snapshot(replay.allocator, frames)
    for entry, (action, _, _, _, context) in zip(data["device_traces"][0], trace, strict=True):
        if action == "alloc":
            entry["category"] = events.allocations[context].category
    data["allocator_settings"] = settings_of(replay.allocator.settings)
    data["external_annotations"] = _annotations(replay, events)
    return data


def frames_of(allocation: Allocation, number: int) -> list[dict[str, Any]]:
    """The facts of an allocation as frames, innermost first; a frame's line is the allocation's number."""
    frames = (
        ("overlay" if allocation.overlay else "operation", allocation.operation),
        ("module", allocation.module),
        ("phase", allocation.phase),
    )
    return [
        {"filename": file, "line": number, "name": name} for file, name in (*frames, ("category", allocation.category))
    ]


def settings_of(settings: Settings) -> dict[str, Any]:
    """The settings in the form of snapshots; the text is one that PyTorch accepts."""
    options = {
        "max_split_size_mb": None if settings.max_split_size == NO_LIMIT else settings.max_split_size // MIB,
        "max_non_split_rounding_mb": None
        if settings.max_non_split_rounding == LARGE_BUFFER
        else settings.max_non_split_rounding // MIB,
        "large_segment_size_mb": None
        if settings.large_segment_size == LARGE_BUFFER
        else settings.large_segment_size // MIB,
        "garbage_collection_threshold": settings.garbage_collection_threshold or None,
        "per_process_memory_fraction": settings.memory_fraction,
        "expandable_segments": True if settings.expandable_segments else None,
        "roundup_power2_divisions": _divisions(settings.roundup_power2_divisions),
    }
    return {
        "PYTORCH_CUDA_ALLOC_CONF": ",".join(f"{name}:{value}" for name, value in options.items() if value is not None),
        "max_split_size": -1 if settings.max_split_size == NO_LIMIT else settings.max_split_size,
        "garbage_collection_threshold": settings.garbage_collection_threshold,
        "expandable_segments": settings.expandable_segments,
        "roundup_power2_divisions": {str(2**at): count for at, count in enumerate(settings.roundup_power2_divisions)},
    }


def _divisions(divisions: tuple[int, ...]) -> str | None:
    """[1:4,2:4,...,>:8]: sizes in MiB, as `parse_settings` reads them."""
    if not divisions:
        return None
    *first, last = divisions
    return f"[{','.join(f'{2**at}:{count}' for at, count in enumerate(first))},>:{last}]"


def _annotations(replay: Replay, events: Events) -> list[dict[str, Any]]:
    """Ends of stages as annotations. A time is an entry's position; allocations of no bytes have no entry."""
    times: list[int] = []  # of the first entry at or after each event
    at = 0
    for time, (action, _, _, _, context) in enumerate(replay.allocator.trace or ()):
        if action in ("alloc", "free_completed"):
            event = context if action == "alloc" else ~context
            while events.order[at] != event:
                times.append(time)
                at += 1
            times.append(time)
            at += 1
    last = len(replay.allocator.trace or ())
    return [
        {
            "name": mark.name,
            "stage": "END",
            "device": 0,
            "time_us": times[mark.position] if mark.position < len(times) else last,
        }
        for mark in events.marks
        if replay.failure is None or mark.position <= replay.failure.position
    ]
