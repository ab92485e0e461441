"""Attention that reads only the blocks of keys which a small indexer chooses (MiniMax Sparse Attention)."""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache, Weight, matrix
from tonnage.ops.attention import Attention

BF16 = 2  # vllm-project/vllm MiniMaxM3IndexerCache: index keys are bf16 unless the user asks for fp8


class BlockSparseAttention(Op, frozen=True, eq=False, kw_only=True):
    """`attention`, where a query sees `visible` tokens: the best blocks by the scores of `index_heads` small heads.

    All heads score one key of `index_dim` a token, which is cached beside the keys and values of all tokens.
    """

    attention: Attention
    index_heads: int
    index_dim: int
    visible: int

    def weights(self) -> tuple[Weight, ...]:
        n, h, dim = self.attention.name, self.attention.hidden_size, self.index_dim
        heads: dict[str, Any] = {"split": "kv", "heads": self.index_heads, "part": "attention"}
        weights = matrix(f"{n}.index_q_proj", h, self.index_heads * dim, **heads)
        weights += matrix(f"{n}.index_k_proj", h, dim, part="attention")
        weights += tuple(Weight(f"{n}.index_{name}_norm.weight", dim, part="norm") for name in ("q", "k"))
        return self.attention.weights() + weights

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        return (*self.attention.caches(), TokenCache("index keys", self.index_dim, bytes_per_element=BF16))

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return self.attention.saved(kernels)

    def core(self) -> tuple[Core, ...]:
        scored = 2 * self.index_heads * self.index_dim
        cores = tuple(Core(part.name, part.flops, part.per_key, self.visible) for part in self.attention.core())
        return (*cores, Core("index scores", scored, per_key=True))
