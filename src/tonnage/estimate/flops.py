"""Arithmetic of one forward pass and of one training step, by kind of layer."""

from tonnage.architectures import Block, Model
from tonnage.breakdown import Term
from tonnage.formula import Number, minimum
from tonnage.formulas import flops as f
from tonnage.ops import Core, Op


def forward_flops(model: Model, tokens: Number, sequence_length: Number) -> Term:
    """FLOP of `tokens` tokens in sequences of `sequence_length` through the language model, head included.

    Towers run on images and sounds, whose number nobody gave: they are left out.
    """
    main = model.decoder
    parts = [
        _layers(block, count, tokens, sequence_length)
        for block, count in zip(main.blocks, main.counts(), strict=True)
        if count
    ]
    loose = [term for op in main.before + main.after for term in _op(op, 1, tokens, sequence_length)]
    return Term.sum("forward", *parts, *loose, unit="FLOP")


def training_flops(model: Model, tokens: Number, sequence_length: Number) -> Term:
    """FLOP of one step forward and backward, without recomputation: what MFU counts."""
    forward = forward_flops(model, tokens, sequence_length)
    passes = Term.of("forward, and backward of twice that", f.passes, x=3)
    return Term.product("model FLOPs of one step", "FLOP", passes, forward)


def _layers(block: Block, count: int, tokens: Number, length: Number) -> Term:
    terms = [term for op in block.ops for term in _op(op, count, tokens, length)]
    products = [term for term in terms if term.formula is f.matrix_flops]
    others = [term for term in terms if term.formula is not f.matrix_flops]
    return Term.sum(f"{block.name}s", Term.sum("matrix products", *products, unit="FLOP"), *others)


def _op(op: Op, count: int, tokens: Number, length: Number) -> list[Term]:
    made = []
    for weight in op.weights():
        if weight.linear:
            made.append(Term.of(weight.name, f.matrix_flops, Na=weight.num_active_parameters * count, T=tokens))
    made += [_core(core, count, tokens, length) for core in op.core()]
    return made


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
