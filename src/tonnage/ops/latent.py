"""Latent attention (MLA): keys and values are rebuilt from one narrow latent a token."""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache, Weight, matrix
from tonnage.ops.attention import core_saved
from tonnage.ops.basic import norm_saved
from tonnage.ops.mixers import FP32
from tonnage.tape import TENSOR, Code, Tensor


class LatentAttention(Op, frozen=True, eq=False, kw_only=True):
    """Multi-head latent attention (DeepSeek-V2): keys and values are rebuilt from one latent of `kv_lora_rank` a token.

    The cache holds the latent and one rotary key for all heads, so tensor parallelism cannot split it. `index_heads`
    and `index_dim` add DeepSeek-V3.2's indexer, whose keys are kept in fp8 with one fp32 scale a token; `index_topk`
    is how many keys a query then attends to; `index_pool`: tokens per indexer key (GLM-5.3-Flash); `indexer=False`: the
    layer reuses another layer's choice.
    """

    name: str = "self_attn"
    hidden_size: int
    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    bias: bool = False
    index_heads: int = 0
    index_dim: int = 0
    index_topk: int | None = None
    index_pool: int = 0
    indexer: bool = True
    gate: bool = False  # g_proj, which scales the output before o_proj
    gate_width: int | None = None  # None: the output's width

    def weights(self) -> tuple[Weight, ...]:
        h, n, rope, nope = self.hidden_size, self.name, self.qk_rope_head_dim, self.qk_nope_head_dim
        queries, out = self.heads * (nope + rope), self.heads * self.v_head_dim
        tensor: dict[str, Any] = {"split": "tensor", "part": "attention"}
        weights: tuple[Weight, ...]
        if self.q_lora_rank is None:
            weights = matrix(f"{n}.q_proj", h, queries, **tensor)
        else:
            weights = matrix(f"{n}.q_a_proj", h, self.q_lora_rank, bias=self.bias, part="attention")
            weights += (Weight(f"{n}.q_a_layernorm.weight", self.q_lora_rank, part="norm"),)
            weights += matrix(f"{n}.q_b_proj", self.q_lora_rank, queries, **tensor)
        weights += matrix(f"{n}.kv_a_proj_with_mqa", h, self.kv_lora_rank + rope, bias=self.bias, part="attention")
        weights += (Weight(f"{n}.kv_a_layernorm.weight", self.kv_lora_rank, part="norm"),)
        weights += matrix(f"{n}.kv_b_proj", self.kv_lora_rank, self.heads * (nope + self.v_head_dim), **tensor)
        if self.gate:
            weights += matrix(f"{n}.g_proj", h, self.gate_width or out, **tensor)
        weights += matrix(f"{n}.o_proj", out, h, bias=self.bias, bias_split="replicated", **tensor)
        return weights + self._indexer()

    def _indexer(self) -> tuple[Weight, ...]:
        if not (self.index_heads and self.indexer):
            return ()
        h, n = self.hidden_size, f"{self.name}.indexer"
        weights = matrix(f"{n}.wq_b", self.q_lora_rank or h, self.index_heads * self.index_dim, part="attention")
        weights += matrix(f"{n}.wk", h, self.index_dim, part="attention")
        weights += (Weight(f"{n}.k_norm.weight", self.index_dim, part="norm"),)
        weights += (Weight(f"{n}.k_norm.bias", self.index_dim, part="norm"),)
        if self.index_pool:
            weights += (Weight(f"{n}.index_kpool_compress_ape", self.index_pool, self.index_dim, part="attention"),)
            weights += (Weight(f"{n}.index_kpool_compress_gate", self.index_dim, h, linear=True, part="attention"),)
        return weights + matrix(f"{n}.weights_proj", h, self.index_heads, part="attention")

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        latent = TokenCache("latent and rotary key", self.kv_lora_rank + self.qk_rope_head_dim)
        if not (self.index_heads and self.indexer):
            return (latent,)
        # fp8 keys and one fp32 scale per token and 128 of them: vLLM's indexer cache, 132 bytes at index_dim 128.
        width, pool = self.index_dim + 4 * -(-self.index_dim // 128), self.index_pool
        keys = TokenCache("indexer keys", width, bytes_per_element=1, stride=pool or 1)
        if not pool:
            return latent, keys
        # key and gate of each token of the pool that is not complete, in fp32
        return latent, keys, StateCache("incomplete pool", 2 * pool * self.index_dim, bytes_per_element=4)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        query_key = self.heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        out = self.heads * self.v_head_dim
        tensors: tuple[Saved, ...] = (Saved("attention input", self.hidden_size),)
        if self.q_lora_rank is not None:
            tensors += norm_saved("query latent norm", self.q_lora_rank, "rms", kernels)
            tensors += (Saved("query latent", self.q_lora_rank),)
        tensors += norm_saved("key-value latent norm", self.kv_lora_rank, "rms", kernels)
        tensors += (
            Saved("key-value latent", self.kv_lora_rank),
            Saved("queries", query_key, "tensor"),
            Saved("keys", query_key, "tensor"),
            Saved("values", out, "tensor"),
        )
        if self.gate:
            tensors += (Saved("output gate and gated output", (self.gate_width or out) + out, "tensor"),)
        if kernels.dropout:
            tensors += (Saved("attention dropout mask", self.hidden_size, bytes_per_element=1),)
        return tensors + core_saved(self.heads, out, kernels)

    def core(self) -> tuple[Core, ...]:
        width = self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim
        cores: tuple[Core, ...] = (
            Core("attention scores and values", 2 * self.heads * width, per_key=True, window=self.index_topk),
        )
        if self.index_heads and self.indexer:
            flops = 2 * self.index_heads * self.index_dim / (self.index_pool or 1)
            cores += (Core("indexer scores", flops, per_key=True),)
        return cores

    def forward(self, code: Code, x: Tensor) -> Tensor:
        if self.index_heads or self.gate:
            return super().forward(code, x)
        n, rope, nope = self.name, self.qk_rope_head_dim, self.qk_nope_head_dim
        passed, turned = code.parts(self._queries(code, x), [self.heads * nope, self.heads * rope])
        both = code.linear(f"{n}.kv_a_proj_with_mqa", x, self.held(f"{n}.kv_a_proj_with_mqa"), self.kv_lora_rank + rope)
        latent, key = code.parts(both, [self.kv_lora_rank, rope])
        with code.inside(f"{n}.kv_a_layernorm"):
            latent = code.normed(latent, "rms", self.held(f"{n}.kv_a_layernorm"))
        tables = code.tables(rope)
        turned, key = code.turned(turned, tables), code.turned(key, tables)
        queries = code.cat([passed, turned])
        rebuilt = code.linear(
            f"{n}.kv_b_proj", latent, self.held(f"{n}.kv_b_proj"), self.heads * (nope + self.v_head_dim), TENSOR
        )
        keys, values = code.parts(code.reordered(rebuilt), [self.heads * nope, self.heads * self.v_head_dim])
        keys = code.filled([keys, code.expanded(key, self.heads * rope)])
        with code.inside(n):
            heads_output = code.attend(queries, keys, values, self.heads, self.heads * self.v_head_dim, by_heads=True)
        return code.dropped(code.linear(f"{n}.o_proj", heads_output, self.held(f"{n}.o_proj"), self.hidden_size))

    def _queries(self, code: Code, x: Tensor) -> Tensor:
        n, out = self.name, self.heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        if self.q_lora_rank is None:
            return code.reordered(code.linear(f"{n}.q_proj", x, self.held(f"{n}.q_proj"), out, TENSOR))
        x = code.linear(f"{n}.q_a_proj", x, self.held(f"{n}.q_a_proj"), self.q_lora_rank)
        with code.inside(f"{n}.q_a_layernorm"):
            x = code.normed(x, "rms", self.held(f"{n}.q_a_layernorm"))
        return code.reordered(code.linear(f"{n}.q_b_proj", x, self.held(f"{n}.q_b_proj"), out, TENSOR))


# ---- DeepSeek-V4: attention over a short window and over entries that each stand for several tokens; hyper-
# connections.
#
# Source: deepseek-ai/DeepSeek-V4-Flash inference/model.py (Attention, Compressor, Indexer, Block), and transformers
# 5.23,
# models/deepseek_v4/modeling_deepseek_v4.py.


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
            "compressor state",
            2 * self._series * self.ratio * self._series * width,
            bytes_per_element=FP32,
            of_pages=self.overlap,
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
