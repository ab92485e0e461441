"""The two front ends: plain PyTorch on meta tensors, or fake CUDA tensors. All patches are undone at the end."""

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import optimizer as optimizers
from torch.overrides import TorchFunctionMode

from tonnage.catalogue import accelerator
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.trace.distributed import World
from tonnage.trace.profiles import Profile
from tonnage.trace.record.fake import facade, guard
from tonnage.trace.record.fake.attention import Attention
from tonnage.trace.record.fake.patch import patch
from tonnage.trace.record.fake.recorder import Recorder
from tonnage.trace.record.fake.world import enter as enter_world

FrontEnd = Literal["meta", "cuda"]


@contextmanager
def recording(
    front_end: FrontEnd, profile: Profile, devices: int = 8, world: World | None = None
) -> Iterator[Recorder]:
    """A recorder for everything that runs inside, on pretended tensors. Raises MissingDatum where "cuda" cannot run.

    In it, a program that calls init_process_group, with any backend, is one rank of `world`, else of the world that it
    sets itself or that RANK and WORLD_SIZE of the environment set.
    """
    if front_end != "cuda" and world is not None:
        raise InvalidInput("a distributed program needs the front end 'cuda'. Got {front_end!r}.", front_end=front_end)
    if front_end == "cuda" and (reason := guard.works()):
        raise MissingDatum("the front end 'cuda' cannot run. {reason} The front end 'meta' can.", reason=reason)
    recorder = Recorder(front_end, profile)
    recorder.attention = Attention(profile)
    if profile.has_fused_attention:
        recorder.composites[torch.ops.aten.scaled_dot_product_attention.default] = recorder.attention
    with ExitStack() as stack:
        _optimizers(stack, profile, front_end)
        hide_tracing(stack)
        stack.enter_context(_all_in_one_thread())
        if front_end == "cuda":
            _fake_cuda(stack, recorder, devices, world)
        else:
            _meta(stack, recorder)
        yield recorder


def _meta(stack: ExitStack, recorder: Recorder) -> None:
    library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warnings that these operations had other kernels
        if recorder.profile.has_fused_attention:
            library.impl("scaled_dot_product_attention", recorder.attention, "AutogradMeta")
        library.impl("dropout", _dropout, "AutogradMeta")
        library.impl("rms_norm", _rms_norm, "AutogradMeta")
        library.impl("softmax.int", _softmax, "AutogradMeta")
        library.impl("mish_backward", _one_kernel, "AutogradMeta")
    recorder.composites |= {
        torch.ops.aten.dropout.default: _dropout,
        torch.ops.aten.rms_norm.default: _rms_norm,
        torch.ops.aten.softmax.int: _softmax,
    }
    stack.enter_context(_OnMeta())
    stack.enter_context(torch.device("meta"))
    stack.enter_context(recorder)


def _fake_cuda(stack: ExitStack, recorder: Recorder, devices: int, world: World | None) -> None:
    importlib.import_module("torch._dynamo")  # it captures torch.cuda's functions on import, and must not capture ours
    guard.install()
    facade.reset()
    enter_world(stack, recorder, world, devices)
    total = accelerator(recorder.profile.gpu.accelerator).memory.usable_bytes
    for name, function in facade.functions(recorder.profile, total, devices).items():
        patch(stack, torch.cuda, name, function)
    library = stack.enter_context(torch.library._scoped_library("aten", "IMPL"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if recorder.profile.has_fused_attention:
            for key in ("AutogradCUDA", "CUDA"):
                library.impl("scaled_dot_product_attention", recorder.attention, key)
        library.impl("_fused_rms_norm", _fused_rms_norm, "CUDA")
        library.impl("silu_backward", _one_kernel, "CUDA")
        library.impl("mish_backward", _one_kernel, "AutogradCUDA")
    import torch.cuda.amp.common as amp

    patch(stack, amp, "amp_definitely_not_available", lambda: False)
    patch(stack, torch.Tensor, "record_stream", lambda self, stream: None)
    patch(stack, nn.Module, "_apply", _apply)
    stack.enter_context(_FakeMode(allow_non_fake_inputs=True))
    stack.enter_context(recorder)


class _FakeMode(FakeTensorMode):
    """A FakeTensorMode that does not trust the facade, which reports that CUDA is there."""

    @property
    def avoid_device_init(self) -> bool:
        return True

    @avoid_device_init.setter
    def avoid_device_init(self, value: bool) -> None: ...


class _OnMeta(TorchFunctionMode):
    """Gives a program that asks for "cuda" meta tensors."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        keywords = dict(kwargs or {})
        if "device" in keywords:
            keywords["device"] = _on_meta(keywords["device"])
        if func is torch.Tensor.cuda:
            return args[0].to("meta")
        if func is torch.Tensor.to:
            args = tuple(
                _on_meta(argument) if isinstance(argument, str | torch.device) else argument for argument in args
            )
        return func(*args, **keywords)


def _on_meta(device: Any) -> Any:
    return torch.device("meta") if device is not None and str(device).startswith("cuda") else device


def _optimizers(stack: ExitStack, profile: Profile, front_end: FrontEnd) -> None:
    """Make optimizers choose foreach as on a GPU with the profile's version; they check the devices of tensors."""
    devices = ["cuda", "meta"] if profile.foreach else []
    patch(stack, optimizers, "_get_foreach_kernels_supported_devices", lambda: devices)
    fused = ["cuda", "cpu", "meta"]
    patch(stack, optimizers, "_get_fused_kernels_supported_devices", lambda: fused)
    loaded = [module for name, module in sys.modules.items() if name.startswith("torch.optim.") and module is not None]
    for module in loaded:
        for name, value in (
            ("_get_foreach_kernels_supported_devices", devices),
            ("_get_fused_kernels_supported_devices", fused),
        ):
            if hasattr(module, name):
                patch(stack, module, name, lambda value=value: value)
    if profile.foreach:
        patch(stack, optimizers, "_foreach_supported_types", [*optimizers._foreach_supported_types, FakeTensor])


def hide_tracing(stack: ExitStack) -> None:
    """Hide tracing from transformers, which would take another path."""
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers") and module is not None:
            for question in ("is_tracing", "is_fake_tensor"):
                if question in vars(module):
                    patch(stack, module, question, lambda *_, **__: False)


@contextmanager
def _all_in_one_thread() -> Iterator[None]:
    """Run backward in the caller's thread, because dispatch modes belong to a thread."""
    before = torch.autograd.is_multithreading_enabled()
    torch.autograd.set_multithreading_enabled(False)
    try:
        yield
    finally:
        torch.autograd.set_multithreading_enabled(before)


def _dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Dropout as on CUDA: one kernel that returns the result and a mask of bools."""
    if not train or p == 0 or x.numel() == 0:
        return x
    result: torch.Tensor = torch.ops.aten.native_dropout(x, p, train)[0]
    return result


def _softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Softmax as on CUDA: one kernel computes fp32 from fp16 (native/SoftMax.cpp: half_to_float)."""
    half_to_float = x.dtype == torch.float16 and dtype == torch.float32
    if not half_to_float and dtype is not None:
        x = x.to(dtype)
    result: torch.Tensor = torch.ops.aten._softmax(x, dim, half_to_float)
    return result


def _rms_norm(
    x: torch.Tensor, shape: list[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    """RMSNorm as on CUDA: one kernel that keeps the reciprocal roots in fp32."""
    result: torch.Tensor = _RmsNorm.apply(x, shape, weight)
    return result


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, shape: list[int], weight: torch.Tensor | None) -> torch.Tensor:
        out, roots = _fused_rms_norm(x, shape, weight)
        ctx.save_for_backward(x, roots, weight)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, None, torch.Tensor | None]:
        x, _, weight = ctx.saved_tensors
        return torch.empty_like(x), None, None if weight is None else torch.empty_like(weight)


def _fused_rms_norm(
    x: torch.Tensor, shape: Any, weight: Any = None, eps: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [*x.shape[: x.dim() - len(shape)], *[1] * len(shape)]
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(rows, dtype=wide)


def _one_kernel(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """An activation function's backward as one GPU kernel, not as the parts that a CPU build falls back on."""
    return torch.empty_like(gradient)


# New parameters of the current call of a module's .to, by id of the old ones.
_MOVED: list[dict[int, tuple[nn.Parameter, nn.Parameter]]] = []


def _apply(self: nn.Module, fn: Any, recurse: bool = True) -> nn.Module:
    """Module._apply for tensors whose data cannot be swapped: it creates new parameters, shared ones once."""
    outermost = not _MOVED
    if outermost:
        _MOVED.append({})
    try:
        _move(self, fn, recurse, _MOVED[-1])
    finally:
        if outermost:
            _MOVED.clear()
    return self


def _move(module: nn.Module, fn: Any, recurse: bool, moved: dict[int, tuple[nn.Parameter, nn.Parameter]]) -> None:
    if recurse:
        for child in module.children():
            child._apply(fn)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            if id(parameter) not in moved:
                moved[id(parameter)] = (parameter, _moved(parameter, fn))
            module._parameters[name] = moved[id(parameter)][1]
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)


def _moved(parameter: nn.Parameter, fn: Any) -> nn.Parameter:
    with torch.no_grad():
        data = fn(parameter)
        gradient = None if parameter.grad is None else fn(parameter.grad)
    if data is parameter:
        return parameter
    moved = nn.Parameter(data, parameter.requires_grad)
    moved.grad = gradient
    moved.__dict__.update({key: value for key, value in parameter.__dict__.items() if key not in moved.__dict__})
    return moved
