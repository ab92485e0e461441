"""Wiring of a layer's sublayers: which of them read the residual stream, and what is added to it."""

from tonnage.architectures._model import Block
from tonnage.ops import MLP, MoE, Norm, Op, Parameter
from tonnage.tape import Code, Tensor


def run(block: Block, code: Code, x: Tensor) -> Tensor:
    """Run one layer: each sublayer's output is added to the residual stream.

    A norm after a sublayer belongs to it if another norm follows, or if the layer begins without one. Sublayers without
    a norm between them, and those of a layer whose second norm keeps nothing of its own, read the stream in parallel.
    """
    chains = _chains(block)
    parallel = any(isinstance(op, Norm) and not op.keeps for op in block.ops)
    if parallel:
        return _beside(code, x, chains)
    if _normalises_sums(block):
        return _summed_first(code, x, chains)
    at = next((i for i, (_, mixers, _) in enumerate(chains) if isinstance(mixers[0], MoE) and i > 1), None)
    if at is not None and isinstance(chains[at - 1][1][0], MLP):
        x = _run(code, x, chains[: at - 1])
        return _feed_beside_mixture(code, x, chains[at - 1], chains[at])
    return _run(code, x, chains)


def _run(code: Code, x: Tensor, chains: list[list[list[Op]]]) -> Tensor:
    for chain in chains:
        x = _sublayer(code, x, chain)
    return x


def _feed_beside_mixture(code: Code, x: Tensor, dense: list[list[Op]], mixed: list[list[Op]]) -> Tensor:
    """Gemma 4: a feed-forward and a mixture read the same stream, each with norms of its own, and one norm follows
    their sum. The router reads the stream through a norm without weights and a learned scale.
    """
    mixture, after = mixed[1][0], mixed[2]
    assert isinstance(mixture, MoE)
    y = _through(code, _through(code, _through(code, x, dense[0]), dense[1]), dense[2])
    with code.inside(mixture.router_name):
        read = code.rms_norm(x, None)
        read = code.mapped("mul", code.mul(read, code.weight(mixture.hidden_size, "replicated")))
        chosen = mixture.scores(code, read)
        del read
    z = mixture.experts_out(code, _through(code, x, mixed[0]), chosen)
    y = code.add(y, _through(code, z, after[:1]))
    del z, chosen
    return code.joined(x, _through(code, y, after[1:]))


def _normalises_sums(block: Block) -> bool:
    """Whether the layer is as BERT's, N(x + M(x)): it begins without a norm and ends with a LayerNorm."""
    first, last = block.ops[0], block.ops[-1]
    return not isinstance(first, Norm) and isinstance(last, Norm) and last.kind == "layer"


def _summed_first(code: Code, x: Tensor, chains: list[list[list[Op]]]) -> Tensor:
    for _, mixers, after in chains:
        y = _through(code, x, mixers)
        x = _through(code, code.add(y, x), after)
    return x


def _sublayer(code: Code, x: Tensor, chain: list[list[Op]]) -> Tensor:
    before, mixers, after = chain

    def mixed(x: Tensor) -> Tensor:
        y = _through(code, x, before)
        outs = [code.run(mixer, y) for mixer in mixers]
        del y
        while len(outs) > 1:
            outs = [code.add(outs[0], outs[1]), *outs[2:]]
        return outs.pop()

    return code.joined(x, _through(code, code.sublayer(before, mixers, mixed, x), after))


def _beside(code: Code, x: Tensor, chains: list[list[list[Op]]]) -> Tensor:
    outs = []
    for before, mixers, after in chains:
        y = _through(code, x, before)
        for mixer in mixers:
            y = code.run(mixer, y)
        outs.append(_through(code, y, after))
        del y
    total = outs.pop()
    while outs:
        total = code.add(total, outs.pop())
    return code.add(total, x)


def _through(code: Code, x: Tensor, ops: list[Op]) -> Tensor:
    for op in ops:
        x = code.run(op, x)
    return x


def _chains(block: Block) -> list[list[list[Op]]]:
    """(norms before, mixers, norms after) of each sublayer."""
    ops = [op for op in block.ops if not isinstance(op, Parameter)]
    ends_with_norm = bool(ops) and isinstance(ops[-1], Norm)
    chains: list[list[list[Op]]] = []
    waiting: list[Op] = []
    for op in ops:
        if isinstance(op, Norm):
            waiting.append(op)
            continue
        if chains and ends_with_norm and waiting:
            chains[-1][2].append(waiting.pop(0))
        if chains and not waiting and not chains[-1][2]:
            chains[-1][1].append(op)
            continue
        chains.append([waiting, [op], []])
        waiting = []
    if chains:
        chains[-1][2] += waiting
    return chains
