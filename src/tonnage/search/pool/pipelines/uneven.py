"""Layers over unlike accelerators: how many stages of which kind, in which order, with which layers. Two programs for
one question.

Layers that are all alike are counted: a stage is a place in the pipeline, its kind and a number of layers. Layers that
are not are cut: a stage is a run from one layer to another. Both are exact for costs that add up over layers; what does
not add up comes back as cuts.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import inf

import numpy as np

from tonnage.search.pool.highs import Effort
from tonnage.search.pool.pipelines.costs import SLACK, Costs, StageLayers
from tonnage.search.pool.pipelines.programs import counted, cut, orders_of
from tonnage.search.pool.pipelines.reachable import Path, Reach, least_path, num_states, reaches_end
from tonnage.search.pool.pipelines.stages import Stages

MAX_STATES = 20_000  # counts of stages that are walked through; more are left to a program


class Pipe(Stages):
    """A pipeline whose stages are to be chosen."""

    def __init__(self, costs: Sequence[Costs], stages: int, in_flight: Callable[[int], float] = lambda place: 0.0):
        super().__init__(costs, stages, in_flight)
        self.matrices: dict[tuple[object, ...], np.ndarray] = {}

    def forbid(self, run: StageLayers, place: int) -> None:
        super().forbid(run, place)
        self.__dict__.pop("thresholds", None)
        self.matrices.clear()

    @cached_property
    def thresholds(self) -> list[float]:
        """Every number of seconds that a stage can take, in order: the slowest stage takes one of them."""
        if self.alike:
            return sorted({seconds for row in self.tables for table in row for seconds in table[1:]})
        matrices = [self.matrix(kind, place) for kind in range(len(self.costs)) for place in range(self.stages)]
        every = np.unique(np.concatenate([matrix[np.isfinite(matrix)] for matrix in matrices]))
        return [float(seconds_of_stage) for seconds_of_stage in every]

    def matrix(self, kind: int, place: int) -> np.ndarray:
        """Seconds of every run of a kind at a place, by its first layer and the one after its last; inf: it may not
        be.
        """
        key = kind, self._alike_place(place)
        if key not in self.matrices:
            size, c = self.layers + 1, self.costs[kind]
            held, in_flight_bytes, weights = (np.array(row)[None, :] - np.array(row)[:, None] for row in c.sums[1:])
            is_first, is_last = place == 0, place == self.stages - 1
            over = (
                c.fixed_bytes
                + held
                + self.in_flight[place] * in_flight_bytes
                + c.first_bytes * is_first
                + c.last_bytes * is_last
                - c.usable * SLACK
            )
            away = np.maximum(over, 0.0)
            ran = np.array(c.sums[0])[None, :] - np.array(c.sums[0])[:, None]
            ran = ran + c.fixed_seconds + c.first_seconds * is_first + c.last_seconds * is_last + away / c.host_rate
            start, stop = np.arange(size)[:, None], np.arange(size)[None, :]
            allowed = (
                (start < stop)
                & ((start == 0) == is_first)
                & ((stop == self.layers) == is_last)
                & (away <= np.minimum(c.host_bytes, weights))
            )
            for cut in self.forbidden:
                if cut[:2] == (kind, place):
                    allowed &= ~((start <= cut[2]) & (stop >= cut[2] + cut[3]))
            self.matrices[key] = np.where(allowed, ran, np.inf)
        return self.matrices[key]

    def lowest(self) -> float:
        """No pipeline has a slowest stage of fewer seconds: each place takes the best kind for it, as far as there
        are such stages.
        """
        return self._least(self._could) if self.alike else self._shared_out()

    def _shared_out(self) -> float:
        """No slowest stage is faster than layers in any fractions over the fastest kinds. `slower`: at least how
        many times the first kind's seconds.
        """
        first = self.costs[0].seconds
        seen = [number for number, seconds in enumerate(first) if seconds > 0]
        slower = [min((c.seconds[number] / first[number] for number in seen), default=0.0) for c in self.costs]
        if min(slower) <= 0:
            return self.least_sum() / self.stages
        rates = sorted(
            (
                1 / slowdown
                for slowdown, c in zip(slower, self.costs, strict=True)
                for _ in range(min(c.most, self.stages))
            ),
            reverse=True,
        )
        if len(rates) < self.stages:
            return inf
        fixed = min(c.fixed_seconds / slowdown for slowdown, c in zip(slower, self.costs, strict=True))
        return (sum(first[number] for number in seen) + self.stages * fixed) / sum(rates[: self.stages])

    def slowest(self) -> float:
        """The least seconds that the slowest stage can take; inf: nothing fits."""
        return self._least(self._reaches)

    def _least(self, able: Callable[[float], bool]) -> float:
        low, high = -1, len(self.thresholds)
        while high - low > 1:
            middle = (low + high) // 2
            if able(self.thresholds[middle]):
                high = middle
            else:
                low = middle
        return self.thresholds[high] if high < len(self.thresholds) else inf

    def _reaches(self, limit: float) -> bool:
        return reaches_end(self._furthest(limit), [c.most for c in self.costs], self.stages, self.layers)

    def _furthest(self, limit: float) -> Callable[[int, int], Reach]:
        """A function that gives how far stages of a kind reach at a place where none takes longer than `limit`."""
        known: dict[tuple[object, ...], Reach] = {}

        def furthest(kind: int, place: int) -> Reach:
            key = kind, self._alike_place(place)
            if key not in known:
                known[key] = self._reached(kind, place, limit)
            return known[key]

        return furthest

    def _reached(self, kind: int, place: int, limit: float) -> Reach:
        if self.alike:
            reach = self.reach(kind, place, limit)
            stops = [min(start + reach, self.layers) for start in range(self.layers)]
        else:
            allowed = self.matrix(kind, place)[:-1] <= limit * SLACK
            ends = self.layers - allowed[:, ::-1].argmax(axis=1)
            stops = np.where(allowed.any(axis=1), ends, np.arange(self.layers)).tolist()
        return Reach(stops, sum(1 << start for start, stop in enumerate(stops) if stop > start))

    def _alike_place(self, place: int) -> tuple[object, ...]:
        """Equal for places where a run takes the same."""
        cuts = frozenset(cut for cut in self.forbidden if cut[1] == place)
        return place if place in (0, self.stages - 1) else -1, self.in_flight[place], cuts

    def room(self) -> tuple[int, float]:
        """The most layers that fit, counted without an order of stages, and the bytes that the others would need."""
        caps: list[int] = []
        for kind, c in enumerate(self.costs):
            place = self.stages // 2
            fits = [
                n for n in range(1, self.layers + 1) if self.on_host(kind, place, self.layers - n, self.layers) < inf
            ]
            caps += [max(fits, default=0)] * min(c.most, self.stages)
        held = min(sum(sorted(caps, reverse=True)[: self.stages]), self.layers)
        layer_bytes = min(max(c.bytes) for c in self.costs)
        return held, (self.layers - held) * layer_bytes

    def least_sum(self) -> float:
        """No pipeline takes fewer seconds in all: every layer where it is fastest, and every stage with one layer of
        its own kind at least.
        """
        least = [min(row) for row in zip(*(c.seconds for c in self.costs), strict=True)]
        more = [
            (c.fixed_seconds + min(own - low for own, low in zip(c.seconds, least, strict=True)), c.most)
            for c in self.costs
        ]
        extra = sorted(seconds for seconds, most in more for _ in range(min(most, self.stages)))
        return sum(least) + sum(extra[: self.stages])

    def _could(self, limit: float) -> bool:
        """Whether so many seconds a stage might do, of layers that are alike: a relaxation."""
        best: list[int] = []
        for kind, c in enumerate(self.costs):
            most = max(self.reach(kind, place, limit) for place in range(self.stages))
            best += [most] * min(c.most, self.stages)
        return sum(sorted(best, reverse=True)[: self.stages]) >= self.layers

    def best(self, limit: float, effort: Effort) -> tuple[list[StageLayers], float] | None:
        """The pipeline of fewest seconds in all of which no stage takes longer than `limit`, and a bound of those
        seconds; None: there is none.
        """
        if self.alike:
            return counted(self, limit, effort)
        if num_states([c.most for c in self.costs], self.stages) > MAX_STATES:
            return cut(self, limit, effort)
        return self.walked(limit)

    def walked(self, limit: float) -> tuple[list[StageLayers], float] | None:
        """Layers that are not alike, of few kinds: by counts of stages, without a program."""
        limited: dict[tuple[object, ...], np.ndarray] = {}

        def seconds(kind: int, place: int) -> np.ndarray:
            key = kind, self._alike_place(place)
            if key not in limited:
                matrix = self.matrix(kind, place)
                limited[key] = np.where(matrix <= limit * SLACK, matrix, np.inf)
            return limited[key]

        path = least_path(seconds, [c.most for c in self.costs], self.stages, self.layers)
        if path is None:
            return None
        path = self._tidied(path, seconds)
        runs = [
            StageLayers(kind, start, stop, self.on_host(kind, place, start, stop))
            for place, (kind, start, stop) in enumerate(path)
        ]
        return runs, sum(self.seconds_of(runs))

    def _tidied(self, path: list[Path], seconds: Callable[[int, int], np.ndarray]) -> list[Path]:
        """The same stages with those of a kind side by side, where that takes no longer."""
        best = sum(float(seconds(kind, place)[start, stop]) for place, (kind, start, stop) in enumerate(path)) * SLACK
        for kinds in orders_of([kind for kind, _, _ in path]):
            again = least_path(_of_kinds(kinds, seconds), [self.stages], self.stages, self.layers)
            if again is None:
                continue
            runs = [(kind, start, stop) for kind, (_, start, stop) in zip(kinds, again, strict=True)]
            if sum(float(seconds(kind, place)[start, stop]) for place, (kind, start, stop) in enumerate(runs)) <= best:
                return runs
        return path


def _of_kinds(kinds: Sequence[int], seconds: Callable[[int, int], np.ndarray]) -> Callable[[int, int], np.ndarray]:
    """The seconds function of a pipeline whose kind at every place is fixed."""
    return lambda _, place: seconds(kinds[place], place)
