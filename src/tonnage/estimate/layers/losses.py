"""How frameworks write the cross entropy of the logits, in the words of a tape."""

from collections.abc import Sequence

from tonnage.tape import TOKEN, Code, Extent, Held, Tensor


def upcast(code: Code, logits: Tensor) -> Tensor:
    """ForCausalLMLoss: the logits in fp32, log_softmax, nll_loss. The function's own name holds the fp32 copy until
    it is done.
    """
    wide = code.to(logits, 4)
    logarithms = code.log_softmax(wide)
    code.mark()
    del wide
    return code.chosen(logarithms)


def shifted(code: Code, logits: Tensor) -> Tensor:
    """As `upcast`, on a copy of all positions but the last; the fp32 logits have a name too."""
    wide = code.to(logits, 4)
    copied = code.copy(code.parts(wide, [wide.elements], as_split=False)[0])
    logarithms = code.log_softmax(copied)
    code.mark()
    del wide, copied
    return code.chosen(logarithms)


def vocabulary_parallel(code: Code, logits: Tensor) -> Tensor:
    """Megatron's vocab_parallel_cross_entropy: an fp32 copy that becomes the softmax and then, in place, the
    gradient.
    """
    wide = code.to(logits, 4)
    code.mark()
    return code.in_place(wide)


def loss_parallel(code: Code, logits: Tensor) -> Tensor:
    """DTensor's (torch, distributed/tensor/parallel/loss.py): shifted logits and their exponents; in backward zeros,
    exponents, a sum and a product.
    """
    wide = code.to(logits, 4)
    result = code.like(wide)
    inner = code.like(wide)
    code.mark()
    shape, slot = (wide.elements, wide.width, wide.extent), wide.slot
    saved_result = result.alias()
    del inner
    out = code.new(0, 4, wide.extent)

    def derivative(_: object) -> list[Tensor]:
        held = [code.new(*shape) for _ in range(2)]
        output = code.new(*shape)
        code.mark()
        del held
        return [output]

    code.note("loss_parallel", [out], [wide], [saved_result], derivative)
    del slot
    return out


def compiled(code: Code, logits: Tensor) -> Tensor:
    """Compiled, the upcast is part of the kernel: the logits and their gradient stay as narrow as they are, with a
    number a token.
    """
    out, rows = code.new(0, 4, logits.extent), code.new(2, 4, TOKEN)
    shape = logits.elements, logits.width, logits.extent
    code.note("cross_entropy", [out], [logits], [logits, rows], lambda _: [code.new(*shape)])
    return out


def chunked(code: Code, x: Tensor, hidden: float) -> Tensor:
    """torchtitan's ChunkedLossWrapper: the hidden states, whole on every tensor rank, and their gradient in fp32
    beside the chunk at work.
    """
    own = getattr(code, "own", None)
    extent = Extent("token", "gathered") if own and own.tensor_parallel else x.extent
    states, gradient = code.new(hidden, x.width, extent), code.new(hidden, 4, extent)
    shape = x.elements, x.width, x.extent
    code.note("chunks", [states], [x], [states, gradient], lambda _: [code.new(*shape)])
    return states


def sharded(code: Code, logits: Tensor) -> Tensor:
    """nanotron's sharded_cross_entropy: shifted logits become the softmax and then, in place, the gradient."""
    wide = code.to(logits, 4)
    softmax = code.like(wide)
    code.mark()
    out = code.new(0, 4, wide.extent)
    storage, elements, width, extent = softmax.storage, wide.elements, wide.width, wide.extent
    code.note(
        "sharded_cross_entropy",
        [out],
        [wide],
        [softmax],
        lambda _: [Tensor(storage, elements, width, extent, None, True)],
    )
    return out


def output_chunks(code: Code, logits: Tensor, parts: float) -> Tensor:
    """torchtune's CEWithChunkedOutputLoss: all logits stay, and are upcast part by part; of each its log_softmax stays
    in fp32.

    `parts`: all tokens over those of the largest part.
    """
    part = code.new(logits.elements / parts, 4, logits.extent)
    logarithms = code.like(logits, 4)
    code.mark()
    del part
    return _part_by_part(code, logits, [logits, logarithms], [4, 4], parts)


def output_chunks_compiled(code: Code, logits: Tensor, parts: float) -> Tensor:
    """The same, each part's upcast and cross entropy being one kernel: only the logits stay."""
    return _part_by_part(code, logits, [logits], [logits.width], parts)


def _part_by_part(code: Code, logits: Tensor, saved: list[Tensor], widths: list[float], parts: float) -> Tensor:
    """Gradients take the place of their part of the logits, one part late."""
    out = code.new(0, 4, logits.extent)
    storage, elements, width, extent = logits.storage, logits.elements, logits.width, logits.extent
    ahead: list[Tensor] = []

    def derivative(_: object) -> list[Tensor]:
        held = [code.new(elements / parts, each, extent) for each in widths]
        code.mark()
        ahead.append(held.pop())
        del held
        return [Tensor(storage, elements, width, extent, None, True)]

    code.note("cross_entropy", [out], [logits], saved, derivative)
    return out


def liger(code: Code, x: Tensor, held: Sequence[Held], part: float) -> Tensor:
    """LigerFusedLinearCrossEntropy: products with the head, part by part, whose gradients are made at once and wait for
    backward.

    `part`: logits of the part at work, of which autocast has a copy of the head besides, for each token of all parts.
    """
    weights = [code.weight(*tensor[:3]) for tensor in held]
    width = code.types.compute
    gradient = code.like(x)
    shapes = [(tensor.elements, tensor.width, tensor.extent) if tensor.slot is not None else None for tensor in weights]
    sums = [code.new(*shape) if shape else None for shape in shapes]
    casts = [
        code.new(tensor.elements, width, tensor.extent)
        for tensor in weights
        if code.types.autocast and tensor.width != width
    ]
    logits = code.new(part, width, Extent("token", "gathered"))
    code.mark()
    del logits, casts
    saved = [
        tensor and (tensor.storage, tensor.elements, tensor.width, tensor.extent, None, True)
        for tensor in (gradient, *sums)
    ]
    out = code.new(0, 4, x.extent)
    code.note(
        "fused_linear_cross_entropy",
        [out],
        [x, *weights],
        [gradient, *sums],
        lambda _: [tensor and Tensor(*tensor) for tensor in saved],
    )
    return out


UPCAST_IN_MODEL = ("shifted in the model",)  # the model gives logits in fp32, and their 16-bit original goes
# Others are added by the frameworks that have them.
FUSED = {"liger": liger}
IN_PARTS = {
    "output-chunks": output_chunks,
    "output-chunks-compiled": output_chunks_compiled,
}  # of logits that are all there
LOSSES = {
    "upcast": upcast,
    "shifted": shifted,
    "shifted in the model": shifted,
    "cross-entropy": upcast,
    "vocabulary-parallel": vocabulary_parallel,
    "loss-parallel": loss_parallel,
    "compiled": compiled,
    "sharded": sharded,
}
