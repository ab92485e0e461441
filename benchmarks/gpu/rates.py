"""Rates over shapes: matrix products, attention, copies, and operations that move bytes."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from gpu.context import Context
from gpu.models import rotate
from gpu.rate_items import Item
from gpu.timing import seconds_per_call, sets
from tonnage.measure import attention as backends
from tonnage.measure.device import is_out_of_memory

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
KIND = "kernel_rate"
L2_BYTES = 50 * 2**20  # of an H100; taken where PyTorch does not tell
Timed = tuple[list[Callable[[], Any]], float, str, dict[str, float]]  # calls, work of one, its unit, further figures


def matmul(context: Context, items: Sequence[Item]) -> None:
    _each(context, items, _matmul)


def attention(context: Context, items: Sequence[Item]) -> None:
    for item in items:
        if item.name not in context.items or context.late():
            continue
        try:
            with backends.only(item.sizes["backend"]):
                _each(context, [item], _decode if item.sizes["decode"] else _attention)
        except NotImplementedError as error:
            context.unsupported(item.name, str(error))


def copy(context: Context, items: Sequence[Item]) -> None:
    _each(context, items, _copy)


def elementwise(context: Context, items: Sequence[Item]) -> None:
    _each(context, items, _elementwise)


def _each(context: Context, items: Sequence[Item], make: Callable[..., list[tuple[str, Timed]]]) -> None:
    """Every item that is not done, until time is up. What a device cannot do is noted, and the next one tried."""
    for item in items:
        if item.name not in context.items or context.late():
            continue
        try:
            timed = [
                (name, *seconds_per_call(context.device, calls), work, unit, also)
                for name, (calls, work, unit, also) in make(context, **item.sizes)
            ]
        except (RuntimeError, NotImplementedError, AttributeError, ValueError, TypeError) as error:
            context.unsupported(item.name, f"{type(error).__name__}: {error}")
            if "CUDA error" in str(error) and not is_out_of_memory(error):
                raise  # the context is lost: nothing more can run in this process
            context.device.empty_cache()
            continue
        first, *rest = timed
        name, middle, least, work, unit, also = first
        figures = [(f"time of {name}", middle, "s"), (f"least time of {name}", least, "s")]
        for other, seconds, shortest, done, measure, _ in rest:
            figures += [
                (f"rate of {other}", done / seconds, measure),
                (f"time of {other}", seconds, "s"),
                (f"least time of {other}", shortest, "s"),
            ]
        figures += [(what, value, "bytes") for what, value in also.items()]
        context.figure(
            item.name, KIND, {"operation": item.work, **item.sizes}, (f"rate of {name}", work / middle, unit), figures
        )
        timed = []


def _cache(context: Context) -> int:
    return int(context.environment.get("l2_bytes") or L2_BYTES) if context.device.kind == "cuda" else 0


def _matmul(context: Context, dtype: str, m: int, n: int, k: int) -> list[tuple[str, Timed]]:
    device = context.device.kind
    if dtype == "fp8":
        return _scaled_matmul(context, m, n, k)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    kind = DTYPES[dtype]
    size = (m * k + n * k + m * n) * kind.itemsize
    calls = []
    for _ in range(sets(size, _cache(context))):
        x, weight = torch.randn(m, k, device=device, dtype=kind), torch.randn(n, k, device=device, dtype=kind)
        calls.append(lambda x=x, weight=weight: functional.linear(x, weight))
    return [("forward", (calls, 2.0 * m * n * k, "FLOP/s", {"operands and result": size}))]


def _scaled_matmul(context: Context, m: int, n: int, k: int) -> list[tuple[str, Timed]]:
    """fp8 with one scale a tensor; the second operand lies by columns, as the library wants it."""
    device, kind = context.device.kind, torch.float8_e4m3fn
    size = m * k + n * k + 2 * m * n
    one = torch.ones((), device=device, dtype=torch.float32)
    calls = []
    for _ in range(sets(size, _cache(context))):
        x, weight = torch.randn(m, k, device=device).to(kind), torch.randn(n, k, device=device).to(kind)
        calls.append(
            lambda x=x, weight=weight: torch._scaled_mm(
                x, weight.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        )
    return [("forward", (calls, 2.0 * m * n * k, "FLOP/s", {"operands and result": size}))]


def _attention(
    context: Context, backend: str, batch: int, heads: int, kv_heads: int, length: int, width: int, decode: bool
) -> list[tuple[str, Timed]]:
    """Causal products are counted by half: 2 x 2 x length^2 / 2 x width a head; backward has five products where
    forward has two.
    """
    device = context.device.kind
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    query, key, value = _operands(batch, heads, kv_heads, length, length, width, device, dtype, backend)
    how: dict[str, Any] = {"is_causal": True}
    if query.shape[1] != key.shape[1]:
        how["enable_gqa"] = True
    flops = 2.0 * batch * heads * length * length * width
    out = functional.scaled_dot_product_attention(query, key, value, **how)
    gradient = torch.randn_like(out)
    forward = [lambda: functional.scaled_dot_product_attention(query, key, value, **how)]
    backward = [lambda: torch.autograd.grad(out, (query, key, value), gradient, retain_graph=True)]
    return [("forward", (forward, flops, "FLOP/s", {})), ("backward", (backward, 2.5 * flops, "FLOP/s", {}))]


def _decode(
    context: Context, backend: str, batch: int, heads: int, kv_heads: int, length: int, width: int, decode: bool
) -> list[tuple[str, Timed]]:
    """One new token: the rate is of the cache's bytes that are read."""
    device = context.device.kind
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    size = 2 * batch * kv_heads * length * width * dtype.itemsize
    calls = []
    for _ in range(sets(size, _cache(context), most=4)):
        query, key, value = (
            each.detach() for each in _operands(batch, heads, kv_heads, 1, length, width, device, dtype, backend)
        )
        how = {"enable_gqa": True} if query.shape[1] != key.shape[1] else {}
        calls.append(lambda q=query, k=key, v=value, how=how: functional.scaled_dot_product_attention(q, k, v, **how))
    return [("forward", (calls, float(size), "bytes/s", {"cache": size}))]


def _operands(
    batch: int,
    heads: int,
    kv_heads: int,
    queries: int,
    length: int,
    width: int,
    device: str,
    dtype: torch.dtype,
    backend: str,
) -> list[torch.Tensor]:
    """Backends without grouped heads get keys and values for every head."""
    held = kv_heads if backend in ("flash", "cudnn") else heads
    made = [
        torch.randn(batch, count, rows, width, device=device, dtype=dtype)
        for count, rows in ((heads, queries), (held, length), (held, length))
    ]
    return [each.requires_grad_() for each in made]


def _copy(context: Context, kind: str, bytes: int) -> list[tuple[str, Timed]]:
    device = context.device.kind
    count = sets(2 * bytes, _cache(context)) if kind == "device-device" else 1
    calls = []
    for _ in range(count):
        places = (
            [device, device]
            if kind == "device-device"
            else ["cpu", device]
            if kind.startswith("host")
            else [device, "cpu"]
        )
        pinned = kind.endswith("pinned") and device == "cuda"
        source, target = (
            torch.ones(bytes, dtype=torch.uint8, device=place, pin_memory=pinned and place == "cpu") for place in places
        )
        calls.append(lambda source=source, target=target: target.copy_(source, non_blocking=True))
    moved = 2.0 * bytes if kind == "device-device" else float(bytes)
    return [("copy", (calls, moved, "bytes/s", {}))]


def _elementwise(context: Context, operation: str, dtype: str, rows: int, columns: int) -> list[tuple[str, Timed]]:
    """The rate is of the least bytes that must move: operands read once, results written once."""
    made = [_operation(context.device.kind, operation, DTYPES[dtype], rows, columns)]
    for _ in range(sets(int(made[0][1]), _cache(context), most=4) - 1):
        made.append(_operation(context.device.kind, operation, DTYPES[dtype], rows, columns))
    return [("pass", ([call for call, _ in made], float(made[0][1]), "bytes/s", {"moved": made[0][1]}))]


def _operation(
    device: str, operation: str, dtype: torch.dtype, rows: int, columns: int
) -> tuple[Callable[[], Any], float]:
    """What does it, and the bytes that it reads and writes."""
    elements, width = rows * columns, dtype.itemsize
    size = elements * width
    if operation.startswith("adamw"):
        return _adamw(device, operation.removeprefix("adamw_"), dtype, elements)
    if operation.startswith("embedding"):
        return _embedding(device, operation, dtype, rows, columns)
    x, y = (
        torch.randn(rows, columns, device=device, dtype=dtype),
        torch.randn(rows, columns, device=device, dtype=dtype),
    )
    weight = torch.ones(columns, device=device, dtype=dtype)
    if operation == "rms_norm" and not hasattr(functional, "rms_norm"):
        raise NotImplementedError("this PyTorch has no rms_norm")
    if operation.startswith("cross_entropy"):
        targets = torch.randint(0, columns, (rows,), device=device)
        if operation == "cross_entropy":
            return (lambda: functional.cross_entropy(x, targets)), size
        x.requires_grad_()
        loss = functional.cross_entropy(x, targets)
        return (lambda: torch.autograd.grad(loss, x, retain_graph=True)), 2 * size
    table: dict[str, tuple[Callable[[], Any], float]] = {
        "add": (lambda: x + y, 3 * size),
        "multiply": (lambda: x * y, 3 * size),
        "silu_mul": (lambda: functional.silu(x) * y, 5 * size),
        "gelu": (lambda: functional.gelu(x), 2 * size),
        "cast": (x.float, elements * (width + 4)),
        "softmax": (lambda: functional.softmax(x, dim=-1), 2 * size),
        "rms_norm": (lambda: functional.rms_norm(x, (columns,), weight), 2 * size),
        "layer_norm": (lambda: functional.layer_norm(x, (columns,), weight), 2 * size),
        "rotary": (lambda: rotate(x, y, y), 3 * size),
        "dropout": (lambda: functional.dropout(x, 0.1), 2 * size + elements),
        "sum": (x.sum, size),
    }
    return table[operation]


def _adamw(device: str, implementation: str, dtype: torch.dtype, elements: int) -> tuple[Callable[[], Any], float]:
    """Weight, gradient and two moments are read, all but the gradient written."""
    parameters = [torch.nn.Parameter(torch.randn(elements // 8, device=device, dtype=dtype)) for _ in range(8)]
    for each in parameters:
        each.grad = torch.randn_like(each)
    made = torch.optim.AdamW(parameters, lr=1e-6, **{implementation: True})
    return made.step, elements // 8 * 8 * dtype.itemsize * 7


def _embedding(
    device: str, operation: str, dtype: torch.dtype, rows: int, columns: int
) -> tuple[Callable[[], Any], float]:
    table = torch.randn(32768, columns, device=device, dtype=dtype, requires_grad=operation != "embedding")
    tokens = torch.randint(0, 32768, (rows,), device=device)
    size = rows * columns * dtype.itemsize
    if operation == "embedding":
        return (lambda: functional.embedding(tokens, table)), 2 * size
    out = functional.embedding(tokens, table)
    gradient = torch.randn_like(out)
    return (lambda: torch.autograd.grad(out, table, gradient, retain_graph=True)), size + table.numel() * dtype.itemsize
