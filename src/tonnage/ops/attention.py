"""Attention: multi-head, grouped and multi-query with full, sliding or chunked windows; and latent attention (MLA)."""

from typing import Any, Literal

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache, Weight, matrix
from tonnage.ops.basic import norm_saved
from tonnage.tape import TENSOR, Code, Tensor


class Attention(Op, frozen=True, eq=False, kw_only=True):
    """Softmax attention of `heads` query heads over `kv_heads` key/value heads of width `head_dim` (values: `value_dim`).

    `window`: tokens that a query can see and the cache must keep, None for all (sliding and chunked windows are equal
    in what they keep). `qk_norm`: "head" normalises each head with one shared vector, "full" all heads' outputs at once,
    "layer-head"/"layer-full" the same with LayerNorm's bias. `shares_cache`: the layer reads another layer's cache and keeps none.
    `gate` adds an output gate of the query's width to q_proj; `gate_name` names a projection of its own for it, `gate_width`
    wide (None: the output's width); `sinks` a learned logit a head; `cross`: keys come from another sequence of `memory_width`.
    """

    name: str = "self_attn"
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    bias: bool = False
    kv_bias: bool | None = None
    out_bias: bool | None = None
    out: bool = True
    fused: str = ""  # the checkpoint's one name for q, k and v
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj")
    window: int | None = None
    qk_norm: Literal["", "head", "full", "layer-head", "layer-full"] = ""
    norm_names: tuple[str, str] = ("q_norm", "k_norm")
    gate: bool = False
    gate_name: str = ""
    gate_width: int | None = None
    sinks: bool = False
    key_is_value: bool = False
    has_kv: bool = True  # False: the layer has no key and value weights of its own
    shares_cache: bool = False
    causal: bool = True
    memory_width: int | None = None
    memory_tokens: int | None = None  # length of the other sequence, where the model fixes it: one image, 30 s of sound

    def weights(self) -> tuple[Weight, ...]:
        h, queries, keys, values = self.hidden_size, self.query_width, self.key_width, self.value_width
        memory = self.memory_width or h
        kv_bias = self.bias if self.kv_bias is None else self.kv_bias
        q, k, v, o = (f"{self.name}.{name}" for name in self.names)
        made: tuple[Weight, ...] = matrix(q, h, queries * (2 if self.gate else 1), bias=self.bias, split="tensor", part="attention")  # fmt: skip
        if self.has_kv:
            split: dict[str, Any] = {"split": "kv", "heads": self.kv_heads, "part": "attention"}
            made += matrix(k, memory, keys, bias=kv_bias, **split)
            if not self.key_is_value:
                made += matrix(v, memory, values, bias=self.bias if self.kv_bias is None else self.kv_bias, **split)
        if self.fused:
            made = tuple(_renamed(weight, f"{self.name}.{self.fused}") for weight in made)
        if self.out:
            out_bias = self.bias if self.out_bias is None else self.out_bias
            made += matrix(
                o, self.out_width, h, bias=out_bias, split="tensor", bias_split="replicated", part="attention"
            )
        return made + self._extras()

    def _extras(self) -> tuple[Weight, ...]:
        made: tuple[Weight, ...] = ()
        if self.gate_name:
            gate = f"{self.name}.{self.gate_name}"
            made += matrix(gate, self.hidden_size, self.gate_width or self.out_width, split="tensor", part="attention")
        if self.qk_norm:
            full = self.qk_norm.endswith("full")
            widths = (self.query_width, self.key_width) if full else (self.head_dim, self.head_dim)
            for name, width in zip(self.norm_names, widths if self.has_kv else widths[:1], strict=False):
                made += (Weight(f"{self.name}.{name}.weight", width, part="norm"),)
                if self.qk_norm.startswith("layer"):
                    made += (Weight(f"{self.name}.{name}.bias", width, part="norm"),)
        if self.sinks:
            made += (Weight(f"{self.name}.sinks", self.heads, split="tensor", part="attention"),)
        return made

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def value_width(self) -> int:
        return self.kv_heads * (self.value_dim or self.head_dim)

    @property
    def out_width(self) -> int:
        return self.heads * (self.value_dim or self.head_dim)

    def caches(self) -> tuple[TokenCache | StateCache, ...]:
        if self.memory_tokens:  # kept once for the request: it does not grow with the text
            kept = (self.key_width + self.value_width) * self.memory_tokens
            return (StateCache("keys and values of the other sequence", kept, self.kv_heads),)
        if self.shares_cache or not self.causal:
            return ()
        name = (
            "keys and values" if self.memory_width is None else "keys and values of the encoder"
        )  # its tokens, not ours
        return (TokenCache(name, self.key_width + self.value_width, self.kv_heads, self.window),)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        made: tuple[Saved, ...] = (Saved("attention input", self.hidden_size),)
        if self.qk_norm:
            made += norm_saved("query and key norm", self.query_width + self.key_width, "rms", kernels)
        made += (
            Saved("queries", self.query_width, "tensor"),
            Saved("keys", self.key_width, "tensor"),
            Saved("values", self.value_width, "tensor"),
        )
        made += core_saved(self.heads, self.out_width, kernels)
        if self.gate or self.gate_name:
            gate = self.gate_width or self.out_width
            made += (Saved("output gate and gated output", gate + self.out_width, "tensor"),)
        if kernels.dropout:
            made += (Saved("attention dropout mask", self.hidden_size, bytes_per_element=1),)
        return made

    def forward(self, code: Code, x: Tensor) -> Tensor:
        if not self.has_kv or self.gate or self.gate_name or self.sinks or self.memory_width or self.memory_tokens:
            return super().forward(code, x)
        return self._projected(code, self._attended(code, *self._inputs(code, x)))

    def _inputs(self, code: Code, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, _ = (f"{self.name}.{name}" for name in self.names)
        sizes = (self.query_width, self.key_width, self.value_width)
        if self.fused:
            name = f"{self.name}.{self.fused}"
            return code.taken_apart(code.linear(name, x, self.held(name), sum(sizes), TENSOR), sizes)
        if code.fuses_projections:
            held = [each for name in (q, k, v) for each in self.held(name)]
            return code.taken_apart(code.linear(f"{self.name}.qkv_proj", x, held, sum(sizes), TENSOR), sizes)
        queries = code.turned_heads(code.linear(q, x, self.held(q), sizes[0], TENSOR))
        keys = code.turned_heads(code.linear(k, x, self.held(k), sizes[1], TENSOR))
        return queries, keys, code.linear(v, x, self.held(v), sizes[2], TENSOR)

    def _attended(self, code: Code, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.qk_norm:
            kind: Literal["rms", "layer"] = "layer" if self.qk_norm.startswith("layer") else "rms"
            each = not self.qk_norm.endswith("full")
            names = [f"{self.name}.{name}" for name in self.norm_names]
            with code.inside(names[0]):
                q = code.normed(q, kind, self.held(names[0]), self.heads if each else 1)
            with code.inside(names[1]):
                k = code.normed(k, kind, self.held(names[1]), self.kv_heads if each else 1)
        with code.inside(self.name):
            q, k = code.rotary(q, self.head_dim), code.rotary(k, self.head_dim)
            return code.attend(q, k, v, self.heads, self.out_width, kv_heads=self.kv_heads, is_fused=bool(self.fused),
                               is_masked=self.window is not None and code.masked)  # fmt: skip

    def _projected(self, code: Code, x: Tensor) -> Tensor:
        name = f"{self.name}.{self.names[3]}"
        return code.dropped(code.linear(name, x, self.held(name), self.hidden_size)) if self.out else x

    def core(self) -> tuple[Core, ...]:
        scores_and_values = 2 * self.heads * self.head_dim + 2 * self.out_width
        if self.memory_tokens:
            return (Core("cross-attention scores and values", scores_and_values * self.memory_tokens),)
        return (
            Core(
                "attention scores and values", scores_and_values, per_key=True, window=self.window, causal=self.causal
            ),
        )


class LatentAttention(Op, frozen=True, eq=False, kw_only=True):
    """Multi-head latent attention (DeepSeek-V2): keys and values are rebuilt from one latent of `kv_lora_rank` a token.

    The cache holds the latent and one rotary key for all heads, so tensor parallelism cannot split it. `index_heads`
    and `index_dim` add DeepSeek-V3.2's indexer, whose keys are kept in fp8 with one fp32 scale a token; `index_topk`
    is how many keys a query then attends to; `index_pool`: an indexer key stands for so many tokens (GLM-5.3-Flash);
    `indexer=False`: the layer reuses another layer's choice.
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
        made: tuple[Weight, ...]
        if self.q_lora_rank is None:
            made = matrix(f"{n}.q_proj", h, queries, **tensor)
        else:
            made = matrix(f"{n}.q_a_proj", h, self.q_lora_rank, bias=self.bias, part="attention")
            made += (Weight(f"{n}.q_a_layernorm.weight", self.q_lora_rank, part="norm"),)
            made += matrix(f"{n}.q_b_proj", self.q_lora_rank, queries, **tensor)
        made += matrix(f"{n}.kv_a_proj_with_mqa", h, self.kv_lora_rank + rope, bias=self.bias, part="attention")
        made += (Weight(f"{n}.kv_a_layernorm.weight", self.kv_lora_rank, part="norm"),)
        made += matrix(f"{n}.kv_b_proj", self.kv_lora_rank, self.heads * (nope + self.v_head_dim), **tensor)
        if self.gate:
            made += matrix(f"{n}.g_proj", h, self.gate_width or out, **tensor)
        made += matrix(f"{n}.o_proj", out, h, bias=self.bias, bias_split="replicated", **tensor)
        return made + self._indexer()

    def _indexer(self) -> tuple[Weight, ...]:
        if not (self.index_heads and self.indexer):
            return ()
        h, n = self.hidden_size, f"{self.name}.indexer"
        made = matrix(f"{n}.wq_b", self.q_lora_rank or h, self.index_heads * self.index_dim, part="attention")
        made += matrix(f"{n}.wk", h, self.index_dim, part="attention")
        made += (Weight(f"{n}.k_norm.weight", self.index_dim, part="norm"),)
        made += (Weight(f"{n}.k_norm.bias", self.index_dim, part="norm"),)
        if self.index_pool:
            made += (Weight(f"{n}.index_kpool_compress_ape", self.index_pool, self.index_dim, part="attention"),)
            made += (Weight(f"{n}.index_kpool_compress_gate", self.index_dim, h, linear=True, part="attention"),)
        return made + matrix(f"{n}.weights_proj", h, self.index_heads, part="attention")

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
        made: tuple[Saved, ...] = (Saved("attention input", self.hidden_size),)
        if self.q_lora_rank is not None:
            made += norm_saved("query latent norm", self.q_lora_rank, "rms", kernels)
            made += (Saved("query latent", self.q_lora_rank),)
        made += norm_saved("key-value latent norm", self.kv_lora_rank, "rms", kernels)
        made += (
            Saved("key-value latent", self.kv_lora_rank),
            Saved("queries", query_key, "tensor"),
            Saved("keys", query_key, "tensor"),
            Saved("values", out, "tensor"),
        )
        if self.gate:
            made += (Saved("output gate and gated output", (self.gate_width or out) + out, "tensor"),)
        if kernels.dropout:
            made += (Saved("attention dropout mask", self.hidden_size, bytes_per_element=1),)
        return made + core_saved(self.heads, out, kernels)

    def core(self) -> tuple[Core, ...]:
        width = self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim
        made: tuple[Core, ...] = (
            Core("attention scores and values", 2 * self.heads * width, per_key=True, window=self.index_topk),
        )
        if self.index_heads and self.indexer:
            flops = 2 * self.index_heads * self.index_dim / (self.index_pool or 1)
            made += (Core("indexer scores", flops, per_key=True),)
        return made


def core_saved(heads: int, out_width: int, kernels: Kernels) -> tuple[Saved, ...]:
    """What softmax attention keeps: flash its output and one fp32 log-sum-exp a head, eager all the scores.

    Eager keeps the softmax's output and, with dropout, its mask and output: 2 + 1 + 2 bytes a score
    (Korthikanti2022, sec. 4.1). Written as transformers does, the softmax is in fp32 and cast; a fused kernel stays in 16 bit.
    """
    output = (Saved("attention output", out_width, "tensor"),)
    if kernels.attention != "eager":
        return (*output, Saved("log-sum-exp", heads, "tensor", bytes_per_element=4, core=True))
    made: tuple[Saved, ...] = output
    if kernels.upcast_softmax:
        made += (Saved("softmax in fp32", heads, "tensor", bytes_per_element=4, core=True, per_key=True),)
    if not kernels.upcast_softmax or not kernels.drops_attention:
        made += (Saved("softmax", heads, "tensor", core=True, per_key=True),)
    if kernels.drops_attention:
        made += (
            Saved("softmax dropout mask", heads, "tensor", bytes_per_element=1, core=True, per_key=True),
            Saved("softmax after dropout", heads, "tensor", core=True, per_key=True),
        )
    return made


def _renamed(weight: Weight, name: str) -> Weight:
    suffix = weight.name.rsplit(".", 1)[1]
    return Weight(f"{name}.{suffix}", weight.rows, weight.columns, weight.copies, weight.active, weight.split,
                  weight.heads, weight.linear, weight.part)  # fmt: skip
