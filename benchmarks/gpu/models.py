"""Decoders as transformers writes them, with torch alone: grouped heads, RMSNorm, rotary positions, SwiGLU, mixtures
of experts.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from gpu.shapes import Shape
from tonnage.measure.attention import only

_VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdecimal())


class RMSNorm(nn.Module):
    """As transformers computes it: in fp32, with each intermediate kept for backward."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """x: batch x heads x sequence x width."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Attention(nn.Module):
    """`backend` says which kernels the caller allows: only some take fewer key heads than query heads."""

    def __init__(self, shape: Shape, backend: str):
        super().__init__()
        self.shape, self.backend = shape, backend
        self.grouped = _VERSION >= (2, 5) and backend in ("flash", "cudnn")
        query, value, bias = shape.heads * shape.width, shape.kv_heads * shape.width, shape.attention_bias
        self.q_proj = nn.Linear(shape.hidden, query, bias=bias)
        self.k_proj = nn.Linear(shape.hidden, value, bias=bias)
        self.v_proj = nn.Linear(shape.hidden, value, bias=bias)
        self.o_proj = nn.Linear(query, shape.hidden, bias=False)
        if shape.qk_norm:
            self.q_norm, self.k_norm = RMSNorm(shape.width), RMSNorm(shape.width)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query, key, value = (
            made(x).view(batch, length, -1, self.shape.width) for made in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.shape.qk_norm:
            query, key = self.q_norm(query), self.k_norm(key)
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        how: dict[str, Any] = {"is_causal": True}
        if self.shape.heads != self.shape.kv_heads:
            if self.grouped:
                how["enable_gqa"] = True
            else:
                repeats = self.shape.heads // self.shape.kv_heads
                key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
        with only(self.backend):
            mixed = functional.scaled_dot_product_attention(query, key, value, **how)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Mixture(nn.Module):
    """Experts one after the other ("loop"), or all in one product of matrices ("grouped": torch._grouped_mm, tokens
    sorted by expert).
    """

    def __init__(self, shape: Shape, experts: str):
        super().__init__()
        self.shape, self.experts = shape, experts
        self.gate = nn.Linear(shape.hidden, shape.experts, bias=False)
        self.gate_up_proj = nn.Parameter(torch.empty(shape.experts, 2 * shape.intermediate, shape.hidden))
        self.down_proj = nn.Parameter(torch.empty(shape.experts, shape.hidden, shape.intermediate))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, self.shape.hidden)
        scores = functional.softmax(self.gate(tokens), dim=-1, dtype=torch.float32)
        weights, chosen = torch.topk(scores, self.shape.experts_per_token, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        mixed = (self._grouped if self.experts == "grouped" else self._looped)(tokens, weights, chosen)
        return mixed.view_as(x)

    def _looped(self, tokens: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        mixed = torch.zeros_like(tokens)
        for expert in range(self.shape.experts):
            rows, place = torch.where(chosen == expert)
            gate, up = functional.linear(tokens[rows], self.gate_up_proj[expert]).chunk(2, dim=-1)
            made = functional.linear(functional.silu(gate) * up, self.down_proj[expert]) * weights[rows, place, None]
            mixed.index_add_(0, rows, made.to(mixed.dtype))
        return mixed

    def _grouped(self, tokens: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        experts, order = torch.sort(chosen.reshape(-1))
        numbers = (
            experts.float() if experts.device.type == "cpu" else experts.int()
        )  # as transformers counts: bincount waits for the GPU
        counts = torch.histc(numbers, bins=self.shape.experts, min=0, max=self.shape.experts - 1)
        ends = torch.cumsum(counts, dim=0, dtype=torch.int32)
        rows = order // self.shape.experts_per_token
        gate, up = grouped_product(tokens[rows], self.gate_up_proj, ends).chunk(2, dim=-1)
        made = grouped_product(functional.silu(gate) * up, self.down_proj, ends) * weights.reshape(-1)[order, None]
        return torch.zeros_like(tokens).index_add_(0, rows, made.to(tokens.dtype))


def grouped_product(x: torch.Tensor, weights: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """Rows of x up to each end with that expert's matrix; weights: experts x out x in."""
    if not hasattr(torch, "_grouped_mm"):
        raise NotImplementedError("this PyTorch has no torch._grouped_mm")
    return torch._grouped_mm(x.to(weights.dtype), weights.transpose(-2, -1), offs=ends)


class Layer(nn.Module):
    def __init__(self, shape: Shape, backend: str, experts: str):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(shape.hidden), RMSNorm(shape.hidden)
        self.self_attn = Attention(shape, backend)
        self.mlp = Mixture(shape, experts) if shape.experts else FeedForward(shape)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cosine, sine)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """tokens: batch x sequence; gives logits. `recompute`: each layer keeps its input alone."""

    def __init__(self, shape: Shape, backend: str = "sdpa", experts: str = "loop", recompute: bool = False):
        super().__init__()
        self.shape, self.recompute = shape, recompute
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape, backend, experts) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.hidden)
        self.lm_head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        if shape.tied:
            self.lm_head.weight = self.embed_tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(tokens)
        cosine, sine = self._positions(tokens.shape[1], x)
        for layer in self.layers:
            if self.recompute:
                x = checkpoint(layer, x, cosine, sine, use_reentrant=False)
            else:
                x = layer(x, cosine, sine)
        return self.lm_head(self.norm(x))

    def _positions(self, length: int, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        half = torch.arange(0, self.shape.width, 2, device=x.device, dtype=torch.float32) / self.shape.width
        angles = torch.arange(length, device=x.device, dtype=torch.float32)[:, None] * 500000.0**-half
        both = torch.cat((angles, angles), dim=-1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def loss_of(tokens: torch.Tensor) -> Any:
    """Cross entropy on fp32 logits, each token against the next, as transformers computes it."""
    targets = functional.pad(tokens, (0, 1), value=-100)[..., 1:].reshape(-1)

    def loss(logits: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets, ignore_index=-100)

    return loss
