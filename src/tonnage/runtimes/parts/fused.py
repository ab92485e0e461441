"""Layers in Triton kernels: those of Liger, and Unsloth's, whose adapters are part of them.

Sources: Liger Kernel 0.8.5, src/liger_kernel/ops/{rms_norm,rope,swiglu,geglu}.py; Unsloth 2024.8 and 2026.10.9,
unsloth/kernels/{rms_layernorm,rope_embedding,fast_lora,utils}.py.
"""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tonnage.ops import MLP
from tonnage.tape import CODES, TENSOR, TOKEN, Adapters, Code, Extent, Held, Pass, Tensor, Work
from tonnage.tape.tape import Gradients, Slot
from tonnage.tape.words import first_gradient, shape_of


class Fused(Code):
    """Norms that keep their input and a number a token; positions are written over queries and keys, and gradients
    over gradients.
    """

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        normed, root = self.like(x), self.new(groups, 4, x.extent)
        shape = shape_of(weight) if weight is not None and weight.slot is not None else None
        fresh = self.style.norm == "gemma"  # in_place is False there: the stream is read again

        def derivative(gradients: Gradients) -> Gradients:
            g = first_gradient(gradients)
            return [self.like(g) if fresh else g.alias(), self.new(*shape) if shape else None]

        self.note("rms_norm", [normed], [x, weight], [x, root], derivative)
        return normed

    def turned_heads(self, x: Tensor) -> Tensor:
        return x

    def rotary(self, x: Tensor, of: float, *_: Any) -> Tensor:
        if not self.style.rotary:
            return x
        rotated = x.alias()
        self.note("rotary", [rotated], [x], [], lambda g: [first_gradient(g).alias()])
        return rotated

    def gate(self, gate: Tensor, up: Tensor) -> Tensor:
        """act(gate) * up: their gradients are written over them."""
        product = self.like(up)
        shapes = [(factor.storage, *shape_of(factor)) for factor in (gate, up)]
        self.note(
            "gate", [product], [gate, up], [gate, up], lambda _: [Tensor(*factor, None, True) for factor in shapes]
        )
        return product


class Liger(Fused):
    """Gated feed-forward layers of dense models; experts stay as transformers has them."""

    def run(self, op: Any, x: Tensor) -> Tensor:
        if not (isinstance(op, MLP) and op.gated and self.style.activation in GATED):
            return super().run(op, x)
        gate, up, down = (f"{op.name}.{name}" if op.name else name for name in op.names)
        inner = op.intermediate_size
        if gate == up:
            one, other = self.parts(self.linear(up, x, op.held(up), 2 * inner, TENSOR), [inner, inner])
            product = self.gate(one, other)
            del one, other
        else:
            product = self.gate(
                self.linear(gate, x, op.held(gate), inner, TENSOR), self.linear(up, x, op.held(up), inner, TENSOR)
            )
        return self.dropped(self.linear(down, product, op.held(down), op.hidden_size))


GATED = ("silu", "swish", "gelu_pytorch_tanh", "gelu", "gelu_tanh")


class Unsloth(Fused):
    """Adapters inside of autograd functions that keep their inputs alone; LoRA_QKV is taken as three of LoRA_W."""

    def run(self, op: Any, x: Tensor) -> Tensor:
        fits = isinstance(op, MLP) and op.gated and op.names[0] != op.names[1] and not op.bias
        if (
            not fits
            or self.adapters is None
            or self.adapters.dropout
            or not all(self._adapts(name) for name in op.names)
        ):
            return super().run(op, x)
        return self._mlp(op, x, self.adapters)

    def _adapts(self, name: str) -> bool:
        return self.adapters is not None and (
            not self.adapters.targets or name.rpartition(".")[2] in self.adapters.targets
        )

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
        if adapters is not None and adapters.base and weights[0].split == "expert":
            return self._of_experts(name, x, weights, out, extent, adapters)
        plain = any(weight.is_bias for weight in weights) or not is_module or not self._adapts(name)
        if adapters is None or plain or adapters.dropout or adapters.magnitudes:
            return super().linear(name, x, weights, out, extent, is_module=is_module)
        with self.inside(name):
            x = self.to(x, self.types.compute)
            low = self._lora(x.elements, out, adapters)
            shape = shape_of(x)
            product = self._multiplied(weights, out, x, extent, adapters)
            self._count(name, weights, x.elements, out, adapters)

            def derivative(_: Gradients) -> Gradients:
                trained = [self.new(*shape_of(weight)) for weight in low]
                return [self._again(weights, shape, adapters), *trained]

            self.note("lora", [product], [x, *low], [x], derivative)
            return product

    def _of_experts(
        self, name: str, x: Tensor, weights: Sequence[Held], out: float, extent: Extent, adapters: Adapters
    ) -> Tensor:
        """A projection of all experts in 4 bits: whole for its product, and again for the gradient of its input
        (unsloth_zoo, temporary_patches/moe_utils_bnb4bit.py, gpt_oss_grouped_qlora.py).
        """
        with self.inside(name):
            matrices = [self.weight(*weight[:3]) for weight in weights if not weight.is_bias]
            return self.times_dequantised(x, matrices, out, extent, replace(adapters, keeps=False, copies=False))

    def _lora(self, columns: float, rows: float, adapters: Adapters) -> list[Tensor]:
        return [self.parameter(elements * adapters.rank, adapters.width, "replicated") for elements in (columns, rows)]

    def _multiplied(self, weights: Sequence[Held], out: float, x: Tensor, extent: Extent, adapters: Adapters) -> Tensor:
        """matmul_lora: a product, and the adapter's, which is added in place; a quantised weight is whole for the
        first.
        """
        dequantised = self._whole(weights, adapters)
        product = self.new(out, x.width, extent)
        self.mark()
        del dequantised
        of_adapter = self.like(product)
        self.mark()
        del of_adapter
        return product

    def _count(self, name: str, weights: Sequence[Held], inner: float, outer: float, adapters: Adapters) -> None:
        """Note the work of a product with frozen weights and of its adapter's two, and of the derivatives that the
        function asks for; a quantised weight is made whole for each pass.
        """
        worked, split = self.worked, weights[0].split
        if adapters.base:
            expanded = {
                Extent("parameter", weight.split, weight.heads): weight.elements * (adapters.packed + adapters.base)
                for weight in weights
            }
            passes: tuple[Pass, ...] = (worked.when, "backward") if self.records else (worked.when,)
            worked.done += [Work(name, "move", when, bytes=expanded) for when in passes]
        worked.matrix(name, inner, outer, split, weights[0].heads, trains=False, records=self.records)
        for columns, rows in ((inner, adapters.rank), (adapters.rank, outer)):
            worked.matrix(name, columns, rows, "replicated", 0, trains=True, records=self.records)

    def _again(self, weights: Sequence[Held], shape: tuple[float, float, Extent], adapters: Adapters) -> Tensor:
        """Multiply a gradient by the weights, which are made whole again."""
        dequantised = self._whole(weights, adapters)
        gradient = self.new(*shape)
        self.mark()
        del dequantised
        of_adapter = self.new(*shape)
        self.mark()
        del of_adapter
        return gradient

    def _whole(self, weights: Sequence[Held], adapters: Adapters) -> list[Tensor]:
        held = [self.weight(*weight[:3]) for weight in weights] if adapters.base else []
        return [self.new(weight.elements, adapters.base, weight.extent) for weight in held]

    def _mlp(self, op: MLP, x: Tensor, adapters: Adapters) -> Tensor:
        """LoRA_MLP: keeps its input, gates and ups; backward writes over all three."""
        names = [f"{op.name}.{name}" if op.name else name for name in op.names]
        gates, ups, downs = (op.held(name) for name in names)
        hidden, inner = op.hidden_size, op.intermediate_size
        with self.inside(op.name):
            x = self.to(x, self.types.compute)
            low = [
                weight
                for columns, rows in ((hidden, inner), (hidden, inner), (inner, hidden))
                for weight in self._lora(columns, rows, adapters)
            ]
            gate = self._multiplied(gates, inner, x, TENSOR, adapters)
            up = self._multiplied(ups, inner, x, TENSOR, adapters)
            product = self.like(up)
            output = self._multiplied(downs, hidden, x, TOKEN, adapters)
            del product
            for name, held, columns, rows in zip(
                names, (gates, ups, downs), (hidden, hidden, inner), (inner, inner, hidden), strict=True
            ):
                self._count(name, held, columns, rows, adapters)
            shape, storage, narrow = shape_of(up), x.storage, shape_of(x)

            def derivative(_: Gradients) -> Gradients:
                of_product = self._again(downs, shape, adapters)
                trained = [self.new(*shape_of(weight)) for weight in low]
                dequantised = self._whole(ups, adapters)
                self.mark()
                del dequantised
                temporaries = [*self._whole(gates, adapters), self.new(*narrow)]
                self.mark()
                del temporaries, of_product
                return [Tensor(storage, *narrow, None, True), *trained]

            self.note("lora_mlp", [output], [x, *low], [x, gate, up], derivative)
            return output

    def offloaded(self, run: Any, x: Tensor) -> Tensor:
        """A checkpoint whose input waits in the host's memory, and comes back for backward."""
        records, self.records = self.records, False
        out = run(x)
        self.records = records
        shape = shape_of(x)

        def derivative(gradients: Gradients) -> Gradients:
            outer, self.nodes = self.nodes, []
            kind, self.kind = self.kind, "activation"
            when, self.worked.when = self.worked.when, "again"
            again = self.new(*shape)
            slot = again.slot = Slot()
            output = run(again)
            del again
            self.mark()
            self.worked.when = when
            end = output.slot
            del output
            gradients_in = self.backward([(end, first_gradient(gradients).alias())]) if end is not None else {}
            self.nodes, self.kind = outer, kind
            return [gradients_in.get(slot)]

        self.note("checkpoint", [out], [x], [], derivative)
        return out


LIGER, UNSLOTH = "liger", "unsloth"
CODES[LIGER] = Liger
CODES[UNSLOTH] = Unsloth
