"""When each stage of a pipeline works on which micro-batch: 1F1B, interleaved by chunks, in the order of Megatron-LM.

A pure function from seconds to boxes. With stages of equal time it ends when the closed form of
`estimate.step_time.time` says (Narayanan2021, sec. 2.2); with uneven ones a little later or earlier, which
`PipelineBoxes` says beside it.
"""

from collections.abc import Callable, Iterator
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from tonnage.kernel.formula import Number, maximum
from tonnage.runtimes import TrainingRuntime

# ---- How many micro-batches a pipeline schedule takes: predicates for the rules of estimate.plan.validity.
#
# Sources: Megatron-LM, megatron/core/pipeline_parallel/schedules.py: forward_backward_pipelining_with_interleaving,
# whose
# group of micro-batches (--microbatch-group-size-per-virtual-pipeline-stage, the pipeline size unless it is given) must
# be from the pipeline size to the number of micro-batches; PyTorch, torch/distributed/pipelining/schedules.py:
# Schedule1F1B, ScheduleInterleaved1F1B, ScheduleDualPipeV; nanotron, parallel/pipeline_parallel/engine.py:
# OneForwardOneBackwardPipelineEngine.


class MicrobatchRule(Struct, frozen=True):
    """`sentence`: what num_microbatches must be; `holds`: whether m micro-batches on p stages are, of numbers or
    arrays.
    """

    sentence: str
    holds: Callable[[Number, Number], Number]


def microbatches_per_round(m: Number, p: Number) -> Number:
    """Micro-batches that pass one chunk of a stage before the next chunk: at least p where there are so many.

    >>> [microbatches_per_round(m, 4) for m in (1, 4, 10, 16)]
    [1, 4, 5, 4]
    """
    return m // maximum(m // p, 1)


RULES = {
    "multiple of stages": MicrobatchRule(
        "num_microbatches must be a multiple of pipeline_parallel_size", lambda m, p: m % p == 0
    ),
    "equal rounds": MicrobatchRule(
        "num_microbatches must be a multiple of num_microbatches // pipeline_parallel_size, the number of rounds",
        lambda m, p: m % maximum(m // p, 1) == 0,
    ),
    "one per stage": MicrobatchRule("num_microbatches must be at least pipeline_parallel_size", lambda m, p: m >= p),
    "stages less one": MicrobatchRule(
        "num_microbatches must be at least pipeline_parallel_size - 1", lambda m, p: m >= p - 1
    ),
    "even, two per stage": MicrobatchRule(
        "num_microbatches must be even and at least 2 x pipeline_parallel_size, which is even and at least 4",
        lambda m, p: (m % 2 == 0) & (m >= 2 * p) & (p % 2 == 0) & (p >= 4),
    ),
    "two per stage": MicrobatchRule(
        "num_microbatches must be at least 2 x pipeline_parallel_size", lambda m, p: m >= 2 * p
    ),
}


def microbatch_rule(runtime: TrainingRuntime, schedule: str) -> MicrobatchRule | None:
    """The rule of a runtime's schedule; None: any number will do."""
    name = runtime.microbatch_rules.get(schedule)
    return RULES[name] if name else None


# Pieces of a micro-batch on one stage, in the order in which it runs them.
FORWARD, AGAIN, BACKWARD, SENDING = "forward", "run again", "backward", "exposed communication"
SHOWN = 12  # micro-batches at least that are drawn before the middle is left out
DRAWN = ("1f1b", "interleaved-1f1b")  # schedules whose order is known here
PERIODS = 2  # micro-batches a stage, and one more if interleaved: with fewer no moment is free of filling and draining


class StageSeconds(Struct, frozen=True):
    """One micro-batch through one stage [seconds]. `forward_sent`, `backward_sent`: of both passes, when only links
    work. `weights`: of the backward pass, what makes gradients of weights.
    """

    forward: float
    again: float
    backward: float
    forward_sent: float = 0.0
    backward_sent: float = 0.0
    weights: float = 0.0

    @property
    def there(self) -> float:
        return self.forward + self.forward_sent

    @property
    def back(self) -> float:
        return self.again + self.backward + self.backward_sent


class Work(Struct, frozen=True):
    """Seconds of a step for one kind of work in one pass; all of a step's add up to its time."""

    when: str
    kind: str
    seconds: float


class StepSeconds(Struct, frozen=True, kw_only=True):
    """A step as seconds. `between`: handing one micro-batch on and its gradient back, all chunks; `after`: what follows
    the last backward;
    `schedule`: the pipeline's, by name."""

    stages: tuple[StageSeconds, ...]
    num_microbatches: int
    chunks: int = 1
    schedule: str = "1f1b"
    between: float = 0.0
    after: tuple[tuple[str, float], ...] = ()
    work: tuple[Work, ...] = ()

    @property
    def directions(self) -> int:
        """In which micro-batches pass the pipeline, each through ranks of its own half of `stages`."""
        return 2 if self.schedule == "dualpipe" else 1

    @property
    def slowest(self) -> float:
        """Of a micro-batch on the stage that takes longest, with what it hands on."""
        return max(stage.there + stage.back for stage in self.stages) + self.between


class Box(Struct, frozen=True):
    """What a stage does from `start` for `seconds`; `microbatch` and `chunk` counted from 0, -1 where it belongs to
    none.
    """

    stage: int
    kind: str
    start: float
    seconds: float
    microbatch: int = -1
    chunk: int = -1

    @property
    def end(self) -> float:
        return self.start + self.seconds


class PipelineBoxes(Struct, frozen=True, kw_only=True):
    """`boxes` at their true times. `skipped` micro-batches are left out of them: `gap` seconds from `cut` on.

    `pipeline`: seconds until the last backward ends; `seconds`: of the whole step.
    """

    boxes: tuple[Box, ...]
    pipeline: float
    seconds: float
    skipped: int = 0
    cut: float = 0.0
    gap: float = 0.0


def pipeline_boxes(step: StepSeconds, shown: int | None = None) -> PipelineBoxes:
    """The boxes of a step, with at least `shown` micro-batches of them (None: as many as it takes to see the pipeline
    fill and drain).

    In the middle of a step all stages do the same for each micro-batch, or for each p of them if interleaved: such
    periods are left out.
    """
    stages, count = len(step.stages), step.num_microbatches
    period = int(microbatches_per_round(count, stages)) if step.chunks > 1 else stages
    shown_until = max(SHOWN if shown is None else shown, (PERIODS + (step.chunks > 1)) * period)
    shown_until = -(-shown_until // period) * period
    skipped = max(count - shown_until, 0) // period * period
    passes = _simulated(replace(step, num_microbatches=count - skipped))
    end = max(boxes[-1].end for boxes in passes)
    cut, gap = ((stages + shown_until) / 2 * step.slowest, skipped * step.slowest) if skipped else (end, 0.0)
    placed = [later(box, skipped, gap) if boxes[0].start >= cut else box for boxes in passes for box in boxes]
    names, lengths = [name for name, _ in step.after], [seconds for _, seconds in step.after]
    starts = list(accumulate(lengths, initial=end + gap))
    placed += [
        Box(stage, name, start, seconds)
        for stage in range(stages)
        for name, start, seconds in zip(names, starts, lengths, strict=False)
        if seconds
    ]
    return PipelineBoxes(boxes=tuple(placed), pipeline=end + gap, seconds=starts[-1], skipped=skipped, cut=cut, gap=gap)


def later(box: Box, skipped: int, gap: float) -> Box:
    """A box behind what is left out."""
    return replace(box, start=box.start + gap, microbatch=box.microbatch + skipped)


class _Pass(Struct, frozen=True):
    """One chunk of one micro-batch, forward or back."""

    is_forward: bool
    chunk: int
    microbatch: int


def _simulated(step: StepSeconds) -> list[list[Box]]:
    """The boxes of each pass: each stage takes its passes in its order, each as soon as what it needs is there.

    What a stage sends keeps it busy, but its receiver does not wait for it: so the closed form has it.
    """
    stages, chunks = len(step.stages), step.chunks
    orders = [list(_order(rank, stages, chunks, step.num_microbatches)) for rank in range(stages)]
    done: dict[tuple[int, _Pass], float] = {}
    free, at, passes = [0.0] * stages, [0] * stages, list[list[Box]]()
    handed = step.between / (2 * chunks)
    waiting = set(range(stages))
    while waiting:
        moved = False
        for rank in sorted(waiting):
            while at[rank] < len(orders[rank]):
                current = orders[rank][at[rank]]
                before = _before(rank, current, stages, chunks)
                if before is not None and before not in done:
                    break
                start = max(free[rank], done[before] if before is not None else 0.0)
                pieces = _boxes(step, rank, current, start)
                done[rank, current] = pieces[-1].end
                pieces[-1] = replace(pieces[-1], seconds=pieces[-1].seconds + handed)
                free[rank] = pieces[-1].end
                passes.append(pieces)
                at[rank] += 1
                moved = True
            if at[rank] == len(orders[rank]):
                waiting.discard(rank)
        assert moved, "stages wait for each other"
    return passes


def _order(rank: int, stages: int, chunks: int, count: int) -> Iterator[_Pass]:
    """Forward passes until the first gradient may come, then one of each, then the rest.

    Sources: Megatron-LM, core/pipeline_parallel/schedules.py; PyTorch, torch/distributed/pipelining/schedules.py, where
    stages need not divide the micro-batches.
    """
    total = count * chunks
    per_round = microbatches_per_round(count, stages)
    ahead = stages - rank - 1 if chunks == 1 else 2 * (stages - rank - 1) + (chunks - 1) * per_round
    ahead = min(ahead, total)
    there = [_Pass(True, *which) for which in _turns(stages, chunks, count)]
    back = [_Pass(False, chunks - 1 - chunk, batch) for chunk, batch in _turns(stages, chunks, count)]
    yield from there[:ahead]
    for forward, backward in zip(there[ahead:], back, strict=False):
        yield forward
        yield backward
    yield from back[total - ahead :]


def _turns(stages: int, chunks: int, count: int) -> Iterator[tuple[int, int]]:
    """Chunk and micro-batch of each turn: a round of micro-batches through one chunk, then through the next."""
    if chunks == 1:
        yield from ((0, batch) for batch in range(count))
        return
    per_round = microbatches_per_round(count, stages)
    for first in range(0, count, per_round):
        for chunk in range(chunks):
            yield from ((chunk, batch) for batch in range(first, first + per_round))


def _before(rank: int, current: _Pass, stages: int, chunks: int) -> tuple[int, _Pass] | None:
    """Where the input of a pass comes from; None for the data, and for what the stage itself has just made."""
    step = 1 if current.is_forward else -1
    neighbour, chunk = rank - step, current.chunk
    if 0 <= neighbour < stages:
        return neighbour, current
    chunk -= step
    if not 0 <= chunk < chunks:
        return None
    return (stages - 1 if current.is_forward else 0), _Pass(current.is_forward, chunk, current.microbatch)


def _boxes(step: StepSeconds, rank: int, current: _Pass, start: float) -> list[Box]:
    """The pieces of a pass. A pipeline's have their communication in them, so that a picture of many stages stays
    readable.
    """
    stage, boxes = step.stages[rank], list[Box]()
    main, sent = (FORWARD, stage.forward_sent) if current.is_forward else (BACKWARD, stage.backward_sent)
    computing = stage.forward if current.is_forward else stage.backward
    single_stage = len(step.stages) == 1
    pieces = [
        (AGAIN, 0.0 if current.is_forward else stage.again),
        (main, computing if single_stage else computing + sent),
        (SENDING, sent if single_stage else 0.0),
    ]
    for kind, seconds in pieces:
        if seconds or kind == main:
            boxes.append(Box(rank, kind, start, seconds / step.chunks, current.microbatch, current.chunk))
            start += seconds / step.chunks
    return boxes
