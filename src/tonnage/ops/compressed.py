"""DeepSeek-V4: attention over a short window and over entries that each stand for several tokens; hyper-connections.

Source: deepseek-ai/DeepSeek-V4-Flash inference/model.py (Attention, Compressor, Indexer, Block), and transformers 5.23,
models/deepseek_v4/modeling_deepseek_v4.py.
"""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache, Weight, matrix
from tonnage.ops.attention import core_saved
from tonnage.ops.basic import norm_saved
from tonnage.ops.mixers import FP32


class CompressedAttention(Op, frozen=True, eq=False, kw_only=True):
    """Queries of `heads` over one key that is also the value: `window` last tokens, and one entry for each `ratio`
    tokens.

    `ratio` 0: the window alone. `overlap`: an entry is made of two neighbouring groups of tokens, so the compressor
    works on twice the width (compressed sparse attention, ratio 4); without it, of one (heavily compressed attention,
    ratio 128). `index_heads`, `index_dim`: the indexer, with a compressor of its own, that picks `index_topk` entries
    for each query. The output goes through `out_groups` groups of `out_rank`.
    """

    name: str = "attn"
    hidden_size: int
    heads: int
    head_dim: int
    q_lora_rank: int
    out_groups: int
    out_rank: int
    window: int
    ratio: int = 0
    overlap: bool = False
    index_heads: int = 0
    index_dim: int = 0
    index_topk: int = 0

    def weights(self) -> tuple[Weight, ...]:
        h, n, inner, out = self.hidden_size, self.name, self.heads * self.head_dim, self.out_groups * self.out_rank
        cut: dict[str, Any] = {"split": "tensor", "part": "attention"}
        weights = matrix(f"{n}.wq_a", h, self.q_lora_rank, part="attention")
        weights += (Weight(f"{n}.q_norm.weight", self.q_lora_rank, part="norm"),)
        weights += matrix(f"{n}.wq_b", self.q_lora_rank, inner, **cut)
        weights += matrix(f"{n}.wkv", h, self.head_dim, part="attention")
        weights += (Weight(f"{n}.kv_norm.weight", self.head_dim, part="norm"),)
        weights += matrix(f"{n}.wo_a", inner // self.out_groups, out, **cut)
        weights += matrix(f"{n}.wo_b", out, h, **cut)
        weights += (Weight(f"{n}.attn_sink", self.heads, **cut),)
        if self.ratio:
            weights += self._compressor(f"{n}.compressor", self.head_dim)
        return weights + self._indexer()

    def _compressor(self, name: str, width: int) -> tuple[Weight, ...]:
        wide = width * self._series
        weights = matrix(f"{name}.wkv", self.hidden_size, wide, part="attention")
        weights += matrix(f"{name}.wgate", self.hidden_size, wide, part="attention")
        weights += (Weight(f"{name}.ape", self.ratio, wide, part="attention"),)
        return (*weights, Weight(f"{name}.norm.weight", width, part="norm"))

    def _indexer(self) -> tuple[Weight, ...]:
        if not self.index_heads:
            return ()
        n = f"{self.name}.indexer"
        weights = matrix(f"{n}.wq_b", self.q_lora_rank, self.index_heads * self.index_dim, part="attention")
        weights += matrix(f"{n}.weights_proj", self.hidden_size, self.index_heads, part="attention")
        return weights + self._compressor(f"{n}.compressor", self.index_dim)

    @property
    def _series(self) -> int:
        return 2 if self.overlap else 1

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        caches: tuple[TokenCache | StateCache, ...] = (TokenCache("window's keys", self.head_dim, window=self.window),)
        if self.ratio:
            caches += (TokenCache("compressed keys", self.head_dim, stride=self.ratio), self._state(self.head_dim))
        if self.index_heads:
            # fp8 keys, and one fp32 scale for each entry and 128 of them: vLLM's default, with MXFP4 as an option
            width = self.index_dim + 4 * -(-self.index_dim // 128)
            caches += (
                TokenCache("indexer keys", width, bytes_per_element=1, stride=self.ratio),
                self._state(self.index_dim),
            )
        return caches

    def _state(self, width: int) -> StateCache:
        """The groups that are not complete: key and gate of each of their tokens, in fp32."""
        return StateCache(
            "compressor state", 2 * self._series * self.ratio * self._series * width, bytes_per_element=FP32
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        inner, width = self.heads * self.head_dim, self.head_dim
        tensors: tuple[Saved, ...] = (Saved("attention input", self.hidden_size),)
        tensors += norm_saved("query latent norm", self.q_lora_rank, "rms", kernels)
        tensors += (Saved("query latent", self.q_lora_rank), Saved("queries", inner, "tensor"), Saved("keys", width))
        if self.ratio:
            tensors += (Saved("keys and gates to compress in fp32", 2 * width * self._series, bytes_per_element=FP32),)
            tensors += (Saved("compressed keys", width / self.ratio),)
        tensors += core_saved(self.heads, inner, kernels)
        return (*tensors, Saved("output latent", self.out_groups * self.out_rank, "tensor"))

    def core(self) -> tuple[Core, ...]:
        scores_and_values = 4 * self.heads * self.head_dim
        cores: tuple[Core, ...] = (
            Core("attention in the window", scores_and_values, per_key=True, window=self.window),
        )
        if self.ratio:
            seen = self.index_topk * self.ratio if self.index_heads else None
            cores += (Core("attention over entries", scores_and_values / self.ratio, per_key=True, window=seen),)
        if self.index_heads:
            cores += (Core("indexer scores", 2 * self.index_heads * self.index_dim / self.ratio, per_key=True),)
        return cores


class HyperConnection(Op, frozen=True, eq=False, kw_only=True):
    """Mixes `copies` residual streams into the input of a sublayer and its output back into them (mHC).

    `outputs` weights a token come from all streams together: how to read them, how to write, how to mix; `scales`
    scale them.
    """

    name: str
    width: int
    copies: int
    outputs: int
    scales: int
    joiner: str = "_"

    def weights(self) -> tuple[Weight, ...]:
        # the checkpoint keeps them in fp32, like a router's: no quantiser touches them
        n = f"{self.name}{self.joiner}"
        mix = Weight(f"{n}fn", self.outputs, self.copies * self.width, linear=True, part="router")
        return mix, Weight(f"{n}base", self.outputs, part="router"), Weight(f"{n}scale", self.scales, part="router")

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        return (Saved("residual streams", self.copies * self.width),)
