"""Records a program in a user's file: FILE.py:callable."""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from msgspec import Struct
from torch import nn

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.kernel.reach import is_file, is_folder
from tonnage.kernel.registry import unknown
from tonnage.trace.profiles import Profile
from tonnage.trace.profiles import profile as profile_of
from tonnage.trace.program import Program, as_program
from tonnage.trace.record.explain import explain
from tonnage.trace.record.fake import guard
from tonnage.trace.record.fake.environment import FrontEnd, recording
from tonnage.trace.record.fake.recorder import Recorder
from tonnage.trace.record.train import Progress, train
from tonnage.trace.record.watch import NeedsCuda, sorting, watching
from tonnage.trace.recording import Recording
from tonnage.user_files import read_bytes

LARGEST_PROGRAM = 10_000_000  # bytes of a Python file


class Target(Struct, frozen=True):
    text: str
    file: Path
    name: str
    arguments: Mapping[str, Any]


def record_file(
    target: str,
    front_end: FrontEnd | None = None,
    profile: str | Profile = "h100",
    steps: int = 2,
    arguments: Mapping[str, Any] | None = None,
    progress: Progress = lambda stage: None,
) -> Recording:
    """Run FILE.py:callable under the recorder. The callable returns a Program, a dict of its fields or a tuple; or it
    takes `mark`, runs everything itself, and calls mark("After forward") at the end of each stage. `arguments` are its
    keyword arguments.

    Without a front end: meta tensors, or fake CUDA tensors where the program needs them; the notes say why. The
    program's output goes to standard error. Raises TonnageError for any error in the program.
    """
    parsed = target_of(target, arguments or {})
    chosen = profile_of(profile) if isinstance(profile, str) else profile
    if steps < 1:
        raise InvalidInput("steps must be at least 1. Got {steps}.", steps=steps)

    def run(which: FrontEnd) -> Recording:
        return _record(parsed, which, chosen, steps, progress)

    if front_end is not None:
        try:
            return run(front_end)
        except NeedsCuda as need:
            raise InvalidInput(
                "{target}: {need}, which the front end 'meta' cannot follow; 'cuda' can.", target=target, need=need
            ) from None
    return _tried(run, target, _places(parsed))


def _tried(run: Callable[[FrontEnd], Recording], target: str, places: bool) -> Recording:
    """Run on meta tensors, with everything on the device, unless the program places tensors itself; else on fake CUDA
    tensors.
    """
    order: tuple[FrontEnd, ...] = ("cuda", "meta") if places and not guard.works() else ("meta", "cuda")
    why = "it says itself what is on the GPU" if order[0] == "cuda" else ""
    first: TonnageError | None = None
    for which in order:
        if which == "cuda" and (reason := guard.works()):
            raise first or MissingDatum(
                "{target}: {why}, and the front end 'cuda' cannot run. {reason}",
                target=target,
                why=why,
                reason=reason,
            ) from None
        try:
            recorded = run(which)
        except NeedsCuda as need:
            why = str(need)
            continue
        except TonnageError as error:
            first, why = first or error, str(error)
            continue
        if why:
            kind = "fake CUDA tensors" if which == "cuda" else "meta tensors, with everything on the device"
            recorded.notes = (Message("traced on {kind}: {why}.", kind=kind, why=why.rstrip(".")), *recorded.notes)
        return recorded
    raise first or InvalidInput("{target}: {why}, and could not be followed.", target=target, why=why) from None


def _places(target: Target) -> bool:
    """Whether a program puts its tensors on the GPU itself; otherwise all of them are taken to be there."""
    return b"cuda" in read_bytes(target.file, LARGEST_PROGRAM)


def target_of(text: str, arguments: Mapping[str, Any]) -> Target:
    file, colon, name = text.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise InvalidInput("a program to trace is written FILE.py:callable. Got {text!r}.", text=text[:200])
    path = Path(file).expanduser()
    if path.suffix != ".py" or not is_file(path):
        near = (
            ", ".join(sorted(sibling.name for sibling in path.parent.glob("*.py"))[:5])
            if is_folder(path.parent)
            else ""
        )
        raise InvalidInput(
            Message("{file}: no such Python file. There are: {near}.", file=file, near=near)
            if near
            else Message("{path}: no such Python file.", path=file)
        )
    return Target(text, path.resolve(), name, arguments)


def _record(target: Target, front_end: FrontEnd, profile: Profile, steps: int, progress: Progress) -> Recording:
    tree = parse_program(target)
    notes: list[str] = []
    with redirect_stdout(sys.stderr), modules_beside(target.file), recording(front_end, profile) as recorder:
        place = torch.device("cuda") if front_end == "cuda" and not _places(target) else nullcontext()
        with watching(recorder, notes), place:
            try:
                _run(recorder, target, tree, steps, notes, progress)
            except (TonnageError, KeyboardInterrupt, NeedsCuda):
                raise
            except BaseException as error:  # noqa: BLE001 - a user's program may raise anything
                raise explain(error, recorder.modules, target.text) from None
        if all(allocation.overlay for allocation in recorder.events.allocations):
            raise InvalidInput("{target}: the program put nothing on the GPU.", target=target.text)
        return recorder.recording(target.text, tuple(notes))


def _run(
    recorder: Recorder, target: Target, tree: ast.Module, steps: int, notes: list[str], progress: Progress
) -> None:
    function = find_function(load_module(target, tree), target)
    if takes_mark(function, target):
        notes.append("the program runs its steps itself.")
        with sorting(recorder):
            recorder.keep(function(mark=recorder.events.mark, **target.arguments))
        return
    program = check_program(as_program(function(**target.arguments), target.text), target.text, recorder)
    train(recorder, program, steps, progress)


def takes_mark(function: Callable[..., Any], target: Target) -> bool:
    """Whether it runs its steps itself. Raises TonnageError for unknown or missing arguments."""
    takes = inspect.signature(function).parameters
    named = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes.values())
    for name in target.arguments:
        if name not in takes and not named:
            raise unknown(Message("argument of {target}", target=target.text), name, takes)
    if "mark" in takes:
        return True
    missing = [
        n for n, p in takes.items() if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if left := [name for name in missing if name not in target.arguments]:
        raise InvalidInput(
            "{target} needs {left}: give them a default, or pass them as arguments.",
            target=target.text,
            left=listed(left),
        )
    return False


def check_program(program: Program, text: str, recorder: Recorder) -> Program:
    """A program that can be trained, on the recording's device. Raises InvalidInput."""
    if not isinstance(program.model, nn.Module):
        raise InvalidInput(
            "{text}: model must be a torch.nn.Module. Got {type}.", text=text, type=type(program.model).__name__
        )
    if not any(parameter.requires_grad for parameter in program.model.parameters()):
        raise InvalidInput(
            "{text}: model has no parameters that require gradients, so there is nothing to train.", text=text
        )
    if program.autocast not in (None, "bf16", "fp16"):
        raise InvalidInput(
            "{text}: autocast is 'bf16' or 'fp16'. Got {autocast!r}.", text=text, autocast=program.autocast
        )
    if program.autocast is not None and recorder.device_type == "meta":
        raise NeedsCuda("it uses torch.autocast")
    if any(parameter.device.type != recorder.device_type for parameter in program.model.parameters()):
        program.model.to(recorder.device_type)
    program.inputs = _moved(program.inputs, recorder.device_type)
    return program


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: _moved(item, device) for key, item in value.items()}
    return type(value)(_moved(item, device) for item in value) if type(value) in (list, tuple) else value


def parse_program(target: Target) -> ast.Module:
    """The file's syntax tree; libraries that it imports and that must be patched are imported before it."""
    try:
        tree = ast.parse(read_bytes(target.file, LARGEST_PROGRAM), str(target.file))
    except TonnageError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise InvalidInput(
            "{file}{line}: no Python: {error}.", file=target.file, line=line, error=str(error)[:200]
        ) from None
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for library in sorted({name.split(".")[0] for name in names} & {"transformers", "peft"}):
            with suppress(ImportError):  # the program's own import reports what is missing
                importlib.import_module(library)
    return tree


def load_module(target: Target, tree: ast.Module) -> ModuleType:
    module = ModuleType(target.file.stem)
    module.__file__ = str(target.file)
    sys.modules[module.__name__] = module  # for classes that are looked up by their module's name
    exec(compile(tree, str(target.file), "exec"), module.__dict__)  # as `python FILE.py` would
    return module


def find_function(module: ModuleType, target: Target) -> Callable[..., Any]:
    function = getattr(module, target.name, None)
    if callable(function):
        return function
    own = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    raise unknown(Message("callable in {file}", file=target.file), target.name, own)


@contextmanager
def modules_beside(file: Path) -> Iterator[None]:
    """Make modules in the file's folder importable, and unload them again: they hold tensors of this recording."""
    folder = str(file.parent)
    before = dict(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name, module in list(sys.modules.items()):
            home = getattr(module, "__file__", None) or ""
            if name not in before and home.startswith(folder) and "site-packages" not in home:
                del sys.modules[name]
        if file.stem in before:
            sys.modules[file.stem] = before[file.stem]
        else:
            sys.modules.pop(file.stem, None)
