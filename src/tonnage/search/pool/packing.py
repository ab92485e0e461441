"""Jobs packed onto a pool: as many as can be, by priority, at least cost; what runs already stays where it is, or moves as little as can be."""

from collections import Counter

from msgspec import Struct

from tonnage.document_pool import JobRow, MoveRow
from tonnage.errors import InvalidInput
from tonnage.formulas.time import transfer_seconds
from tonnage.search.pool._highs import Effort, Program, Solved
from tonnage.search.pool.inventory import node_names
from tonnage.search.pool.jobs import Way, Ways, ways_of
from tonnage.search.pool.parts import Kind, Pool, node_of
from tonnage.search.pool.placement import Placement, asked_of, document, proof, searched
from tonnage.spec import Link
from tonnage.units import GIB, counted, human

KEEP = 1e-6  # of an optimum that the next program keeps


class Seat(Struct, frozen=True, kw_only=True, eq=False):
    """A column: so many replicas of a job in this way on this part; `accelerator`: which of the part it shares, -1: it has its own."""

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
        for number, each in enumerate(jobs):
            self._sit(number, each)
        self.shared = self._shared()
        self._counts()
        self._rooms()
        self.kept = self._kept()

    def _sit(self, number: int, each: Ways) -> None:
        for way in each.ways:
            if way.parts > 1:
                taken = self.program.column()
                of = {part: self.program.column() for part in way.kind.parts}
                self.program.row([*((column, 1.0) for column in of.values()), (taken, -float(way.parts))], 0, 0)
                self.several.append((number, way, taken, of))
                continue
            for part, node in zip(way.kind.parts, way.kind.nodes, strict=True):
                shares = each.job.shares and way.width == 1
                for accelerator in range(way.kind.each) if shares else (-1,):
                    fit = int(way.kind.free // max(way.needed, 1)) if shares else way.kind.each // way.width
                    most = min(each.job.replicas, fit)
                    if most:
                        column = self.program.column(0.0, 0, most)
                        self.seats.append(
                            Seat(job=number, way=way, part=part, node=node, column=column, accelerator=accelerator)
                        )

    def _shared(self) -> dict[tuple[str, int], int]:
        """Accelerators that replicas share: whether each is one, and that it holds them all."""
        found: dict[tuple[str, int], int] = {}
        for seat in self.seats:
            if seat.accelerator >= 0:
                found.setdefault((seat.part, seat.accelerator), -1)
        for part, accelerator in sorted(found):
            column = found[part, accelerator] = self.program.column()
            kind = self.parts[part][0]
            own = [
                (seat.column, seat.way.needed / GIB)
                for seat in self.seats
                if (seat.part, seat.accelerator) == (part, accelerator)
            ]
            self.program.row([*own, (column, -kind.free / GIB)], high=0)
            if (before := found.get((part, accelerator - 1))) is not None and before >= 0:
                self.program.row([(column, 1), (before, -1)], high=0)  # the first ones first: they are alike
        return found

    def _counts(self) -> None:
        """A job is placed where all its replicas are."""
        for number, each in enumerate(self.jobs):
            terms = [(seat.column, 1.0) for seat in self.seats if seat.job == number]
            terms += [(taken, 1.0) for job, _, taken, _ in self.several if job == number]
            self.program.row([*terms, (self.placed[number], -float(each.job.replicas))], 0, 0)

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
        found = {}
        for number, each in enumerate(self.jobs):
            for node, now in Counter(each.job.runs_on).items():
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
                    found[number, node] = column
        return found

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
        """Replicas that stay."""
        return dict.fromkeys(self.kept.values(), 1.0)

    def bytes_kept(self) -> dict[int, float]:
        """GiB that need not be copied."""
        return {
            column: max((way.copied for way in self.jobs[job].ways), default=0.0) / GIB
            for (job, _), column in self.kept.items()
        }

    def priority(self) -> dict[int, float]:
        return {column: each.job.priority for column, each in zip(self.placed, self.jobs, strict=True)}

    def thrift(self) -> dict[int, float]:
        """Less cost: dollars an hour where all prices are known, else accelerators; a little less for what is shared."""
        priced = all(kind.price is not None for kind in self.pool.kinds)

        def each(kind: Kind) -> float:
            return -(kind.price or 0.0) - 1e-6 if priced else -1.0

        found = {seat.column: each(seat.way.kind) * seat.way.width for seat in self.seats if seat.accelerator < 0}
        found |= {column: each(self.parts[part][0]) for (part, _), column in self.shared.items()}
        return found | {column: each(way.kind) * way.width for _, way, _, of in self.several for column in of.values()}


def pack(pool: Pool, *, effort: Effort) -> Placement:
    """All jobs of the inventory. Where nodes leave or join, what runs may move, and moves as little as can be."""
    if not pool.inventory.jobs:
        raise InvalidInput("the inventory has no jobs, and no MODEL is named: write jobs into it, or name one.")
    jobs = [ways_of(job, pool) for job in pool.inventory.jobs]
    packing = Packing(pool, jobs)
    elastic = bool(pool.left or pool.joined)
    first = packing.priority()
    steps = [first, packing.running(), packing.bytes_kept()] if elastic else [packing.running(), first]
    worth = proven = 0.0
    solved: Solved | None = None
    for gains in [*steps, packing.thrift()]:
        if not gains and gains is not first:
            continue
        again = packing.most(gains, effort)
        if again.values is None:
            if solved is None:
                raise effort.spent()
            break
        solved = again
        if gains is first:
            worth, proven = -again.objective, -again.bound
    return _answer(pool, packing, solved, effort, worth, proven, elastic=elastic)


# ---- the answer ----


class Spot(Struct, frozen=True, kw_only=True, eq=False):
    """Where one replica is: a way, its nodes."""

    way: Way
    nodes: list[str]
    shares: bool = False


def _spots(packing: Packing, solved: Solved, number: int) -> list[Spot]:
    found = []
    beside = Counter[tuple[str, int]]()
    for seat in packing.seats:
        if seat.accelerator >= 0:
            beside[seat.part, seat.accelerator] += solved.whole(seat.column)
    for seat in packing.seats:
        if seat.job == number:
            spot = Spot(
                way=seat.way,
                nodes=[seat.node],
                shares=seat.accelerator >= 0 and beside[seat.part, seat.accelerator] > 1,
            )
            found += [spot] * solved.whole(seat.column)
    for job, way, taken, of in packing.several:
        if job == number and solved.is_on(taken):
            found.append(
                Spot(way=way, nodes=[packing.parts[part][1] for part, column in of.items() if solved.is_on(column)])
            )
    return found


def _used(packing: Packing, solved: Solved | None) -> int:
    """Accelerators that something is on; one that is shared counts once."""
    if solved is None or solved.values is None:
        return 0
    own = sum(seat.way.width * solved.whole(seat.column) for seat in packing.seats if seat.accelerator < 0)
    shared = {
        (seat.part, seat.accelerator) for seat in packing.seats if seat.accelerator >= 0 and solved.whole(seat.column)
    }
    return own + len(shared) + sum(way.size for _, way, taken, _ in packing.several if solved.is_on(taken))


def _answer(
    pool: Pool, packing: Packing, solved: Solved | None, effort: Effort, worth: float, proven: float, *, elastic: bool
) -> Placement:
    rows: list[JobRow] = []
    moves: list[MoveRow] = []
    warnings: list[str] = []
    for number, each in enumerate(packing.jobs):
        spots = _spots(packing, solved, number) if solved is not None and solved.values is not None else []
        made, moved = _rows(pool, each, spots)
        rows += made
        moves += moved
        warnings += _stranded(pool, each, packing, number)
        if not made[0].nodes:
            made[0].why = _why_not(each, packing)
    unplaced = list(dict.fromkeys(row.job for row in rows if row.state == "unplaced"))
    spent = [row.usd_per_hour for row in rows if row.nodes]
    usd = (
        None
        if not spent or any(each is None for each in spent)
        else float(sum(each for each in spent if each is not None))
    )
    search = searched(
        effort, "priority of placed jobs", "priority", sum(len(each.ways) for each in packing.jobs), worth, proven
    )
    text = _text(pool, len(packing.jobs), _used(packing, solved), moves, unplaced, proof(search), elastic=elastic)
    question = asked_of(pool, effort, jobs=len(packing.jobs), leave=sorted(pool.left), join=sorted(pool.joined))
    if any(kind.price is None for kind in pool.kinds):
        names = ", ".join(dict.fromkeys(kind.name for kind in pool.kinds if kind.price is None))
        warnings.append(
            f"no price of {names} is known: of equal placements the one with fewest accelerators is taken, not the cheapest."
        )
    first = next((row for row in rows if row.why), None)
    return document(pool, search, "jobs", placed=not unplaced, text=text, question=question, jobs=rows, moves=moves, usd=usd,
                    binding=f"{first.job}: {first.why}" if first else "", nearest_miss=_miss(packing, unplaced),
                    figures={"accelerators": float(_used(packing, solved))}, warnings=warnings)  # fmt: skip


def _usd(packing: Packing, solved: Solved | None) -> float | None:
    """US dollars an hour of the accelerators that something is on; None where a price is not known."""
    if solved is None or solved.values is None:
        return None
    total = 0.0
    shared = {
        (seat.part, seat.accelerator): seat.way.kind
        for seat in packing.seats
        if seat.accelerator >= 0 and solved.whole(seat.column)
    }
    used = [(kind, 1) for kind in shared.values()]
    used += [
        (seat.way.kind, seat.way.width * solved.whole(seat.column)) for seat in packing.seats if seat.accelerator < 0
    ]
    used += [(way.kind, way.size) for _, way, taken, _ in packing.several if solved.is_on(taken)]
    for kind, count in used:
        if count and kind.price is None:
            return None
        total += (kind.price or 0.0) * count
    return total


def _rows(pool: Pool, each: Ways, spots: list[Spot]) -> tuple[list[JobRow], list[MoveRow]]:
    """A row for each replica, those that stay first; and what moves."""
    job = each.job
    now = Counter(job.runs_on)
    stays, others = [], []
    for spot in spots:
        at = next((node for node in spot.nodes if now[node] > 0), None)
        if at is None:
            others.append(spot)
        else:
            now[at] -= 1
            stays.append(spot)
    left = list(now.elements())
    rows = [_row(job.name, number, job.kind, "stays", spot) for number, spot in enumerate(stays, 1)]
    moves = []
    for number, spot in enumerate(others, len(stays) + 1):
        source = left.pop(0) if left else ""
        rows.append(_row(job.name, number, job.kind, "moves" if source else "new", spot))
        if source:
            moves.append(MoveRow(job=job.name, replica=number, leaves=source, goes_to=spot.nodes, copied_bytes=spot.way.copied,
                                 seconds=_copy_seconds(pool, source, spot)))  # fmt: skip
    if not spots:
        rows = [
            JobRow(job=job.name, replica=number, kind=job.kind, state="unplaced")
            for number in range(1, job.replicas + 1)
        ]
    return rows, moves


def _row(name: str, number: int, kind: str, state: str, spot: Spot) -> JobRow:
    way = spot.way
    return JobRow(
        job=name, replica=number, kind=kind, state=state, nodes=spot.nodes, accelerator=way.kind.name, accelerators=way.size, shares=spot.shares,  # type: ignore[arg-type]
        needed_bytes=way.needed, usable_bytes=way.kind.free, host_bytes=way.host * way.size, offload=way.offload, seconds=way.seconds,
        tokens_per_second=way.tokens_per_second, usd_per_hour=way.cost if not spot.shares or way.cost is None else way.cost * way.needed / way.kind.free,
    )  # fmt: skip


def _copy_seconds(pool: Pool, source: str, spot: Spot) -> float | None:
    """Over the slower of what leads out of both nodes, every accelerator of the replica with a link of its own."""
    links = [spot.way.kind.node.outside, _outside(pool, source)]
    if any(link is None for link in links):
        return None
    rate = min(link.bytes_per_second for link in links if link is not None)
    return float(transfer_seconds.evaluate(M=spot.way.copied / spot.way.size, W=rate))


def _outside(pool: Pool, node: str) -> Link | None:
    for form in (*pool.inventory.nodes, *pool.inventory.spare):
        if node in node_names(form):
            return node_of(form).outside
    return None


def _stranded(pool: Pool, each: Ways, packing: Packing, number: int) -> list[str]:
    """Nodes on which a job is said to run, and on which by the estimate it cannot."""
    found = []
    for node in dict.fromkeys(each.job.runs_on):
        if node not in pool.left and (number, node) not in packing.kept:
            found.append(
                f"{each.job.name} is said to run on {node}, where by the estimate it does not fit: it is placed anew."
            )
    return found


def _why_not(each: Ways, packing: Packing) -> str:
    job = each.job
    if not each.ways:
        return "no node holds it: " + (each.refused[0] if each.refused else "no node has so many accelerators")
    able = ", ".join(dict.fromkeys(f"{way.size}x{way.kind.name}" for way in each.ways))
    many = f"{counted(job.replicas, 'replicas')} of " if job.replicas > 1 else ""
    alone = {
        way.kind.name: sum(kind.size for kind in packing.pool.kinds if kind.name == way.kind.name) // way.size
        for way in each.ways
    }
    if sum(alone.values()) < job.replicas:
        return f"it needs {many}{able}, and the whole pool has room for {sum(alone.values())}"
    return f"it needs {many}{able}, and jobs of as high a priority have them"


def _miss(packing: Packing, unplaced: list[str]) -> str:
    for each in packing.jobs:
        if each.job.name in unplaced and not each.ways and each.refused:
            return f"{each.job.name} on {each.refused[0]}"
    return ""


def _text(
    pool: Pool, total: int, used: int, moves: list[MoveRow], unplaced: list[str], proven: str, *, elastic: bool
) -> str:
    on = (
        f"{used} of {counted(pool.size, 'accelerators')} of {len(pool.types)} types"
        if len(pool.types) > 1
        else f"{used} of {pool.describe()}"
    )
    said = f"all {counted(total, 'jobs')} placed on {on}"
    if unplaced:
        said = f"{total - len(unplaced)} of {counted(total, 'jobs')} placed on {on}: {', '.join(unplaced)} not"
    if not elastic and not moves:
        return f"{said}, {proven}"
    moved = f"{counted(len(moves), 'replicas')} {'moves' if len(moves) == 1 else 'move'}" if moves else "nothing moves"
    size = f" ({human(sum(each.copied_bytes for each in moves), 'bytes')})" if moves else ""
    return f"{said}, {moved}{size}, {proven}"
