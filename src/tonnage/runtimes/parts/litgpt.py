"""Layers as LitGPT writes them: one projection for queries, keys and values, whose adapter is put in its place by an
index.

Source: LitGPT 0.5.13, litgpt/model.py (CausalSelfAttention, apply_rope, RMSNorm) and litgpt/lora.py (LoRALinear,
LoRAQKVLinear).
"""

from collections.abc import Sequence
from typing import Any

from tonnage.ops import Attention
from tonnage.tape import CODES, TENSOR, TOKEN, Adapters, Code, Extent, Held, Tensor
from tonnage.tape.tape import Gradients
from tonnage.tape.words import first_gradient, shape_of


class LitGPT(Code):
    """The pieces of a layer."""

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        width, h = x.width, self.to(x, 4)
        scale = self.mapped("rsqrt", self.mean(self.mul(h, h), groups), saves="output")
        h = self.mul(h, scale)
        return self.to(h if weight is None else self.mul(h, self.to(weight, 4)), width)

    def run(self, op: Any, x: Tensor) -> Tensor:
        if not isinstance(op, Attention) or op.qk_norm or op.gate or op.gate_name or not op.has_kv or op.memory_width:
            return super().run(op, x)
        q, k, v = (f"{op.name}.{name}" for name in op.names[:3])
        names = [f"{op.name}.{op.fused}"] if op.fused else [q, k, v]
        sizes = (op.query_width, op.key_width, op.value_width)
        held = [tensor for name in names for tensor in op.held(name)]
        adapted = [
            size if self._adapts(name) or (op.fused and self._adapts(op.names[0])) else 0
            for name, size in zip(op.names, sizes, strict=False)
        ]
        product = self._joint(x, held, sizes, adapted)
        with self.inside(op.name):
            queries, keys, values = self.parts(product, sizes)
            del product
            queries, keys = (self._placed(tensor, op.head_dim) for tensor in (queries, keys))
            if op.kv_heads != op.heads:
                keys, values = self.copy(keys, op.query_width), self.copy(values, op.out_width)
            product = self.attention(queries, keys, values, op.heads, op.out_width, "flash")
            del queries, keys, values
        out = f"{op.name}.{op.names[3]}"
        return self.linear(out, product, op.held(out), op.hidden_size)

    def _adapts(self, name: str) -> bool:
        return self.adapters is not None and (
            not self.adapters.targets or name.rpartition(".")[2] in self.adapters.targets
        )

    def _placed(self, x: Tensor, of: float) -> Tensor:
        """Heads with their positions, joined with what is not turned even where that is nothing."""
        part = self.style.rotary
        x = self.reordered(x)
        turned, passed = self.parts(x, [x.elements * part, x.elements * (1 - part)], as_split=False)
        del x
        cosines = self.constant(of * part)
        first, second = self.parts(turned, [turned.elements / 2] * 2, as_split=False)
        straight = self.mul(turned, cosines)
        del turned
        return self.cat([self.add(straight, self.mul(self.cat([self.mapped("neg", second), first]), cosines)), passed])

    def linear(
        self,
        name: str,
        x: Tensor,
        weights: Sequence[Held],
        out: float,
        extent: Extent = TOKEN,
        *,
        is_module: bool = True,
    ) -> Tensor:
        adapters = self.adapters
        with self.inside(name):
            base = self._base(x, weights, out, extent)
            if adapters is None or not is_module or not self._adapts(name):
                return base
            low = self.times(
                self.dropout(x) if adapters.dropout else x, [self._lora(x.elements, adapters)], adapters.rank
            )
            return self.add(base, self.mapped("mul", self.times(low, [self._lora(out, adapters)], out, extent)))

    def _lora(self, elements: float, adapters: Adapters) -> Tensor:
        return self.parameter(elements * adapters.rank, adapters.width, "replicated")

    def _base(self, x: Tensor, weights: Sequence[Held], out: float, extent: Extent) -> Tensor:
        loaded = [self.weight(*weight[:3]) for weight in weights]
        matrices = [weight for weight, held in zip(loaded, weights, strict=True) if not held.is_bias]
        biases = [weight for weight, held in zip(loaded, weights, strict=True) if held.is_bias]
        del loaded
        if self.adapters is not None and self.adapters.base:
            return self.times_dequantised(x, matrices, out, extent, self.adapters)
        return self.times(x, matrices, out, extent, biases)

    def _joint(self, x: Tensor, held: Sequence[Held], sizes: Sequence[float], adapted: Sequence[float]) -> Tensor:
        """The joint projection; `adapted`: widths of those of its parts that have adapters."""
        adapters, width = self.adapters, sum(sizes)
        with self.inside("attn.qkv"):
            base = self._base(x, held, width, TENSOR)
            if adapters is None or not sum(adapted):
                return base
            rank = adapters.rank * sum(bool(size) for size in adapted)
            first = self.parameter(x.elements * rank, adapters.width, "replicated")
            low = self.times(self.dropout(x) if adapters.dropout else x, [first], rank)
            high = self.times(low, [self._lora(sum(adapted), adapters)], sum(adapted), TENSOR)
            if sum(adapted) < width:
                high = self._spread(high, width)
            return self.add(base, self.mapped("mul", high))

    def _spread(self, x: Tensor, width: float) -> Tensor:
        """index_copy into zeros, whose derivative keeps what is copied (torch, derivatives.yaml)."""
        zeros = self.new(width, x.width, x.extent)
        spread = self.like(zeros)
        del zeros
        shape = shape_of(x)

        def derivative(gradients: Gradients) -> Gradients:
            first_gradient(gradients)
            return [self.new(*shape)]

        self.note("index_copy", [spread], [x], [x], derivative)
        return spread


CODE = "litgpt"
CODES[CODE] = LitGPT
