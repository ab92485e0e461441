"""Attention: multi-head, grouped and multi-query with full, sliding or chunked windows."""

from typing import Any, Literal

from tonnage.ops._base import Core, Kernels, Op, Saved, StateCache, TokenCache, Weight, matrix
from tonnage.ops.basic import norm_saved
from tonnage.tape import TENSOR, TOKEN, Code, Tensor


class Attention(Op, frozen=True, eq=False, kw_only=True):
    """Softmax attention of `heads` query heads over `kv_heads` key/value heads of width `head_dim` (values:
    `value_dim`).

    `window`: tokens that a query can see and the cache must keep, None for all (sliding and chunked windows are equal
    in what they keep). `qk_norm`: "head" normalises each head with one shared vector, "full" all heads' outputs at
    once, "layer-head"/"layer-full" the same with LayerNorm's bias. `shares_cache`: the layer reads another layer's
    cache and keeps none. `gate` adds an output gate of the query's width to q_proj; `gate_name` names a projection of
    its own for it, `gate_width` wide (None: the output's width); `sinks` a learned logit a head; `cross`: keys come
    from another sequence of `memory_width`.
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
        weights: tuple[Weight, ...] = matrix(
            q, h, queries * (2 if self.gate else 1), bias=self.bias, split="tensor", part="attention"
        )
        if self.has_kv:
            split: dict[str, Any] = {"split": "kv", "heads": self.kv_heads, "part": "attention"}
            weights += matrix(k, memory, keys, bias=kv_bias, **split)
            if not self.key_is_value:
                weights += matrix(v, memory, values, bias=self.bias if self.kv_bias is None else self.kv_bias, **split)
        if self.fused:
            weights = tuple(_renamed(weight, f"{self.name}.{self.fused}") for weight in weights)
        if self.out:
            out_bias = self.bias if self.out_bias is None else self.out_bias
            weights += matrix(
                o, self.out_width, h, bias=out_bias, split="tensor", bias_split="replicated", part="attention"
            )
        return weights + self._extras()

    def _extras(self) -> tuple[Weight, ...]:
        weights: tuple[Weight, ...] = ()
        if self.gate_name:
            gate = f"{self.name}.{self.gate_name}"
            weights += matrix(
                gate, self.hidden_size, self.gate_width or self.out_width, split="tensor", part="attention"
            )
        if self.qk_norm:
            full = self.qk_norm.endswith("full")
            widths = (self.query_width, self.key_width) if full else (self.head_dim, self.head_dim)
            for name, width in zip(self.norm_names, widths if self.has_kv else widths[:1], strict=False):
                weights += (Weight(f"{self.name}.{name}.weight", width, part="norm"),)
                if self.qk_norm.startswith("layer"):
                    weights += (Weight(f"{self.name}.{name}.bias", width, part="norm"),)
        if self.sinks:
            weights += (Weight(f"{self.name}.sinks", self.heads, split="tensor", part="attention"),)
        return weights

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
            memory_elements = (self.key_width + self.value_width) * self.memory_tokens
            return (StateCache("keys and values of the other sequence", memory_elements, self.kv_heads),)
        if self.shares_cache or not self.causal:
            return ()
        name = (
            "keys and values" if self.memory_width is None else "keys and values of the encoder"
        )  # its tokens, not ours
        return (TokenCache(name, self.key_width + self.value_width, self.kv_heads, self.window),)

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        tensors: tuple[Saved, ...] = (Saved("attention input", self.hidden_size),)
        if self.qk_norm:
            tensors += norm_saved("query and key norm", self.query_width + self.key_width, "rms", kernels)
        tensors += (
            Saved("queries", self.query_width, "tensor"),
            Saved("keys", self.key_width, "tensor"),
            Saved("values", self.value_width, "tensor"),
        )
        tensors += core_saved(self.heads, self.out_width, kernels)
        if self.gate or self.gate_name:
            gate = self.gate_width or self.out_width
            tensors += (Saved("output gate and gated output", gate + self.out_width, "tensor"),)
        if kernels.dropout:
            tensors += (Saved("attention dropout mask", self.hidden_size, bytes_per_element=1),)
        return tensors

    def forward(self, code: Code, x: Tensor) -> Tensor:
        if self.memory_tokens:
            return super().forward(code, x)
        q, k, v, gate = self._inputs(code, x)
        heads_output = self._attended(code, q, k, v)
        del q, k, v
        return self._projected(code, self._gated(code, x, heads_output, gate))

    def _inputs(self, code: Code, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Queries, keys, values, and the gate that comes with the queries."""
        q, k, v, _ = (f"{self.name}.{name}" for name in self.names)
        sizes = (self.query_width, self.key_width, self.value_width)
        if self.fused:
            name = f"{self.name}.{self.fused}"
            return (*code.split_qkv(code.linear(name, x, self.held(name), sum(sizes), TENSOR), sizes), None)
        if code.fuses_projections:
            held = [weight for name in (q, k, v) for weight in self.held(name)]
            return (*code.split_qkv(code.linear(f"{self.name}.qkv_proj", x, held, sum(sizes), TENSOR), sizes), None)
        gate = None
        queries = code.linear(q, x, self.held(q), sizes[0] * (2 if self.gate else 1), TENSOR)
        if self.gate:  # in memory, a head's gate follows its query
            queries, gate = code.parts(queries, sizes[:1] * 2)
            gate = code.copy(gate)
        queries = code.turned_heads(self._normed(code, queries, 0))
        if not self.has_kv:
            return queries, code.external_tensor(sizes[1]), code.external_tensor(sizes[2]), gate
        if self.memory_width:  # as long as the sequence itself
            x = code.external_tensor(self.memory_width, TOKEN)
        keys = code.linear(k, x, self.held(k), sizes[1], TENSOR)
        values = keys if self.key_is_value else None
        keys = code.turned_heads(self._normed(code, keys, 1))
        return queries, keys, values or code.linear(v, x, self.held(v), sizes[2], TENSOR), gate

    def _normed(self, code: Code, x: Tensor, which: int, *, late: bool = False) -> Tensor:
        """Normalise queries (0) or keys (1), if their norm comes here: after the projection, or after all three
        (`late`).
        """
        if not self.qk_norm or late != (code.style.norms_late or bool(self.fused) or code.fuses_projections):
            return x
        kind: Literal["rms", "layer"] = "layer" if self.qk_norm.startswith("layer") else code.style.head_norm or "rms"
        name, heads = f"{self.name}.{self.norm_names[which]}", (self.heads, self.kv_heads)[which]
        with code.inside(name):
            return code.normed(
                x, kind, self.held(name), 1 if self.qk_norm.endswith("full") and not code.style.head_norm else heads
            )

    def _attended(self, code: Code, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q = self._normed(code, q, 0, late=True)
        if self.has_kv:
            k = self._normed(code, k, 1, late=True)
        with code.inside(self.name):
            tables = code.tables(self.head_dim)
            q = code.rotary(q, self.head_dim, tables)
            if self.has_kv:
                k = code.rotary(k, self.head_dim, tables)
                v = code.values(v, self.kv_heads)
            if code.style.heads_normed_turned and self.window is not None:  # the layers that see all have no positions
                q, k = code.rms_norm(q, None, self.heads), code.rms_norm(k, None, self.kv_heads)
            by_heads = bool(self.fused and code.style.rotary and code.style.fused not in ("spread", "in order"))
            code.worked.causal = self.causal and self.memory_width is None
            heads_output = code.attend(
                q,
                k,
                v,
                self.heads,
                self.out_width,
                kv_heads=self.kv_heads,
                by_heads=by_heads,
                is_masked=self.window is not None and code.masked,
                sinks=self.sinks,
                causal=self.causal,
                cross=self.memory_width is not None,
            )
            code.worked.causal = True
            return heads_output

    def _gated(self, code: Code, x: Tensor, heads_output: Tensor, gate: Tensor | None) -> Tensor:
        if self.gate_name:
            name = f"{self.name}.{self.gate_name}"
            gate = code.linear(name, x, self.held(name), self.gate_width or self.out_width, TENSOR)
        if gate is None:
            return heads_output
        return code.mul(heads_output, code.mapped("sigmoid", gate, saves="output"))

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


def core_saved(heads: int, out_width: int, kernels: Kernels) -> tuple[Saved, ...]:
    """Tensors that softmax attention keeps: flash its output and one fp32 log-sum-exp a head, eager all the scores.

    Eager keeps the softmax's output and, with dropout, its mask and output: 2 + 1 + 2 bytes a score
    (Korthikanti2022, sec. 4.1). Written as transformers does, the softmax is in fp32 and cast; a fused kernel stays in
    16 bit.
    """
    output = (Saved("attention output", out_width, "tensor"),)
    if kernels.attention != "eager":
        return (*output, Saved("log-sum-exp", heads, "tensor", bytes_per_element=4, core=True))
    tensors: tuple[Saved, ...] = output
    if kernels.upcast_softmax:
        tensors += (Saved("softmax in fp32", heads, "tensor", bytes_per_element=4, core=True, per_key=True),)
    if not kernels.upcast_softmax or not kernels.drops_attention:
        tensors += (Saved("softmax", heads, "tensor", core=True, per_key=True),)
    if kernels.drops_attention:
        tensors += (
            Saved("softmax dropout mask", heads, "tensor", bytes_per_element=1, core=True, per_key=True),
            Saved("softmax after dropout", heads, "tensor", core=True, per_key=True),
        )
    return tensors


def _renamed(weight: Weight, name: str) -> Weight:
    suffix = weight.name.rsplit(".", 1)[1]
    return Weight(
        f"{name}.{suffix}",
        weight.rows,
        weight.columns,
        weight.copies,
        weight.active,
        weight.split,
        weight.heads,
        weight.linear,
        weight.part,
    )


# ---- Attention that reads only the blocks of keys which a small indexer chooses (MiniMax Sparse Attention).

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


# ---- Attention whose query and output projections are experts (JetMoE, from ModuleFormer).


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
