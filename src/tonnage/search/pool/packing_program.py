"""Jobs packed onto a pool: as many as can be, by priority, at least cost; what runs already stays where it is, or
moves as little as can be.
"""

from collections import Counter

from msgspec import Struct

from tonnage.kernel.units import GIB
from tonnage.search.pool.highs import Effort, Program, Solved
from tonnage.search.pool.jobs import Way, Ways
from tonnage.search.pool.parts import Pool

LITTLE = 1e-4  # dollars an hour: what decides between equal ones
KEEP = 1e-6  # of an optimum that the next program keeps


class Seat(Struct, frozen=True, kw_only=True, eq=False):
    """A column: so many replicas of a job in this way on this part; `accelerator`: which of the part it shares, -1:
    it has its own.
    """

    job: int
    way: Way
    part: str
    node: str
    column: int
    accelerator: int = -1


class Packing:
    """The program of all jobs. Objectives are added one after the other, each kept by the next."""

    def __init__(self, pool: Pool, jobs: list[Ways]):
        self.pool, self.jobs = pool, jobs
        self.program = Program()
        self.parts = {
            part: (kind, node) for kind in pool.kinds for part, node in zip(kind.parts, kind.nodes, strict=True)
        }
        self.placed = [self.program.column() for _ in jobs]
        self.seats: list[Seat] = []
        self.several: list[
            tuple[int, Way, int, dict[str, int]]
        ] = []  # job, way, whether it is taken, and of each part whether
        for number, ways in enumerate(jobs):
            self._add_seats(number, ways)
        self.shared = self._shared()
        self._counts()
        self._rooms()
        self.kept = self._kept()

    def _add_seats(self, number: int, ways: Ways) -> None:
        for way in ways.ways:
            if way.parts > 1:
                is_used = self.program.column()
                of = {part: self.program.column() for part in way.kind.parts}
                self.program.row([*((column, 1.0) for column in of.values()), (is_used, -float(way.parts))], 0, 0)
                self.several.append((number, way, is_used, of))
                continue
            for part, node in zip(way.kind.parts, way.kind.nodes, strict=True):
                shares = ways.job.shares and way.width == 1
                for accelerator in range(way.kind.each) if shares else (-1,):
                    fit = int(way.kind.free // max(way.needed, 1)) if shares else way.kind.each // way.width
                    most = min(ways.job.replicas, fit)
                    if most:
                        column = self.program.column(0.0, 0, most)
                        self.seats.append(
                            Seat(job=number, way=way, part=part, node=node, column=column, accelerator=accelerator)
                        )

    def _shared(self) -> dict[tuple[str, int], int]:
        """Accelerators that replicas share: whether each is one, and that it holds them all."""
        columns: dict[tuple[str, int], int] = {}
        for seat in self.seats:
            if seat.accelerator >= 0:
                columns.setdefault((seat.part, seat.accelerator), -1)
        for part, accelerator in sorted(columns):
            column = columns[part, accelerator] = self.program.column()
            kind = self.parts[part][0]
            own = [
                (seat.column, seat.way.needed / GIB)
                for seat in self.seats
                if (seat.part, seat.accelerator) == (part, accelerator)
            ]
            self.program.row([*own, (column, -kind.free / GIB)], high=0)
            if (before := columns.get((part, accelerator - 1))) is not None and before >= 0:
                self.program.row([(column, 1), (before, -1)], high=0)  # the first ones first: they are alike
        return columns

    def _counts(self) -> None:
        """Add the rows that make a job count as placed only with all its replicas."""
        for number, ways in enumerate(self.jobs):
            terms = [(seat.column, 1.0) for seat in self.seats if seat.job == number]
            terms += [(is_used, 1.0) for job, _, is_used, _ in self.several if job == number]
            self.program.row([*terms, (self.placed[number], -float(ways.job.replicas))], 0, 0)

    def _rooms(self) -> None:
        """Accelerators of each part, and host memory of each node."""
        hosts: dict[str, list[tuple[int, float]]] = {}
        rooms: dict[str, float] = {}
        for part, (kind, node) in self.parts.items():
            terms = [
                (seat.column, float(seat.way.width))
                for seat in self.seats
                if seat.part == part and seat.accelerator < 0
            ]
            terms += [(column, 1.0) for (where, _), column in self.shared.items() if where == part]
            terms += [(of[part], float(way.width)) for _, way, _, of in self.several if part in of]
            if terms:
                self.program.row(terms, high=kind.each)
            held = [
                (seat.column, seat.way.host * seat.way.width / GIB)
                for seat in self.seats
                if seat.part == part and seat.way.host
            ]
            held += [
                (of[part], way.host * way.width / GIB) for _, way, _, of in self.several if part in of and way.host
            ]
            hosts.setdefault(node, []).extend(held)
            if kind.node.host_memory_bytes is not None:
                rooms[node] = kind.node.host_memory_bytes / GIB
        for node, held in hosts.items():
            if held and node in rooms:
                self.program.row(held, high=rooms[node])

    def _kept(self) -> dict[tuple[int, str], int]:
        """Replicas of a job that stay on a node on which they run: a column for each."""
        columns = {}
        for number, ways in enumerate(self.jobs):
            for node, now in Counter(ways.job.runs_on).items():
                terms = [(seat.column, 1.0) for seat in self.seats if seat.job == number and seat.node == node]
                terms += [
                    (of[part], 1.0)
                    for job, _, _, of in self.several
                    if job == number
                    for part in of
                    if self.parts[part][1] == node
                ]
                if terms:
                    column = self.program.column(0.0, 0, now)
                    self.program.row([*terms, (column, -1.0)], low=0)
                    columns[number, node] = column
        return columns

    # ---- one objective after the other ----

    def most(self, gains: dict[int, float], effort: Effort) -> Solved:
        """As much as can be of these columns; kept from then on."""
        for column in range(len(self.program.costs)):
            self.program.costs[column] = -gains.get(column, 0.0)
        solved = self.program.solve(effort)
        if solved.values is not None and gains:
            slack = KEEP * max(abs(solved.objective), 1.0)
            self.program.row(list(gains.items()), low=-solved.objective - slack)
        return solved

    def running(self) -> dict[int, float]:
        """The gain of replicas that stay where they run."""
        return dict.fromkeys(self.kept.values(), 1.0)

    def bytes_kept(self) -> dict[int, float]:
        """The gain of GiB that need not be copied."""
        return {
            column: max((way.copied for way in self.jobs[job].ways), default=0.0) / GIB
            for (job, _), column in self.kept.items()
        }

    def priority(self) -> dict[int, float]:
        return {column: ways.job.priority for column, ways in zip(self.placed, self.jobs, strict=True)}

    def thrift(self) -> dict[int, float]:
        """Less cost: dollars an hour where all prices are known, else accelerators. Of equal ones the nodes that the
        inventory names first.
        """
        priced = all(kind.price is not None for kind in self.pool.kinds)
        order = {part: number / len(self.parts) for number, part in enumerate(self.parts)}

        def worth_of(part: str) -> float:
            return -((self.parts[part][0].price or 0.0) if priced else 1.0) - LITTLE * (1 + order[part])

        worths = {seat.column: worth_of(seat.part) * seat.way.width for seat in self.seats if seat.accelerator < 0}
        worths |= {column: worth_of(part) for (part, _), column in self.shared.items()}
        return worths | {
            column: worth_of(part) * way.width for _, way, _, of in self.several for part, column in of.items()
        }
