"""How Megatron-core writes the operations of a layer: which of its modules run, and what their functions still name.

Sources: Megatron-core, megatron/core/transformer/{attention,multi_latent_attention,mlp,transformer_layer}.py and
megatron/core/transformer/moe/{moe_layer,router,token_dispatcher,experts,shared_experts}.py, core 0.14 to 0.18.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from tonnage.ops import MLP, Attention, LatentAttention, MoE, Op
from tonnage.runtimes.parts.megatron.experts import mixture
from tonnage.tape import TENSOR, Tensor
from tonnage.tape.megatron import GATHERED, MegatronCode
from tonnage.tape.tape import Gradients


class MegatronLayers(MegatronCode):
    """A layer of Megatron-core. Operations that it has no module for run as they say themselves, in its words."""

    def run(self, op: Op, x: Tensor) -> Tensor:
        if type(op) is Attention and _is_plain(op):
            return attention(self, op, x)
        if type(op) is LatentAttention and not op.gate and not op.index_heads:
            return latent_attention(self, op, x)
        if type(op) is MLP:
            return self.dropped(feed_forward(self, op, x))
        if type(op) is MoE and not op.extra_router:
            return self.dropped(mixture(self, op, x))
        return op.forward(self, x)

    def sublayer(
        self, before: Sequence[Op], mixers: Sequence[Op], run: Callable[[Tensor], Tensor], x: Tensor
    ) -> Tensor:
        """Norms before latent attention and before a mixture are modules of their own, and can be run again alone."""
        if self.setting.recomputes("mlp") and any(type(op) is MLP for op in mixers):
            return self.checkpoint(run, x)
        if not (self.setting.recomputes("layernorm") and before and type(mixers[0]) in (LatentAttention, MoE)):
            return run(x)

        def normed(x: Tensor) -> list[Tensor]:
            for op in before:
                x = self.run(op, x)
            return [x]

        norms = self.discarding(normed, x)
        out = self.run(mixers[0], norms.outputs[0])
        return norms.drop(out)


def _is_plain(op: Attention) -> bool:
    others = op.gate or op.gate_name or op.sinks or op.memory_width or op.memory_tokens or op.shares_cache
    return op.has_kv and not others


def attention(code: MegatronCode, op: Attention, x: Tensor) -> Tensor:
    """One product makes queries, keys and values; positions and norms make new ones, and the first are freed."""
    sizes = (op.query_width, op.key_width, op.value_width)
    names = [f"{op.name}.{op.fused}"] if op.fused else [f"{op.name}.{name}" for name in op.names[:3]]
    with code.inside(op.name):
        held = [by_head for name in names for by_head in op.held(name)]
        mixed = code.linear("linear_qkv", x, held, sum(sizes), TENSOR)
        q, k, v = code.parts(mixed, sizes)
        del mixed
        if op.qk_norm:
            kind: Literal["layer", "rms"] = "layer" if op.qk_norm.startswith("layer") else "rms"
            by_head = not op.qk_norm.endswith("full")
            q_norm, k_norm = (f"{op.name}.{name}" for name in op.norm_names)
            q = code.normed(code.copy(q), kind, op.held(q_norm), op.heads if by_head else 1)
            k = code.normed(code.copy(k), kind, op.held(k_norm), op.kv_heads if by_head else 1)
        if op.qk_norm or code.style.rotary:
            q, k, v = code.rotary(q, op.head_dim), code.rotary(k, op.head_dim), code.copy(v)
        code.worked.causal = op.causal
        heads_output = code.attend(q, k, v, op.heads, op.out_width)
        code.worked.causal = True
        del q, k, v
        return _projected(code, op, f"{op.name}.{op.names[3]}", heads_output) if op.out else heads_output


def _projected(code: MegatronCode, op: Attention | LatentAttention, name: str, x: Tensor) -> Tensor:
    return code.dropped(code.output_projection(x, op.held(name), op.hidden_size))


def latent_attention(code: MegatronCode, op: LatentAttention, x: Tensor) -> Tensor:
    """Products down on every tensor rank, then products up that begin with a norm."""
    with code.inside(op.name):
        queries = x
        if op.q_lora_rank:
            queries = code.linear("linear_q_down_proj", x, op.held(f"{op.name}.q_a_proj"), op.q_lora_rank)
        both = code.linear(
            "linear_kv_down_proj", x, op.held(f"{op.name}.kv_a_proj_with_mqa"), op.kv_lora_rank + op.qk_rope_head_dim
        )
        latent, key = code.parts(both, [op.kv_lora_rank, op.qk_rope_head_dim])
        del both, x
        if code.setting.recomputes("mla_up_proj"):
            ups = code.discarding(lambda *inputs: _up(code, op, *inputs), queries, latent, key)
            q, k, v = ups.outputs
            heads_output = ups.drop(code.attend(q, k, v, op.heads, op.heads * op.v_head_dim))
        else:
            q, k, v = _up(code, op, queries, latent, key)
            del queries, latent, key
            heads_output = code.attend(q, k, v, op.heads, op.heads * op.v_head_dim)
            del q, k, v
        return _projected(code, op, f"{op.name}.o_proj", heads_output)


def _up(code: MegatronCode, op: LatentAttention, queries: Tensor, latent: Tensor, key: Tensor) -> list[Tensor]:
    """Queries, keys and values of every head."""
    nope, rope, name = op.qk_nope_head_dim, op.qk_rope_head_dim, op.name
    if op.q_lora_rank:
        with code.inside("q_layernorm"):
            queries = code.normed(queries, "rms", op.held(f"{name}.q_a_layernorm"))
        q = code.linear("linear_q_up_proj", queries, op.held(f"{name}.q_b_proj"), op.heads * (nope + rope), TENSOR)
    else:
        q = code.linear("linear_q_proj", queries, op.held(f"{name}.q_proj"), op.heads * (nope + rope), TENSOR)
    del queries
    with code.inside("kv_layernorm"):  # made contiguous for the product
        latent = code.normed(code.copy(latent), "rms", op.held(f"{name}.kv_a_layernorm"))
    both = code.linear(
        "linear_kv_up_proj", latent, op.held(f"{name}.kv_b_proj"), op.heads * (nope + op.v_head_dim), TENSOR
    )
    del latent
    return _latent_rotary(code, op, q, both, key)


def _latent_rotary(code: MegatronCode, op: LatentAttention, q: Tensor, both: Tensor, key: Tensor) -> list[Tensor]:
    """Fused: queries are turned in place, keys and values are new. Else all are new, and cosines and sines in 16 bit
    are kept, once for queries and once for the key that all heads share.
    """
    rope, fused = op.qk_rope_head_dim, code.setting.rope_fusion
    with code.inside("rotary"):
        keys = code.new(op.heads * (op.qk_nope_head_dim + rope), both.width, TENSOR)
        values = code.new(op.heads * op.v_head_dim, both.width, TENSOR)
        tables = [] if fused else [code.new(rope, both.width, GATHERED) for _ in range(4)]
        turned = q.alias() if fused else code.like(q)
        shapes = [(tensor.elements, tensor.width, tensor.extent) for tensor in (q, both, key)]

        def of_queries(gradients: Gradients) -> Gradients:
            g = gradients[0]
            assert g is not None
            return [g.alias() if fused else code.like(g)]

        code.note("queries", [turned], [q], tables[:2], of_queries)
        code.note("keys", [keys, values], [both, key], tables[2:], lambda _: [code.new(*shape) for shape in shapes[1:]])
    return [turned, keys, values]


def feed_forward(code: MegatronCode, op: MLP, x: Tensor) -> Tensor:
    """Gate and up are one product, whose result the fused activation keeps."""
    gate, up, down = (f"{op.name}.{name}" if op.name else name for name in op.names)
    held = op.held(up) if not op.gated or gate == up else [*op.held(gate), *op.held(up)]
    inner = op.intermediate_size
    with code.inside(op.name):
        both = code.linear("linear_fc1", x, held, 2 * inner if op.gated else inner, TENSOR)
        product = code.gated(both, inner)
        del both
        return code.linear("linear_fc2", product, op.held(down), op.hidden_size)
