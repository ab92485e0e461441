"""The best pipeline over a pool: every width of stages and every number of them, the most promising first, each solved
to its proven optimum.

What the estimator then refuses is forbidden, and solved again, until it agrees.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Protocol

from msgspec import Struct

from tonnage.search.pool.highs import Effort, OutOfTimeError
from tonnage.search.pool.parts import Kind
from tonnage.search.pool.pipelines.costs import Costs, StageLayers
from tonnage.search.pool.pipelines.uneven import Pipe
from tonnage.search.pool.serving import Checked

Value = Callable[[float, float], float]  # of the seconds of all stages, and of the slowest; grows with both
NOTICED = 0.005  # of an accelerator's memory: what sums over layers may say too much
ROUNDS = 2  # of saying it better
ALMOST = 1e-5  # of a sum: what a solver's tolerances leave
EQUAL = 1e-9  # of a value: closer ones are the same


class Shape(Protocol):
    """How wide stages are; what layers take on each kind; what the estimator says of a whole pipeline."""

    kinds: list[Kind]
    loose: dict[str, float]

    def costs(self, stages: int) -> list[Costs]: ...

    def in_flight(self, place: int, stages: int) -> float: ...

    def check(self, runs: list[StageLayers]) -> Sequence[Checked]: ...


class BestPipeline(Struct, frozen=True, kw_only=True, eq=False):
    """The best pipeline, and what is proven of it: no other has a value below `bound`."""

    shape: Any
    runs: list[StageLayers]
    checked: Sequence[Checked]
    value: float
    bound: float
    said_too_much: dict[str, float] = {}

    @property
    def gap(self) -> float:
        return max(self.value - self.bound, 0.0) / self.value if self.value else 0.0


class StageCount(Struct, kw_only=True, eq=False):
    """One number of stages of one shape, as far as it is known."""

    shape: Any
    pipe: Pipe
    value: Value
    lower: float
    slowest: float | None = None
    runs: list[StageLayers] | None = None
    best: float = inf


class Search:
    """All pipelines of these shapes. `value`: by number of stages, what of a pipeline is to be small; `goal`: its
    unit and name.
    """

    def __init__(
        self,
        shapes: Sequence[Shape],
        layers: int,
        value: Callable[[Any, int], Value],
        effort: Effort,
        stages: int | None = None,
        goal: str = "seconds",
    ):
        self.only, self.goal = stages, goal
        self.shapes, self.layers, self.value, self.effort = shapes, layers, value, effort
        self.order = count()
        self.queue: list[tuple[float, int, StageCount]] = []
        self.considered = 0

    def best(self) -> BestPipeline | None:
        """Find the best pipeline; None where none fits."""
        for shape in self.shapes:
            self._open(shape)
        incumbent: StageCount | None = None
        checked: Sequence[Checked] = ()
        floor = inf  # of what was not solved to its end
        while self.queue:
            lower, _, tried = heappop(self.queue)
            if incumbent is not None and lower >= incumbent.best * (1 - self.effort.gap):
                return self._best_pipeline(incumbent, checked, min(lower, floor))
            if self.effort.left <= 0:
                if incumbent is None:
                    raise self.effort.spent(lower, self.goal)
                return self._best_pipeline(incumbent, checked, min(lower, floor))
            if tried.slowest is None:
                tried.slowest = tried.pipe.slowest()
                if tried.slowest < inf:
                    self._push(
                        tried, max(lower, tried.value(max(tried.slowest, tried.pipe.least_sum()), tried.slowest))
                    )
                continue
            if tried.runs is None:
                if not solve(tried, self.effort):
                    floor = min(floor, lower)
                if tried.runs is not None:
                    self._push(tried, max(tried.best, lower))
                continue
            stages_checked = tried.shape.check(tried.runs)
            if not self._agrees(tried, stages_checked):
                tried.runs, tried.best, tried.slowest = None, inf, None
                self._push(tried, lower)
            elif incumbent is None or tried.best < incumbent.best:
                incumbent, checked = tried, stages_checked
        if incumbent is None and floor < inf:
            raise self.effort.spent(floor, self.goal)
        return self._best_pipeline(incumbent, checked, floor) if incumbent is not None else None

    def _open(self, shape: Shape) -> None:
        """Every number of stages, with a bound that needs no program."""
        room = sum(costs.most for costs in shape.costs(1))
        for stages in range(1, min(room, self.layers) + 1):
            if self.only not in (None, stages):
                continue
            pipe = Pipe(
                shape.costs(stages),
                stages,
                lambda place, n=stages: shape.in_flight(place, n),  # type: ignore[misc]
            )
            self.considered += 1
            slowest = pipe.lowest()
            if slowest < inf:
                value = self.value(shape, stages)
                self._push(
                    StageCount(shape=shape, pipe=pipe, value=value, lower=0.0),
                    value(max(slowest, pipe.least_sum()), slowest),
                )

    def _push(self, tried: StageCount, lower: float) -> None:
        tried.lower = lower
        heappush(self.queue, (lower, next(self.order), tried))

    def _agrees(self, tried: StageCount, checked: Sequence[Checked]) -> bool:
        assert tried.runs is not None
        refused = [place for place, stage in enumerate(checked) if not stage.fits]
        for place in refused:
            tried.pipe.forbid(tried.runs[place], place)
            self.effort.cuts += 1
        return not refused

    def _best_pipeline(self, tried: StageCount, checked: Sequence[Checked], bound: float) -> BestPipeline:
        assert tried.runs is not None
        return BestPipeline(
            shape=tried.shape,
            runs=tried.runs,
            checked=checked,
            value=tried.best,
            bound=min(bound, tried.best),
            said_too_much=_excess_bytes(tried, checked),
        )


def _excess_bytes(tried: StageCount, checked: Sequence[Checked]) -> dict[str, float]:
    """For each kind, the bytes by which sums over layers exceed the estimate of its stages."""
    excess: dict[str, float] = {}
    for place, (run, stage) in enumerate(zip(tried.runs or [], checked, strict=True)):
        over = tried.pipe.needed(run.kind, place, run.start, run.stop) - stage.needed
        name = tried.shape.kinds[run.kind].parts[0]
        if over > NOTICED * stage.usable:
            excess[name] = max(excess.get(name, 0.0), over)
    return excess


def best_of(make: Callable[[], Search]) -> tuple[BestPipeline | None, int]:
    """The best pipeline; searched again where sums over layers had said that stages need more than they do, and had
    kept some away.
    """
    search = make()
    best = search.best()
    for _ in range(ROUNDS):
        if best is None or not best.said_too_much:
            break
        search.effort.cuts += 1
        for shape in search.shapes:
            for name, over in best.said_too_much.items():
                shape.loose[name] = shape.loose.get(name, 0.0) + over
        search = make()
        again = search.best()
        best = again if again is not None and again.value <= best.value * (1 + EQUAL) else best
    return best, search.considered


def solve(tried: StageCount, effort: Effort) -> bool:
    """The least value of this number of stages: of every limit on the slowest stage the least sum, as far as one can
    still be better.
    Whether it is proven: the time was not up before."""
    try:
        return _solve(tried, effort)
    except OutOfTimeError:
        return False


def _solve(tried: StageCount, effort: Effort) -> bool:
    pipe, value, slowest = tried.pipe, tried.value, tried.slowest
    assert slowest is not None
    limits = [limit for limit in pipe.thresholds if limit >= slowest]
    known: dict[int, float] = {}
    proven = True

    def least(number: int) -> float:
        """A bound of the sums of all pipelines within this limit; the pipeline that has it is kept where it is the
        best.
        """
        nonlocal proven
        if number not in known:
            solution = pipe.best(limits[number], effort)
            known[number] = inf
            if solution is not None:
                runs, bound = solution
                seconds = pipe.seconds_of(runs)
                now = value(sum(seconds), max(seconds))
                if now < tried.best:
                    tried.best, tried.runs = now, runs
                known[number] = min(bound, sum(seconds))
                proven = proven and bound >= sum(seconds) * (1 - ALMOST)
        return known[number]

    end = len(limits) - 1
    todo = [(0, end, pipe.least_sum())]
    if value(pipe.least_sum(), slowest) > pipe.least_sum() * (1 + EQUAL):
        least(0)  # the slowest stage decides
    while todo:
        start, stop, bound = todo.pop()
        if value(bound, limits[start]) >= tried.best * (1 - EQUAL):
            continue
        bound = max(bound, least(stop))
        if value(bound, limits[start]) >= tried.best * (1 - EQUAL) or stop == start:
            continue
        middle = (start + stop) // 2
        todo += [(start, middle, bound), (middle + 1, stop, bound)]
    return proven
