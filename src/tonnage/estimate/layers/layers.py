"""Layers on the tape: what one layer, the loss and the optimizer's copies hold, as coefficients that are made once."""

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from tonnage.architectures import Block, Branch, Model, wiring
from tonnage.estimate.layers.losses import (
    CONTRASTIVE,
    FUSED,
    IN_PARTS,
    LOSSES,
    TILED,
    UPCAST_IN_MODEL,
    chunked,
    contrastive,
)
from tonnage.formulas import flops as f
from tonnage.formulas.memory import layers_on_rank
from tonnage.formulas.parameters import tensor_parameters
from tonnage.kernel.formula import Number, minimum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import Core, Head, Op, Weight
from tonnage.tape import CODES, Code, Extent, Held, Layer, Moment, Setting, Tensor, Titan, TitanCode, forward, layer


def window_of(block: Block) -> int | None:
    """The window of a layer's attention; None: it sees everything."""
    windows = (getattr(op, "window", None) for op in block.ops)
    return next((window for window in windows if window is not None), None)


@lru_cache(maxsize=1024)
def block_layer(block: Block, setting: Setting, hidden: int, asks: bool = True) -> Layer:
    """One layer of this kind; `asks`: something below it trains, so its input has a gradient."""
    code = CODES[setting.code](setting)

    def run(x: Tensor) -> Tensor:
        return wiring.run(block, code, x)

    if setting.recompute == "selective-op" and isinstance(code, TitanCode):
        selective = code.selective
        return layer(code, lambda x: selective(run, x), hidden, setting.types.parameter)
    if setting.recompute == "full":
        return layer(code, lambda x: code.checkpoint(run, x), hidden, setting.types.parameter)
    return layer(code, run, hidden, setting.types.parameter, asks)


@lru_cache(maxsize=1024)
def block_forward(block: Block, setting: Setting, hidden: int, *, records: bool = True) -> tuple[Moment, ...]:
    """The fullest moments of the forward pass of one layer of this kind; without a graph where backward runs it
    again, or where it has none (`records` False).
    """
    code = CODES[setting.code](setting)
    records = records and setting.recompute != "full"
    return forward(code, lambda x: wiring.run(block, code, x), hidden, setting.types.parameter, records=records)


@lru_cache(maxsize=1024)
def loss_layer(
    after: tuple[Op, ...], setting: Setting, hidden: int, loss: str, chunks: float, logits_split: bool, teacher: int = 0
) -> Layer:
    """What comes after the layers: the final norm, the head, the loss. Adapters leave it as it is, and it does not
    train then.
    `teacher`: numbers of a teacher's hidden states, for a token."""
    if setting.adapters is not None:
        setting = replace(setting, adapters=None, trains=False)
    if isinstance(setting.own, Titan):  # the layers are compiled, one by one, and the head stays in 16 bit
        setting = replace(setting, own=replace(setting.own, compiled=False, float8=False))
    code = CODES[setting.code](setting)

    def run(x: Tensor) -> Tensor:
        for op in after:
            if isinstance(op, Head):
                if loss == CONTRASTIVE:  # an embedding model is loaded without it
                    continue
                if chunks > 1 and setting.own is not None and loss not in IN_PARTS:
                    x = chunked(code, x, hidden)
                if loss in TILED or loss in FUSED:
                    code.worked.head(op.name, op.width, op.vocab_size, trains=setting.trains)
                if loss in TILED:
                    return TILED[loss](code, x, _held(op), teacher)
                if loss in FUSED:
                    return FUSED[loss](code, x, _held(op), op.vocab_size / chunks)
                if loss in IN_PARTS:
                    return IN_PARTS[loss](code, _head(code, op, x, 1, logits_split), chunks)
                code.worked.repeats = chunks
                x = _head(code, op, x, chunks, logits_split)
                if loss in UPCAST_IN_MODEL:
                    x = code.to(x, 4)
                assert loss in LOSSES, f"loss {loss!r}: the framework of these facts must write it (Framework.loss)"
                return LOSSES[loss](code, x)
            x = op.forward(code, x)
        return contrastive(code, x) if loss == CONTRASTIVE else x

    return layer(code, run, hidden, setting.types.parameter)


def _held(op: Head) -> list[Held]:
    held = op.held(op.name)
    return [Held(op.width * op.vocab_size, "vocab"), *held] if op.tied else held


def _head(code: Code, op: Head, x: Tensor, chunks: float, logits_split: bool) -> Tensor:
    extent = Extent("token", "tensor" if logits_split else "gathered")
    return code.linear(op.name, x, _held(op), op.vocab_size / chunks, extent, is_module=False)


# ---- Arithmetic of one forward pass and of one training step, by kind of layer.


def forward_flops(model: Model, tokens: Number, sequence_length: Number) -> Term:
    """FLOP of `tokens` tokens in sequences of `sequence_length` through the language model, head included.

    An encoder of text sees as many tokens as its decoder. Towers run on images and sounds, whose number nobody gave:
    they are left out.
    """
    main = model.decoder
    parts, loose = [], []
    for branch in model.branches:
        if branch is not main and branch.kind in ("vision", "audio", "draft"):
            continue
        parts += [
            _layers(block, count, tokens, sequence_length)
            for block, count in zip(branch.blocks, branch.counts(), strict=True)
            if count
        ]
        loose += [term for op in branch.before + branch.after for term in _op_flops(op, 1, tokens, sequence_length)]
    return Term.sum("forward", *parts, *loose, unit="FLOP")


def training_flops(
    model: Model,
    tokens: Number,
    sequence_length: Number,
    *,
    method: str = "full",
    trainable_layers: int | None = None,
    adapters: Number = 0,
) -> Term:
    """FLOP of one step forward and backward, without recomputation: what MFU counts.

    Where not all weights train (`method` lora, dora or freeze) backward does no more than it must: gradients of what is
    frozen are not made, those of inputs not below the first layer that trains. Its own first products are left out of
    them as well, though some frameworks make these: at most half a layer's. `trainable_layers`: of freeze, from the
    last; `adapters`: parameters that a token passes through, of all layers.
    """
    forward = forward_flops(model, tokens, sequence_length)
    if method == "full":
        passes = Term.of("forward, and backward of twice that", f.passes, x=3)
        return Term.product("model FLOPs of one step", "FLOP", passes, forward)
    layers = model.decoder.num_layers
    first = layers - trainable_layers if method == "freeze" and trainable_layers is not None else 0
    above = _between(model, first + 1, layers, tokens, sequence_length)
    head = [term for op in model.decoder.after for term in _op_flops(op, 1, tokens, sequence_length)]
    parts = [forward, Term.sum("gradients of inputs", *_products(above), *head, unit="FLOP")]
    mixing = above  # what layers do besides products with weights has two derivatives for each
    if method == "freeze":
        mixing = _between(model, first, layers, tokens, sequence_length)
        parts.append(Term.sum("gradients of weights", *_products(mixing), unit="FLOP"))
    else:
        once = Term.of("adapters", f.matrix_flops, Na=adapters, T=tokens)
        parts.append(Term.product("adapters, forward and backward", "FLOP", Term.of("passes", f.passes, x=3), once))
    others = Term.sum("others", *(term for term in mixing if term.formula is not f.matrix_flops), unit="FLOP")
    parts.append(Term.product("derivatives of attention", "FLOP", Term.of("passes", f.passes, x=2), others))
    return Term.sum("model FLOPs of one step", *parts)


def tower_flops(branch: Branch, patches: Number, seen: Number, rows: Number) -> Term:
    """FLOP of one forward pass of a vision tower over `patches`, each of which sees `seen` of them, and of its
    projector over `rows`.
    """
    parts = [
        _layers(block, count, patches, seen)
        for block, count in zip(branch.blocks, branch.counts(), strict=True)
        if count
    ]
    ends = [term for op in branch.before for term in _op_flops(op, 1, patches, seen)]
    ends += [
        term
        for op in branch.after
        if not str(getattr(op, "name", "")).startswith("head.")
        for term in _op_flops(op, 1, rows, seen)
    ]
    return Term.sum("vision tower, forward", *parts, Term.sum("projector and patches", *ends, unit="FLOP"), unit="FLOP")


def _between(model: Model, first: int, end: int, tokens: Number, length: Number) -> list[Term]:
    """Forward passes of the layers from `first` on, to before `end`."""
    main = model.decoder
    counts = main.counts(first, end) if first < end else [0] * len(main.blocks)
    return [
        term
        for block, count in zip(main.blocks, counts, strict=True)
        if count
        for op in block.ops
        for term in _op_flops(op, count, tokens, length)
    ]


def _products(terms: list[Term]) -> list[Term]:
    return [term for term in terms if term.formula is f.matrix_flops]


def _layers(block: Block, count: int, tokens: Number, length: Number) -> Term:
    terms = [term for op in block.ops for term in _op_flops(op, count, tokens, length)]
    products = [term for term in terms if term.formula is f.matrix_flops]
    others = [term for term in terms if term.formula is not f.matrix_flops]
    return Term.sum(Message("{block}s", block=block.name), Term.sum("matrix products", *products, unit="FLOP"), *others)


def _op_flops(op: Op, count: int, tokens: Number, length: Number) -> list[Term]:
    terms = []
    for weight in op.weights():
        if weight.linear:
            terms.append(Term.of(weight.name, f.matrix_flops, Na=weight.num_active_parameters * count, T=tokens))
    terms += [_core(core, count, tokens, length) for core in op.core()]
    return terms


def _core(core: Core, count: int, tokens: Number, length: Number) -> Term:
    if not core.per_key:
        return Term.of(core.name, f.token_flops, y=core.flops, L=count, T=tokens)
    if not core.causal:
        return Term.of(
            core.name, f.full_attention_flops, y=core.flops, L=count, T=tokens, s=minimum(length, core.window or length)
        )
    if core.window is None:
        return Term.of(core.name, f.causal_attention_flops, y=core.flops, L=count, T=tokens, s=length)
    return Term.of(core.name, f.windowed_attention_flops, y=core.flops, L=count, T=tokens, r=core.window, s=length)


# ---- How many parameters, part by part: the count as a breakdown, and the figures that people quote.

Pick = Callable[[Weight], int]  # copies of a weight that count


def parameters(model: Model) -> Term:
    """All parameters as transformers loads them, branch by branch down to tensors."""
    parts = [_branch(branch, lambda weight: weight.copies) for branch in model.branches if branch.kind != "draft"]
    return Term.sum("parameters", *parts, unit="parameters")


def draft_parameters(model: Model) -> Term:
    """Multi-token-prediction layers, which the checkpoint holds beside the model."""
    parts = [_branch(branch, lambda weight: weight.copies) for branch in model.branches if branch.kind == "draft"]
    return Term.sum("multi-token prediction", *parts, unit="parameters")


def active_parameters(model: Model) -> Term:
    """Parameters that one token of text passes through: of routed experts those chosen, of towers none; tables and
    head too.
    """
    parts = [_branch(branch, _active) for branch in model.branches if branch.kind in ("decoder", "encoder")]
    return Term.sum("active parameters", *parts, unit="parameters")


def embedding_parameters(model: Model) -> Term:
    """Tables in and an untied head out."""
    return _of_parts(model, "embedding parameters", lambda weight: weight.part in ("embedding", "head"))


def non_embedding_parameters(model: Model) -> Term:
    """Everything but tables and head."""
    return _of_parts(model, "non-embedding parameters", lambda weight: weight.part not in ("embedding", "head"))


def _of_parts(model: Model, name: str, wanted: Callable[[Weight], bool]) -> Term:
    def pick(weight: Weight) -> int:
        return weight.copies if wanted(weight) else 0

    return Term.sum(
        name, *(_branch(branch, pick) for branch in model.branches if branch.kind != "draft"), unit="parameters"
    )


def _active(weight: Weight) -> int:
    return weight.copies if weight.active is None else weight.active


def _branch(branch: Branch, pick: Pick) -> Term:
    parts = [term for op in branch.before for term in _op_parameters(op, pick)]
    for block, count in zip(branch.blocks, branch.counts(), strict=True):
        one = Term.sum("one layer", *(term for op in block.ops for term in _op_parameters(op, pick)), unit="parameters")
        if count and one.value:
            parts.append(
                Term.product(
                    Message("{block}s", block=block.name), "parameters", Term.of("layers", layers_on_rank, l=count), one
                )
            )
    parts += [term for op in branch.after for term in _op_parameters(op, pick)]
    return Term.sum(branch.name, *parts, unit="parameters")


def _op_parameters(op: Op, pick: Pick) -> list[Term]:
    return [
        Term.of(weight.name, tensor_parameters, n_out=weight.rows, n_in=weight.columns, n_copies=pick(weight))
        for weight in op.weights()
        if pick(weight)
    ]
