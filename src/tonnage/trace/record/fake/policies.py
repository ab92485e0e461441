"""What is done with operations that cannot run without data, or that are not the device's."""

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
# In place on fake tensors they change nothing, and have no kernel there.
_IN_PLACE = frozenset(
    getattr(packet, overload) for packet in (aten._fused_sgd_, aten._fused_adagrad_) for overload in packet.overloads()
)
BALANCED = "the tokens of one expert, all experts having the same"
_WAIT = torch.ops._c10d_functional.wait_tensor.default if hasattr(torch.ops, "_c10d_functional") else None


class Recorder(Protocol):
    """What the policies use of the recorder that meets the operations."""

    @property
    def device_type(self) -> str: ...

    @property
    def whole(self) -> Mapping[Any, Callable[..., Any]]: ...

    @property
    def events(self) -> Any: ...

    @property
    def modules(self) -> Any: ...

    @property
    def answers(self) -> Any: ...

    @property
    def asked(self) -> Callable[[str], None]: ...

    def number_of(self, tensor: torch.Tensor) -> int | None: ...

    def track(self, tensor: torch.Tensor, operation: str, bytes_held: int | None = None) -> None: ...

    def pause(self) -> AbstractContextManager[None]: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...


def desugars(types: Any) -> bool:
    """Whether a call is on wrapped tensors (DTensor and the like), which dispatch to plain ones themselves."""
    return any(each is not FakeTensor and hasattr(each, "__tensor_flatten__") for each in types)


def answer(
    recorder: Recorder, func: Any, types: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[bool, Any]:
    """(whether it was dealt with, the result)."""
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
    if func in recorder.whole:
        with recorder:
            return True, recorder.whole[func](*args, **keywords)
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
        recorder.asked(maker)
        value = "aten.all" in maker  # masks are asked whether they hide anything
    elif tensor.dtype.is_floating_point:
        value = 0.0  # GradScaler's found_inf: the step is taken
    else:
        value = 0
    recorder.answers[maker or "a value", str(tensor.dtype), repr(value)] += 1
    return True, value


def _nonzero(recorder: Recorder, tensor: torch.Tensor) -> torch.Tensor:
    """As many indices as there can be; among experts, as many as each has when all have the same."""
    running: Any = recorder.modules.running
    experts = 0 if hasattr(running, "get_input_embeddings") else getattr(running, "num_experts", 0)
    found, said = tensor.numel(), "every element"
    if type(experts) is int and experts > 1:
        # The experts that were hit: all of them. The tokens of one: a row for each choice, a column for each token.
        found, said = (min(experts, found), "every expert") if tensor.dim() == 1 else (-(-found // experts), BALANCED)
    result = aten.new_empty.default(tensor, (found, tensor.dim()), dtype=torch.int64)
    recorder.answers["aten.nonzero.default", str(tensor.dtype), said] += 1
    recorder.track(result, "aten.nonzero.default")
    return result


def _is_real(args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    """A call on CPU tensors that are no fakes: device meshes, constants."""
    if str(keywords.get("device", "cpu")) != "cpu":
        return False
    return any(
        isinstance(each, torch.Tensor)
        or (isinstance(each, list | tuple) and each and isinstance(each[0], torch.Tensor))
        for each in args
    )


@cache
def _is_composite(func: Any) -> bool:
    """Composite operations arrive whole under inference_mode, and are followed into their parts.

    One that has a kernel of its own on devices with data (silu_backward) is one kernel on a GPU too: a build of PyTorch
    without CUDA tells by its CPU.
    """
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if getattr(func, "namespace", "") != "aten":
        return False
    return (
        has(func.name(), "CompositeImplicitAutograd") and not has(func.name(), "CUDA") and not has(func.name(), "CPU")
    )


def watch_sharding(recorder: Recorder) -> Callable[[], None]:
    """DTensor asks for shapes by running operations on tensors of the whole size: these are not the device's."""
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
