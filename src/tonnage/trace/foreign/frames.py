"""Stack frames of a memory snapshot: their operation, the code that called it, and the phase of training.

A frame is {"filename", "line", "name"}, the innermost first. Frames of C++ (`stacks="all"`, the default) have the
operation as at::_ops::mm::call; frames of Python have files. Backward runs on a thread of its own, which has no frame
of Python unless a checkpointed forward is run again there. Snapshots that tonnage wrote hold what it knows in four
frames.
"""

import re
from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Struct

from tonnage.trace.events import Category
from tonnage.trace.foreign._lifetimes import BACKWARD, FORWARD, SETUP, STEP, ZERO

MAX_FRAMES = 2_000
OURS = ("module", "phase", "category")  # behind "operation" or "overlay"
_DISPATCHED = re.compile(r"at::_ops::(\w+)::(?:call|redispatch)")
_LOADERS = ("from_pretrained", "_load_pretrained_model", "load_state_dict", "reset_parameters", "_apply", "to_empty")
_RERUN = ("unpack_hook", "recompute_fn", "backward")
# categories of torch.profiler and its viewer, in our words (torch/profiler/_memory_profiler.py, class Category)
WORDS: dict[str, Category | None] = {
    **{word: word for word in get_args(Category)},
    "optimizer_state": "optimizer",
    "input": "buffer",
    "autograd_detail": "temporary",
    "unknown": None,
}


class Origin(Struct, frozen=True):
    """The origin of one allocation, from its frames."""

    operation: str = ""
    module: str = ""
    phase: str = ""
    category: Category | None = None
    overlay: bool = False
    recomputed: bool = False
    ours: bool = False


NOWHERE = Origin()


def origin(frames: Any) -> Origin:
    """The origin from a list of frames; empty where it is no such list."""
    stack = list(_frames(frames))
    if not stack:
        return NOWHERE
    if len(stack) == 4 and stack[0][0] in ("operation", "overlay") and tuple(frame[0] for frame in stack[1:]) == OURS:
        operation, module, phase, word = (name for _, _, name in stack)
        return Origin(operation, module, phase, WORDS.get(word), stack[0][0] == "overlay", ours=True)
    recomputed = any(file.endswith("torch/utils/checkpoint.py") and name in _RERUN for file, _, name in stack)
    phase = BACKWARD if recomputed else _phase(stack)
    loads = phase == SETUP and any(name in _LOADERS for _, _, name in stack)
    accumulates = any("AccumulateGrad" in name for _, _, name in stack)
    category: Category | None = "parameter" if loads else "gradient" if accumulates else None
    return Origin(
        _operation(stack),
        _caller(stack),
        phase,
        category,
        recomputed=recomputed and _in_forward(stack),
    )


def _frames(frames: Any) -> Iterator[tuple[str, int, str]]:
    """(file, line, name) of the valid frames."""
    if not isinstance(frames, list | tuple):
        return
    for frame in frames[:MAX_FRAMES]:
        if isinstance(frame, dict):
            file, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
            if isinstance(file, str) and isinstance(name, str):
                yield file, line if isinstance(line, int) else 0, name


def _operation(frames: list[tuple[str, int, str]]) -> str:
    """The innermost dispatched operation as aten.mm, else the innermost function of Python."""
    for _, _, name in frames:
        dispatched = _DISPATCHED.search(name)
        if dispatched:
            return f"aten.{dispatched[1]}"
    for file, _, name in frames:
        if file.endswith(".py"):
            return name
    return ""


def _caller(frames: list[tuple[str, int, str]]) -> str:
    """The innermost line of Python outside of torch, as modeling_llama.py:240 (forward)."""
    for file, line, name in frames:
        if file.endswith(".py") and "/torch/" not in file:
            return f"{file.rsplit('/', 1)[-1]}:{line} ({name})"
    return ""


def _in_forward(frames: list[tuple[str, int, str]]) -> bool:
    return any(name in ("forward", "_call_impl") for _, _, name in frames)


def _phase(frames: list[tuple[str, int, str]]) -> str:
    """The phase of training of the frames; empty where they do not show it."""
    for file, _, name in frames:
        if "torch/optim/" in file:
            return ZERO if any(function == "zero_grad" for _, _, function in frames) else STEP
        if "autograd::Engine" in name or name in ("_engine_run_backward", "run_backward"):
            return BACKWARD
    for file, _, name in frames:
        if name in _LOADERS or (name == "__init__" and "torch/nn/modules/" in file):
            return SETUP
    return FORWARD if _in_forward(frames) else ""
