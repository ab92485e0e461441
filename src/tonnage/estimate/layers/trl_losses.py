"""How TRL takes its losses: by tiles of tokens and of the vocabulary, whose logits are never held all at once.

Sources: TRL 1.16, trl/kernels/chunked_logprob.py (ChunkedLogProbFunction: DPO and GRPO),
trl/kernels/chunked_divergence.py (ChunkedDivergenceFunction: distillation), both as they run on a GPU with Triton, and
trl/trainer/utils.py (add_fused_lm_head), which reads the head's weight without calling the head. Backward computes each
tile again and sums gradients in fp32. TRL scores the tokens of completions alone; here, as everywhere, a row is full of
them.
"""

from collections.abc import Callable, Sequence
from math import ceil

from tonnage.tape import Code, Extent, Held, Tensor

TOKENS, LOGITS = (
    4096,
    32768,
)  # TOKEN_CHUNK_SIZE; trl/trainer/utils.py: _CHUNKED_LOGPROB_CHUNK_SIZE, and VOCAB_CHUNK_SIZE
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

TILED: dict[str, Loss] = {"log-probabilities": log_probabilities, "divergence": divergence}
KINDS = {"dpo": "log-probabilities", "grpo": "log-probabilities", "distillation": "divergence"}
