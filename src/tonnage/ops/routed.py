"""Attention whose query and output projections are experts (JetMoE, from ModuleFormer)."""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, TokenCache, Weight, matrix
from tonnage.ops.attention import core_saved


class RoutedAttention(Op, frozen=True, eq=False, kw_only=True):
    """Each of a token's `top_k` experts makes `kv_heads` query heads; all experts share one set of keys and values.

    Structure: transformers 5.23, models/jetmoe/modeling_jetmoe.py (JetMoeMoA, JetMoeAttention).
    """

    name: str = "self_attention"
    hidden_size: int
    kv_heads: int
    head_dim: int
    num_experts: int
    top_k: int

    @property
    def _width(self) -> int:
        return self.kv_heads * self.head_dim

    def weights(self) -> tuple[Weight, ...]:
        h, width, n = self.hidden_size, self._width, f"{self.name}.experts"
        per_expert: dict[str, Any] = {
            "copies": self.num_experts,
            "active": self.top_k,
            "split": "expert",
            "part": "experts",
        }
        weights: tuple[Weight, ...] = (Weight(f"{n}.bias", h, part="attention"),)
        weights += matrix(f"{n}.router.layer", h, self.num_experts, part="router")
        weights += matrix(f"{n}.input_linear", h, width, **per_expert) + matrix(
            f"{n}.output_linear", width, h, **per_expert
        )
        return weights + matrix(f"{self.name}.kv_proj", h, 2 * width, split="kv", heads=self.kv_heads, part="attention")

    def caches(self) -> tuple[TokenCache, ...]:
        return (TokenCache("keys and values", 2 * self._width, self.kv_heads),)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        queries = self.top_k * self._width
        tensors: tuple[Saved, ...] = (
            Saved("attention input", self.hidden_size),
            Saved("router scores in fp32", 2 * self.num_experts, bytes_per_element=4),
            Saved("tokens sent to experts", self.top_k * self.hidden_size, "expert"),
            Saved("queries", queries, "tensor"),
            Saved("keys and values for every expert", 2 * queries, "tensor"),
        )
        tensors += core_saved(self.top_k * self.kv_heads, queries, kernels)
        return (*tensors, Saved("experts' outputs", self.top_k * self.hidden_size, "expert"))

    def core(self) -> tuple[Core, ...]:
        return (Core("attention scores and values", 4 * self.top_k * self._width, per_key=True),)
