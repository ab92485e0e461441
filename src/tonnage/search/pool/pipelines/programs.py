"""The two programs of a pipeline whose slowest stage is limited. Layers that are all alike are counted: each place has
a kind and a number of layers. Layers that are not are cut: a stage is a run from one layer to another.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import permutations
from math import inf

from tonnage.search.pool.highs import Effort, Program
from tonnage.search.pool.pipelines.costs import SLACK, StageLayers
from tonnage.search.pool.pipelines.stages import Stages

MAX_ORDERED = 4  # kinds whose orders are all tried


def counted(pipe: Stages, limit: float, effort: Effort) -> tuple[list[StageLayers], float] | None:
    """Layers that are alike: a kind and a number for each place."""
    program, layers = Program(), []
    kinds: dict[int, list[tuple[int, float]]] = {kind: [] for kind in range(len(pipe.costs))}
    columns: list[tuple[int, int, int, int]] = []
    for place in range(pipe.stages):
        here = []
        for kind, c in enumerate(pipe.costs):
            most = pipe.reach(kind, place, limit)
            if not most or not c.most:
                continue
            table = pipe.tables[place][kind]
            plain = pipe.plain(kind, place, most)
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
            program.row([*((column, 1) for column in own), (on, -1)], low=0)
            here.append((on, 1.0))
            kinds[kind].append((on, 1.0))
            layers += own
            columns.append((place, kind, on, len(own)))
        if not here:
            return None
        program.row(here, 1, 1)
    program.row([(column, 1) for column in layers], pipe.layers, pipe.layers)
    for kind, stages_on in kinds.items():
        program.row(stages_on, high=pipe.costs[kind].most)
    solved = program.solve(effort)
    if not solved.found:
        return None
    counts = [
        (kind, sum(solved.whole(on + 1 + n) for n in range(own))) for _, kind, on, own in columns if solved.is_on(on)
    ]
    return _dealt(pipe, counts, limit), solved.bound


def orders_of(kinds: Sequence[int]) -> Iterator[list[int]]:
    """The same stages with those of a kind side by side, in every order of kinds; also with the first and the last
    one where they are.
    """
    chosen = dict.fromkeys(kinds)
    first, *middle = kinds
    for order in permutations(chosen) if len(chosen) <= MAX_ORDERED else [tuple(chosen)]:
        yield [kind for kind in order for other in kinds if other == kind]
        yield [first, *(kind for kind in order for other in middle[:-1] if other == kind), *middle[-1:]]


def _dealt(pipe: Stages, counts: list[tuple[int, int]], limit: float) -> list[StageLayers]:
    """As many stages of each kind, those of a kind side by side and their layers dealt out evenly, where that is as
    good: so people set it up.
    """
    plain = pipe.runs([kind for kind, _ in counts], [count for _, count in counts])
    best = sum(pipe.seconds_of(plain)) * SLACK
    for kinds in orders_of([kind for kind, _ in counts]):
        for shares in (_in_order(pipe, kinds, counts, limit), _evenly(pipe, kinds, limit)):
            if shares is None:
                continue
            runs = pipe.runs(kinds, shares)
            if sum(pipe.seconds_of(runs)) <= best:
                return runs
    return plain


def _in_order(pipe: Stages, kinds: list[int], counts: list[tuple[int, int]], limit: float) -> list[int] | None:
    """Each kind's own layers over its stages, each next one where it takes least."""
    shares = [1] * len(kinds)
    for kind in set(kinds):
        places = [place for place, other in enumerate(kinds) if other == kind]
        rest = sum(count for other, count in counts if other == kind) - len(places)
        if not _deal(pipe, shares, kinds, places, rest, limit):
            return None
    return shares


def _evenly(pipe: Stages, kinds: list[int], limit: float) -> list[int] | None:
    """All layers over all stages, each next one where it takes least."""
    shares = [1] * len(kinds)
    return shares if _deal(pipe, shares, kinds, list(range(len(kinds))), pipe.layers - len(kinds), limit) else None


def _deal(pipe: Stages, shares: list[int], kinds: list[int], places: list[int], rest: int, limit: float) -> bool:
    reach = {place: pipe.reach(kinds[place], place, limit) for place in places}
    if any(reach[place] < 1 for place in places) or sum(reach.values()) < rest + len(places):
        return False
    waiting = [(pipe.tables[place][kinds[place]][2], place) for place in places if reach[place] > 1]
    heapify(waiting)
    for _ in range(rest):
        if not waiting:
            return False
        _, place = heappop(waiting)
        shares[place] += 1
        if shares[place] < reach[place]:
            heappush(waiting, (pipe.tables[place][kinds[place]][shares[place] + 1], place))
    return True


def _edges(pipe: Stages, limit: float) -> list[tuple[int, int, int, int, float]]:
    """Runs that take no longer: kind, place, start, stop, seconds. A place counts where memory or a micro-batch
    differs by it.
    """
    edges = []
    distinct = len(set(pipe.in_flight)) > 1
    for place in range(pipe.stages) if distinct else sorted({0, 1 % pipe.stages, pipe.stages - 1}):
        is_first, is_last = place == 0, place == pipe.stages - 1
        for kind, c in enumerate(pipe.costs):
            if not c.most:
                continue
            starts = (0,) if is_first else range(place if distinct else 1, pipe.layers)
            for start in starts:
                for stop in (
                    (pipe.layers,)
                    if is_last
                    else range(start + 1, pipe.layers - (pipe.stages - 1 - place if distinct else 0) + 1)
                ):
                    seconds = pipe.seconds(kind, place, start, stop)
                    if seconds <= limit * SLACK and seconds < inf:
                        edges.append((kind, place, start, stop, seconds))
                    elif not is_last:
                        break
    return edges


def cut(pipe: Stages, limit: float, effort: Effort) -> tuple[list[StageLayers], float] | None:
    """Layers that are not alike: a way from the first layer to the last, each step a stage."""
    program = Program()
    edges = _edges(pipe, limit)
    if not edges:
        return None
    distinct = len(set(pipe.in_flight)) > 1
    leave: dict[tuple[int, int], list[tuple[int, float]]] = {}
    kinds: dict[int, list[tuple[int, float]]] = {}
    last = (pipe.stages if distinct else 2, pipe.layers)
    for kind, place, start, stop, seconds in edges:
        column = program.column(seconds)
        before, after = (place, place + 1) if distinct else (min(place, 1), 1)
        after = last[0] if place == pipe.stages - 1 else after
        leave.setdefault((before, start), []).append((column, 1.0))
        leave.setdefault((after, stop), []).append((column, -1.0))
        kinds.setdefault(kind, []).append((column, 1.0))
    for at, terms in leave.items():
        flow = 1.0 if at == (0, 0) else -1.0 if at == last else 0.0
        program.row(terms, flow, flow)
    if (0, 0) not in leave or last not in leave:
        return None
    program.row([(column, 1.0) for column in range(len(edges))], pipe.stages, pipe.stages)
    for kind, terms in kinds.items():
        program.row(terms, high=pipe.costs[kind].most)
    solved = program.solve(effort)
    if not solved.found:
        return None
    chosen = sorted((edge for column, edge in enumerate(edges) if solved.is_on(column)), key=lambda edge: edge[2])
    runs = [
        StageLayers(kind, start, stop, pipe.on_host(kind, place, start, stop)) for kind, place, start, stop, _ in chosen
    ]
    return runs, solved.bound
