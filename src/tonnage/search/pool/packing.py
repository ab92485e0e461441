"""Jobs packed onto a pool, as an answer: where each replica is, what moves, and why a job has no place."""

from collections import Counter

from msgspec import Struct

from tonnage.documents.pool import JobRow, MoveRow
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.units import counted, human
from tonnage.search.pool.highs import Effort, Solved
from tonnage.search.pool.inventory import node_names
from tonnage.search.pool.jobs import Way, Ways, ways_of
from tonnage.search.pool.packing_program import Packing
from tonnage.search.pool.parts import Pool, node_of
from tonnage.search.pool.placement import Placement, asked_of, document, proof, searched
from tonnage.spec import Link


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


class Spot(Struct, frozen=True, kw_only=True, eq=False):
    """Where one replica is: a way, its nodes; `beside`: replicas that its accelerator has, itself too."""

    way: Way
    nodes: list[str]
    beside: int = 1

    @property
    def shares(self) -> bool:
        return self.beside > 1

    @property
    def usd_per_hour(self) -> float | None:
        """An accelerator that is shared is paid for whole: each replica on it bears an equal part."""
        return None if self.way.cost is None else self.way.cost / self.beside


def _spots(packing: Packing, solved: Solved, number: int) -> list[Spot]:
    spots = []
    replicas_on = Counter[tuple[str, int]]()
    for seat in packing.seats:
        if seat.accelerator >= 0:
            replicas_on[seat.part, seat.accelerator] += solved.whole(seat.column)
    for seat in packing.seats:
        if seat.job == number:
            spot = Spot(
                way=seat.way,
                nodes=[seat.node],
                beside=max(replicas_on[seat.part, seat.accelerator], 1) if seat.accelerator >= 0 else 1,
            )
            spots += [spot] * solved.whole(seat.column)
    for job, way, is_used, of in packing.several:
        if job == number and solved.is_on(is_used):
            spots.append(
                Spot(way=way, nodes=[packing.parts[part][1] for part, column in of.items() if solved.is_on(column)])
            )
    return spots


def _used(packing: Packing, solved: Solved | None) -> int:
    """Accelerators that something is on; one that is shared counts once."""
    if solved is None or solved.values is None:
        return 0
    own = sum(seat.way.width * solved.whole(seat.column) for seat in packing.seats if seat.accelerator < 0)
    shared = {
        (seat.part, seat.accelerator) for seat in packing.seats if seat.accelerator >= 0 and solved.whole(seat.column)
    }
    return own + len(shared) + sum(way.size for _, way, is_used, _ in packing.several if solved.is_on(is_used))


def _answer(
    pool: Pool, packing: Packing, solved: Solved | None, effort: Effort, worth: float, proven: float, *, elastic: bool
) -> Placement:
    rows: list[JobRow] = []
    moves: list[MoveRow] = []
    warnings: list[str] = []
    for number, ways in enumerate(packing.jobs):
        spots = _spots(packing, solved, number) if solved is not None and solved.values is not None else []
        job_rows, moved = _rows(pool, ways, spots)
        rows += job_rows
        moves += moved
        warnings += _stranded(pool, ways, packing, number)
        if not job_rows[0].nodes:
            job_rows[0].why = _why_not(ways, packing)
    unplaced = list(dict.fromkeys(row.job for row in rows if row.state == "unplaced"))
    spent = [row.usd_per_hour for row in rows if row.nodes]
    usd = (
        None
        if not spent or any(price is None for price in spent)
        else float(sum(price for price in spent if price is not None))
    )
    search = searched(
        effort, "priority of placed jobs", "priority", sum(len(ways.ways) for ways in packing.jobs), worth, proven
    )
    text = _text(pool, len(packing.jobs), _used(packing, solved), moves, unplaced, proof(search), elastic=elastic)
    question = asked_of(pool, effort, jobs=len(packing.jobs), leave=sorted(pool.left), join=sorted(pool.joined))
    if any(kind.price is None for kind in pool.kinds):
        names = listed(dict.fromkeys(kind.name for kind in pool.kinds if kind.price is None))
        warnings.append(
            Message(
                "no price of {names} is known: of equal placements the one with fewest accelerators is "
                "taken, not the cheapest.",
                names=names,
            )
        )
    if any(row.shares and row.usd_per_hour for row in rows):
        warnings.append(
            "an accelerator that replicas share is paid for whole: each replica on it bears an equal part of its price."
        )
    first = next((row for row in rows if row.why), None)
    return document(
        pool,
        search,
        "jobs",
        placed=not unplaced,
        text=text,
        question=question,
        jobs=rows,
        moves=moves,
        usd=usd,
        binding=joined(": ", (first.job, first.why)) if first else "",
        nearest_miss=_miss(packing, unplaced),
        figures={"accelerators": float(_used(packing, solved))},
        warnings=warnings,
    )


def _rows(pool: Pool, ways: Ways, spots: list[Spot]) -> tuple[list[JobRow], list[MoveRow]]:
    """A row for each replica, those that stay first; and a row for each replica that moves."""
    job = ways.job
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
            moves.append(
                MoveRow(
                    job=job.name,
                    replica=number,
                    leaves=source,
                    goes_to=spot.nodes,
                    copied_bytes=spot.way.copied,
                    seconds=_copy_seconds(pool, source, spot),
                )
            )
    if not spots:
        rows = [
            JobRow(job=job.name, replica=number, kind=job.kind, state="unplaced")
            for number in range(1, job.replicas + 1)
        ]
    return rows, moves


def _row(name: str, number: int, kind: str, state: str, spot: Spot) -> JobRow:
    way = spot.way
    return JobRow(
        job=name,
        replica=number,
        kind=kind,  # type: ignore[arg-type]
        state=state,  # type: ignore[arg-type]
        nodes=spot.nodes,
        accelerator=way.kind.name,
        accelerators=way.size,
        shares=spot.shares,
        needed_bytes=way.needed,
        usable_bytes=way.kind.free,
        host_bytes=way.host * way.size,
        offload=way.offload,
        seconds=way.seconds,
        tokens_per_second=way.tokens_per_second,
        usd_per_hour=spot.usd_per_hour,
    )


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


def _stranded(pool: Pool, ways: Ways, packing: Packing, number: int) -> list[str]:
    """Nodes on which a job is said to run, and on which by the estimate it cannot."""
    notes: list[str] = []
    for node in dict.fromkeys(ways.job.runs_on):
        if node not in pool.left and (number, node) not in packing.kept:
            notes.append(
                Message(
                    "{job} is said to run on {node}, where by the estimate it does not fit: it is placed anew.",
                    job=ways.job.name,
                    node=node,
                )
            )
    return notes


def _why_not(ways: Ways, packing: Packing) -> str:
    job = ways.job
    if not ways.ways:
        return (
            Message("no node holds it: {refused}", refused=ways.refused[0])
            if ways.refused
            else "no node holds it: no node has so many accelerators"
        )
    able = listed(dict.fromkeys(f"{way.size}x{way.kind.name}" for way in ways.ways))
    many = f"{counted(job.replicas, 'replicas')} of " if job.replicas > 1 else ""
    alone = {
        way.kind.name: sum(kind.size for kind in packing.pool.kinds if kind.name == way.kind.name) // way.size
        for way in ways.ways
    }
    if sum(alone.values()) < job.replicas:
        return Message(
            "it needs {many}{able}, and the whole pool has room for {alone}",
            many=many,
            able=able,
            alone=sum(alone.values()),
        )
    return Message("it needs {many}{able}, and jobs of as high a priority have them", many=many, able=able)


def _miss(packing: Packing, unplaced: list[str]) -> str:
    for ways in packing.jobs:
        if ways.job.name in unplaced and not ways.ways and ways.refused:
            return f"{ways.job.name} on {ways.refused[0]}"
    return ""


def _text(
    pool: Pool, total: int, used: int, moves: list[MoveRow], unplaced: list[str], proven: str, *, elastic: bool
) -> str:
    on = (
        Message(
            "{used} of {size} of {count} types",
            used=used,
            size=counted(pool.size, "accelerators"),
            count=len(pool.types),
        )
        if len(pool.types) > 1
        else f"{used} of {pool.describe()}"
    )
    text = Message(
        "all {total} placed on {on}" if total > 1 else "{total} placed on {on}", total=counted(total, "jobs"), on=on
    )
    if unplaced:
        text = Message(
            "{total} of {total2} placed on {on}: {unplaced} not",
            total=total - len(unplaced),
            total2=counted(total, "jobs"),
            on=on,
            unplaced=listed(unplaced),
        )
    if not elastic and not moves:
        return joined(", ", (text, proven))
    moved = (
        Message("{count} moves", count=counted(len(moves), "replicas"))
        if len(moves) == 1
        else Message("{count} move", count=counted(len(moves), "replicas"))
        if moves
        else "nothing moves"
    )
    size = Message(" ({bytes})", bytes=human(sum(move.copied_bytes for move in moves), "bytes")) if moves else ""
    return Message("{said}, {moved}{size}, {proven}", said=text, moved=moved, size=size, proven=proven)
