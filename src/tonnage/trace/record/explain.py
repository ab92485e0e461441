"""Explains an error in a user's program in a sentence with the module and the line, never a traceback."""

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

import tonnage
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message
from tonnage.trace.record.fake.modules import ModulePath

_LIBRARIES = (str(Path(torch.__file__).parent), str(Path(tonnage.__file__).parent), sysconfig.get_paths()["stdlib"])
_OWN_PROGRAMS = str(Path(tonnage.__file__).parent / "trace" / "programs")
_NO_KERNEL = ("'Meta' backend", "no fake impl", "no meta", "Meta tensors", "meta kernel")
_NO_MEMORY = ("can't allocate memory", "not enough memory", "Cannot allocate memory")
_SHAPE = (
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique",
    "aten::unique",
    "aten::bincount",
    "aten::repeat_interleave",
)


def is_library(file: str) -> bool:
    """Whether a file belongs to PyTorch, the standard library, installed packages, or tonnage itself."""
    if file.startswith(_OWN_PROGRAMS):
        return False
    return file.startswith("<") or file.startswith(_LIBRARIES) or "site-packages" in file


def line_of(frames: Iterator[tuple[FrameType, int]]) -> str:
    """file:line of the innermost frame of the user's code; without one, of the innermost outside of PyTorch."""
    own = other = ""
    for frame, line in frames:
        file = frame.f_code.co_filename
        if not is_library(file):
            own = f"{file}:{line}"
        elif "site-packages" in file and not file.startswith(_LIBRARIES):
            other = f"{file.split('site-packages/')[-1]}:{line}"
    return own or other


def module_of(frames: Iterator[tuple[FrameType, int]], modules: ModulePath) -> str:
    """The name of the innermost module whose code runs in these frames."""
    name = ""
    for frame, _ in frames:
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module):
            name = modules.name_of(owner)
    return name


def here() -> Iterator[tuple[FrameType, int]]:
    """The current frames, outermost first."""
    return iter(list(traceback.walk_stack(sys._getframe(1)))[::-1])


def explain(error: BaseException, modules: ModulePath, target: str) -> TonnageError:
    """The error for the user, from the exception of a program."""
    trace = error.__traceback__
    where = _place(trace, modules)
    first = (str(error).strip().splitlines() or [""])[0].partition(". You may")[0][:300]
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return MissingDatum(
            "{target}{where}: this machine's memory is not enough. {first} Traced tensors take none: the "
            "program makes real ones, with device='cpu' or from NumPy.",
            target=target,
            where=where,
            first=first,
        )
    if isinstance(error, DataDependentOutputException | DynamicOutputShapeException) or _depends(error):
        return InvalidInput(
            "{target}{where}: what comes next depends on data, which a trace does not have ({first}).",
            target=target,
            where=where,
            first=first,
        )
    if isinstance(error, UnsupportedOperatorException) or any(words in str(error) for words in _NO_KERNEL):
        return MissingDatum(
            "{target}{where}: an operation that cannot run without data: {first}",
            target=target,
            where=where,
            first=first,
        )
    if isinstance(error, SystemExit):
        return InvalidInput(
            "{target}{where}: the program ended itself with status {code}.",
            target=target,
            where=where,
            code=error.code,
        )
    return InvalidInput(
        f"{target}{where}: {type(error).__name__}: {first}" if first else f"{target}{where}: {type(error).__name__}."
    )


def _depends(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, NotImplementedError | RuntimeError) and any(name in text for name in _SHAPE)


def _place(trace: TracebackType | None, modules: ModulePath) -> str:
    frames = list(traceback.walk_tb(trace))
    module, line = module_of(iter(frames), modules), line_of(iter(frames))
    return (Message(", in module {module}", module=module) if module else "") + (f", at {line}" if line else "")
