"""Stages of a pipeline over unlike accelerators: the bytes and seconds of a run of layers on a kind, at a place."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from math import inf

from tonnage.search.pool.pipelines.costs import SLACK, Costs, StageLayers


class Stages:
    """`stages` places of a pipeline over these kinds of accelerators.

    `in_flight`: micro-batches that a place keeps.
    `forbidden`: runs that the estimator refused, as kind, place, start, layers.
    """

    def __init__(self, costs: Sequence[Costs], stages: int, in_flight: Callable[[int], float] = lambda place: 0.0):
        self.costs, self.stages = tuple(costs), stages
        self.layers = len(costs[0].seconds)
        self.in_flight = tuple(in_flight(place) for place in range(stages))
        self.forbidden: set[tuple[int, int, int, int]] = set()

    def needed(self, kind: int, place: int, start: int, stop: int) -> float:
        """Bytes of a run at a place, none of it in host memory."""
        c = self.costs[kind]
        _, held, in_flight_bytes, _ = c.sums
        size = (
            c.fixed_bytes
            + held[stop]
            - held[start]
            + self.in_flight[place] * (in_flight_bytes[stop] - in_flight_bytes[start])
        )
        return size + (c.first_bytes if place == 0 else 0) + (c.last_bytes if place == self.stages - 1 else 0)

    def on_host(self, kind: int, place: int, start: int, stop: int) -> float:
        """Bytes of its weights that must be in host memory; inf: they cannot be."""
        c = self.costs[kind]
        over = self.needed(kind, place, start, stop) - c.usable * SLACK
        if over <= 0:
            return 0.0
        weights = c.sums[3]
        return over if over <= min(c.host_bytes, weights[stop] - weights[start]) else inf

    def seconds(self, kind: int, place: int, start: int, stop: int) -> float:
        """The seconds of a run of layers; inf where it does not fit, or was refused."""
        c = self.costs[kind]
        if self._refused(kind, place, start, stop):
            return inf
        moved = self.on_host(kind, place, start, stop)
        if moved == inf:
            return inf
        return self._ran(kind, place, start, stop) + moved / c.host_rate

    def _ran(self, kind: int, place: int, start: int, stop: int) -> float:
        """Seconds of a run with all that it needs in memory."""
        c = self.costs[kind]
        ran = c.fixed_seconds + c.sums[0][stop] - c.sums[0][start]
        return ran + (c.first_seconds if place == 0 else 0) + (c.last_seconds if place == self.stages - 1 else 0)

    def _refused(self, kind: int, place: int, start: int, stop: int) -> bool:
        return any(
            kind == k and place == at and start <= s and stop - start >= n and (s == self.layers or stop >= s + n)
            for k, at, s, n in self.forbidden
        )

    def forbid(self, run: StageLayers, place: int) -> None:
        """Exclude a run that the estimator refused, and every run that contains it; of equal layers, any as long."""
        self.forbidden.add((run.kind, place, self.layers if self.alike else run.start, run.layers))
        self.__dict__.pop("tables", None)

    @cached_property
    def alike(self) -> bool:
        """Whether all layers need the same time and memory on each kind."""
        rows = [row for c in self.costs for row in (c.seconds, c.bytes, c.kept, c.weights)]
        return all(max(row) - min(row) <= 1e-6 * abs(max(row)) for row in rows if row)

    @cached_property
    def tables(self) -> list[list[list[float]]]:
        """Seconds by place, kind and number of layers, as far as it fits. For layers that are alike."""
        computed: dict[tuple[int, bool, bool, float, frozenset[tuple[int, ...]]], list[float]] = {}
        tables = []
        for place in range(self.stages):
            row = []
            for kind in range(len(self.costs)):
                cuts = frozenset(cut for cut in self.forbidden if cut[:2] == (kind, place))
                key = kind, place == 0, place == self.stages - 1, self.in_flight[place], cuts
                if key not in computed:
                    computed[key] = self._table(kind, place)
                row.append(computed[key])
            tables.append(row)
        return tables

    def _table(self, kind: int, place: int) -> list[float]:
        known = [0.0]
        for layers in range(1, self.layers + 1):
            seconds = self.seconds(kind, place, 0, layers)
            if seconds == inf:
                break
            known.append(seconds)
        return known

    def plain(self, kind: int, place: int, most: int) -> int:
        """Layers that need no host memory, of `most` that fit with it."""
        if not self.costs[kind].host_bytes:
            return most
        return bisect_right(range(1, most + 1), 0.0, key=lambda n: self.on_host(kind, place, 0, n))

    def reach(self, kind: int, place: int, limit: float) -> int:
        """The most layers of a place, of those that are alike, that take no longer."""
        return bisect_right(self.tables[place][kind], limit * SLACK) - 1

    def runs(self, kinds: list[int], shares: list[int]) -> list[StageLayers]:
        ends = [0, *accumulate(shares)]
        return [
            StageLayers(kind, ends[place], ends[place + 1], self.on_host(kind, place, ends[place], ends[place + 1]))
            for place, kind in enumerate(kinds)
        ]

    def seconds_of(self, runs: Sequence[StageLayers]) -> list[float]:
        """The seconds of each stage of a pipeline."""
        return [self.seconds(run.kind, place, run.start, run.stop) for place, run in enumerate(runs)]
