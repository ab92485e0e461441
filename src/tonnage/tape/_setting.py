"""Settings that decide how a layer's code is written and cast: types, adapters, and the model's own style."""

from typing import Any, Literal, NamedTuple

from msgspec import Struct

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
    autograd/_functions.py). `magnitudes`: DoRA. Adapters are in fp32 (peft, autocast_adapter_dtype).
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
    apart. `residual_scaled`: a constant times each sublayer's output; `query_scaled`: times the queries; `eager_alone`:
    it has no other attention;
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
    """All settings besides the operations that decide what one layer keeps. `masked`: sequences are at least as long as
    its window;
    `own`: what only this flavour of code asks; `has_cudnn`: PyTorch prefers cuDNN's attention on this accelerator;
    `packed`: a row has several sequences, which a mask or the kernel keeps apart."""

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
