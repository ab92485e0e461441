"""What kernels take for themselves: bytes at the peak of one operation's forward and backward, first and in later
calls.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from gpu.context import Context
from gpu.rate_items import Item
from tonnage.measure import attention as backends
from tonnage.measure.device import Device, is_out_of_memory

KIND = "kernel_memory"
BF16 = torch.bfloat16


def run(context: Context, items: Sequence[Item]) -> None:
    """Every item that is not done. A row has the peak of a second call over what was allocated before it, and the
    first's beside it.
    """
    for item in items:
        if item.name not in context.items or context.late():
            continue
        try:
            with backends.only(item.sizes.get("backend", "sdpa")):
                call = _operation(context.device.kind, **item.sizes)
                first, later = _figures(context.device, call), _figures(context.device, call)
        except (RuntimeError, NotImplementedError, AttributeError, ValueError, TypeError) as error:
            context.unsupported(item.name, f"{type(error).__name__}: {error}")
            if "CUDA error" in str(error) and not is_out_of_memory(error):
                raise  # the context is lost: nothing more can run in this process
            context.device.empty_cache()
            continue
        main, *also = later.items()
        figures = [*also, *((f"{name}, in the first call", size) for name, size in first.items())]
        context.figure(item.name, KIND, item.sizes, (*main, "bytes"), [(*each, "bytes") for each in figures])
        call = None


def _figures(device: Device, call: "_Call") -> dict[str, int]:
    """Bytes over what was allocated before forward, and over what was allocated before backward."""
    device.synchronize()
    start = device.figures().allocated
    device.reset_peaks()
    out = call()
    device.synchronize()
    figures = device.figures()
    found = {"peak of forward": figures.peak_allocated - start, "kept by the result": figures.allocated - start}
    leaves = [each for each in call.leaves if each.requires_grad]
    if leaves and isinstance(out, torch.Tensor) and out.requires_grad:
        gradient = torch.ones_like(out)
        before = device.figures().allocated
        device.reset_peaks()
        gradients = torch.autograd.grad(out, leaves, gradient)
        device.synchronize()
        figures = device.figures()
        found["peak of backward"] = max(figures.peak_allocated - before, 0)
        found["gradients"] = sum(each.numel() * each.element_size() for each in gradients)
        del gradient, gradients
    del out
    device.synchronize()
    return {**found, "left by all of it": max(device.figures().allocated - start, 0)}


class _Call:
    """A forward with its leaves."""

    def __init__(self, call: Callable[..., Any], *leaves: torch.Tensor):
        self.call, self.leaves = call, leaves

    def __call__(self) -> Any:
        return self.call(*self.leaves)


def _random(*shape: int, dtype: torch.dtype = BF16, trains: bool = True) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype).requires_grad_(trains)


def _operation(device: str, operation: str, rows: int = 0, columns: int = 0, backend: str = "", **shape: int) -> _Call:
    with torch.device(device):
        if operation == "attention":
            return _attention(backend, **shape)
        return _on_matrix(operation, rows, columns)


def _on_matrix(operation: str, rows: int, columns: int) -> _Call:
    x = _random(rows, columns)
    targets = torch.randint(0, columns, (rows,))
    fixed = x.detach()
    table: dict[str, Callable[[], _Call]] = {
        "mm": lambda: _Call(torch.mm, x, _random(columns, columns)),
        "bmm": lambda: _Call(torch.bmm, _random(8, rows, columns // 8), _random(8, columns // 8, columns)),
        "addmm": lambda: _Call(functional.linear, x, _random(columns, columns), _random(columns)),
        "mse_loss": lambda: _Call(lambda a: functional.mse_loss(a, fixed), x),
        "cross_entropy": lambda: _Call(lambda a: functional.cross_entropy(a, targets), x),
        "embedding": lambda: _Call(lambda a: functional.embedding(targets, a), _random(32768, columns)),
        "layer_norm": lambda: _Call(
            lambda a, w, b: functional.layer_norm(a, (columns,), w, b), x, _random(columns), _random(columns)
        ),
        "rms_norm": lambda: _Call(lambda a, w: functional.rms_norm(a, (columns,), w), x, _random(columns)),
        "softmax": lambda: _Call(lambda a: functional.softmax(a, dim=-1), x),
        "dropout": lambda: _Call(lambda a: functional.dropout(a, 0.1), x),
        "sort": lambda: _Call(lambda a: torch.sort(a.flatten())[0], fixed),
        "topk": lambda: _Call(lambda a: torch.topk(a, 8, dim=-1)[0], x),
        "cumsum": lambda: _Call(lambda a: torch.cumsum(a, dim=0), x),
        "index_add": lambda: _Call(lambda a: torch.zeros_like(a).index_add_(0, targets % rows, a), x),
        "nonzero": lambda: _Call(lambda a: torch.nonzero(a > 0), fixed),
        "bincount": lambda: _Call(lambda: torch.bincount(targets, minlength=columns)),
        "scaled_mm": lambda: _scaled_mm(rows, columns),
        "grouped_mm": lambda: _grouped_mm(rows, columns),
        "clip_grad_norm": lambda: _clip(x),
        "conv2d": lambda: _Call(
            lambda a, w: functional.conv2d(a, w, padding=1), _random(4, 64, 64, 64), _random(64, 64, 3, 3)
        ),
    }
    return table[operation]()


def _attention(backend: str, batch: int, heads: int, kv_heads: int, length: int, width: int) -> _Call:
    grouped = backend in ("flash", "cudnn") and heads != kv_heads
    held = kv_heads if grouped else heads
    operands = [_random(batch, count, length, width) for count in (heads, held, held)]
    how: dict[str, Any] = {"enable_gqa": True} if grouped else {}
    return _Call(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True, **how), *operands)


def _scaled_mm(rows: int, columns: int) -> _Call:
    first, second = (
        _random(count // 16 * 16, columns, trains=False).to(torch.float8_e4m3fn) for count in (rows, columns)
    )
    one = torch.ones(())
    return _Call(lambda: torch._scaled_mm(first, second.t(), scale_a=one, scale_b=one, out_dtype=BF16))


def _grouped_mm(rows: int, columns: int) -> _Call:
    ends = torch.arange(1, 9, dtype=torch.int32) * (rows // 8)
    weights = _random(8, columns, columns)
    return _Call(
        lambda a, w: torch._grouped_mm(a, w.transpose(-2, -1), offs=ends), _random(rows // 8 * 8, columns), weights
    )


def _clip(x: torch.Tensor) -> _Call:
    parameters = [torch.nn.Parameter(torch.ones_like(x)) for _ in range(4)]
    for each in parameters:
        each.grad = torch.ones_like(each)
    return _Call(lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0))
