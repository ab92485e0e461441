"""Watches a user's program: questions that only a GPU answers, torch.compile, and the use of its memory."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.optim import optimizer as optimizers

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.trace.record.explain import here, is_library, line_of, module_of
from tonnage.trace.record.fake.patch import patch
from tonnage.trace.record.fake.recorder import Recorder

EAGER = "torch.compile: traced at the sizes of eager mode; what the compiler fuses or plans is not seen."
_SANE = ("aten.all", "aten.any", "aten.isnan", "aten.isinf", "aten.isfinite", "aten.equal")  # checks, not decisions


class NeedsCuda(BaseException):
    """The program does something that plain meta tensors do not support. Not an Exception, so that no program
    catches it.
    """


@contextmanager
def watching(recorder: Recorder, notes: list[str]) -> Iterator[None]:
    """Watch a program: add to `notes`, and raise NeedsCuda or InvalidInput where it leaves what can be traced."""
    with ExitStack() as stack:
        _compile(stack, notes)
        _values(stack, recorder)
        recorder.on_question = lambda operation: _decision(recorder, operation)
        if recorder.device_type == "meta":
            _on_meta(stack)
        yield


def _compile(stack: ExitStack, notes: list[str]) -> None:
    def as_it_is(module: Any = None, **_: Any) -> Any:
        if EAGER not in notes:
            notes.append(EAGER)
        return module if module is not None else lambda function: function

    patch(stack, torch, "compile", as_it_is)
    patch(stack, nn.Module, "compile", lambda self, *_, **__: as_it_is(self) and None)


def _values(stack: ExitStack, recorder: Recorder) -> None:
    """Answer with zeros where a program reads numbers of tensors without data; the recording's answers list them."""
    tolist = torch.Tensor.tolist

    def zeros(tensor: torch.Tensor) -> Any:
        if tensor.device.type != "meta":
            return tolist(tensor)
        recorder.answers["Tensor.tolist", str(tensor.dtype), "zeros"] += 1
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu").tolist()

    def shown(tensor: torch.Tensor, how: str) -> str:
        return format(tensor.item(), how) if tensor.dim() == 0 else object.__format__(tensor, how)

    class Generator(torch.Generator):
        """A generator on the CPU, because one for CUDA needs CUDA."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, "cpu" if str(device).startswith("cuda") else device)  # type: ignore[call-arg]

    patch(stack, torch.Tensor, "tolist", zeros)
    patch(stack, torch.Tensor, "__format__", shown)
    patch(stack, torch, "Generator", Generator)


def _decision(recorder: Recorder, operation: str) -> None:
    """Raise InvalidInput where the user's own code decides by a tensor's value what runs next."""
    if operation.startswith(_SANE):
        return
    frames = list(here())
    innermost = next((f for f, _ in reversed(frames) if not f.f_code.co_filename.startswith(_torch())), None)
    if innermost is None or is_library(innermost.f_code.co_filename):
        return
    module, line = module_of(iter(frames), recorder.modules), line_of(iter(frames))
    raise InvalidInput(
        Message(
            "module {module}, {line}: a tensor's value ({operation}) decides what runs next, and a trace has "
            "no data. Decide by shapes or by options, or leave the check out for the trace.",
            module=module,
            line=line,
            operation=operation or "unknown",
        )
        if module
        else Message(
            "{line}: a tensor's value ({operation}) decides what runs next, and a trace has no data. Decide "
            "by shapes or by options, or leave the check out for the trace.",
            line=line,
            operation=operation or "unknown",
        )
    )


def _torch() -> tuple[str, ...]:
    import tonnage

    return tuple(str(package.__file__).removesuffix("__init__.py") for package in (torch, tonnage))


def _on_meta(stack: ExitStack) -> None:
    available, autocast, scaler = torch.cuda.is_available, torch.autocast.__init__, torch.amp.GradScaler.__init__

    def is_available() -> bool:
        # no local variable may hold a frame: that cycle would keep the caller's tensors alive
        if not is_library(sys._getframe(1).f_code.co_filename):
            raise NeedsCuda("it asks whether CUDA is available")
        return available()

    def enter(self: Any, device_type: str, *args: Any, **keywords: Any) -> None:
        if (
            device_type == "cuda"
            and keywords.get("enabled", True)
            and not is_library(line_of(here()).rpartition(":")[0])
        ):
            raise NeedsCuda("it uses torch.autocast")
        autocast(self, device_type, *args, **keywords)

    def scale(self: Any, *args: Any, **keywords: Any) -> None:
        if keywords.get("enabled", True):
            raise NeedsCuda("it uses a GradScaler")
        scaler(self, *args, **keywords)

    patch(stack, torch.cuda, "is_available", is_available)
    patch(stack, torch.autocast, "__init__", enter)
    patch(stack, torch.amp.GradScaler, "__init__", scale)
    if torch.distributed.is_available():

        def start(*_: Any, **__: Any) -> None:
            raise NeedsCuda("it starts torch.distributed")

        patch(stack, torch.distributed, "init_process_group", start)


@contextmanager
def sorting(recorder: Recorder) -> Iterator[None]:
    """Set categories in a program that runs itself: from its modules, backward passes and optimizer steps."""
    backward = torch.autograd.backward
    undo: list[Callable[[], None]] = []

    def before(module: nn.Module, inputs: Any) -> None:
        if recorder.modules.depth > 1 or torch._C._current_graph_task_id() != -1:
            return  # inside another module, or computed again
        recorder.modules.name(module)
        recorder.sort(module.parameters(), "parameter")
        recorder.sort(module.buffers(), "buffer")
        recorder.sort((tensor for tensor in inputs if isinstance(tensor, torch.Tensor)), "buffer")
        recorder.phase = "forward"

    def run(*args: Any, **keywords: Any) -> None:
        recorder.sort_live("forward", "activation")
        recorder.phase = "backward"
        backward(*args, **keywords)
        recorder.phase = "optimizer step"

    def stepped(optimizer: Any, *_: Any) -> None:
        every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        recorder.sort((parameter.grad for parameter in every if parameter.grad is not None), "gradient")
        states = [value for state in optimizer.state.values() for value in state.values()]
        recorder.sort((state for state in states if isinstance(state, torch.Tensor)), "optimizer")

    with ExitStack() as stack:
        patch(stack, torch.autograd, "backward", run)
        undo.append(hooks.register_module_forward_pre_hook(before).remove)
        undo.append(optimizers.register_optimizer_step_pre_hook(stepped).remove)
        undo.append(optimizers.register_optimizer_step_post_hook(stepped).remove)
        try:
            yield
        finally:
            for remove in undo:
                remove()
