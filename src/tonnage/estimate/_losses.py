"""How frameworks write the cross entropy of the logits, in the words of a tape."""

from tonnage.tape import TOKEN, Code, Extent, Tensor


def upcast(code: Code, logits: Tensor) -> Tensor:
    """ForCausalLMLoss: the logits in fp32, log_softmax, nll_loss. The function's own name holds the fp32 copy until it is done."""
    wide = code.to(logits, 4)
    logarithms = code.log_softmax(wide)
    code.mark()
    del wide
    return code.chosen(logarithms)


def shifted(code: Code, logits: Tensor) -> Tensor:
    """As `upcast`, on a copy of all positions but the last; the fp32 logits have a name too."""
    wide = code.to(logits, 4)
    copied = code.copy(code.parts(wide, [wide.elements], whole=False)[0])
    logarithms = code.log_softmax(copied)
    code.mark()
    del wide, copied
    return code.chosen(logarithms)


def vocabulary_parallel(code: Code, logits: Tensor) -> Tensor:
    """Megatron's vocab_parallel_cross_entropy: an fp32 copy that becomes the softmax and then, in place, the gradient."""
    wide = code.to(logits, 4)
    code.mark()
    return code.in_place(wide)


def loss_parallel(code: Code, logits: Tensor) -> Tensor:
    """DTensor's (torch, distributed/tensor/parallel/loss.py): shifted logits and their exponents; in backward zeros, exponents, a sum and
    a product."""
    wide = code.to(logits, 4)
    result = code.like(wide)
    inner = code.like(wide)
    code.mark()
    shape, slot = (wide.elements, wide.width, wide.extent), wide.slot
    kept = result.alias()
    del inner
    out = code.new(0, 4, wide.extent)

    def derivative(_: object) -> list[Tensor]:
        held = [code.new(*shape) for _ in range(2)]
        made = code.new(*shape)
        code.mark()
        del held
        return [made]

    code.note("loss_parallel", [out], [wide], [kept], derivative)
    del slot
    return out


def compiled(code: Code, logits: Tensor) -> Tensor:
    """Compiled, the upcast is part of the kernel: the logits and their gradient stay as narrow as they are, with a number a token."""
    out, rows = code.new(0, 4, logits.extent), code.new(2, 4, TOKEN)
    shape = logits.elements, logits.width, logits.extent
    code.note("cross_entropy", [out], [logits], [logits, rows], lambda _: [code.new(*shape)])
    return out


def chunked(code: Code, x: Tensor, hidden: float) -> Tensor:
    """torchtitan's ChunkedLossWrapper: the hidden states, whole on every tensor rank, and their gradient in fp32 beside the chunk at work."""
    extent = Extent("token", "gathered") if getattr(code, "own", None) and code.own.tensor_parallel else x.extent  # type: ignore[attr-defined]
    states, gradient = code.new(hidden, x.width, extent), code.new(hidden, 4, extent)
    shape = x.elements, x.width, x.extent
    code.note("chunks", [states], [x], [states, gradient], lambda _: [code.new(*shape)])
    return states


UPCAST_IN_MODEL = ("shifted in the model",)  # the model gives logits in fp32, and their 16-bit original goes
LOSSES = {"upcast": upcast, "shifted": shifted, "shifted in the model": shifted, "cross-entropy": upcast, "vocabulary-parallel": vocabulary_parallel, "loss-parallel": loss_parallel,
          "compiled": compiled}  # fmt: skip
