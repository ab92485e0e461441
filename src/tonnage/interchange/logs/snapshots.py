"""Memory snapshots of PyTorch, and other recorded memory that `tonnage trace --beside` reads.

A snapshot is read without torch, and without running what it holds (trace/foreign/unpickle.py). Its peaks are those of
the history that was recorded (torch.cuda.memory._record_memory_history). Parts are taken where stack frames say in
which phase an allocation was made and freed: each at its own peak, in bytes as requested.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tonnage.interchange.logs import READERS, Figure, LogReader
from tonnage.interchange.logs.values import figure, in_gib, unpredicted
from tonnage.kernel.errors import InvalidInput
from tonnage.trace.events import Category, Events
from tonnage.trace.foreign import Foreign
from tonnage.trace.foreign.formats import from_json
from tonnage.trace.foreign.formats import read as read_foreign
from tonnage.trace.foreign.snapshot import FORMAT, KEYS

# How a binary file of recorded memory begins: pickles of protocol 2 and later, gzip, SQLite.
BINARY = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"\x1f\x8b", b"SQLite format 3")
FORWARD = "forward"
# Category -> the quantity that it is in the estimate, and what it is called here.
PARTS: dict[Category, tuple[str, str]] = {
    "parameter": ("weights_memory", "parameters"),
    "gradient": ("gradient_memory", "gradients"),
    "optimizer": ("optimizer_memory", "optimizer states"),
    "activation": ("forward_memory", "activations of the forward pass"),
}


def is_recorded(head: bytes) -> bool:
    """Whether a file that begins so is recorded memory: no log is binary."""
    return head.startswith(BINARY)


def figures_of_file(path: Path) -> dict[str, list[Figure]]:
    """Format -> the figures of a binary file. InvalidInput where it is none that is known, is broken or carries
    code.
    """
    memory = read_foreign(path)
    return {memory.format: _with_notes(memory)}


def snapshot(text: str) -> list[Figure]:
    """The figures of a snapshot that was written as JSON."""
    start = text.lstrip("\ufeff \t\r\n")
    if not start.startswith(("{", "[")) or not any(f'"{key}"' in text for key in (*KEYS, "total_size")):
        return []
    try:
        memory = from_json(start.encode("utf-8", "replace"), "the snapshot", None)
    except InvalidInput:  # JSON that only looks like one
        return []
    return _with_notes(memory) if memory.format == FORMAT else []


def _with_notes(memory: Foreign) -> list[Figure]:
    """The figures, of which the first has what the file does not tell."""
    figures = list(figures_of_memory(memory))
    return [replace(each, notes=() if at else memory.notes) for at, each in enumerate(figures)]


def figures_of_memory(memory: Foreign) -> Iterator[Figure]:
    """Peaks of one device in GiB, and the parts that its frames tell.

    Without a history what is allocated at the end is no peak, and nothing predicts it; what the allocator holds at the
    end is its peak, where nobody emptied its cache.
    """
    has_history = bool(memory.events or memory.stages)
    if memory.allocated_peak:
        peak = (in_gib([memory.allocated_peak])[0], 1)
        if has_history:
            yield from figure("allocated_memory", peak, "GiB", "peak of allocated memory")
        else:
            yield from unpredicted(peak, "GiB", "allocated at the end")
    if memory.reserved_peak:
        metric = "peak of reserved memory" if has_history else "reserved at the end"
        yield from figure("reserved_memory", (in_gib([memory.reserved_peak])[0], 1), "GiB", metric)
    if memory.events is not None:
        for category, (quantity, metric) in PARTS.items():
            if category in memory.told:
                size = in_gib([_own_peak(memory.events, category)])[0]
                yield from figure(quantity, (size, 1), "GiB", metric)


def _own_peak(events: Events, category: Category) -> int:
    """The most bytes of a category at one time. What backward computes again is no activation of the forward pass."""
    counts = [
        each.bytes if each.category == category and (category != "activation" or each.phase == FORWARD) else 0
        for each in events.allocations
    ]
    now = most = 0
    for event in events.order:
        now += counts[event] if event >= 0 else -counts[~event]
        most = max(most, now)
    return most


READERS.add(
    "snapshot",
    LogReader(
        name="snapshot",
        tool=FORMAT,
        verbs=("train",),
        source="torch/cuda/memory.py, _snapshot and _dump_snapshot; torch/csrc/cuda/memory_snapshot.cpp",
        read=snapshot,
    ),
)
