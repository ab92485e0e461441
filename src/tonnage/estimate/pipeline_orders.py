"""Orders of a pipeline's schedules that are no 1F1B, played out: GPipe, and those that split the backward pass, interleaved or in a V.

In the middle of these there is no period that could be left out, so that a step of a few micro-batches stands for one of many: its bubble is a
larger part of it. The orders are PyTorch's (torch/distributed/pipelining/schedules.py), and tests/test_pipeline_orders.py holds them to it.
"""

from collections.abc import Iterator
from itertools import accumulate

from msgspec.structs import replace

from tonnage.estimate.pipeline_boxes import BACKWARD, DRAWN, FORWARD, Box, PipelineBoxes, StepSeconds, pipeline_boxes
from tonnage.estimate.pipeline_v_orders import INPUTS, WEIGHTS, Pass, Together, dualpipev, zbv

FEW = 8  # micro-batches at least that are drawn


def gpipe(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """All micro-batches forward, then all back."""
    assert chunks == 1, stages
    yield from (Pass(FORWARD, rank, number) for number in range(count))
    yield from (Pass(BACKWARD, rank, number) for number in range(count))


def interleaved_zero_bubble(rank: int, stages: int, chunks: int, count: int) -> Iterator[Pass]:
    """1F1B with the gradients of weights held back by as many passes as there are stages before."""
    each = count // max(1, count // stages)
    total = count * chunks
    ahead = min((chunks - 1) * each + stages - 1 - rank, total)
    there = list(_turns(each, chunks, count))
    forward = [Pass(FORWARD, chunk * stages + rank, number) for chunk, number in there]
    back = [(((chunks - 1 - chunk) * stages) + rank, number) for chunk, number in there]
    yield from forward[:ahead]
    for turn in range(total):
        yield from forward[ahead + turn : ahead + turn + 1]
        yield Pass(INPUTS, *back[turn])
        if turn >= rank:
            yield Pass(WEIGHTS, *back[turn - rank])
    yield from (Pass(WEIGHTS, *one) for one in back[max(total - rank, 0) :])


def _turns(each: int, chunks: int, count: int) -> Iterator[tuple[int, int]]:
    """Chunk and micro-batch of each turn: a round of micro-batches through one chunk, then through the next."""
    for first in range(0, count, each):
        for chunk in range(chunks):
            yield from ((chunk, number) for number in range(first, first + each))


def _order(schedule: str, rank: int, stages: int, chunks: int, count: int) -> Iterator[Together]:
    """What a rank does, one after the other."""
    if schedule in IN_A_V:
        return IN_A_V[schedule](rank, stages, chunks, count)
    return ((each,) for each in ALONE[schedule](rank, stages, chunks, count))


ALONE = {"gpipe": gpipe, "interleaved-zero-bubble": interleaved_zero_bubble}
IN_A_V = {"zbv": zbv, "dualpipev": dualpipev}
ORDERS = (*DRAWN, *ALONE, *IN_A_V)  # schedules that are played out: all that a runtime has


def played(step: StepSeconds) -> tuple[PipelineBoxes, bool]:
    """The boxes of a step, and whether they are those of a step of fewer micro-batches."""
    if step.schedule in DRAWN:
        return pipeline_boxes(step), False
    stages, count = len(step.stages), step.num_microbatches
    few = max(FEW, 2 * stages) if step.schedule in IN_A_V else FEW  # as many as there are chunks fill a V
    shown = min(-(-few // stages) * stages, count)
    boxes = _simulated(replace(step, num_microbatches=shown))
    end = max(box.end for box in boxes)
    names, lengths = [name for name, _ in step.after], [seconds for _, seconds in step.after]
    starts = list(accumulate(lengths, initial=end))
    boxes += [Box(rank, name, start, seconds) for rank in range(stages) for name, start, seconds in zip(names, starts, lengths, strict=False) if seconds]  # fmt: skip
    return PipelineBoxes(
        boxes=tuple(boxes), pipeline=end, seconds=starts[-1], skipped=count - shown, cut=end
    ), shown < count


def _simulated(step: StepSeconds) -> list[Box]:
    """Each stage takes its passes in their order, each as soon as what it needs is there; what a stage sends keeps it busy."""
    stages, chunks = len(step.stages), step.chunks
    orders = [list(_order(step.schedule, rank, stages, chunks, step.num_microbatches)) for rank in range(stages)]
    last, done, free, at = stages * chunks - 1, dict[Pass, float](), [0.0] * stages, [0] * stages
    made: list[Box] = []
    while any(at[rank] < len(orders[rank]) for rank in range(stages)):
        before = len(made)
        for rank, order in enumerate(orders):
            while at[rank] < len(order) and all(
                _needed(each, last) in done or _needed(each, last) is None for each in order[at[rank]]
            ):
                together = order[at[rank]]
                for each in together:
                    needed = _needed(each, last)
                    start = max(free[rank], done[needed] if needed else 0.0)
                    seconds = _seconds(step, rank, each.kind) / chunks
                    made.append(Box(rank, each.kind, start, seconds, each.microbatch, each.part // stages))
                    free[rank] = start + seconds
                done |= {_made(each): free[rank] for each in together}
                at[rank] += 1
        assert len(made) > before, "stages wait for each other"
    return made


def _made(each: Pass) -> Pass:
    """What others wait for: of a backward pass in one piece, as of one in two, the gradients of inputs."""
    return each._replace(kind=INPUTS) if each.kind == BACKWARD else each


def _needed(each: Pass, last: int) -> Pass | None:
    """What has to be done before a pass; None where its own stage has it."""
    if each.kind == FORWARD:
        return each._replace(part=each.part - 1) if each.part else None
    if each.kind == WEIGHTS or each.part == last:
        return None
    return Pass(INPUTS, each.part + 1, each.microbatch)


def _seconds(step: StepSeconds, rank: int, kind: str) -> float:
    """Of a pass through all chunks of a stage, with what it hands on."""
    stage, handed = step.stages[rank], step.between / 2
    if kind == FORWARD:
        return stage.there + handed
    if kind == WEIGHTS:
        return stage.weights
    return stage.back + handed - (stage.weights if kind == INPUTS else 0.0)
