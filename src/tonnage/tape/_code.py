"""What models are written with: linear layers, norms, rotary positions, attention - as transformers writes them in eager PyTorch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from tonnage.tape._kernels import chosen_kernel, shows_shared_heads
from tonnage.tape._tape import TENSOR, TOKEN, Extent, Gradients, Slot, Tensor
from tonnage.tape._words import Words

Implementation = Literal["flash", "sdpa", "eager"]


class Types(Struct, frozen=True):
    """Bytes of a number: of parameters, and of what is computed. `autocast`: products cast what they are given."""

    parameter: float = 2
    compute: float = 2
    autocast: bool = False


class Adapters(Struct, frozen=True):
    """LoRA beside linear layers whose names end in one of `targets` (none: all of them), on a base that does not train.

    `base`: bytes a parameter of the dequantised base, 0 where it is not quantised. `copies`: the result of a quantised layer is
    cloned (peft, bnb.py). `magnitudes`: DoRA. Adapters are in fp32 (peft, autocast_adapter_dtype).
    """

    rank: int
    targets: tuple[str, ...] = ()
    dropout: bool = False
    base: float = 0
    copies: bool = False
    magnitudes: bool = False
    width: float = 4


class Held(NamedTuple):
    """A parameter of the model: how many numbers, and what cuts them."""

    elements: float
    split: str
    heads: int = 0
    is_bias: bool = False


class Router(Struct, frozen=True):
    """How a mixture's router is written. `wide`: its product in fp32, `held_wide`: so is its weight; `chosen_first`: the largest logits are chosen, and scored alone;
    `stays_wide`: what weighs the experts' outputs stays in fp32, and so makes their sum fp32. `shared_first`: shared experts run before it. `every_expert`: every token
    goes through every expert (Llama 4).
    """

    wide: bool = False
    held_wide: bool = False
    scores: Literal["softmax", "sigmoid"] = "softmax"
    chosen_first: bool = False
    stays_wide: bool = False
    shared_first: bool = False
    every_expert: bool = False


class Style(Struct, frozen=True):
    """How a model's own code writes what its config leaves open.

    `norm`: "" as Llama, "wide", "narrow", "gemma", "cast" or "gemma4" (`Code.rms_norm`). `rotary`: part of each head that is turned; 0: none. `soft_capped`: tanh
    of the attention scores. `fused`: how a fused projection is taken apart. `residual_scaled`: a constant times each sublayer's output; `query_scaled`: times the queries; `eager_alone`: it has no other attention;
    `upcasts_softmax`: eager attention takes it in fp32. `turns`: how rotary
    positions are written: x * cos + rotate_half(x) * sin ("halves"), that in fp32, or with both
    factors cast to it, each half apart (`turns_whole`: taken from one
    split), or as complex numbers. `shares_openly`: calls sdpa itself, with one head of keys for all queries;
    `always_masked`: with a mask. `norms_late`: queries and keys are normalised behind all projections, not each behind its own;
    `values_normed`, `values_scaled`: so are values, or multiplied by a number. `tables`: 1: a layer makes cosines and sines anew; 2: for
    queries and for keys. `layer_norm`: "wide": in fp32 and cast, "written out": in single operations. `wide_scores`: eager attention casts
    queries and keys to fp32; `subtracts_max`: it subtracts each row's largest score. `head_norm`: what normalises queries and keys where it is not the layer's kind;
    `clamped_experts`: gates and ups are clamped (gpt-oss). `biased_positions`: scores have a learned bias, made once for all layers;
    `drops_inner`: dropout inside the feed-forward too. `heads_normed_turned`: where positions are turned, a norm without weights follows.
    """

    activation: str = "silu"
    norm: str = ""
    rotary: float = 1
    soft_capped: bool = False
    fused: Literal["split", "slice", "view", "picked", "spread", "in order"] = "split"
    residual_scaled: bool = False
    query_scaled: bool = False
    eager_alone: bool = False
    upcasts_softmax: bool = True
    shares_openly: bool = False
    always_masked: bool = False
    norms_late: bool = False
    values_normed: bool = False
    values_scaled: bool = False
    tables: int = 0
    layer_norm: Literal["", "wide", "written out"] = ""
    wide_scores: bool = False
    subtracts_max: bool = False
    head_norm: Literal["", "layer"] = ""
    clamped_experts: bool = False
    biased_positions: bool = False
    drops_inner: bool = False
    heads_normed_turned: bool = False
    turns: Literal["halves", "pairs in fp32", "pairs cast", "apart", "complex"] = "halves"
    turns_whole: bool = False
    router: Router = Router()


class Setting(Struct, frozen=True):
    """All that decides what one layer keeps, beside its operations. `masked`: sequences are longer than its window."""

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


class Code(Words):
    """The pieces of a layer in eager PyTorch."""

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
        """A product: autocast casts all of them, the input last; what is stored as one is cast as one."""
        if self.types.autocast:
            biases = self.cast(biases, self.types.compute)
            weights = self.cast(weights, self.types.compute)
            x = self.to(x, self.types.compute)
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

        self.note("mm_4bit", [made], [x], [], derivative)
        made = self.to(made, width)
        return self.copy(made) if adapters.copies else made

    def _adapted(self, x: Tensor, result: Tensor, out: float, extent: Extent, adapters: Adapters) -> Tensor:
        """result + B(A(dropout(x))) * scaling, in the type of the adapters, and back."""
        width, h = result.width, x.elements
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

    def wide_linear(self, name: str, x: Tensor, weights: Sequence["Held"], out: float) -> Tensor:
        """A linear layer of fp32 copies of x and of its weights; autocast makes it an ordinary one."""
        if self.types.autocast:
            return self.linear(name, x, weights, out)
        with self.inside(name):
            held = [self.parameter(each.elements, 4, each.split, trains=self.trains) if self.style.router.held_wide
                    else self.to(self.weight(*each[:3]), 4) for each in weights]  # fmt: skip
            return self.product(self.to(x, 4), held, out)

    def layer_normed(self, x: Tensor, weights: Sequence[Held], groups: float = 1) -> Tensor:
        """LayerNorm; autocast runs it in fp32."""
        width, kind = x.width, self.style.layer_norm
        held = [self.weight(*each[:3]) for each in weights]
        if kind == "written out":
            return self._layer_norm_written_out(x, held, groups)
        if self.types.autocast or kind == "wide":
            x = self.to(x, 4)
        made = self.layer_norm(x, held, statistics=groups)
        return self.to(made, width) if kind == "wide" else made

    def _layer_norm_written_out(self, x: Tensor, weights: Sequence[Tensor], groups: float) -> Tensor:
        """As CohereLayerNorm: the mean is subtracted twice."""
        width, h = x.width, self.to(x, 4)
        mean = self.mean(h, groups)
        scale = self.mapped("rsqrt", self.mean(self.square(self.sub(h, mean)), groups), saves="output")
        h = self.mul(self.sub(h, mean), scale)
        del mean, scale
        for weight in weights[:1]:
            h = self.mul(self.to(weight, 4), h)
        return self.to(h, width)

    def rms_norm(self, x: Tensor, weight: Tensor | None, groups: float = 1) -> Tensor:
        """As LlamaRMSNorm; "wide": the weight multiplies in fp32 and the result is cast (OLMo 2); "gemma": one is added to the weight too;
        "narrow": the root multiplies what came in, not its fp32 copy (T5); "cast": the weight is cast, "gemma4": and the root is a power.

        `groups`: norms a token, as many as heads where each is normalised alone.
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

    def turned_heads(self, x: Tensor) -> Tensor:
        """Heads before positions: what rotary embedding gives back is in another order than the projection's output."""
        return self.reordered(x) if self.style.rotary else x

    def taken_apart(self, x: Tensor, sizes: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of one projection."""
        if self.style.fused in ("picked", "spread"):  # keys and values are picked by an index, which copies them
            q = self.parts(x, sizes[:1], whole=False)[0]
            k, v = (self.gathered(x, size, x.extent, 0) for size in sizes[1:])
            if self.style.fused == "spread":  # and shown to each query head of their group
                q, k, v = self.copy(q), self.copy(k, q.elements), self.copy(v, q.elements)
        else:
            q, k, v = self.parts(x, sizes, whole=self.style.fused != "slice")
        return self.turned_heads(q), self.turned_heads(k), v

    def given(self, elements: float, extent: Extent = TENSOR) -> Tensor:
        """A tensor that another layer made and keeps: its gradient flows there."""
        return Tensor(None, elements, self.types.compute, extent, Slot(), True)

    def values(self, v: Tensor, heads: int) -> Tensor:
        """What is done to values alone."""
        if self.style.values_normed:
            with self.inside("v_norm"):
                v = self.rms_norm(v, None, heads)
        return self.mapped("mul", v) if self.style.values_scaled else v

    def tables(self, of: float) -> tuple[Tensor, Tensor]:
        """Cosines and sines for the turned numbers of a head: those that all layers share, or two of this layer's own."""
        of *= self.style.rotary
        width = 4 if self.types.autocast or self.style.turns.startswith("pairs") else self.types.compute
        if not self.style.tables:
            return self.constant(of, width), self.constant(of, width)
        return self.new(of, width, TOKEN, "cosines"), self.new(of, width, TOKEN, "sines")

    def rotary(self, x: Tensor, of: float, tables: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Positions on the turned part of the `of` numbers of each head."""
        part = self.style.rotary
        if not part:
            return x
        if tables is None or self.style.tables == 2:
            tables = self.tables(of)
        if part != 1:
            turned, passed = self.parts(x, [x.elements * part, x.elements * (1 - part)], whole=False)
            return self.cat([self.turned(turned, tables), passed])
        return self.turned(x, tables)

    def turned(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """Positions on all of these numbers."""
        kind, width = self.style.turns, x.width
        if kind == "complex":
            return self.to(self.mul(self.to(x, 4), self.constant(1, 4)), width)
        if kind == "pairs in fp32":
            return self.to(self._rotated(self.to(x, 4), tables), width)
        if kind == "apart":
            return self._turned_apart(x, tables)
        return self._rotated(x, tables)

    def _rotated(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """x * cos + rotate_half(x) * sin."""
        width = 4 if self.style.turns == "pairs cast" else x.width
        straight = self.mul(self.to(x, width), tables[0])
        first, second = self.parts(x, [x.elements / 2] * 2, whole=False)
        crossed = self.to(self.cat([self.mapped("neg", second), first]), width)
        return self.to(self.add(straight, self.mul(crossed, tables[1])), x.width)

    def _turned_apart(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """Both halves, or even and odd numbers, turned into each other and joined."""
        cosines, sines = tables
        first, second = self.parts(x, [x.elements / 2] * 2, whole=self.style.turns_whole)
        one = self.sub(self.mul(first, cosines), self.mul(second, sines))
        other = self.add(self.mul(second, cosines), self.mul(first, sines))
        return self.cat([one, other])

    def gate_and_up(self, both: Tensor, inner: float) -> Tensor:
        """What experts make of gates and ups that come from one product."""
        gate, up = self.parts(both, [inner, inner], whole=not self.style.clamped_experts)
        del both
        if not self.style.clamped_experts:
            return self.mul(self.activation(gate), up)
        gate, up = self.clamped(gate, sides=1), self.clamped(up, sides=2)
        glu = self.mul(gate, self.mapped("sigmoid", self.mapped("mul", gate), saves="output"))
        return self.mul(self.mapped("add", up), glu)

    def activation(self, x: Tensor) -> Tensor:
        """The activation function of the model, between the products of a feed-forward."""
        name = self.style.activation
        if name in WRITTEN_OUT:
            return self._gelu_written_out(x)
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
        """What a power is taken of: autocast casts it to fp32."""
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

    def attend(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float, *, kv_heads: int = 1, by_heads: bool = False, is_masked: bool = False, sinks: bool = False, causal: bool = True, cross: bool = False) -> Tensor:  # fmt: skip
        """The inside of attention, by the implementation that was chosen. `by_heads`: queries lie in the order of heads."""
        if self.style.query_scaled:
            q = self.mapped("mul", q)
        if self.implementation == "eager" or self.style.soft_capped or self.style.eager_alone:
            return self.core(lambda q, k, v: self._eager(q, k, v, heads, out, kv_heads, sinks), q, k, v)
        q, k, v = (self.to(each, self.types.compute) for each in (q, k, v))
        # a view of a fused projection, or what a join gives, lies in order of heads, and so does the result: it is copied for the projection
        is_copied = by_heads or self.style.rotary not in (0, 1)
        if self.implementation == "flash":
            made = self._flash(q, k, v, heads, out)
            return self.copy(made) if is_copied else made
        if self.style.biased_positions and not cross:
            bias = self._bias(heads, causal)
            return self.core(lambda q, k, v, bias: self.attention(q, k, v, heads, out, "efficient", bias), q, k, v, bias)
        return self._sdpa(q, k, v, heads, out, kv_heads, is_masked, is_copied)

    def core(self, run: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """The inside of attention, which selective recomputation runs twice."""
        return self.checkpoint(run, *inputs) if self.recompute == "selective" else run(*inputs)

    def _bias(self, heads: int, causal: bool) -> Tensor:
        """The scores' bias, shared by all layers; a causal one has its later keys taken out, by a mask that is kept."""
        pair = Extent("pair", "tensor")
        bias = self.given(heads, pair)
        if causal:
            bias = self.masked_by(bias, self.new(1, 1, Extent("pair", "gathered"), "mask"))
        return self.copy(bias)

    def _repeated(self, x: Tensor, elements: float, kv_heads: int) -> Tensor:
        """repeat_kv: one head alone is seen as many without a copy."""
        return self.copy(x, elements) if kv_heads > 1 else self.expanded(x, elements)

    def _flash(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        """flash_attention_2: narrower values are padded to the width of the queries, and the result is cut."""
        if out == q.elements:
            return self.core(lambda q, k, v: self.attention(q, k, v, heads, out, "flash"), q, k, v)
        v = self.padded(v, v.elements * q.elements / out)
        made = self.core(lambda q, k, v: self.attention(q, k, v, heads, q.elements, "flash"), q, k, v)
        return self.copy(self.parts(made, [out], whole=False)[0])

    def _sdpa(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float, kv_heads: int, is_masked: bool, is_copied: bool) -> Tensor:  # fmt: skip
        is_masked = is_masked or self.style.always_masked
        width, value_width = q.elements / heads, out / heads
        is_shared = k.elements != q.elements
        if is_shared and not self.style.shares_openly and not shows_shared_heads(width, value_width, is_masked):
            k, v, is_shared = self._repeated(k, q.elements, kv_heads), self._repeated(v, out, kv_heads), False
        kernel = chosen_kernel(width, value_width, q.width, is_shared=is_shared, is_masked=is_masked)
        if kernel == "math" or (is_shared and self.style.shares_openly):
            return self.core(lambda q, k, v: self._math(q, k, v, heads, out), q, k, v)
        # a mask is made into numbers, for every layer anew
        mask = self.new(1, q.width, Extent("pair", "gathered"), "mask") if is_masked else None
        made = self.core(lambda q, k, v: self.attention(q, k, v, heads, out, kernel, mask), q, k, v)
        return self.copy(made) if is_copied and kernel != "efficient" else made  # which writes it token by token

    def _math(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        """aten's _scaled_dot_product_attention_math: in fp32, with queries and keys scaled before their product."""
        width, wide = q.width, q.elements
        if k.elements != wide and not self.style.shares_openly:  # repeat_interleave
            k, v = self.copy(k, wide), self.copy(v, out)
        q, k, v = (self.to(each, 4) for each in (q, k, v))
        q, k = self.mapped("mul", q), self.mapped("mul", k)
        if k.elements != wide:  # shown to all queries by the product
            k = self.expanded(k, wide)
        scores = self.softmax(self.add(self.pairs(q, k, heads, Extent("pair", "tensor")), self.constant(1)))
        del q, k
        if v.elements != out:
            v = self.expanded(v, out)
        if self.drops_attention:
            scores = self.dropout(scores)
        return self.copy(self.to(self.pairs(scores, v, out, TENSOR), width))

    def _eager(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float, kv_heads: int, sinks: bool) -> Tensor:
        if k.elements != q.elements:
            k = self._repeated(k, q.elements, kv_heads)
            v = v if self.style.shares_openly else self._repeated(v, out, kv_heads)
        width = v.width
        if self.style.wide_scores:
            q, k = self.to(q, 4), self.to(k, 4)
        scores = self.mapped("scale", self.pairs(q, k, heads, Extent("pair", "tensor")))
        if self.style.soft_capped:
            scores = self.mapped("div", scores)
            scores = self.mapped("tanh", scores, saves="output")
            scores = self.mapped("mul", scores)
        scores = self.add(scores, self.constant(1))
        if sinks:  # a column more, which is left out here
            scores = self.cat([scores])
        if self.style.subtracts_max:
            scores = self.sub(scores, self.largest(scores, heads))
        if self.style.upcasts_softmax:
            scores = self.to(scores, 4)
        scores = self.softmax(scores)
        if sinks:
            scores = self.parts(scores, [scores.elements], whole=False)[0]
        scores = self.to(scores, width)
        if self.drops_attention:
            scores = self.dropout(scores)
        if v.elements != out:
            v = self.expanded(v, out)
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
        return self.layer_norm(x, [weight] if weight is not None else [], statistics=groups, centred=False)


CODES: dict[str, type[Code]] = {"eager": Code, "native": Native}
