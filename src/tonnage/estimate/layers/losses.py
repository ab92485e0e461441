"""How frameworks write the cross entropy of the logits, in the words of a tape."""

from collections.abc import Callable, Sequence
from math import ceil

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


# ---- Log-probabilities of logits that are all there, as reinforcement learning takes them where no kernel fuses the
# product with the head. flash-attn, ops/triton/cross_entropy.py: a logarithm a token stays beside the logits.


def gradient_in_logits(code: Code, logits: Tensor) -> Tensor:
    """veRL without fused kernels (utils/torch_functional.py: logprobs_from_logits, inplace_backward): gradients take
    the place of the logits, which stay in the type of the product.
    """
    return _log_probabilities(code, logits, gradients=0)


def gradients_beside_logits(code: Code, logits: Tensor) -> Tensor:
    """The same with an entropy in the loss (entropy_coeff, calculate_entropy): the compiled entropy keeps the logits
    too (utils/torch_functional.py: entropy_from_logits), so that the gradients of both stand beside them.
    """
    return _log_probabilities(code, logits, gradients=2)


def wide_log_probabilities(code: Code, logits: Tensor) -> Tensor:
    """OpenRLHF (models/actor.py, models/utils.py: log_probs_from_logits): an fp32 copy replaces the logits, and its
    gradients stand beside it.
    """
    wide = code.to(logits, 4)
    code.mark()
    return _log_probabilities(code, wide, gradients=1)


def _log_probabilities(code: Code, logits: Tensor, *, gradients: int) -> Tensor:
    """`gradients`: tensors of the size of the logits that backward makes and sums; 0: they take the logits' place."""
    out, rows = code.new(0, 4, logits.extent), code.new(3, 4, TOKEN)
    storage, elements, width, extent = logits.storage, logits.elements, logits.width, logits.extent

    def derivative(_: object) -> list[Tensor]:
        if not gradients:
            return [Tensor(storage, elements, width, extent, None, True)]
        made = [code.new(elements, width, extent) for _ in range(gradients)]
        code.mark()
        return made[:1]

    code.note("cross_entropy", [out], [logits], [logits, rows], derivative)
    return out


# Tensors of the size of the logits in fp32: at the peak of the forward pass beside both models' logits, kept for
# backward, and made by it. torch 2.13, torch.distributed._tools.mem_tracker.MemTracker over generalized_jsd_loss of
# TRL 1.16 with its beta of 0.5: 68, 28 and 48 bytes a logit.
AT_WORK, KEPT, IN_BACKWARD = 15, 7, 5


def generalized_divergence(code: Code, logits: Tensor) -> Tensor:
    """GKDTrainer (TRL, trl/experimental/gkd/gkd_trainer.py: generalized_jsd_loss): student's and teacher's logits in
    fp32, as accelerate hands them out, their logarithms, the mixture of both and two divergences.
    """
    wide = code.to(logits, 4)
    shape = wide.elements, wide.width, wide.extent
    teacher = code.like(wide)
    at_work = [code.like(wide) for _ in range(AT_WORK)]
    code.mark()
    del at_work
    kept, out = [code.like(wide) for _ in range(KEPT)], code.new(0, 4, wide.extent)
    code.mark()
    del teacher

    def derivative(_: object) -> list[Tensor]:
        made = [code.new(*shape) for _ in range(IN_BACKWARD)]
        code.mark()
        return made[:1]

    code.note("generalized_divergence", [out], [wide], list(kept), derivative)
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
    "gradient in logits": gradient_in_logits,
    "gradients beside logits": gradients_beside_logits,
    "wide log-probabilities": wide_log_probabilities,
    "generalized divergence": generalized_divergence,
}


TOKENS, LOGITS = (
    4096,
    32768,
)  # TOKEN_CHUNK_SIZE; trl/trainer/utils.py: _CHUNKED_LOGPROB_CHUNK_SIZE, and VOCAB_CHUNK_SIZE

# ---- How TRL takes its losses: by tiles of tokens and of the vocabulary, whose logits are never held all at once.
#
# Sources: TRL 1.16, trl/kernels/chunked_logprob.py (ChunkedLogProbFunction: DPO and GRPO),
# trl/kernels/chunked_divergence.py (ChunkedDivergenceFunction: distillation), both as they run on a GPU with Triton,
# and
# trl/trainer/utils.py (add_fused_lm_head), which reads the head's weight without calling the head. Backward computes
# each
# tile again and sums gradients in fp32. TRL scores the tokens of completions alone; here, as everywhere, a row is
# full of
# them.

TILE = Extent("tile", "gathered")
Shape = tuple[float, float, Extent]
Loss = Callable[[Code, Tensor, Sequence[Held], float], Tensor]


def log_probabilities(code: Code, x: Tensor, held: Sequence[Held], _: float) -> Tensor:
    """ChunkedLogProbFunction: one buffer of a tile, in the type of the product."""
    weights = [code.weight(*each[:3]) for each in held]
    rows, width = _scored(code, x), code.types.compute
    tiles = _Tiles(code, rows, weights)
    buffers = [(LOGITS, width, TILE), *tiles.chunk(rows.elements)]
    # the largest logit, sums of exponents, of logits and of squares, the largest before the target, the target's:
    # whether asked for or not
    sums, targets = code.new(7, 4), code.new(1, 8)
    tiles.pass_by([*buffers, *tiles.slices(rows.elements, tiles.first[:1])])
    results, chosen = code.new(2, 4), code.new(1, 4)  # log_z and entropy stay
    code.mark()
    del sums, chosen

    def derivative(_: object) -> list[Tensor | None]:
        # a slice of the head is let go of when the next one is made
        at_work, at_end = (tiles.slices(tiles.hidden, each) for each in (tiles.first, tiles.last))
        return tiles.gradients([[*buffers, *at_work]], [*buffers, *at_end])

    out = code.new(0, 4)
    code.note("chunked_logprob", [out], [rows, *weights], [rows, targets, results], derivative)
    return out


def divergence(code: Code, x: Tensor, held: Sequence[Held], teacher: float) -> Tensor:
    """ChunkedDivergenceFunction: a tile of the student's and one of the teacher's, both fp32. `teacher`: numbers of
    its hidden states.
    """
    weights = [code.weight(*each[:3]) for each in held]
    states = code.new(teacher, x.width)  # of the teacher's backbone; they have a name until the loss is there
    rows, of_teacher, width = _scored(code, x), code.new(teacher, x.width), code.types.compute
    tiles = _Tiles(code, rows, weights)
    buffers = [(LOGITS, 4, TILE), (LOGITS, 4, TILE), *tiles.chunk(rows.elements), *tiles.chunk(teacher)]
    widest = tiles.slices(max(rows.elements, teacher), tiles.first[:1])  # of either head, one after the other
    sums = code.new(9, 4)
    tiles.pass_by([*buffers, *widest])
    results = code.new(3, 4)  # both log_z, and the divergence
    code.mark()
    del sums, states

    def derivative(_: object) -> list[Tensor | None]:
        # the student's gradients, as narrow as the product: those of one tile are let go of when the next one's are
        # made
        first, last = ([(each, width, TILE) for each in found if width != 4] for found in (tiles.first, tiles.last))
        return tiles.gradients([[*buffers, *first], [*buffers, *first[:1], *widest]], [*buffers, *last])

    out = code.new(0, 4)
    code.note("chunked_divergence", [out], [rows, *weights], [rows, of_teacher, results], derivative)
    return out


class _Tiles:
    """The tiles of a vocabulary: `first`, logits of the first two, `last`, of the last one. Sizes alone, which hold
    no tensor.
    """

    def __init__(self, code: Code, rows: Tensor, weights: Sequence[Tensor]):
        self.code, self.hidden, self.width = code, rows.elements, rows.width
        self.head = weights[0].width, weights[0].extent
        vocabulary = weights[0].elements / rows.elements
        self.last = [vocabulary - LOGITS * (ceil(vocabulary / LOGITS) - 1)]
        self.first = ([LOGITS] * ceil(vocabulary / LOGITS - 1) + self.last)[:2]
        self.asked = [
            (rows.elements, rows.width, rows.extent),
            *((each.elements, each.width, each.extent) if each.slot is not None else None for each in weights),
        ]

    def chunk(self, hidden: float) -> list[Shape]:
        """The hidden states of a tile's tokens, cast."""
        width = self.code.types.compute
        return [] if self.width == width else [(hidden, width, TILE)]

    def slices(self, hidden: float, tiles: Sequence[float]) -> list[Shape]:
        """A head's rows of these tiles, cast."""
        (own, extent), width = self.head, self.code.types.compute
        return [] if own == width else [(each * hidden, width, extent) for each in tiles]

    def pass_by(self, shapes: Sequence[Shape]) -> None:
        """A moment with these, which are gone after it."""
        held = [self.code.new(*each) for each in shapes]
        self.code.mark()
        del held

    def gradients(self, moments: Sequence[Sequence[Shape]], end: Sequence[Shape]) -> list[Tensor | None]:
        """Summed in fp32 beside what each of the `moments` has; narrower ones are cast beside what is held at the
        `end`.
        """
        new = self.code.new
        sums = [new(each[0], 4, each[2]) if each else None for each in self.asked]
        for each in moments:
            self.pass_by(each)
        held = [new(*each) for each in end]
        made = [new(*each) if each and each[1] != 4 else whole for each, whole in zip(self.asked, sums, strict=True)]
        self.code.mark()
        del held
        return made


def _scored(code: Code, x: Tensor) -> Tensor:
    """hidden_states[:, :-1][mask], a copy of the positions that have a label: backward fills zeros with their
    gradients, twice.
    """
    shape = x.elements, x.width, x.extent
    cut, rows, mask = x.alias(), code.like(x), code.new(1, 1)
    code.note("slice", [cut], [x], [], lambda _: [code.new(*shape)])
    code.note("index", [rows], [cut], [mask], lambda _: [code.new(*shape)])
    return rows


# ---- which objective has which ----

CONTRASTIVE = "contrastive"


def contrastive(code: Code, x: Tensor) -> Tensor:
    """Scores of embeddings against those of the batch: one state a sequence is read, and its gradient fills those of
    all tokens (sentence-transformers, losses/MultipleNegativesRankingLoss.py; sentence_transformers/models/Pooling.py).
    Embeddings and scores themselves are small beside a sequence's states.
    """
    shape = x.elements, x.width, x.extent
    out = code.new(0, 4, x.extent)
    code.note("pooling", [out], [x], [x], lambda _: [code.new(*shape)])
    return out


LOG_PROBABILITIES = "log-probabilities"
TILED: dict[str, Loss] = {LOG_PROBABILITIES: log_probabilities, "divergence": divergence}
# Objectives whose loss is of log-probabilities, which tools compute of logits that are all there: PPO's always.
HOLD_LOGITS = ("dpo", "online-dpo", "grpo", "dapo", "rloo", "ppo")
KINDS = {
    CONTRASTIVE: CONTRASTIVE,
    **dict.fromkeys(HOLD_LOGITS[:-1], LOG_PROBABILITIES),
    "distillation": "divergence",
    "gkd": "divergence",
}
# Objectives whose usual trainer holds all logits, and their loss then.
WHOLE = {"gkd": "generalized divergence"}
