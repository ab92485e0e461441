"""Attention and positions on the tape, and the choice of kernel that PyTorch would make."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from tonnage.tape.kernels import AttentionKernel, chosen_kernel, shows_shared_heads
from tonnage.tape.tape import TENSOR, TOKEN, Extent, Gradients, Slot, Tensor
from tonnage.tape.words import Words, shape_of

# ---- Settings that decide how a layer's code is written and cast: types, adapters, and the model's own style.

Implementation = Literal["flash", "sdpa", "efficient", "eager", "triton"]


class Types(Struct, frozen=True):
    """Bytes of a number: of parameters, and of what is computed. `autocast`: products cast their operands; `is_fp16`: a
    two-byte type is fp16, not bf16. `uniform`: the framework holds all parameters in one type, whatever the model says
    of some (PyTorch, _fsdp_param_group.py: _init_mp_dtypes; DeepSpeed, runtime/engine.py: module.bfloat16()).
    """

    parameter: float = 2
    compute: float = 2
    autocast: bool = False
    is_fp16: bool = False
    uniform: bool = False


class Adapters(Struct, frozen=True):
    """LoRA beside linear layers whose names end in one of `targets` (none: all of them), on a base that does not train.

    `base`: bytes a parameter of the dequantised base, 0 where it is not quantised; `packed`: as it is stored;
    `compute`: bytes of a number in the products of a quantised base (bnb_4bit_compute_dtype). `copies`: the result of a
    quantised layer is cloned (peft, bnb.py); `keeps`: its input is kept (bitsandbytes before 0.44,
    autograd/_functions.py). `magnitudes`: DoRA. `scales`: IA3, of which a vector multiplies
    what a layer of `targets` gives, or of `scaled_inputs` takes. Adapters are in fp32 (peft, autocast_adapter_dtype).
    """

    rank: int
    targets: tuple[str, ...] = ()
    dropout: bool = False
    base: float = 0
    packed: float = 0
    compute: float = 2
    copies: bool = False
    magnitudes: bool = False
    width: float = 4
    keeps: bool = False
    scales: bool = False
    scaled_inputs: tuple[str, ...] = ()

    def has(self, name: str, targets: tuple[str, ...]) -> bool:
        """Whether peft takes a layer of this name for one of these: a name ends in one, or in one's last words."""
        return any(name == target or name.endswith(f".{target}") for target in targets)


class Held(NamedTuple):
    """A parameter of the model: how many numbers, and what shards them."""

    elements: float
    split: str
    heads: int = 0
    is_bias: bool = False


class Router(Struct, frozen=True):
    """How a mixture's router is written. `wide`: its product in fp32, `held_wide`: so is its weight; `chosen_first`:
    the largest logits are chosen, and scored alone;
    `stays_wide`: what weighs the experts' outputs stays in fp32, and so makes their sum fp32. `shared_first`: shared
    experts run before it. `every_expert`: every token goes through every expert (Llama 4).
    """

    wide: bool = False
    held_wide: bool = False
    scores: Literal["softmax", "sigmoid"] = "softmax"
    chosen_first: bool = False
    stays_wide: bool = False
    shared_first: bool = False
    every_expert: bool = False


class Style(Struct, frozen=True):
    """The choices of a model's own code that its config does not state.

    `norm`: "" as Llama, "wide", "narrow", "gemma", "cast" or "gemma4" (`Code.rms_norm`). `rotary`: part of each head
    that is turned; 0: none. `soft_capped`: tanh of the attention scores. `fused`: how a fused projection is taken
    apart. `residual_scaled`: a constant times each sublayer's output; `query_scaled`: times the queries; `has_sdpa`,
    `has_flash`: whether it can call PyTorch's attention and FlashAttention; eager runs instead of those it cannot;
    `upcasts_softmax`: eager attention takes it in fp32. `turns`: how rotary
    positions are written: x * cos + rotate_half(x) * sin ("halves"), that in fp32, or with both
    factors cast to it, each half apart (`turns_whole`: taken from one
    split), or as complex numbers. `shares_openly`: calls sdpa itself, with one head of keys for all queries;
    `always_masked`: with a mask. `norms_late`: queries and keys are normalised behind all projections, not each behind
    its own; `values_normed`, `values_scaled`: so are values, or multiplied by a number. `tables`: 1: a layer makes
    cosines and sines anew; 2: for queries and for keys. `layer_norm`: "wide": in fp32 and cast, "written out": in
    single operations. `wide_scores`: eager attention casts queries and keys to fp32; `subtracts_max`: it subtracts each
    row's largest score. `head_norm`: what normalises queries and keys where it is not the layer's kind;
    `clamped_experts`: gates and ups are clamped (gpt-oss). `biased_positions`: scores have a learned bias, made once
    for all layers;
    `drops_inner`: dropout inside the feed-forward too. `heads_normed_turned`: where positions are turned, a norm
    without weights follows.
    """

    activation: str = "silu"
    norm: str = ""
    rotary: float = 1
    soft_capped: bool = False
    fused: Literal["split", "slice", "view", "picked", "spread", "in order"] = "split"
    residual_scaled: bool = False
    query_scaled: bool = False
    has_sdpa: bool = True
    has_flash: bool = True
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

    def runs_eager(self, attention: Implementation) -> bool:
        """Whether attention runs as single operations where this implementation is asked for."""
        if attention == "eager":
            return True
        return not (self.has_flash if attention == "flash" else self.has_sdpa)


class Setting(Struct, frozen=True):
    """All settings besides the operations that decide what one layer keeps. `masked`: sequences are at least as long as
    its window;
    `own`: what only this flavour of code asks; `has_cudnn`: PyTorch prefers cuDNN's attention on this accelerator;
    `packed`: a row has several sequences, which a mask or the kernel keeps apart; `deals_heads`: context ranks have
    whole sequences of some heads in attention."""

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
    has_cudnn: bool = True
    packed: bool = False
    deals_heads: bool = False


FLASH_ROWS = 32  # flash_api.cpp: a head's width is rounded up to a multiple of this, above 128 of twice this


class Attending(Words):
    """Heads, their positions, and attention; a layer's weights and constants."""

    def __init__(self, setting: "Setting"):
        super().__init__()
        self.types, self.style, self.kernels = setting.types, setting.style, setting.kernels
        self.implementation: Implementation = setting.attention
        self.drops, self.drops_attention = setting.dropout, setting.attention_dropout
        self.masked, self.recompute, self.has_cudnn = setting.masked, setting.recompute, setting.has_cudnn
        self.packed, self.deals_heads = setting.packed, setting.deals_heads
        self.adapters = setting.adapters
        self.trains = setting.trains and setting.adapters is None

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Count what happens inside as this module's."""
        self.scope.append(name)
        try:
            yield
        finally:
            self.scope.pop()

    def weight(self, elements: float, split: str, heads: int = 0) -> Tensor:
        return self.parameter(elements, self.types.parameter, split, heads, trains=self.trains)

    def constant(self, elements: float, width: float | None = None) -> Tensor:
        """A tensor that all layers share: cosines and sines, or a mask."""
        return Tensor(None, elements, self.types.compute if width is None else width, TOKEN)

    def turned_heads(self, x: Tensor) -> Tensor:
        """Query or key heads before rotary embedding, which returns another memory order than the projection's
        output.
        """
        return self.reordered(x) if self.style.rotary else x

    def split_qkv(self, x: Tensor, sizes: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
        """Split the output of a fused projection into queries, keys and values."""
        if self.style.fused in ("picked", "spread"):  # keys and values are picked by an index, which copies them
            q = self.parts(x, sizes[:1], as_split=False)[0]
            k, v = (self.gathered(x, size, x.extent, 0) for size in sizes[1:])
            if self.style.fused == "spread":  # and shown to each query head of their group
                q, k, v = self.copy(q), self.copy(k, q.elements), self.copy(v, q.elements)
        else:
            q, k, v = self.parts(x, sizes, as_split=self.style.fused != "slice")
        return self.turned_heads(q), self.turned_heads(k), v

    def external_tensor(self, elements: float, extent: Extent = TENSOR) -> Tensor:
        """A tensor that another layer computed and keeps; its gradient flows there."""
        return Tensor(None, elements, self.types.compute, extent, Slot(), True)

    def tables(self, of: float) -> tuple[Tensor, Tensor]:
        """Cosines and sines for the rotary part of a head: those that all layers share, or two of this layer's own."""
        of *= self.style.rotary
        width = 4 if self.types.autocast or self.style.turns.startswith("pairs") else self.types.compute
        if not self.style.tables:
            return self.constant(of, width), self.constant(of, width)
        return self.new(of, width, TOKEN, "cosines"), self.new(of, width, TOKEN, "sines")

    def rotary(self, x: Tensor, of: float, tables: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Apply rotary positions to the rotary part of the `of` numbers of each head."""
        part = self.style.rotary
        if not part:
            return x
        if tables is None or self.style.tables == 2:
            tables = self.tables(of)
        if part != 1:
            turned, passed = self.parts(x, [x.elements * part, x.elements * (1 - part)], as_split=False)
            return self.cat([self.turned(turned, tables), passed])
        return self.turned(x, tables)

    def turned(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """Apply rotary positions to all of these numbers."""
        kind, width = self.style.turns, x.width
        if kind == "complex":
            return self.to(self.mul(self.to(x, 4), self.constant(1, 4)), width)
        if kind == "pairs in fp32":
            return self.to(self._rotated(self.to(x, 4), tables), width)
        if kind == "apart":
            return self._turned_apart(x, tables)
        return self._rotated(x, tables)

    def _rotated(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """Return x * cos + rotate_half(x) * sin."""
        width = 4 if self.style.turns == "pairs cast" else x.width
        straight = self.mul(self.to(x, width), tables[0])
        first, second = self.parts(x, [x.elements / 2] * 2, as_split=False)
        crossed = self.to(self.cat([self.mapped("neg", second), first]), width)
        return self.to(self.add(straight, self.mul(crossed, tables[1])), x.width)

    def _turned_apart(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        """Rotate both halves (or the even and odd numbers) into each other, and concatenate them."""
        cosines, sines = tables
        first, second = self.parts(x, [x.elements / 2] * 2, as_split=self.style.turns_whole)
        one = self.sub(self.mul(first, cosines), self.mul(second, sines))
        other = self.add(self.mul(second, cosines), self.mul(first, sines))
        return self.cat([one, other])

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        out: float,
        *,
        kv_heads: int = 1,
        by_heads: bool = False,
        is_masked: bool = False,
        sinks: bool = False,
        causal: bool = True,
        cross: bool = False,
    ) -> Tensor:
        """Attention by the chosen implementation. `by_heads`: queries are in memory in the order of heads. Where
        context ranks deal out heads, attention keeps its output before it goes back to the ranks of its tokens.
        """
        out_heads = self._attended(q, k, v, heads, out, kv_heads, by_heads, is_masked, sinks, causal, cross)
        return self.mapped("all_to_all", out_heads) if self.deals_heads else out_heads

    def _attended(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        out: float,
        kv_heads: int,
        by_heads: bool,
        is_masked: bool,
        sinks: bool,
        causal: bool,
        cross: bool,
    ) -> Tensor:
        if self.style.query_scaled:
            q = self.mapped("mul", q)
        if self.style.runs_eager(self.implementation):
            return self.core(lambda q, k, v: self._eager(q, k, v, heads, out, kv_heads, sinks), q, k, v)
        q, k, v = (self.to(tensor, self.types.compute) for tensor in (q, k, v))
        # a view of a fused projection, or of a concatenation, lies in order of heads, and so does the result: it is
        # copied for the projection
        is_copied = by_heads or self.style.rotary not in (0, 1)
        if self.implementation == "flash":
            heads_output = self._flash(q, k, v, heads, out)
            return self.copy(heads_output) if is_copied else heads_output
        if self.style.biased_positions and not cross:
            bias = self._bias(heads, causal)
            return self.core(
                lambda q, k, v, bias: self.attention(q, k, v, heads, out, "efficient", bias), q, k, v, bias
            )
        return self._sdpa(q, k, v, heads, out, kv_heads, is_masked, is_copied)

    def core(self, run: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Run attention's core, which selective recomputation runs twice."""
        return self.checkpoint(run, *inputs) if self.recompute == "selective" else run(*inputs)

    def _bias(self, heads: int, causal: bool) -> Tensor:
        """The scores' bias, shared by all layers; where it is causal, later keys are masked out, and the mask is
        kept.
        """
        pair = Extent("pair", "tensor")
        bias = self.external_tensor(heads, pair)
        if causal:
            bias = self.masked_by(bias, self.new(1, 1, Extent("pair", "gathered"), "mask"))
        return self.copy(bias)

    def _repeated(self, x: Tensor, elements: float, kv_heads: int) -> Tensor:
        """repeat_kv: a single head is expanded without a copy."""
        return self.copy(x, elements) if kv_heads > 1 else self.expanded(x, elements)

    def _flash(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        """flash_attention_2: values narrower than the queries are padded to their width, and the result is sliced."""
        if out == q.elements:
            return self.core(lambda q, k, v: self.attention(q, k, v, heads, out, "flash"), q, k, v)
        v = self.padded(v, v.elements * q.elements / out)
        heads_output = self.core(lambda q, k, v: self.attention(q, k, v, heads, q.elements, "flash"), q, k, v)
        return self.copy(self.parts(heads_output, [out], as_split=False)[0])

    def _sdpa(
        self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float, kv_heads: int, is_masked: bool, is_copied: bool
    ) -> Tensor:
        is_masked = is_masked or self.style.always_masked or self.packed
        width, value_width = q.elements / heads, out / heads
        is_shared = k.elements != q.elements
        alone = self.implementation == "efficient"  # it takes no shared heads: keys and values are repeated for it
        shown = not alone and shows_shared_heads(width, value_width, is_masked)
        if is_shared and not self.style.shares_openly and not shown:
            k, v, is_shared = self._repeated(k, q.elements, kv_heads), self._repeated(v, out, kv_heads), False
        kernel = chosen_kernel(
            width, value_width, q.width, is_shared=is_shared, is_masked=is_masked, has_cudnn=self.has_cudnn, alone=alone
        )
        if kernel == "math" or (is_shared and self.style.shares_openly):
            return self.core(lambda q, k, v: self._math(q, k, v, heads, out), q, k, v)
        # a mask is converted to numbers, again in every layer
        mask = self.new(1, q.width, Extent("pair", "gathered"), "mask") if is_masked else None
        heads_output = self.core(lambda q, k, v: self.attention(q, k, v, heads, out, kernel, mask), q, k, v)
        return (
            self.copy(heads_output) if is_copied and kernel != "efficient" else heads_output
        )  # which writes it token by token

    def _math(self, q: Tensor, k: Tensor, v: Tensor, heads: int, out: float) -> Tensor:
        """aten's _scaled_dot_product_attention_math: in fp32, with queries and keys scaled before their product."""
        width, wide = q.width, q.elements
        if k.elements != wide and not self.style.shares_openly:  # repeat_interleave
            k, v = self.copy(k, wide), self.copy(v, out)
        q, k, v = (self.to(tensor, 4) for tensor in (q, k, v))
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
        if sinks:  # one column more, which is not counted here
            scores = self.cat([scores])
        if self.style.subtracts_max:
            scores = self.sub(scores, self.largest(scores, heads))
        if self.style.upcasts_softmax and not self.types.is_fp16:
            scores = self.to(scores, 4)
        # of fp16 one kernel makes fp32 (native/SoftMax.cpp: half_to_float); bf16 is cast first
        scores = self.softmax(scores, 4 if self.style.upcasts_softmax else None)
        if sinks:
            scores = self.parts(scores, [scores.elements], as_split=False)[0]
        scores = self.to(scores, width)
        if self.drops_attention:
            scores = self.dropout(scores)
        if v.elements != out:
            v = self.expanded(v, out)
        return self.copy(self.pairs(scores, v, out, TENSOR))

    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        heads: int,
        out: float,
        kernel: AttentionKernel,
        mask: Tensor | None = None,
    ) -> Tensor:
        """A fused kernel: keeps its inputs, its output and the log-sum-exp of each row in fp32."""
        heads_output, rows = self.new(out, q.width, q.extent), self.new(heads, 4, q.extent)
        shapes = [shape_of(tensor) for tensor in (q, k, v)]
        if mask is not None and mask.slot is not None:  # a bias that learns
            shapes.append(shape_of(mask))
        queries, extent = shapes[0], q.extent
        shared = q.elements > k.elements
        padded = heads * _rounded(q.elements / heads) if kernel == "flash" else q.elements

        def derivative(_: Gradients) -> Gradients:
            gradients = [self.new(*shape) for shape in shapes]
            held = [self.new(heads, 4, extent)]
            if kernel != "efficient":
                held.append(self.new(padded, 4, extent))
            if kernel == "flash" and shared:  # keys' and values' gradients of every query head
                held += [self.new(*queries) for _ in range(2)]
            self.mark()
            del held
            return gradients

        learns = [mask] if len(shapes) == 4 else []
        self.note("attention", [heads_output], [q, k, v, *learns], [q, k, v, heads_output, rows, mask], derivative)
        return heads_output


def _rounded(width: float) -> float:
    step = FLASH_ROWS if width <= 128 else 2 * FLASH_ROWS
    return -(-width // step) * step
