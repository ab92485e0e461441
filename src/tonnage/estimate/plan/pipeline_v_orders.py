"""Orders of schedules in the shape of a V: each rank has a stage on the way down and one on the way up, so that the
first rank has both ends.

They are PyTorch's (torch/distributed/pipelining/schedules.py: ScheduleZBVZeroBubble, ScheduleDualPipeV), and
tests/estimate/plan/test_pipeline_orders.py holds them to it.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import count as counted
from typing import NamedTuple

from tonnage.estimate.plan.pipeline_boxes import BACKWARD, FORWARD

INPUTS, WEIGHTS = "gradients of inputs", "gradients of weights"


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
