"""Kimi delta attention: the gated delta rule with a decay of its own for every channel (Kimi-Linear, Kimi K3)."""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, Weight, matrix
from tonnage.ops.mixers import CHUNK, FP32


class KimiDeltaAttention(Op, frozen=True, eq=False, kw_only=True):
    """A state of head_dim x head_dim a head, short convolutions on queries, keys and values, and a gate on the
    output.

    `forget_rank` and `gate_rank`: width of the low-rank pair of matrices that makes the decay and the output gate,
    None: one full matrix. `decays`: numbers of A_log, None for one a head (Kimi K3 stores head_dim of them, of which
    the first `heads` are read).
    """

    name: str = "self_attn"
    hidden_size: int
    heads: int
    head_dim: int
    conv_kernel: int
    forget_rank: int | None
    gate_rank: int | None
    decays: int | None = None

    @property
    def _inner(self) -> int:
        return self.heads * self.head_dim

    def weights(self) -> tuple[Weight, ...]:
        h, n, inner = self.hidden_size, self.name, self._inner
        cut: dict[str, Any] = {"split": "tensor", "part": "mixer"}
        weights: tuple[Weight, ...] = ()
        for name in ("q", "k", "v"):
            weights += matrix(f"{n}.{name}_proj", h, inner, **cut)
            weights += (Weight(f"{n}.{name}_conv1d.weight", inner, self.conv_kernel, split="tensor", part="mixer"),)
        weights += self._narrow("f", self.forget_rank) + matrix(f"{n}.b_proj", h, self.heads, **cut)
        weights += self._narrow("g", self.gate_rank)
        weights += (Weight(f"{n}.A_log", self.decays or self.heads, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.dt_bias", inner, split="tensor", part="mixer"),)
        weights += (Weight(f"{n}.o_norm.weight", self.head_dim, part="norm"),)
        return weights + matrix(f"{n}.o_proj", inner, h, **cut)

    def _narrow(self, letter: str, rank: int | None) -> tuple[Weight, ...]:
        h, n, inner = self.hidden_size, self.name, self._inner
        if rank is None:
            return matrix(f"{n}.{letter}_proj", h, inner, split="tensor", part="mixer")
        into = matrix(f"{n}.{letter}_a_proj", h, rank, part="mixer")
        return into + matrix(f"{n}.{letter}_b_proj", rank, inner, split="tensor", part="mixer")

    def caches(self) -> tuple[StateCache, ...]:
        return (
            StateCache("recurrent state", self.heads * self.head_dim**2, self.heads, FP32),
            StateCache("convolution state", 3 * self._inner * (self.conv_kernel - 1), self.heads),
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        inner = self._inner
        return (
            Saved("mixer input", self.hidden_size),
            Saved("before convolution", 3 * inner, "tensor"),
            Saved("queries, keys and values", 3 * inner, "tensor"),
            Saved("decay and beta in fp32", inner + self.heads, "tensor", FP32),
            Saved("what a chunk's tokens correct in each other", 2 * CHUNK * self.heads, "tensor"),
            Saved("output gate", inner, "tensor"),
            Saved("before norm", inner, "tensor"),
            Saved("mixer output", inner, "tensor"),
        )

    def core(self) -> tuple[Core, ...]:
        # a token writes to and reads from the state: k v^T, the delta correction k^T S, and q^T S, 2 FLOP each
        return (
            Core("delta rule", 6 * self.heads * self.head_dim**2),
            Core("short convolution", 2 * self.conv_kernel * 3 * self._inner),
        )
