"""A replay as a memory snapshot, which PyTorch's viewer opens: python -m torch.cuda._memory_viz trace_plot FILE, or
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

PROTOCOL = 4  # what the viewer's own reader of pickles knows


def write_snapshot(replay: Replay, events: Events, path: Path) -> None:
    """Writes what `replay(events, record=True)` recorded."""
    path.write_bytes(pickle.dumps(_plain_data(as_snapshot(replay, events)), protocol=PROTOCOL))


def _plain_data(value: Any) -> Any:
    """Texts of other types as `str`: a snapshot is read without this package."""
    if isinstance(value, dict):
        return {_plain_data(key): _plain_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_data(item) for item in value]
    return plain(value) if isinstance(value, Message) else value


def as_snapshot(replay: Replay, events: Events) -> dict[str, Any]:
    """The same as torch.cuda.memory._snapshot() returns it."""
    trace = replay.allocator.trace
    assert trace is not None, "replay with record=True"
    known: dict[int, list[dict[str, Any]]] = {}

    def frames(number: int) -> list[dict[str, Any]]:
        if number not in known:
            known[number] = frames_of(events.allocations[number], number)
        return known[number]

    made = snapshot(replay.allocator, frames)
    for entry, (action, _, _, _, context) in zip(made["device_traces"][0], trace, strict=True):
        if action == "alloc":
            entry["category"] = events.allocations[context].category
    made["allocator_settings"] = settings_of(replay.allocator.settings)
    made["external_annotations"] = _annotations(replay, events)
    return made


def frames_of(made: Allocation, number: int) -> list[dict[str, Any]]:
    """What is known of an allocation, innermost first; a line is the allocation's number."""
    told = ("overlay" if made.overlay else "operation", made.operation), ("module", made.module), ("phase", made.phase)
    return [{"filename": file, "line": number, "name": name} for file, name in (*told, ("category", made.category))]


def settings_of(settings: Settings) -> dict[str, Any]:
    """As snapshots tell them; the text is one that PyTorch accepts."""
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
    """Ends of stages. A time is an entry's place; allocations of no bytes have no entry."""
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
