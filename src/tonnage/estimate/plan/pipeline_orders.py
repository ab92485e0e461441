"""Orders of a pipeline's schedules that are no 1F1B, played out: GPipe, and those that split the backward pass,
interleaved or in a V.

In the middle of GPipe's there is no period that could be left out, so that a step of a few micro-batches stands for one
of many: its bubble is a larger part of it. What others wait for is the same for any number of micro-batches from a few
times the stages on, and `estimate.plan.schedule` takes it from here, with numbers or with arrays of plans. The orders
are PyTorch's (torch/distributed/pipelining/schedules.py), and tests/estimate/plan/test_pipeline_orders.py holds them
to it.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import accumulate
from itertools import count as counted
from typing import NamedTuple

from msgspec.structs import replace

from tonnage.estimate.plan.pipeline_boxes import (
    BACKWARD,
    DRAWN,
    FORWARD,
    SHOWN,
    Box,
    PipelineBoxes,
    StepSeconds,
    later,
    microbatches_per_round,
    pipeline_boxes,
)
from tonnage.kernel.formula import Number, maximum

INPUTS, WEIGHTS = "gradients of inputs", "gradients of weights"


# ---- Orders of schedules in the shape of a V: each rank has a stage on the way down and one on the way up, so that the
# first rank has both ends.
#
# They are PyTorch's (torch/distributed/pipelining/schedules.py: ScheduleZBVZeroBubble, ScheduleDualPipeV), and
# tests/estimate/plan/test_pipeline_orders.py holds them to it.


class Pass(NamedTuple):
    """What is done with one micro-batch on one of the model's chunks, `part`: counted through all stages."""

    kind: str
    part: int
    microbatch: int


Together = tuple[Pass, ...]  # passes that a rank runs as one: what they make is there when all are done


class _Rank:
    """Micro-batches that one rank takes, each kind of pass on each of its two stages in their order."""

    def __init__(self, rank: int, stages: int):
        self.down, self.up = rank, 2 * stages - 1 - rank
        self._there: defaultdict[int, Iterator[int]] = defaultdict(counted)
        self._back: defaultdict[int, Iterator[int]] = defaultdict(counted)
        self._waiting: deque[Pass] = deque()

    def forward(self, part: int) -> Pass:
        return Pass(FORWARD, part, next(self._there[part]))

    def backward(self, part: int) -> Pass:
        return Pass(BACKWARD, part, next(self._back[part]))

    def inputs(self, part: int) -> Pass:
        input_pass = Pass(INPUTS, part, next(self._back[part]))
        self._waiting.append(input_pass)
        return input_pass

    def weights(self, part: int | None = None) -> Pass:
        """Of the input gradients that have waited longest, of one stage or of both."""
        weight_pass = next(waiting for waiting in self._waiting if part in (None, waiting.part))
        self._waiting.remove(weight_pass)
        return weight_pass._replace(kind=WEIGHTS)


def zbv(rank: int, stages: int, chunks: int, count: int) -> Iterator[Together]:
    """Forward of as many micro-batches as fill the V, then one of each pass on each stage; weights fill the end."""
    assert chunks == 2, chunks
    # With few micro-batches the order is that of enough to fill the V, without those that are not there.
    return (
        (single,)
        for single in _filled(_Rank(rank, stages), rank, stages, max(2 * stages - 1, count))
        if single.microbatch < count
    )


def _filled(at: _Rank, rank: int, stages: int, count: int) -> Iterator[Pass]:
    down, up = at.down, at.up
    for _ in range(2 * (stages - rank) - 1):
        yield at.forward(down)
    for _ in range(rank):
        yield at.forward(up)
        yield at.forward(down)
    for _ in range(stages - rank):
        yield from (at.forward(up), at.inputs(up), at.weights(up))
    ahead = 2 * stages - rank - 1  # are forward on the way down by now
    for turn in range(count - stages):
        if ahead + turn < count:
            yield at.forward(down)
        yield from (at.inputs(down), at.weights(down), at.forward(up), at.inputs(up), at.weights(up))
    for _ in range(rank):
        yield from (at.inputs(down), at.inputs(up))
    for _ in range(stages - rank):
        yield from (at.inputs(down), at.weights(down))
    for part in (up, down):
        yield from (at.weights(part) for _ in range(rank))


def dualpipev(rank: int, stages: int, chunks: int, count: int) -> Iterator[Together]:
    """Forward on one stage together with backward on the other; weights by themselves where others would wait."""
    assert chunks == 2 and count >= 2 * stages, (chunks, count)
    at, after = _Rank(rank, stages), stages - rank - 1
    down, up = at.down, at.up
    for _ in range(2 * after):
        yield (at.forward(down),)
    for _ in range(rank + 1):
        yield (at.forward(down),)
        yield (at.forward(up),)
    for _ in range(after):
        yield (at.inputs(up),)
        yield (at.weights(),)
        yield (at.forward(up),)
    for turn in range(count - 2 * stages + rank + 1):
        pair = (at.forward(down), at.backward(up))
        yield from (
            [(single,) for single in pair] if turn == 0 and not after else [pair]
        )  # apart, so that nobody waits for both
        yield (at.forward(up), at.backward(down))
    for _ in range(after):
        yield (at.backward(up),)
        yield (at.forward(up), at.backward(down))
    for turn in range(2 * (rank + 1)):
        back = at.backward if turn <= rank else at.inputs
        yield (back(down if turn % 2 else up),)
    for _ in range(after):
        yield (at.weights(),)
        yield (at.inputs(down),)
    for _ in range(rank + 1):
        yield (at.weights(),)


FEW = 8  # micro-batches at least that are drawn of a schedule without a period
DRAWN_ROUNDS = 3  # of as many micro-batches as stages: two fill and drain a pipeline, one is between


def gpipe(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """All micro-batches forward, then all back."""
    assert chunks == 1, stages
    yield from (Pass(FORWARD, rank, number) for number in range(count))
    yield from (Pass(BACKWARD, rank, number) for number in range(count))


def interleaved_1f1b(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """Forward passes until the first gradient may come, then one of each, then the rest; PyTorch's rounds need no
    multiple of the stages.
    """
    per_round = microbatches_per_round(count, stages)
    total = count * chunks
    ahead = min((chunks - 1) * per_round + 2 * (stages - 1 - rank), total)
    there = list(_turns(per_round, chunks, count))
    forward = [Pass(FORWARD, chunk * stages + rank, number) for chunk, number in there]
    back = [Pass(BACKWARD, (chunks - 1 - chunk) * stages + rank, number) for chunk, number in there]
    yield from forward[:ahead]
    for turn, one in enumerate(back):
        yield from forward[ahead + turn : ahead + turn + 1]
        yield one


def interleaved_zero_bubble(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """1F1B with the gradients of weights held back by as many passes as there are stages before."""
    per_round = microbatches_per_round(count, stages)
    total = count * chunks
    ahead = min((chunks - 1) * per_round + stages - 1 - rank, total)
    there = list(_turns(per_round, chunks, count))
    forward = [Pass(FORWARD, chunk * stages + rank, number) for chunk, number in there]
    back = [(((chunks - 1 - chunk) * stages) + rank, number) for chunk, number in there]
    yield from forward[:ahead]
    for turn in range(total):
        yield from forward[ahead + turn : ahead + turn + 1]
        yield Pass(INPUTS, *back[turn])
        if turn >= rank:
            yield Pass(WEIGHTS, *back[turn - rank])
    yield from (Pass(WEIGHTS, *one) for one in back[max(total - rank, 0) :])


def zb_h1(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """1F1B whose gradients of weights wait, on each rank as many as ranks are before it."""
    return _held_back(rank, chunks, count, stages - 1 - rank, rank)


def zb_h2(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """The same with twice as many forward passes ahead and twice as many gradients of weights that wait, which fill
    the beginning of a step too (Qi2024, sec. 2).
    """
    return _held_back(rank, chunks, count, 2 * (stages - 1 - rank), 2 * rank)


def _held_back(rank: int, chunks: int, count: int, ahead: int, waiting: int) -> Iterator[Pass]:
    assert chunks == 1, chunks
    ahead = min(ahead, count)
    yield from (Pass(FORWARD, rank, number) for number in range(ahead))
    for number in range(count):
        if ahead + number < count:
            yield Pass(FORWARD, rank, ahead + number)
        yield Pass(INPUTS, rank, number)
        if number >= waiting:
            yield Pass(WEIGHTS, rank, number - waiting)
    yield from (Pass(WEIGHTS, rank, number) for number in range(max(count - waiting, 0), count))


def _turns(per_round: int, chunks: int, count: int) -> Iterator[tuple[int, int]]:
    """Chunk and micro-batch of each turn: a round of micro-batches through one chunk, then through the next."""
    for first in range(0, count, per_round):
        for chunk in range(chunks):
            yield from ((chunk, number) for number in range(first, first + per_round))


def _order(schedule: str, rank: int, stages: int, chunks: int, count: int) -> Iterator[Together]:
    """What a rank does, one after the other."""
    if schedule in IN_A_V:
        return IN_A_V[schedule](rank, stages, chunks, count)
    return ((single,) for single in ALONE[schedule](rank, stages, chunks, count))


ALONE = {
    "gpipe": gpipe,
    "interleaved-1f1b": interleaved_1f1b,
    "interleaved-zero-bubble": interleaved_zero_bubble,
    "zb-h1": zb_h1,
    "zb-h2": zb_h2,
}
# DualPipe is walked as the V that one half of its ranks is (estimate.plan.schedule: as_walked).
IN_A_V = {"zbv": zbv, "dualpipev": dualpipev, "dualpipe": dualpipev}
DUAL = ("dualpipev", "dualpipe")
# Ranks update their weights as soon as they are done, and begin the next step one after the other.
STAGGERED = ("zb-h2",)
# Those that have a period: rounds of as many micro-batches as stages that are played out for the time of a step, and
# micro-batches at least.
PERIODIC = {
    "interleaved-1f1b": (3, 0),
    "interleaved-zero-bubble": (2, 0),
    "zb-h1": (3, 0),
    "zb-h2": (4, 0),
    "zbv": (4, 32),
    "dualpipev": (3, 0),
    "dualpipe": (3, 0),
}
ORDERS = tuple(dict.fromkeys((*DRAWN, *ALONE, *IN_A_V)))  # schedules that are played out: all that a runtime has


def played(step: StepSeconds) -> tuple[PipelineBoxes, bool]:
    """The boxes of a step, and whether they are those of a step of fewer micro-batches."""
    if step.schedule in DRAWN:
        return pipeline_boxes(step), False
    stages, count, fewer = len(step.stages), step.num_microbatches, step.schedule not in PERIODIC
    shown = min(-(-FEW // stages) * stages, count) if fewer else shown_of(step)
    boxes = _simulated(replace(step, num_microbatches=shown))
    end, skipped = max(box.end for box in boxes), count - shown
    cut, gap = end, 0.0
    if skipped and not fewer:
        cut = (shown / 2 - stages / 6) * step.slowest  # the pipeline fills sooner than it drains
        takes = [tuple(_seconds(step, rank, kind) for kind in (FORWARD, INPUTS, WEIGHTS)) for rank in range(stages)]
        gap = float(periodic_seconds(step.schedule, step.chunks, count, takes, until_all_end=True)) - end
        boxes = [later(box, skipped, gap) if box.start >= cut else box for box in boxes]
    names, lengths = [name for name, _ in step.after], [seconds for _, seconds in step.after]
    starts = list(accumulate(lengths, initial=end + gap))
    boxes += [
        Box(rank, name, start, seconds)
        for rank in range(stages)
        for name, start, seconds in zip(names, starts, lengths, strict=False)
        if seconds
    ]
    if step.schedule == "dualpipe":
        boxes, skipped = _both_halves(boxes, stages, count), 2 * skipped
    drawing = PipelineBoxes(
        boxes=tuple(boxes), pipeline=end + gap, seconds=starts[-1], skipped=skipped, cut=cut, gap=gap
    )
    return drawing, fewer and skipped > 0


def _both_halves(boxes: list[Box], half: int, count: int) -> list[Box]:
    """The boxes of all ranks of DualPipe, of those of its first `half`: what comes up the V there is a micro-batch of
    the other direction, of which each has `count`; a rank's chunks are its stages of the two directions.
    """
    drawn = []
    for box in boxes:
        for rank, direction in ((box.stage, box.chunk), (2 * half - 1 - box.stage, 1 - box.chunk)):
            if box.microbatch < 0:
                drawn.append(replace(box, stage=rank))
            else:
                drawn.append(replace(box, stage=rank, chunk=direction, microbatch=box.microbatch + direction * count))
    return drawn


def shown_of(step: StepSeconds) -> int:
    """Micro-batches that are drawn: as of 1F1B, what fills and drains the pipeline, and a period between."""
    return _several(step.schedule, len(step.stages), step.num_microbatches, DRAWN_ROUNDS, SHOWN)


def enough(schedule: str, stages: int, count: int) -> int:
    """Micro-batches, of `count`, after which each one more takes what it takes the slowest rank."""
    return _several(schedule, stages, count, *PERIODIC[schedule])


def _several(schedule: str, stages: int, count: int, rounds: int, least: int) -> int:
    per_round = microbatches_per_round(count, stages) if schedule in ALONE else 1
    return min(-(-max(least, rounds * max(per_round, stages)) // per_round) * per_round, count)


def periodic_seconds(
    schedule: str,
    chunks: int,
    count: Number,
    stages: Sequence[Sequence[Number]],
    played: int | None = None,
    *,
    until_all_end: bool = False,
) -> Number:
    """As `pipeline_seconds`, of a schedule that has a period: of many micro-batches only as many are played out as it
    takes (`played`, if known).

    That is exact where ranks are alike, or one slower by a tenth, as the one with both ends of the model is. Where
    several are nearly the slowest they may wait for each other less the longer the step, and it comes out too long, by
    less than 2 %: never too short.
    """
    few = played or enough(schedule, len(stages), count)
    slowest = reduce(maximum, (sum(stage) for stage in stages))
    return pipeline_seconds(schedule, chunks, few, stages, until_all_end=until_all_end) + (count - few) * slowest


def pipeline_seconds(
    schedule: str, chunks: int, count: int, stages: Sequence[Sequence[Number]], *, until_all_end: bool = False
) -> Number:
    """Seconds until all is done; where ranks begin steps one after the other, of the rank that takes longest, unless
    `until_all_end`. `stages`: forward, gradients of inputs and of weights of one micro-batch through each rank, all
    chunks; numbers, or arrays with one entry per plan.
    """
    takes = [
        {FORWARD: there / chunks, INPUTS: back / chunks, WEIGHTS: weights / chunks, BACKWARD: (back + weights) / chunks}
        for there, back, weights in stages
    ]
    free: list[Number] = [0.0] * len(stages)
    ends: dict[int, Number] = {}
    begun: dict[int, Number] = {}
    for place, task in enumerate(tasks(schedule, len(stages), chunks, count)):
        rank, start = task.rank, free[task.rank]
        if task.needed >= 0:  # arrays that nobody waits for any more are not kept
            start = maximum(start, ends.pop(task.needed) if task.is_last else ends[task.needed])
        begun.setdefault(rank, start)
        free[rank] = start + takes[rank][task.each.kind]
        if task.is_needed:
            ends[place] = free[rank]
    if schedule in STAGGERED and not until_all_end:
        free = [end - begun[rank] for rank, end in enumerate(free)]
    return reduce(maximum, free)


class Task(NamedTuple):
    """A pass, and the place among a step's tasks of the one that it waits for (-1: none); `is_last` of those that
    wait for that one.
    """

    rank: int
    each: Pass
    needed: int
    is_last: bool
    is_needed: bool


@lru_cache(maxsize=128)
def tasks(schedule: str, stages: int, chunks: int, count: int) -> tuple[Task, ...]:
    """All passes of a step, of each rank in its order, and each behind what it needs."""
    orders = [list(_order(schedule, rank, stages, chunks, count)) for rank in range(stages)]
    last, done, at = stages * chunks - 1, dict[Pass, int](), [0] * stages
    made: list[tuple[int, Pass, int]] = []
    while any(at[rank] < len(orders[rank]) for rank in range(stages)):
        before = len(made)
        for rank, order in enumerate(orders):
            while at[rank] < len(order):
                together = order[at[rank]]
                needed = [
                    -1 if (what := _needed(current, last)) is None else done.get(what, -2) for current in together
                ]
                if -2 in needed:
                    break
                made += [(rank, current, place) for current, place in zip(together, needed, strict=True)]
                for current in together:  # there when all of them are done
                    if current.kind != WEIGHTS:
                        done[_made(current)] = len(made) - 1
                at[rank] += 1
        assert len(made) > before, "stages wait for each other"
    waits = {needed: place for place, (_, _, needed) in enumerate(made)}
    return tuple(
        Task(rank, current, needed, waits[needed] == place, place in waits)
        for place, (rank, current, needed) in enumerate(made)
    )


def _simulated(step: StepSeconds) -> list[Box]:
    """Each stage takes its passes in their order, each as soon as what it needs is there; what a stage sends keeps
    it busy.
    """
    stages, chunks = len(step.stages), step.chunks
    free, boxes = [0.0] * stages, list[Box]()
    for rank, current, needed, *_ in tasks(step.schedule, stages, chunks, step.num_microbatches):
        start = max(free[rank], boxes[needed].end if needed >= 0 else 0.0)
        boxes.append(
            Box(
                rank,
                current.kind,
                start,
                _seconds(step, rank, current.kind) / chunks,
                current.microbatch,
                current.part // stages,
            )
        )
        free[rank] = boxes[-1].end
    return boxes


def _made(current: Pass) -> Pass:
    """What others wait for: of a backward pass in one piece, as of one in two, the gradients of inputs."""
    return current._replace(kind=INPUTS) if current.kind == BACKWARD else current


def _needed(current: Pass, last: int) -> Pass | None:
    """What has to be done before a pass; None where its own stage has it."""
    if current.kind == FORWARD:
        return current._replace(part=current.part - 1) if current.part else None
    if current.kind == WEIGHTS or current.part == last:
        return None
    return Pass(INPUTS, current.part + 1, current.microbatch)


def _seconds(step: StepSeconds, rank: int, kind: str) -> float:
    """Of a pass through all chunks of a stage, with what it hands on."""
    stage, handed = step.stages[rank], step.between / 2
    if kind == FORWARD:
        return stage.there + handed
    if kind == WEIGHTS:
        return stage.weights
    return stage.back + handed - (stage.weights if kind == INPUTS else 0.0)
