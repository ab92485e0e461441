"""What models are written with: linear layers, norms, rotary positions, attention - as transformers writes them in eager PyTorch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from tonnage.tape._tape import TENSOR, TOKEN, Extent, Gradients, Tensor
from tonnage.tape._words import AttentionKernel, Words

Implementation = Literal["flash", "sdpa", "eager"]


class Types(Struct, frozen=True):
    """Bytes of a number: of parameters, and of what is computed. `autocast`: products cast what they are given."""

    parameter: float = 2
    compute: float = 2
    autocast: bool = False


class Adapters(Struct, frozen=True):
    """LoRA beside linear layers whose names end in one of `targets` (none: all of them), on a base that does not train.

    `base`: bytes a parameter of the dequantised base, 0 where it is not quantised. `copies`: the result of a quantised layer is
    cloned (peft, bnb.py); `keeps`: so is its input kept (bitsandbytes before 0.44, autograd/_functions.py). `magnitudes`: DoRA. Adapters are in fp32 (peft, autocast_adapter_dtype).
    """

    rank: int
    targets: tuple[str, ...] = ()
    dropout: bool = False
    base: float = 0
    copies: bool = False
    magnitudes: bool = False
    width: float = 4
    keeps: bool = False


class Held(NamedTuple):
    """A parameter of the model: how many numbers, and what cuts them."""

    elements: float
    split: str
    heads: int = 0
    is_bias: bool = False


class Style(Struct, frozen=True):
    """How a model's own code writes what its config leaves open.

    `norm`: "" as Llama, "wide" or "gemma" (`Code.rms_norm`). `rotary`: part of each head that is turned; 0: none. `soft_capped`: tanh
    of the attention scores. `fused`: how a fused projection is taken apart. `residual_scaled`: a constant times each sublayer's output; `query_scaled`: times the queries; `eager_alone`: it has no other attention;
    `upcasts_softmax`: eager attention takes it in fp32.
    """

    activation: str = "silu"
    norm: str = ""
    rotary: float = 1
    soft_capped: bool = False
    fused: Literal["split", "slice", "view"] = "split"
    residual_scaled: bool = False
    query_scaled: bool = False
    eager_alone: bool = False
    upcasts_softmax: bool = True


class Setting(Struct, frozen=True):
    """All that decides what one layer keeps, beside its operations. `masked`: sequences are longer than its window; `own`: what only
    this flavour of code asks."""

    code: str = "eager"
    types: Types = Types()
    style: Style = Style()
    kernels: Any = None
    attention: Implementation = "sdpa"
    dropout: bool = False
    attention_dropout: bool = False
    masked: bool = False
    recompute: str = "none"
    adapters: Adapters | None = None
    trains: bool = True
    own: Any = None


class Code(Words):
    """The pieces of a layer in eager PyTorch. `fuses_projections`: queries, keys and values are one matrix though the checkpoint has three."""

    fuses_projections = False

    def __init__(self, setting: "Setting"):
        super().__init__()
        self.types, self.style, self.kernels = setting.types, setting.style, setting.kernels
        self.implementation: Implementation = setting.attention
        self.drops, self.drops_attention = setting.dropout, setting.attention_dropout
        self.masked, self.recompute = setting.masked, setting.recompute
        self.adapters = setting.adapters
        self.trains = setting.trains and setting.adapters is None

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """What happens inside belongs to this module."""
        self.scope.append(name)
        try:
            yield
        finally:
            self.scope.pop()

    def run(self, op: Any, x: Tensor) -> Tensor:
        """One operation of a layer; a framework with modules of its own for it runs those."""
        return op.forward(self, x)

    def sublayer(
        self, before: Sequence[Any], mixers: Sequence[Any], run: Callable[[Tensor], Tensor], x: Tensor
    ) -> Tensor:
        """`run`: norms and what mixes, one after the other; a framework may run some of it again in backward."""
        return run(x)

    def weight(self, elements: float, split: str, heads: int = 0) -> Tensor:
        return self.parameter(elements, self.types.parameter, split, heads, trains=self.trains)

    def constant(self, elements: float, width: float | None = None) -> Tensor:
        """A tensor that all layers share: cosines and sines, a mask."""
        return Tensor(None, elements, self.types.compute if width is None else width, TOKEN)

    def linear(self, name: str, x: Tensor, weights: Sequence[Held], out: float, extent: Extent = TOKEN, *, is_module: bool = True) -> Tensor:  # fmt: skip
        """x times a weight, or several that are stored as one. `is_module`: a layer that adapters and quantisers know."""
        with self.inside(name):
            made = [self.weight(*each[:3]) for each in weights]
            matrices = [each for each, held in zip(made, weights, strict=True) if not held.is_bias]
            biases = [each for each, held in zip(made, weights, strict=True) if held.is_bias]
            del made
            adapters = self.adapters if is_module else None
            if adapters is None:
                return self.times(x, matrices, out, extent, biases)
            last = name.rpartition(".")[2]
            if adapters.base:
                result = self.times_dequantised(x, matrices, out, extent, adapters)
            else:
                result = self.times(x, matrices, out, extent, biases)
            if adapters.targets and last not in adapters.targets:
                return result
            return self._adapted(x, result, out, extent, adapters)

    def times(
        self, x: Tensor, weights: Sequence[Tensor], out: float, extent: Extent = TOKEN, biases: Sequence[Tensor] = ()
    ) -> Tensor:
        """A product: autocast casts both first."""
        if self.types.autocast:
            x = self.to(x, self.types.compute)
            weights = [self.to(each, self.types.compute) for each in weights]
            biases = [self.to(each, self.types.compute) for each in biases]
        return self.product(x, weights, out, extent, biases)

    def times_dequantised(
        self, x: Tensor, weights: Sequence[Tensor], out: float, extent: Extent, adapters: Adapters
    ) -> Tensor:
        """bitsandbytes' MatMul4Bit: the weight is made whole in forward and once more in backward, and nothing is kept."""
        width = x.width
        x = self.to(x, self.types.compute)
        shapes = [(each.elements, adapters.base, each.extent) for each in weights]
        whole = [self.new(*each) for each in shapes]
        made = self.new(out, x.width, extent)
        self.mark()
        del whole
        shape = x.elements, x.width, x.extent

        def derivative(_: Gradients) -> Gradients:
            again = [self.new(*each) for each in shapes]
            of_input = self.new(*shape)
            self.mark()
            del again
            return [of_input]

        self.note("mm_4bit", [made], [x], [x if adapters.keeps else None], derivative)
        made = self.to(made, width)
        return self.copy(made) if adapters.copies else made

    def _adapted(self, x: Tensor, result: Tensor, out: float, extent: Extent, adapters: Adapters) -> Tensor:
        """result + B(A(dropout(x))) * scaling, in the type of the adapters, and back."""
        width, h = result.width, x.elements
        if not (adapters.base and self.types.autocast):  # peft, bnb.py: requires_conversion
            x = self.to(x, adapters.width)
        if adapters.dropout:
            x = self.dropout(x)
        with self.inside("lora_A"):
            first = self.parameter(h * adapters.rank, adapters.width, "replicated" if x.extent == TOKEN else "tensor")
            low = self.times(x, [first], adapters.rank)
        with self.inside("lora_B"):
            second = self.parameter(out * adapters.rank, adapters.width, "replicated" if extent == TOKEN else "tensor")
            high = self.times(low, [second], out, extent)
        if adapters.magnitudes:
            return self._with_magnitudes(result, high, h, out, extent, adapters)
        return self.to(self.add(result, self.mapped("mul", high)), width)

    def _with_magnitudes(
        self, result: Tensor, high: Tensor, h: float, out: float, extent: Extent, adapters: Adapters
    ) -> Tensor:
        """DoRA: (m - 1) * result + m * B(A(x)) * scaling, m a magnitude over the norm of the whole weight, which is made for it."""
        width = result.width
        whole = [self.new(h * out, adapters.width, Extent("parameter", "replicated")) for _ in range(3)]
        eye = self.new(h * h, adapters.width, Extent("parameter", "replicated"))
        self.mark()
        del whole, eye
        scale = self.parameter(out, adapters.width, "replicated")
        left = self.mul(self.mapped("sub", scale), result)
        right = self.mapped("mul", self.mul(scale, high))
        return self.to(self.add(result, self.add(left, right)), width)

    def layer_normed(self, x: Tensor, weights: Sequence[Held], groups: float = 1) -> Tensor:
        """LayerNorm; autocast runs it in fp32."""
        x = self.to(x, 4) if self.types.autocast else x
        return self.layer_norm(x, [self.weight(*each[:3]) for each in weights], statistics=2 * groups)

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        """As LlamaRMSNorm; "wide": the weight multiplies in fp32 and the result is cast (OLMo 2); "gemma": one is added to the weight too.

        `groups`: norms a token, as many as heads where each is normalised alone.
        """
        width = x.width
        h = self.to(x, 4)
        scale = self.mapped("rsqrt", self.mean(self.square(h), groups), saves="output")
        h = self.mul(h, scale)
        if weight is None:
            return self.to(h, width)
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

    def turned_heads(self, x: Tensor) -> Tensor:
        """Heads before positions: what rotary embedding gives back is in another order than the projection's output."""
        return self.reordered(x) if self.style.rotary else x

    def taken_apart(self, x: Tensor, sizes: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one projection."""
        q, k, v = self.parts(x, sizes, whole=self.style.fused != "slice")
        return self.turned_heads(q), self.turned_heads(k), v

    def rotary(self, x: Tensor, of: float) -> Tensor:
        """x * cos + rotate_half(x) * sin on the turned part of the `of` numbers of each head."""
        part = self.style.rotary
        if not part:
            return x
        if part != 1:
            turned, passed = self.parts(x, [x.elements * part, x.elements * (1 - part)], whole=False)
            return self.cat([self._turned(turned, of * part), passed])
        return self._turned(x, of)

    def _turned(self, x: Tensor, of: float) -> Tensor:
        cosines = self.constant(of)
        straight = self.mul(x, cosines)
        first, second = self.parts(x, [x.elements / 2] * 2, whole=False)
        return self.add(straight, self.mul(self.cat([self.mapped("neg", second), first]), cosines))

    def activation(self, x: Tensor) -> Tensor:
        """The activation function of the model, between the products of a feed-forward."""
        name = self.style.activation
        if name in WRITTEN_OUT:
            return self._gelu_written_out(x)
        if name == "relu2":
            return self.mapped("square", self.mapped("relu", x, saves="output"), saves="input", temporaries=2)
        return self.mapped(name, x, saves="output" if name in ("relu", "tanh", "sigmoid") else "input")

    def _gelu_written_out(self, x: Tensor) -> Tensor:
        """0.5 * x * (1 + tanh(c * (x + 0.044715 * x**3))): each step is an operation of its own."""
        half = self.mapped("mul", x)
        cube = self.mapped("mul", self.mapped("pow", x, saves="input", temporaries=2))
        inner = self.mapped("mul", self.add(x, cube))
        del cube
        return self.mul(half, self.mapped("add", self.mapped("tanh", inner, saves="output")))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float, *, kv_heads: int = 1, is_fused: bool = False, is_masked: bool = False) -> Tensor:  # fmt: skip
        """The inside of attention, by the implementation that was chosen."""
        if self.style.query_scaled:
            q = self.mapped("mul", q)
        if self.implementation == "eager" or self.style.soft_capped or self.style.eager_alone:
            return self.core(lambda q, k, v: self._eager(q, k, v, heads, out), q, k, v)
        mask = None
        if is_masked and self.implementation == "sdpa":
            mask = self.new(1, q.width, Extent("pair", "gathered"), "mask")  # as numbers, for every layer anew
            if k.elements != q.elements and kv_heads > 1:  # one head alone is seen as many without a copy
                k, v = self.copy(k, q.elements), self.copy(v, out)
        kernel = self._kernel(q.elements / heads, out / heads)
        made = self.core(lambda q, k, v: self.attention(q, k, v, heads, out, kernel, mask), q, k, v)
        # what a view of a fused projection or a join gives is in order of heads, and so is the result: it is copied for the projection
        is_copied = self.style.rotary not in (0, 1) or (is_fused and self.style.rotary)
        return self.copy(made) if is_copied else made

    def core(self, run: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """The inside of attention, which selective recomputation runs twice."""
        return self.checkpoint(run, *inputs) if self.recompute == "selective" else run(*inputs)

    def _kernel(self, width: float, value_width: float) -> AttentionKernel:
        if self.implementation == "flash":
            return "flash"
        return "cudnn"

    def _eager(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        if k.elements != q.elements:
            k = self.copy(k, q.elements)
            v = self.copy(v, out)
        scores = self.mapped("scale", self.pairs(q, k, heads, Extent("pair", "tensor")))
        if self.style.soft_capped:
            scores = self.mapped("div", scores)
            scores = self.mapped("tanh", scores, saves="output")
            scores = self.mapped("mul", scores)
        width = scores.width
        scores = self.add(scores, self.constant(1))
        if self.style.upcasts_softmax:
            scores = self.to(scores, 4)
        scores = self.to(self.softmax(scores), width)
        if self.drops_attention:
            scores = self.dropout(scores)
        return self.copy(self.pairs(scores, v, out, TENSOR))

    def dropped(self, x: Tensor) -> Tensor:
        """Dropout of the hidden states, where the model has it."""
        return self.dropout(x) if self.drops else x

    def joined(self, residual: Tensor, x: Tensor) -> Tensor:
        """The residual stream and what a sublayer adds to it."""
        if self.style.residual_scaled:
            x = self.mapped("mul", x)
        return self.add(residual, x)

    def opaque(
        self, name: str, x: Tensor, kept: Sequence[tuple[float, float, Extent]], weights: Sequence[Held], out: float
    ) -> Tensor:
        """An operation that is not written out: it keeps tensors (numbers, bytes each, extent), and its backward holds a gradient of each
        that tensor parallelism cuts."""
        made = [self.new(*each) for each in kept]
        out_tensor = self.new(out, x.width, TOKEN)
        flowing = [each for each in kept if each[2].split != "whole" and each[2].unit == "token"]
        held = [self.weight(*each[:3]) for each in weights]
        shapes = [(each.elements, each.width, each.extent) if each.slot else None for each in held]
        shape = x.elements, x.width, x.extent

        def derivative(_: Gradients) -> Gradients:
            inner = [self.new(*each) for each in flowing]
            of_weights = [self.new(*each) if each else None for each in shapes]
            self.mark()
            del inner
            return [self.new(*shape), *of_weights]

        self.note(name, [out_tensor], [x, *held], made, derivative)
        return out_tensor


WRITTEN_OUT = ("gelu_new", "gelu_fast", "gelu_python")


class Native(Code):
    """PyTorch's own fused norm (torch.nn.RMSNorm), the rest as eager code."""

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        return self.layer_norm(x, [weight] if weight is not None else [], statistics=groups)


CODES: dict[str, type[Code]] = {"eager": Code, "native": Native}
