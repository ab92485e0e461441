"""Latent attention (MLA): keys and values are rebuilt from one narrow latent a token."""

from typing import Any

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache, Weight, matrix
from tonnage.ops.attention import core_saved
from tonnage.ops.basic import norm_saved
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
