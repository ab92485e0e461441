"""Policies for operations that cannot run without data, or that do not belong to the device."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, unset_fake_temporarily

aten = torch.ops.aten
_DEVICE = torch.ops.prim.device.default
_LIFTS = frozenset({aten.lift_fresh.default, aten.lift_fresh_copy.default, aten.lift.default})
# These operate in place: on fake tensors they change nothing, and have no kernel there.
_IN_PLACE = frozenset(
    getattr(packet, overload) for packet in (aten._fused_sgd_, aten._fused_adagrad_) for overload in packet.overloads()
)
BALANCED = "the tokens of one expert, all experts having the same"
_WAIT = torch.ops._c10d_functional.wait_tensor.default if hasattr(torch.ops, "_c10d_functional") else None


class Recorder(Protocol):
    """The part of the recorder that the policies use."""

    @property
    def device_type(self) -> str: ...

    @property
    def composites(self) -> Mapping[Any, Callable[..., Any]]: ...

    @property
    def events(self) -> Any: ...

    @property
    def modules(self) -> Any: ...

    @property
    def answers(self) -> Any: ...

    @property
    def on_question(self) -> Callable[[str], None]: ...

    def number_of(self, tensor: torch.Tensor) -> int | None: ...

    def track(self, tensor: torch.Tensor, operation: str, bytes_held: int | None = None) -> None: ...

    def pause(self) -> AbstractContextManager[None]: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...


def desugars(types: Any) -> bool:
    """Whether a call is on wrapped tensors (DTensor and others), which dispatch to plain ones themselves."""
    return any(kind is not FakeTensor and hasattr(kind, "__tensor_flatten__") for kind in types)


def answer(
    recorder: Recorder, func: Any, types: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[bool, Any]:
    """(whether a policy handled the call, its result)."""
    if func is _DEVICE:
        first = args[0]
        return (True, first.fake_device) if isinstance(first, FakeTensor) else (False, None)
    if func is aten._local_scalar_dense.default:
        return _scalar(recorder, func, args)
    if func is aten.nonzero.default and args[0].device.type == recorder.device_type:
        return True, _nonzero(recorder, args[0])
    if func in _IN_PLACE:
        return True, None
    if func is _WAIT:
        return True, args[0]  # its meta kernel would make another tensor
    if not types and recorder.device_type == "cuda" and func not in _LIFTS and _is_real(args, keywords):
        with unset_fake_temporarily():
            return True, func(*args, **keywords)
    if func in recorder.composites:
        with recorder:
            return True, recorder.composites[func](*args, **keywords)
    if _is_composite(func):
        with recorder:
            result = func.decompose(*args, **keywords)
        if result is not NotImplemented:
            return True, result
    return False, None


def _scalar(recorder: Recorder, func: Any, args: tuple[Any, ...]) -> tuple[bool, Any]:
    tensor = args[0]
    if tensor.device.type != "meta":
        try:
            return True, func(*args)
        except DataDependentOutputException:
            pass
    number = recorder.number_of(tensor)
    maker = recorder.events.allocations[number].operation if number is not None else ""
    value: bool | float | int
    if tensor.dtype == torch.bool:
        recorder.on_question(maker)
        value = "aten.all" in maker  # masks are checked for hiding anything
    elif tensor.dtype.is_floating_point:
        value = 0.0  # GradScaler's found_inf: the optimizer steps
    else:
        value = 0
    recorder.answers[maker or "a value", str(tensor.dtype), repr(value)] += 1
    return True, value


def _nonzero(recorder: Recorder, tensor: torch.Tensor) -> torch.Tensor:
    """The largest possible number of indices; for experts, the number that each has if all have the same."""
    running: Any = recorder.modules.running
    experts = 0 if hasattr(running, "get_input_embeddings") else getattr(running, "num_experts", 0)
    count, meaning = tensor.numel(), "every element"
    if type(experts) is int and experts > 1:
        # The experts that were hit: all of them. The tokens of one: a row for each choice, a column for each token.
        count, meaning = (
            (min(experts, count), "every expert") if tensor.dim() == 1 else (-(-count // experts), BALANCED)
        )
    result = aten.new_empty.default(tensor, (count, tensor.dim()), dtype=torch.int64)
    recorder.answers["aten.nonzero.default", str(tensor.dtype), meaning] += 1
    recorder.track(result, "aten.nonzero.default")
    return result


def _is_real(args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    """Whether a call is on real CPU tensors: device meshes, constants."""
    if str(keywords.get("device", "cpu")) != "cpu":
        return False
    return any(
        isinstance(argument, torch.Tensor)
        or (isinstance(argument, list | tuple) and argument and isinstance(argument[0], torch.Tensor))
        for argument in args
    )


@cache
def _is_composite(func: Any) -> bool:
    """Whether to decompose an operation: under inference_mode, composite operations arrive undivided.

    One with its own kernel on devices with data (silu_backward) is one kernel on a GPU too: a CPU build of PyTorch
    shows that by its CPU kernel.
    """
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if getattr(func, "namespace", "") != "aten":
        return False
    return (
        has(func.name(), "CompositeImplicitAutograd") and not has(func.name(), "CUDA") and not has(func.name(), "CPU")
    )


def watch_sharding(recorder: Recorder) -> Callable[[], None]:
    """Ignore DTensor's shape inference, which runs operations on full-size tensors that are not the device's."""
    module = sys.modules.get("torch.distributed.tensor._sharding_prop")
    if module is None:
        return lambda: None
    propagator = module.ShardingPropagator
    original = propagator._propagate_tensor_meta_non_cached

    def quiet(self: Any, *args: Any, **keywords: Any) -> Any:
        with recorder.pause():
            return original(self, *args, **keywords)

    propagator._propagate_tensor_meta_non_cached = quiet

    def undo() -> None:
        propagator._propagate_tensor_meta_non_cached = original

    return undo
