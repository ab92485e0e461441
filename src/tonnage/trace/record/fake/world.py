"""torch.distributed for a single process that is one rank of a world: process groups, meshes, DDP's start.

Collectives go to PyTorch's fake process group, which returns at once. NCCL's own memory (communicators, channels,
buffers) is outside the allocator and not recorded; nor are the later frees of `record_stream`, which PyTorch's
collectives avoid since 2.8 by holding tensors until the wait, as Python's references do here.
"""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.distributed import device_mesh, distributed_c10d

from tonnage.kernel.errors import InvalidPlan
from tonnage.trace.distributed import World, world_of
from tonnage.trace.record.fake import reducer as ddp
from tonnage.trace.record.fake import shortcuts
from tonnage.trace.record.fake.patch import patch
from tonnage.trace.record.fake.policies import watch_sharding

if TYPE_CHECKING:
    from tonnage.trace.record.fake.recorder import Recorder


def enter(stack: ExitStack, recorder: "Recorder", world: World | None, devices: int) -> None:
    """Give a program that makes process groups fake ones, of `world` or of its own arguments, until the stack
    closes.
    """
    if dist.is_initialized():
        raise InvalidPlan("a process group exists already: destroy it before a distributed program is recorded.")
    if world is not None:
        _environment(stack, world, devices)
    stack.callback(_end)
    _groups(stack, recorder, world)
    _meshes(stack, recorder)
    for name, replacement in ddp.replacements(recorder.sort).items():
        patch(stack, dist, name, replacement)


def _environment(stack: ExitStack, world: World, devices: int) -> None:
    """Set the environment variables of a launcher."""
    local = {"LOCAL_RANK": world.rank % devices, "LOCAL_WORLD_SIZE": min(world.size, devices)}
    launched = {"RANK": world.rank, "WORLD_SIZE": world.size, **local, "MASTER_ADDR": "localhost", "MASTER_PORT": 29500}
    for name, value in launched.items():
        before = os.environ.get(name)
        os.environ[name] = str(value)
        stack.callback(_restore, name, before)


def _restore(name: str, before: str | None) -> None:
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before


def _groups(stack: ExitStack, recorder: "Recorder", world: World | None) -> None:
    initialize, new_group = distributed_c10d.init_process_group, distributed_c10d.new_group
    names = signature(initialize)

    @wraps(initialize)
    def init_process_group(*args: Any, **keywords: Any) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        bound = names.bind(*args, **keywords).arguments
        here = world or world_of(size=bound.get("world_size", -1), rank=bound.get("rank", -1))
        with _real(recorder):
            initialize("fake", rank=here.rank, world_size=here.size, store=FakeStore())
        import_module(
            "torch.distributed.tensor"
        )  # it must be patched before its first use, so that shapes are not counted
        _forget()
        shortcuts.enter(stack)
        stack.callback(watch_sharding(recorder))

    @wraps(new_group)
    def new_fake_group(*args: Any, **keywords: Any) -> Any:
        bound = signature(new_group).bind(*args, **keywords).arguments
        supported = {
            name: bound[name] for name in ("ranks", "use_local_synchronization", "group_desc") if name in bound
        }
        with _real(recorder):
            return new_group(**supported)

    for module in (dist, distributed_c10d, device_mesh):
        patch(stack, module, "init_process_group", init_process_group)
        patch(stack, module, "new_group", new_fake_group)
    for name, function in _OBJECTS.items():
        for module in (dist, distributed_c10d):
            patch(stack, module, name, function)
    patch(stack, dist, "is_nccl_available", lambda: True)
    # It checks the build's CUDA and NCCL, which a CPU build does not have.
    patch(stack, torch.nn.parallel.DistributedDataParallel, "_check_comm_hook", lambda self, hook: None)


def _all_gather_object(object_list: list[Any], obj: Any, *_: Any, **__: Any) -> None:
    object_list[:] = [obj] * len(object_list)


def _gather_object(obj: Any, object_gather_list: list[Any] | None = None, *_: Any, **__: Any) -> None:
    if object_gather_list is not None:
        object_gather_list[:] = [obj] * len(object_gather_list)


def _scatter_object_list(output: list[Any], objects: list[Any] | None = None, *_: Any, **__: Any) -> None:
    if objects:
        output[0] = objects[dist.get_rank() % len(objects)]


# Objects travel as bytes of tensors, which have no data here: every rank is assumed to send what this one does.
_OBJECTS: dict[str, Callable[..., None]] = {
    "all_gather_object": _all_gather_object,
    "gather_object": _gather_object,
    "scatter_object_list": _scatter_object_list,
    "broadcast_object_list": lambda *_, **__: None,
}


def _meshes(stack: ExitStack, recorder: "Recorder") -> None:
    """Make mesh tables real tensors, since a program reads their ranks."""
    make = device_mesh.DeviceMesh.__init__

    @wraps(make)
    def make_real(self: Any, device_type: str, mesh: Any = None, **keywords: Any) -> None:
        with _real(recorder):
            if "_rank_map" in keywords:
                keywords["_rank_map"] = _table(keywords["_rank_map"])
            make(self, device_type, _table(mesh), **keywords)

    patch(stack, device_mesh.DeviceMesh, "__init__", make_real)


def _table(ranks: Any) -> Any:
    """Fake ranks, made inside the recording, as a real arange."""
    if not isinstance(ranks, FakeTensor):
        return ranks
    constant = getattr(ranks, "constant", None)
    return torch.arange(ranks.numel(), dtype=torch.int).view(ranks.shape) if constant is None else constant


@contextmanager
def _real(recorder: "Recorder") -> Any:
    """A context in which tensors are real and not recorded."""
    cpu: AbstractContextManager[Any] = (
        torch.device("cpu") if torch.get_default_device().type != "cpu" else nullcontext()
    )
    with recorder.pause(), unset_fake_temporarily(), cpu:
        yield


def _end() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
    _forget()


def _forget() -> None:
    """Clear DTensor's caches by mesh: meshes of other ranks and worlds compare equal."""
    if "torch.distributed.tensor" not in sys.modules:
        return
    from torch.distributed.tensor import _redistribute
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache

    caches: tuple[Callable[[], Any], ...] = (_clear_sharding_prop_cache, _redistribute._gen_transform_infos.cache_clear)
    for clear in caches:
        clear()
