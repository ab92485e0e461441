"""Fixed amounts: the context, workspaces, NCCL, what the allocator takes for one tensor, the cost of a launch."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.nn import functional

from gpu.context import Context
from gpu.timing import seconds_per_call
from tonnage.measure import nvidia

KIND = "device_constant"
MIB = 2**20
TRAINED = "after a product in backward"  # what a language model's training step has started by then
SIZES = (
    1,
    512,
    513,
    MIB - 512,
    MIB,
    MIB + 1,
    2 * MIB,
    5 * MIB,
    10 * MIB - 1,
    10 * MIB,
    10 * MIB + 1,
    19 * MIB,
    20 * MIB,
    20 * MIB + 1,
    101 * MIB,
)


def context(context: Context, items: Sequence[Any] | None) -> None:
    """Bytes of the device outside of the allocator, step by step in a new process; workspaces inside of it."""
    device = context.device
    steps: list[tuple[str, int | None, int]] = []

    def note(name: str) -> None:
        device.synchronize()
        used, held = device.used_bytes(), device.figures()
        steps.append((name, None if used is None else used - held.reserved, held.allocated))

    note("after CUDA's start")
    x = torch.ones(1024, 1024, device=device.kind, dtype=torch.bfloat16)
    note("after the first tensor")
    todo: list[tuple[str, Callable[[], Any]]] = [
        ("after the first kernel", lambda: x + x),
        ("after a matrix product", lambda: x @ x),
        ("after one with a bias", lambda: functional.linear(x, x, x[0])),
        ("after one in fp32", lambda: x.float() @ x.float()),
        ("after an fp8 one", lambda: _scaled(x)),
        (
            "after attention",
            lambda: functional.scaled_dot_product_attention(*[x.view(1, 16, 1024, 64)] * 3, is_causal=True),
        ),
        (TRAINED, lambda: _backward(x)),
        ("after a sort", lambda: torch.sort(x.flatten())),
        (
            "after a convolution",
            lambda: functional.conv2d(x.view(1, 64, 128, 128), x.flatten()[: 64 * 64 * 9].view(64, 64, 3, 3)),
        ),
    ]
    if device.kind == "cpu":
        del todo[4]  # fp8 takes a CPU half a minute
    for name, call in todo:
        with suppress(RuntimeError, NotImplementedError, AttributeError, TypeError):
            call()
            note(name)
    outside = {name: size for name, size, _ in steps if size is not None and size >= 0}
    process = device.process_bytes()
    figures: list[tuple[str, Any, str]] = [
        ("device in use and not reserved", outside, "bytes"),
        ("allocated", {name: size for name, _, size in steps}, "bytes"),
    ]
    if process is not None:
        reserved = device.figures().reserved
        figures.append(("process, as the driver counts it, and not reserved", max(process - reserved, 0), "bytes"))
    driver = nvidia.used_bytes(device.index)
    if driver is not None:
        figures.append(("memory.used of nvidia-smi", driver, "bytes"))
    context.figure(
        "context",
        KIND,
        {"what": "CUDA context and libraries"},
        (
            "device in use and not reserved, after products and attention",
            outside.get(TRAINED, max(outside.values(), default=0)),
            "bytes",
        ),
        figures,
        note="the first steps hold what other processes use of the device too",
    )


def _scaled(x: torch.Tensor) -> Any:
    one, small = torch.ones((), device=x.device), x.to(torch.float8_e4m3fn)
    return torch._scaled_mm(small, small.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _backward(x: torch.Tensor) -> None:
    leaf = x.clone().requires_grad_()
    (leaf @ leaf).sum().backward()


def allocator(context: Context, items: Sequence[Any] | None) -> None:
    """What is reserved and allocated for a single tensor of each size, from an empty cache."""
    device = context.device
    reserved: dict[str, int] = {}
    allocated: dict[str, int] = {}
    device.empty_cache()
    base = device.figures()
    for size in SIZES:
        tensor = torch.empty(size, dtype=torch.uint8, device=device.kind)
        figures = device.figures()
        reserved[str(size)], allocated[str(size)] = figures.reserved - base.reserved, figures.allocated - base.allocated
        del tensor
        device.empty_cache()
    context.figure(
        "allocator",
        KIND,
        {"what": "one tensor alone, by its bytes"},
        ("reserved for one byte", reserved["1"], "bytes"),
        [("reserved", reserved, "bytes"), ("allocated", allocated, "bytes")],
    )


def nccl(context: Context, items: Sequence[Any] | None) -> None:
    """Bytes outside of the allocator that a communicator of one rank takes."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_nccl_available():
        context.unsupported("nccl", "this PyTorch is built without NCCL")
        return
    device = context.device
    x = torch.ones(MIB, device=device.kind)
    x += x
    before, reserved = device.used_bytes(), device.figures().reserved
    try:
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(x)
        device.synchronize()
    except RuntimeError as error:
        context.unsupported("nccl", str(error))
        return
    after = device.used_bytes()
    if before is None or after is None:
        context.unsupported("nccl", "the driver does not say what is in use")
        return
    grown = device.figures().reserved - reserved
    context.figure(
        "nccl",
        KIND,
        {"what": "NCCL communicator of one rank"},
        ("device in use", max(after - before - grown, 0), "bytes"),
        [("reserved", grown, "bytes")],
    )
    with suppress(RuntimeError):
        dist.destroy_process_group()


def launch(context: Context, items: Sequence[Any] | None) -> None:
    """Time of an operation that computes next to nothing: on the host's side, and on the device's when many follow
    each other.
    """
    device = context.device
    x = torch.ones(1, device=device.kind)
    small, matrix = torch.ones(64, device=device.kind), torch.ones(64, 64, device=device.kind)
    on_device, least = seconds_per_call(device, [lambda: x.add_(1)])
    device.synchronize()
    calls = 1000
    start = time.perf_counter()
    for _ in range(calls):
        x.add_(1)
    on_host = (time.perf_counter() - start) / calls
    device.synchronize()
    product, _ = seconds_per_call(device, [lambda: small @ matrix])
    weight = matrix.clone().requires_grad_()
    both, _ = seconds_per_call(device, [lambda: torch.autograd.grad((small @ weight).sum(), weight)])
    start = time.perf_counter()
    for _ in range(100):
        x.item()
    fetched = (time.perf_counter() - start) / 100
    context.figure(
        "launch",
        KIND,
        {"what": "operations on a few numbers"},
        ("time of an addition, one after the other", on_device, "s"),
        [
            ("least time of an addition", least, "s"),
            ("time of the host for an addition", on_host, "s"),
            ("time of a small product", product, "s"),
            ("time of one with its backward", both, "s"),
            ("time of fetching one number", fetched, "s"),
        ],
    )
