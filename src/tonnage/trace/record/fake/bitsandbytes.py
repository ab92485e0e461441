"""Stand-ins for bitsandbytes, whose classes wrap real CUDA memory: tensors of the same sizes, without computation.

Read in bitsandbytes 0.50.2: optim/optimizer.py, nn/modules.py, functional.py, autograd/_functions.py,
backends/cuda/ops.py.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn

SMALLEST = 4096  # optim/optimizer.py, min_8bit_size: fewer elements keep fp32 states
BLOCK = 256  # elements per absmax of an 8-bit state
PAGED = 100_000  # get_state_buffer: states of at least so many elements are in managed memory
TABLE = 256  # entries of a map of quantiles, fp32
SCALE_BLOCK, WEIGHT_BLOCK, CODES = 256, 64, 16  # functional.py: quantize_4bit
ROWS_WITHOUT_COPY = 4  # backends/cuda/ops.py, _GEMM_4BIT_CUSTOM_FLOOR_M: these multiply without a dequantised weight


class Optimizer(torch.optim.Optimizer):
    """bitsandbytes' Optimizer1State (`states` 1) and Optimizer2State, with states of 8 or 32 bits.

    `full_precision`: ids of parameters whose states stay in fp32, as transformers' Trainer sets for embeddings.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        *,
        states: int,
        bits: int,
        paged: bool = False,
        full_precision: frozenset[int] = frozenset(),
    ):
        self.count, self.bits, self.paged, self.full_precision = states, bits, paged, full_precision
        self._maps: tuple[torch.Tensor, ...] = ()
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    if not self.state[parameter]:
                        self._begin(parameter)
                    parameter.grad = parameter.grad.contiguous()  # the kernels update in place and allocate nothing

    def _begin(self, parameter: torch.Tensor) -> None:
        state, elements = self.state[parameter], parameter.numel()
        small = self.bits == 32 or elements < SMALLEST or id(parameter) in self.full_precision
        if not small and not self._maps:  # one signed map, and an unsigned one for the second state, for all parameters
            self._maps = tuple(torch.empty(TABLE, device=parameter.device) for _ in range(self.count))
        for i in range(1, self.count + 1):
            outside = self.paged and elements >= PAGED
            dtype = torch.float32 if small else torch.uint8
            state[f"state{i}"] = (
                "in managed memory, outside of PyTorch's allocator"
                if outside
                else torch.zeros_like(parameter, dtype=dtype)
            )
            if not small:
                state[f"qmap{i}"] = self._maps[i - 1]
        for i in range(1, self.count + 1) if not small else ():
            state[f"absmax{i}"] = torch.zeros(-(-elements // BLOCK), device=parameter.device)


class Linear4bit(nn.Linear):
    """bitsandbytes' Linear4bit: a byte for two weights, an absmax for 64, quantised once more for 256 of them if
    `double`.
    """

    absmax: torch.Tensor
    offset: torch.Tensor
    bias: Any

    def __init__(self, linear: nn.Linear, device: torch.device, compute: torch.dtype, double: bool):
        """Replace a linear layer that is not on the device; its weight is loaded in full, quantised there, and
        dropped.
        """
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.compute_dtype, self.nested = compute, double
        self.weight_dtype = linear.weight.dtype
        weights = linear.weight.numel()
        blocks = -(-weights // WEIGHT_BLOCK)
        loaded = torch.empty(linear.weight.shape, dtype=self.weight_dtype, device=device)
        absmax = torch.empty(blocks, device=device)
        self.weight = nn.Parameter(
            torch.empty((weights + 1) // 2, 1, dtype=torch.uint8, device=device), requires_grad=False
        )
        self.bias = _moved(linear.bias, device)
        self._hold("code", torch.empty(CODES, device=device))
        if double:
            self._hold("offset", absmax.mean())
            rest = absmax - self.offset
            self._hold("absmax_of_absmax", torch.empty(-(-blocks // SCALE_BLOCK), device=device))
            self._hold("absmax", torch.empty_like(rest, dtype=torch.uint8))
            self._hold("code_of_absmax", torch.empty(TABLE, device=device))
            del rest
        else:
            self._hold("absmax", absmax)
        del absmax, loaded

    def _hold(self, name: str, tensor: torch.Tensor) -> None:
        self.register_buffer(name, tensor, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = None if self.bias is None else self.bias.to(self.compute_dtype)
        product: torch.Tensor = _In4bit.apply(x.to(self.compute_dtype), self, bias)
        return product.to(x.dtype)

    def dequantised(self) -> torch.Tensor:
        """The weight in its own precision, a temporary; the absmaxes are dequantised before it."""
        scales = torch.empty_like(self.absmax, dtype=torch.float32).add_(self.offset) if self.nested else self.absmax
        weight = torch.empty(self.out_features, self.in_features, dtype=self.weight_dtype, device=self.weight.device)
        del scales
        return weight


def scales_of(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Scales and code tables of quantised weights, by their names in the model: they count as weights."""
    for path, module in model.named_modules():
        if isinstance(module, Linear4bit | Linear8bit):
            for name, tensor in module.named_buffers(recurse=False):
                yield f"{path}.{name}", tensor


def _moved(bias: torch.Tensor | None, device: torch.device) -> nn.Parameter | None:
    return None if bias is None else nn.Parameter(torch.empty_like(bias, device=device), requires_grad=False)


class _In4bit(torch.autograd.Function):
    """MatMul4Bit: keeps nothing of the input, and dequantises the weight in forward and again in backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: Linear4bit, bias: torch.Tensor | None) -> torch.Tensor:
        ctx.layer, ctx.has_bias = layer, bias is not None
        if x.numel() // x.shape[-1] <= ROWS_WITHOUT_COPY:
            return torch.empty(*x.shape[:-1], layer.out_features, dtype=x.dtype, device=x.device)
        return nn.functional.linear(x, layer.dequantised().to(x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        of_bias = (
            gradient.sum(dim=tuple(range(gradient.dim() - 1))) if ctx.has_bias and ctx.needs_input_grad[2] else None
        )
        of_input = gradient @ ctx.layer.dequantised().to(gradient.dtype) if ctx.needs_input_grad[0] else None
        return of_input, None, of_bias


class Linear8bit(nn.Linear):
    """bitsandbytes' Linear8bitLt with int8 weights, as LLM.int8() loads them: a byte a weight, an fp32 scale a row."""

    bias: Any

    def __init__(self, linear: nn.Linear, device: torch.device):
        """Replace a linear layer that is not on the device; its weight is loaded in fp16, quantised there, and
        dropped.
        """
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        loaded = torch.empty(linear.weight.shape, dtype=torch.float16, device=device)
        scales = torch.empty(linear.out_features, device=device)
        self.weight = nn.Parameter(torch.empty_like(loaded, dtype=torch.int8), requires_grad=False)
        self.register_buffer("SCB", scales, persistent=False)
        self.bias = _moved(linear.bias, device)
        del loaded

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = _In8bit.apply(x, self, self.bias)
        return product


class _In8bit(torch.autograd.Function):
    """MatMul8bitLt with threshold 6 if no activation is an outlier: the input is kept, since its columns may be
    needed.
    """

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, layer: Linear8bit, bias: torch.Tensor | None) -> torch.Tensor:
        ctx.layer, ctx.shape, ctx.dtype = layer, x.shape, x.dtype
        rows = x.reshape(-1, x.shape[-1])
        half = rows.to(torch.float16)
        scales = torch.empty(rows.shape[0], device=x.device)
        quantised = torch.empty_like(half, dtype=torch.int8)
        outlier = half.abs() >= 6.0
        del half, outlier
        accumulated = torch.empty(rows.shape[0], layer.out_features, dtype=torch.int32, device=x.device)
        product = torch.empty_like(accumulated, dtype=torch.float16)
        if bias is not None and bias.dtype != torch.float16:
            product.add_(bias)
        product = product.to(x.dtype)
        del quantised, scales, accumulated
        if any(ctx.needs_input_grad[:2]):
            ctx.input_rows = rows
        return product.reshape(*x.shape[:-1], layer.out_features)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
        of_bias = gradient.sum(dim=tuple(range(gradient.dim() - 1))) if ctx.needs_input_grad[2] else None
        if not ctx.needs_input_grad[0]:
            return None, None, of_bias
        rows = gradient.reshape(-1, gradient.shape[-1]).contiguous()
        layer = ctx.layer
        weight = layer.weight.to(ctx.dtype, copy=True).mul_(layer.SCB.unsqueeze(1).mul(1.0 / 127.0))
        return (rows.to(ctx.dtype) @ weight).view(ctx.shape), None, of_bias
