"""Arithmetic of one forward pass and of one training step, by kind of layer."""

from tonnage.architectures import Block, Model
from tonnage.formulas import flops as f
from tonnage.kernel.formula import Number, minimum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import Core, Op


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
        loose += [term for op in branch.before + branch.after for term in _op(op, 1, tokens, sequence_length)]
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
    head = [term for op in model.decoder.after for term in _op(op, 1, tokens, sequence_length)]
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


def _between(model: Model, first: int, end: int, tokens: Number, length: Number) -> list[Term]:
    """Forward passes of the layers from `first` on, to before `end`."""
    main = model.decoder
    counts = main.counts(first, end) if first < end else [0] * len(main.blocks)
    return [
        term
        for block, count in zip(main.blocks, counts, strict=True)
        if count
        for op in block.ops
        for term in _op(op, count, tokens, length)
    ]


def _products(terms: list[Term]) -> list[Term]:
    return [term for term in terms if term.formula is f.matrix_flops]


def _layers(block: Block, count: int, tokens: Number, length: Number) -> Term:
    terms = [term for op in block.ops for term in _op(op, count, tokens, length)]
    products = [term for term in terms if term.formula is f.matrix_flops]
    others = [term for term in terms if term.formula is not f.matrix_flops]
    return Term.sum(Message("{block}s", block=block.name), Term.sum("matrix products", *products, unit="FLOP"), *others)


def _op(op: Op, count: int, tokens: Number, length: Number) -> list[Term]:
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
