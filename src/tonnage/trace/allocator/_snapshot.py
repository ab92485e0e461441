"""The allocator's state and history in the form of torch.cuda.memory._snapshot(), for PyTorch's own viewer."""

from collections.abc import Callable
from typing import Any

from tonnage.trace.allocator._native import Allocator
from tonnage.trace.allocator.blocks import Block

Frames = Callable[[Any], list[dict[str, Any]]]


def snapshot(allocator: Allocator, frames: Frames = lambda context: []) -> dict[str, Any]:
    """Segments with their blocks, and one trace entry for each recorded action. `frames`: the stack frames of a context
    that `allocate` was called with.
    """
    entries = [
        {
            "action": action,
            **({"device_free": address} if action == "oom" else {"addr": address}),
            "size": size,
            "stream": stream,
            "time_us": time,
            "device": 0,
            "frames": frames(context) if context is not None else [],
        }
        for time, (action, address, size, stream, context) in enumerate(allocator.trace or ())
    ]
    segments = [segment for _, head in sorted(allocator.heads.items()) for segment in _segments(head, frames)]
    return {"segments": segments, "device_traces": [entries], "allocator_settings": {}, "external_annotations": []}


def _segments(head: Block, frames: Frames) -> list[dict[str, Any]]:
    """One segment, or one for each mapped range of an expandable one."""
    segments: list[dict[str, Any]] = []
    block: Block | None = head
    current: dict[str, Any] | None = None
    while block is not None:
        if not block.mapped:
            current = None
        else:
            if current is None:
                current = _segment(block)
                segments.append(current)
            held = block.size if block.allocated else 0
            current["total_size"] += block.size
            current["allocated_size"] += held
            current["active_size"] += held
            current["requested_size"] += block.requested if block.allocated else 0
            current["blocks"].append(
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested if block.allocated else block.size,
                    "state": "active_allocated" if block.allocated else "inactive",
                    "frames": frames(block.context) if block.context is not None else [],
                }
            )
        block = block.next
    return segments


def _segment(block: Block) -> dict[str, Any]:
    return {
        "device": 0,
        "address": block.address,
        "total_size": 0,
        "stream": block.pool.stream,
        "segment_pool_id": (0, 0),
        "segment_type": "small" if block.pool.small else "large",
        "is_expandable": block.segment is not None,
        "allocated_size": 0,
        "active_size": 0,
        "requested_size": 0,
        "frames": [],
        "blocks": [],
    }
