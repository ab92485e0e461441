"""Layers over unlike accelerators: how many stages of which kind, in which order, with which layers. Two programs for one question.

Layers that are all alike are counted: a stage is a place in the pipeline, its kind and a number of layers. Layers that are not are cut:
a stage is a run from one layer to another. Both are exact for costs that add up over layers; what does not add up comes back as cuts.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from math import floor, inf
from typing import NamedTuple

from msgspec import Struct

from tonnage.search.pool._highs import Effort, Program
from tonnage.search.pool._reachable import reaches_end

SLACK = 1 + 1e-9  # of a limit: what rounding leaves of a sum that should equal it


class Costs(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What layers take on one kind of accelerators: seconds and bytes of each layer, of a stage besides, and of the first and the last one.

    `kept`: bytes of each layer for every micro-batch in flight. `usable`: of one accelerator; `most`: stages that the kind has room for.
    `host_bytes`: of each accelerator's part of host memory that weights may be in, of `weights` bytes a layer; `host_rate`: bytes a second in which they come.
    """

    seconds: tuple[float, ...]
    bytes: tuple[float, ...]
    usable: float
    most: int
    kept: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    fixed_seconds: float = 0.0
    fixed_bytes: float = 0.0
    first_seconds: float = 0.0
    first_bytes: float = 0.0
    last_seconds: float = 0.0
    last_bytes: float = 0.0
    host_bytes: float = 0.0
    host_rate: float = inf

    @cached_property
    def sums(self) -> tuple[list[float], list[float], list[float], list[float]]:
        """Running sums over layers: seconds, bytes, kept bytes, weights."""
        rows = (self.seconds, self.bytes, self.kept or (0.0,) * len(self.seconds), self.weights or (0.0,) * len(self.seconds))
        seconds, held, kept, weights = ([0.0, *accumulate(row)] for row in rows)
        return seconds, held, kept, weights


class Run(NamedTuple):
    """A stage: its kind, and its layers from `start` to before `stop`; `on_host`: bytes of their weights that are in host memory."""

    kind: int
    start: int
    stop: int
    on_host: float = 0.0

    @property
    def layers(self) -> int:
        return self.stop - self.start


class Pipe:
    """A pipeline of `stages` stages over these kinds. `in_flight`: micro-batches that a place keeps; `forbidden`: runs that the estimator refused."""

    def __init__(self, costs: Sequence[Costs], stages: int, in_flight: Callable[[int], float] = lambda place: 0.0):
        self.costs, self.stages = tuple(costs), stages
        self.layers = len(costs[0].seconds)
        self.in_flight = tuple(in_flight(place) for place in range(stages))
        self.forbidden: set[tuple[int, int, int, int]] = set()  # kind, place, start, layers

    # ---- one stage ----

    def needed(self, kind: int, place: int, start: int, stop: int) -> float:
        """Bytes of a run at a place, none of it in host memory."""
        c = self.costs[kind]
        _, held, kept, _ = c.sums
        size = c.fixed_bytes + held[stop] - held[start] + self.in_flight[place] * (kept[stop] - kept[start])
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
        """Of a run; inf where it does not fit, or was refused."""
        c = self.costs[kind]
        if self._refused(kind, place, start, stop):
            return inf
        moved = self.on_host(kind, place, start, stop)
        if moved == inf:
            return inf
        ran = c.fixed_seconds + c.sums[0][stop] - c.sums[0][start] + moved / c.host_rate
        return ran + (c.first_seconds if place == 0 else 0) + (c.last_seconds if place == self.stages - 1 else 0)

    def _refused(self, kind: int, place: int, start: int, stop: int) -> bool:
        return any(kind == k and place == at and start <= s and stop - start >= n and (s == self.layers or stop >= s + n)
                   for k, at, s, n in self.forbidden)  # fmt: skip

    def forbid(self, run: Run, place: int) -> None:
        """The estimator needs more than there is: neither this run nor one that has it. Of layers that are alike none of as many."""
        self.forbidden.add((run.kind, place, self.layers if self.alike else run.start, run.layers))
        self.__dict__.pop("tables", None)
        self.__dict__.pop("thresholds", None)

    @cached_property
    def alike(self) -> bool:
        """Whether all layers take the same everywhere."""
        rows = [row for c in self.costs for row in (c.seconds, c.bytes, c.kept, c.weights)]
        return all(max(row) - min(row) <= 1e-6 * abs(max(row)) for row in rows if row)

    @cached_property
    def tables(self) -> list[list[list[float]]]:
        """Seconds by place, kind and number of layers; of a kind and place as far as it fits. Of layers that are alike."""
        made: dict[tuple[int, bool, bool, float, frozenset[tuple[int, ...]]], list[float]] = {}
        found = []
        for place in range(self.stages):
            row = []
            for kind in range(len(self.costs)):
                cuts = frozenset(cut for cut in self.forbidden if cut[:2] == (kind, place))
                key = kind, place == 0, place == self.stages - 1, self.in_flight[place], cuts
                if key not in made:
                    made[key] = self._table(kind, place)
                row.append(made[key])
            found.append(row)
        return found

    def _table(self, kind: int, place: int) -> list[float]:
        known = [0.0]
        for layers in range(1, self.layers + 1):
            seconds = self.seconds(kind, place, 0, layers)
            if seconds == inf:
                break
            known.append(seconds)
        return known

    def _plain(self, kind: int, place: int, most: int) -> int:
        """Layers that need no host memory, of `most` that fit with it."""
        if not self.costs[kind].host_bytes:
            return most
        return bisect_right(range(1, most + 1), 0.0, key=lambda n: self.on_host(kind, place, 0, n))

    # ---- all stages ----

    @cached_property
    def thresholds(self) -> list[float]:
        """Every number of seconds that a stage can take, in order: the slowest stage takes one of them."""
        if self.alike:
            return sorted({seconds for row in self.tables for table in row for seconds in table[1:]})
        return sorted({edge[-1] for edge in self._edges(inf)})

    def lowest(self) -> float:
        """No pipeline has a slowest stage of fewer seconds: each place takes the best kind for it, as far as there are such stages."""
        return self._least(self._could)

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
        ends = 0, self.stages - 1
        places: list[object] = [(place if place in ends else -1, self.in_flight[place], self._cuts(place)) for place in range(self.stages)]
        return reaches_end(self.seconds, [c.most for c in self.costs], places, self.layers, limit * SLACK)

    def _cuts(self, place: int) -> frozenset[tuple[int, int, int, int]]:
        return frozenset(cut for cut in self.forbidden if cut[1] == place)

    def room(self) -> tuple[int, float]:
        """The most layers that fit, counted without an order of stages, and the bytes that the others would need."""
        caps: list[int] = []
        for kind, c in enumerate(self.costs):
            place = self.stages // 2
            fits = [n for n in range(1, self.layers + 1) if self.on_host(kind, place, self.layers - n, self.layers) < inf]
            caps += [max(fits, default=0)] * min(c.most, self.stages)
        held = min(sum(sorted(caps, reverse=True)[: self.stages]), self.layers)
        each = min(max(c.bytes) for c in self.costs)
        return held, (self.layers - held) * each

    def least_sum(self) -> float:
        """No pipeline takes fewer seconds in all: every layer where it is fastest."""
        each = sum(min(row) for row in zip(*(c.seconds for c in self.costs), strict=True))
        return each + self.stages * min(c.fixed_seconds for c in self.costs)

    def _could(self, limit: float) -> bool:
        """Whether so many seconds a stage might do: a relaxation."""
        best: list[int] = []
        for kind, c in enumerate(self.costs):
            most = max(self._reach(kind, place, limit) for place in {0, 1 % self.stages, self.stages - 1})
            best += [most] * min(c.most, self.stages)
        return sum(sorted(best, reverse=True)[: self.stages]) >= self.layers

    def _reach(self, kind: int, place: int, limit: float) -> int:
        """The most layers of a place that take no longer; of unlike layers more than that may be said."""
        c = self.costs[kind]
        if self.alike:
            return bisect_right(self.tables[place][kind], limit * SLACK) - 1
        least = min(c.seconds)
        return self.layers if least <= 0 else min(floor((limit * SLACK - c.fixed_seconds) / least), self.layers) if limit < inf else self.layers

    def best(self, limit: float, effort: Effort) -> tuple[list[Run], float] | None:
        """The pipeline of fewest seconds in all of which no stage takes longer than `limit`, and a bound of those seconds; None: there is none."""
        return self._counted(limit, effort) if self.alike else self._cut(limit, effort)

    def _counted(self, limit: float, effort: Effort) -> tuple[list[Run], float] | None:
        """Layers that are alike: a kind and a number for each place."""
        program, layers = Program(), []
        kinds: dict[int, list[tuple[int, float]]] = {kind: [] for kind in range(len(self.costs))}
        columns: list[tuple[int, int, int, int]] = []
        for place in range(self.stages):
            here = []
            for kind, c in enumerate(self.costs):
                most = self._reach(kind, place, limit)
                if not most or not c.most:
                    continue
                table = self.tables[place][kind]
                plain = self._plain(kind, place, most)
                slope = table[2] - table[1] if plain > 1 else 0.0
                on = program.column(table[1] - slope if plain else 0.0)
                near = program.column(slope, 0, plain)
                program.row([(near, 1), (on, -plain)], high=0)
                own = [near]
                if most > plain:  # what is in host memory takes longer, each layer by as much
                    begin = table[plain] if plain else 0.0
                    far = program.column((table[most] - begin) / (most - plain), 0, most - plain)
                    program.row([(far, 1), (on, plain - most)], high=0)
                    own.append(far)
                program.row([*((each, 1) for each in own), (on, -1)], low=0)
                here.append((on, 1.0))
                kinds[kind].append((on, 1.0))
                layers += own
                columns.append((place, kind, on, len(own)))
            if not here:
                return None
            program.row(here, 1, 1)
        program.row([(each, 1) for each in layers], self.layers, self.layers)
        for kind, found in kinds.items():
            program.row(found, high=self.costs[kind].most)
        solved = program.solve(effort)
        if solved.values is None:
            return None
        counts = [(kind, sum(solved.whole(on + 1 + n) for n in range(own))) for _, kind, on, own in columns if solved.is_on(on)]
        return self._dealt(counts, limit), solved.bound

    def _dealt(self, counts: list[tuple[int, int]], limit: float) -> list[Run]:
        """Layers of equal kinds dealt out evenly, and equal kinds side by side where places are exchangeable: as good, and as people set it up."""
        kinds = [kind for kind, _ in counts]
        if len(set(self.in_flight)) == 1 and self.stages > 2:
            ends = {kinds[0]: -1, kinds[-1]: len(self.costs)}
            kinds[1:-1] = sorted(kinds[1:-1], key=lambda kind: ends.get(kind, kind))
        shares = [1] * self.stages
        for kind in set(kinds):
            places = [place for place, each in enumerate(kinds) if each == kind]
            rest = sum(count for each, count in counts if each == kind) - len(places)
            for _ in range(rest):
                able = [p for p in places if shares[p] < self._reach(kind, p, limit)]
                if not able:
                    return self._runs([kind for kind, _ in counts], [count for _, count in counts])
                shares[min(able, key=lambda p: (self.tables[p][kind][shares[p] + 1], p))] += 1
        return self._runs(kinds, shares)

    def _runs(self, kinds: list[int], shares: list[int]) -> list[Run]:
        ends = [0, *accumulate(shares)]
        return [
            Run(kind, ends[place], ends[place + 1], self.on_host(kind, place, ends[place], ends[place + 1]))
            for place, kind in enumerate(kinds)
        ]

    def _edges(self, limit: float) -> list[tuple[int, int, int, int, float]]:
        """Runs that take no longer: kind, place, start, stop, seconds. A place counts where memory or a micro-batch differs by it."""
        found = []
        distinct = len(set(self.in_flight)) > 1
        for place in range(self.stages) if distinct else sorted({0, 1 % self.stages, self.stages - 1}):
            is_first, is_last = place == 0, place == self.stages - 1
            for kind, c in enumerate(self.costs):
                if not c.most:
                    continue
                starts = (0,) if is_first else range(place if distinct else 1, self.layers)
                for start in starts:
                    for stop in (self.layers,) if is_last else range(start + 1, self.layers - (self.stages - 1 - place if distinct else 0) + 1):
                        seconds = self.seconds(kind, place, start, stop)
                        if seconds <= limit * SLACK and seconds < inf:
                            found.append((kind, place, start, stop, seconds))
                        elif not is_last:
                            break
        return found

    def _cut(self, limit: float, effort: Effort) -> tuple[list[Run], float] | None:
        """Layers that are not alike: a way from the first layer to the last, each step a stage."""
        program = Program()
        edges = self._edges(limit)
        if not edges:
            return None
        distinct = len(set(self.in_flight)) > 1
        leave: dict[tuple[int, int], list[tuple[int, float]]] = {}
        kinds: dict[int, list[tuple[int, float]]] = {}
        last = (self.stages if distinct else 2, self.layers)
        for kind, place, start, stop, seconds in edges:
            column = program.column(seconds)
            before, after = (place, place + 1) if distinct else (min(place, 1), 1)
            after = last[0] if place == self.stages - 1 else after
            leave.setdefault((before, start), []).append((column, 1.0))
            leave.setdefault((after, stop), []).append((column, -1.0))
            kinds.setdefault(kind, []).append((column, 1.0))
        for at, terms in leave.items():
            flow = 1.0 if at == (0, 0) else -1.0 if at == last else 0.0
            program.row(terms, flow, flow)
        if (0, 0) not in leave or last not in leave:
            return None
        program.row([(column, 1.0) for column in range(len(edges))], self.stages, self.stages)
        for kind, terms in kinds.items():
            program.row(terms, high=self.costs[kind].most)
        solved = program.solve(effort)
        if solved.values is None:
            return None
        chosen = sorted((edge for column, edge in enumerate(edges) if solved.is_on(column)), key=lambda edge: edge[2])
        runs = [Run(kind, start, stop, self.on_host(kind, place, start, stop)) for kind, place, start, stop, _ in chosen]
        return runs, solved.bound

    def seconds_of(self, runs: Sequence[Run]) -> list[float]:
        """Of each stage."""
        return [self.seconds(run.kind, place, run.start, run.stop) for place, run in enumerate(runs)]
