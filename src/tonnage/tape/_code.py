"""Linear layers, norms and activations on the tape, as transformers writes them in eager PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from tonnage.tape._attending import Adapters, Attending, Held
from tonnage.tape.tape import TOKEN, Extent, Gradients, Tensor

WRITTEN_OUT = ("gelu_new", "gelu_fast", "gelu_python")


class Code(Attending):
    """The pieces of a layer in eager PyTorch. `fuses_projections`: queries, keys and values are one matrix though
    the checkpoint has three. `groups_experts`: a mixture's tokens are sorted by expert, whatever the model's own code
    does.
    """

    fuses_projections = False
    groups_experts = False

    def run(self, op: Any, x: Tensor) -> Tensor:
        """Run one operation of a layer; a framework with its own module for it runs that."""
        return op.forward(self, x)

    def sublayer(
        self, before: Sequence[Any], mixers: Sequence[Any], run: Callable[[Tensor], Tensor], x: Tensor
    ) -> Tensor:
        """Run norms and mixers one after the other; a framework may recompute some of them in backward."""
        return run(x)

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
        """Multiply x by a weight, or by several that are stored as one. `is_module`: adapters and quantisers apply to
        it.
        """
        with self.inside(name):
            tensors = [self.weight(*weight[:3]) for weight in weights]
            matrices = [tensor for tensor, held in zip(tensors, weights, strict=True) if not held.is_bias]
            biases = [tensor for tensor, held in zip(tensors, weights, strict=True) if held.is_bias]
            del tensors
            adapters = self.adapters if is_module else None
            if adapters is None:
                return self.times(x, matrices, out, extent, biases)
            if adapters.scales:
                return self._scaled(name, x, matrices, out, extent, biases, adapters)
            last = name.rpartition(".")[2]
            if adapters.base:
                result = self.times_dequantised(x, matrices, out, extent, adapters)
            else:
                result = self.times(x, matrices, out, extent, biases)
            if adapters.targets and last not in adapters.targets:
                return result
            results = [result]
            del result  # peft binds the sum to the same name, so the first result is freed when the sum exists
            return self._adapted(x, results, out, extent, adapters)

    def times(
        self, x: Tensor, weights: Sequence[Tensor], out: float, extent: Extent = TOKEN, biases: Sequence[Tensor] = ()
    ) -> Tensor:
        """A matrix product: autocast casts all operands, the input last; weights stored as one are cast as one."""
        if self.types.autocast:
            biases = self.cast(biases, self.types.compute)
            weights = self.cast(weights, self.types.compute)
            x = self.to(x, self.types.compute)
        return self.product(x, weights, out, extent, biases)

    def times_dequantised(
        self, x: Tensor, weights: Sequence[Tensor], out: float, extent: Extent, adapters: Adapters
    ) -> Tensor:
        """bitsandbytes' MatMul4Bit: the weight is dequantised in forward and again in backward, and nothing is kept."""
        width = x.width
        x = self.to(x, adapters.compute)
        shapes = [(weight.elements, adapters.base, weight.extent) for weight in weights]
        dequantised = [self.new(*size) for size in shapes]
        product = self.new(out, x.width, extent)
        self.mark()
        del dequantised
        shape = x.elements, x.width, x.extent

        def derivative(_: Gradients) -> Gradients:
            again = [self.new(*size) for size in shapes]
            of_input = self.new(*shape)
            self.mark()
            del again
            return [of_input]

        self.worked.expand(adapters.packed, shapes)
        self.note("mm_4bit", [product], [x], [x if adapters.keeps else None], derivative)
        product = self.to(product, width)
        return self.copy(product) if adapters.copies else product

    def _adapted(
        self, x: Tensor, results: list[Tensor], out: float, extent: Extent, adapters: Adapters, experts: float = 0
    ) -> Tensor:
        """Return result + B(A(dropout(x))) * scaling, computed in the type of the adapters and cast back. `experts`:
        each of them has adapters of its own; 0: x does not go to experts.
        """
        width, h = results[0].width, x.elements
        if not (adapters.base and self.types.autocast):  # peft, bnb.py: requires_conversion
            x = self.to(x, adapters.width)
        if adapters.dropout:
            x = self.dropout(x)
        plain = ["replicated" if cut == TOKEN else "tensor" for cut in (x.extent, extent)]
        splits, count = (["expert"] * 2, adapters.rank * experts) if experts else (plain, adapters.rank)
        with self.inside("lora_A"):
            first = self.parameter(h * count, adapters.width, splits[0])
            low = self.times(x, [first], adapters.rank, Extent("row", "whole") if experts else TOKEN)
        with self.inside("lora_B"):
            second = self.parameter(out * count, adapters.width, splits[1])
            high = self.times(low, [second], out, extent)
        del low
        if adapters.magnitudes:
            return self._with_magnitudes(results.pop(), high, h, out, extent, adapters)
        scaled = self.mapped("mul", high)
        del high
        result = self.add(results[0], scaled)
        results.clear()
        del scaled
        return self.to(result, width)

    def _scaled(
        self,
        name: str,
        x: Tensor,
        weights: Sequence[Tensor],
        out: float,
        extent: Extent,
        biases: Sequence[Tensor],
        adapters: Adapters,
    ) -> Tensor:
        """IA3 (peft, tuners/ia3/layer.py: Linear.forward): a vector times the input or the result, in the type of the
        vector, and cast back.
        """
        if adapters.has(name, adapters.scaled_inputs):
            split, width = "replicated" if x.extent == TOKEN else "tensor", x.width
            vector = self.parameter(x.elements, adapters.width, split)
            return self.times(
                self.to(self.mul(self.to(x, adapters.width), vector), width), weights, out, extent, biases
            )
        result = self.times(x, weights, out, extent, biases)
        if not adapters.has(name, adapters.targets):
            return result
        split, width = "replicated" if extent == TOKEN else "tensor", result.width
        return self.to(self.mul(result, self.parameter(out, adapters.width, split)), width)

    def _with_magnitudes(
        self, result: Tensor, high: Tensor, h: float, out: float, extent: Extent, adapters: Adapters
    ) -> Tensor:
        """DoRA: (m - 1) * result + m * B(A(x)) * scaling, m a magnitude over the norm of the full weight, which is
        materialised for it.
        """
        width = result.width
        full_weights = [self.new(h * out, adapters.width, Extent("parameter", "replicated")) for _ in range(3)]
        eye = self.new(h * h, adapters.width, Extent("parameter", "replicated"))
        self.mark()
        del full_weights, eye
        scale = self.parameter(out, adapters.width, "replicated")
        left = self.mul(self.mapped("sub", scale), result)
        right = self.mapped("mul", self.mul(scale, high))
        return self.to(self.add(result, self.add(left, right)), width)

    def wide_linear(self, name: str, x: Tensor, weights: Sequence["Held"], out: float) -> Tensor:
        """A linear layer of fp32 copies of x and of its weights; autocast makes it an ordinary one."""
        if self.types.autocast:
            return self.linear(name, x, weights, out)
        with self.inside(name):
            held = [
                self.parameter(weight.elements, 4, weight.split, trains=self.trains)
                if self.style.router.held_wide and not self.types.uniform
                else self.to(self.weight(*weight[:3]), 4)
                for weight in weights
            ]
            return self.product(self.to(x, 4), held, out)

    def layer_normed(self, x: Tensor, weights: Sequence[Held], groups: float = 1) -> Tensor:
        """LayerNorm, in fp32 under autocast."""
        width, kind = x.width, self.style.layer_norm
        held = [self.weight(*weight[:3]) for weight in weights]
        if kind == "written out":
            return self._layer_norm_written_out(x, held, groups)
        if self.types.autocast or kind == "wide":
            x = self.to(x, 4)
        normed = self.layer_norm(x, held, statistics=groups)
        return self.to(normed, width) if kind == "wide" else normed

    def _layer_norm_written_out(self, x: Tensor, weights: Sequence[Tensor], groups: float) -> Tensor:
        """CohereLayerNorm: the mean is subtracted twice."""
        width, h = x.width, self.to(x, 4)
        mean = self.mean(h, groups)
        scale = self.mapped("rsqrt", self.mean(self.square(self.sub(h, mean)), groups), saves="output")
        h = self.mul(self.sub(h, mean), scale)
        del mean, scale
        for weight in weights[:1]:
            h = self.mul(self.to(weight, 4), h)
        return self.to(h, width)

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        """LlamaRMSNorm; "wide": the weight multiplies in fp32 and the result is cast (OLMo 2); "gemma": adds one to the
        weight too; "narrow": the root multiplies the input, not its fp32 copy (T5); "cast": the weight is cast,
        "gemma4": and the root is a power.

        `groups`: norms per token, the number of heads where each head is normalised alone.
        """
        width = x.width
        h = self.to(x, 4)
        spread = self.mean(self.square(h), groups)
        scale = self.mapped("rsqrt", spread, saves="input" if self.style.norm == "gemma4" else "output")
        h = self.mul(x if self.style.norm == "narrow" else h, scale)
        del spread, scale
        if weight is None:
            return self.to(h, width)
        if self.style.norm in ("gemma4", "cast"):
            return self.to(self.mul(h, self.to(weight, 4)), width)
        if self.style.norm == "gemma":
            weight = self.mapped("add", self.to(weight, 4))
            return self.to(self.mul(h, weight), width)
        if self.style.norm == "wide":
            return self.to(self.mul(weight, h), width)
        return self.mul(weight, self.to(h, width))

    def normed(self, x: Tensor, kind: Literal["rms", "layer"], weights: Sequence[Held], groups: float = 1) -> Tensor:
        """A norm of either kind."""
        if kind == "layer":
            return self.layer_normed(x, weights, groups)
        return self.rms_norm(x, self.weight(*weights[0][:3]) if weights else None, groups)

    def values(self, v: Tensor, heads: int) -> Tensor:
        """Post-processing of the values alone: a norm or a scale, where the model has one."""
        if self.style.values_normed:
            with self.inside("v_norm"):
                v = self.rms_norm(v, None, heads)
        return self.mapped("mul", v) if self.style.values_scaled else v

    def gate_and_up(self, both: Tensor, inner: float) -> Tensor:
        """The experts' hidden values from gates and ups of one product."""
        gate, up = self.parts(both, [inner, inner], as_split=not self.style.clamped_experts)
        del both
        if not self.style.clamped_experts:
            return self.mul(self.activation(gate), up)
        gate, up = self.clamped(gate, sides=1), self.clamped(up, sides=2)
        glu = self.mul(gate, self.mapped("sigmoid", self.mapped("mul", gate), saves="output"))
        return self.mul(self.mapped("add", up), glu)

    def activation(self, x: Tensor) -> Tensor:
        """The activation function of the model."""
        name = self.style.activation
        if name in WRITTEN_OUT:
            return self._gelu_written_out(x)
        if name == "quick_gelu":  # x * sigmoid(1.702 * x)
            return self.mul(x, self.mapped("sigmoid", self.mapped("mul", x), saves="output"))
        if name == "xielu":
            return self._xielu(x)
        if name == "bloom_gelu":
            return self.mapped(name, x, saves="input", temporaries=4)
        if name == "relu2":
            return self.mapped(
                "square", self.powered(self.mapped("relu", x, saves="output")), saves="input", temporaries=2
            )
        return self.mapped(name, x, saves="output" if name in ("relu", "tanh", "sigmoid") else "input")

    def powered(self, x: Tensor) -> Tensor:
        """The base of a power, which autocast casts to fp32."""
        return self.to(x, 4) if self.types.autocast else x

    def _xielu(self, x: Tensor) -> Tensor:
        """where(x > 0, p * x * x + b * x, (expm1(min(x, e)) - x) * n + b * x), with p and n learned."""
        p, n = self.weight(1, "replicated"), self.weight(1, "replicated")
        positive = self.add(self.mul(self.mul(p, x), x), self.mapped("mul", x))
        low = self.mapped("expm1", self.smaller(x), saves="output")
        negative = self.add(self.mul(self.sub(low, x), n), self.mapped("mul", x))
        del low
        return self.either(positive, negative)

    def _gelu_written_out(self, x: Tensor) -> Tensor:
        """0.5 * x * (1 + tanh(c * (x + 0.044715 * x**3))): each step is an operation of its own."""
        half = self.mapped("mul", x)
        cube = self.mapped("mul", self.mapped("pow", self.powered(x), saves="input", temporaries=2))
        inner = self.mapped("mul", self.add(x, cube))
        del cube
        return self.mul(half, self.mapped("add", self.mapped("tanh", inner, saves="output")))

    def dropped(self, x: Tensor) -> Tensor:
        """Dropout of the hidden states, where the model has it."""
        return self.dropout(x) if self.drops else x

    def joined(self, residual: Tensor, x: Tensor) -> Tensor:
        """Add a sublayer's output to the residual stream."""
        if self.style.residual_scaled:
            x = self.mapped("mul", x)
        return self.add(residual, x)

    def opaque(
        self,
        name: str,
        x: Tensor,
        saved_sizes: Sequence[tuple[float, float, Extent]],
        weights: Sequence[Held],
        out: float,
    ) -> Tensor:
        """An operation that is not written out: it keeps tensors of `saved_sizes` (numbers, bytes each, extent), and
        its backward holds a gradient of each one that tensor parallelism shards.
        """
        saved = [self.new(*size) for size in saved_sizes]
        out_tensor = self.new(out, x.width, TOKEN)
        flowing = [size for size in saved_sizes if size[2].split != "whole" and size[2].unit == "token"]
        held = [self.weight(*weight[:3]) for weight in weights]
        shapes = [(tensor.elements, tensor.width, tensor.extent) if tensor.slot else None for tensor in held]
        shape = x.elements, x.width, x.extent

        def derivative(_: Gradients) -> Gradients:
            inner = [self.new(*size) for size in flowing]
            of_weights = [self.new(*size) if size else None for size in shapes]
            self.mark()
            del inner
            return [self.new(*shape), *of_weights]

        self.note(name, [out_tensor], [x, *held], saved, derivative)
        return out_tensor


class Native(Code):
    """PyTorch's own fused norm (torch.nn.RMSNorm), the rest as eager code."""

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        return self.layer_norm(x, [weight] if weight is not None else [], statistics=groups, centred=False)


CODES: dict[str, type[Code]] = {"eager": Code, "native": Native}
