"""Replicas of one served model over unlike nodes: how many of which configuration, for a demand at least cost, or for the most that the pool answers."""

from math import inf

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.document_pool import ReplicaRow
from tonnage.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError
from tonnage.estimate._answer import Answer
from tonnage.estimate._question import Question
from tonnage.estimate.answers import serve
from tonnage.estimate.load_options import LoadOptions
from tonnage.estimate.serving_answer import serving_plan
from tonnage.estimate.serving_options import ServingOptions
from tonnage.search.pool._highs import Effort, Program, Solved
from tonnage.search.pool._offload import served_from_host
from tonnage.search.pool.parts import Kind, Pool
from tonnage.search.pool.placement import Placement, Seats, asked_of, document, hourly, proof, searched
from tonnage.search.pool.serving import check_load
from tonnage.units import counted, human

LITTLE = 1e-3  # requests a second: a rate that any replica answers, of which the largest is asked
MARGIN = 1e-6  # of an optimum that a second program keeps
MOST_REPLICAS = 100_000


class Candidate(Struct, frozen=True, kw_only=True, eq=False):
    """A configuration of one replica: `width` accelerators of a kind. `capacity`: requests a second, or users, within the limits."""

    kind: Kind
    width: int
    options: ServingOptions
    capacity: float
    answer: Answer
    model: Model
    on_host: int = 0

    @property
    def weights(self) -> str:
        return str(self.answer.question["weights"]["value"])


class Demand(Struct, frozen=True, kw_only=True):
    """What is asked for: requests a second or users; `amount` None: as many as the pool answers."""

    is_open: bool
    amount: float | None

    @property
    def unit(self) -> str:
        return "requests/s" if self.is_open else "users"


def runs_on_one_node(pool: Pool, model: Model, options: ServingOptions, load: LoadOptions) -> bool:
    """Whether some node holds a whole replica."""
    return bool(_candidates(pool, model, options, load, Demand(is_open=True, amount=None), offload=False)[0])


def replicas(
    pool: Pool, model: Model, options: ServingOptions, load: LoadOptions, *, effort: Effort, offload: bool = False
) -> Placement:
    """The cheapest replicas that hold a demand, or without one the most that the pool answers."""
    if load.request_rate is not None and options.concurrency is not None:
        raise InvalidInput(
            f"concurrency and request_rate are two demands: give one. Got {options.concurrency} and {load.request_rate:g}."
        )
    check_load(load)
    demand = Demand(
        is_open=options.concurrency is None,
        amount=load.request_rate if options.concurrency is None else float(options.concurrency),
    )
    found, refused = _candidates(pool, model, options, load, demand, offload=offload)
    question = asked_of(pool, effort, model=model.name, kind="serve", request_rate=load.request_rate, concurrency=options.concurrency,
                        ttft=load.ttft, tpot=load.tpot, weights=options.weights, offload=offload)  # fmt: skip
    if not found:
        return _none(pool, model, effort, question, refused, demand)
    counts, proven = _solve(found, demand, effort)
    while counts is not None and (wrong := _refused(found, counts, load, demand)):
        effort.cuts += 1
        found = [
            replace(each, capacity=each.capacity * 0.98) if number in wrong else each
            for number, each in enumerate(found)
        ]
        counts, proven = _solve(found, demand, effort)
    if counts is None:  # the demand is more than the pool answers
        return _short(pool, model, found, demand, effort, question, refused)
    return _shown(pool, model, found, counts, demand, effort, question, refused, proven)


# ---- configurations ----


def _candidates(
    pool: Pool, model: Model, options: ServingOptions, load: LoadOptions, demand: Demand, *, offload: bool
) -> tuple[list[Candidate], list[str]]:
    """Every configuration of a replica that fits on one node, as the estimator has it; and why others do not."""
    found: list[Candidate] = []
    refused: list[str] = []
    for kind in pool.kinds:
        for weights in (options.weights or "").split(","):
            for width in (
                [options.tensor_parallel_size]
                if options.tensor_parallel_size
                else [1 << bit for bit in range(kind.each.bit_length())]
            ):
                if width > kind.each:
                    continue
                said = replace(options, weights=weights.strip() or None, tensor_parallel_size=width, concurrency=None)
                made = _candidate(kind, model, said, load, demand, refused, offload=offload)
                if made is not None:
                    found.append(made)
    return found, refused


def _candidate(
    kind: Kind,
    model: Model,
    said: ServingOptions,
    load: LoadOptions,
    demand: Demand,
    refused: list[str],
    *,
    offload: bool,
) -> Candidate | None:
    width = said.tensor_parallel_size or 1
    asked = replace(load, request_rate=LITTLE if demand.is_open else None)
    on_host = 0
    try:
        answer = serve(model, kind.cluster(1, width), said, asked, reserve_bytes=kind.reserve, advise=False)
        if not answer.fits and offload:
            helped = served_from_host(model, kind, width, said, asked, answer)
            if helped is not None:
                answer, said, on_host = helped
    except (InvalidPlan, MissingDatum) as error:
        refused.append(f"{width}x{kind.name}: {error}")
        return None
    except TonnageError:
        raise
    if not answer.fits:
        over = answer.needed_bytes - answer.usable_bytes
        refused.append(
            f"{width}x{kind.name}: short by {human(over, 'bytes')} an accelerator ({human(answer.needed_bytes, 'bytes')} needed)"
        )
        return None
    capacity = _capacity(answer, demand)
    if not capacity:
        refused.append(
            f"{width}x{kind.name}: "
            + ("the service level is not met by any load" if asked.ttft or asked.tpot else "its times are not known")
        )
        return None
    return Candidate(
        kind=kind, width=width, options=said, capacity=capacity, answer=answer, model=model, on_host=on_host
    )


def _capacity(answer: Answer, demand: Demand) -> float:
    """What one replica answers at most, within the limits where there are any."""
    figures = answer.serving
    limited = "rate_at_service_level" if demand.is_open else "users_at_service_level"
    plain = "largest_rate" if demand.is_open else "concurrency"
    term = figures.get(limited) if "service_level" in figures else figures.get(plain)
    return float(term.value) if term is not None else 0.0


# ---- the program ----


def _solve(found: list[Candidate], demand: Demand, effort: Effort) -> tuple[list[int] | None, tuple[float, float]]:
    """How many of each, and (value, bound): first what is asked for, then at least cost."""
    if demand.amount is not None:
        solved = _program(found, [_cost(found, each) for each in found], demand.amount).solve(effort)
        _answered(solved, effort)
        return _whole(found, solved), (solved.objective, solved.bound)
    most = _answered(_program(found, [-each.capacity for each in found], 0.0).solve(effort), effort)
    if most.values is None:
        return None, (inf, inf)
    again = _program(found, [_cost(found, each) for each in found], -most.objective * (1 - MARGIN)).solve(effort)
    return _whole(found, again if again.values is not None else most), (-most.objective, -most.bound)


def _cost(found: list[Candidate], each: Candidate) -> float:
    """US dollars an hour; where a price is not known, accelerators are counted. Of equal ones the fewer."""
    priced = all(one.kind.price is not None for one in found)
    return each.width * ((each.kind.price or 0.0) + 1e-6 if priced else 1.0)


def _program(found: list[Candidate], costs: list[float], least: float) -> Program:
    program = Program()
    columns = [
        program.column(cost, 0, len(each.kind.parts) * (each.kind.each // each.width))
        for cost, each in zip(costs, found, strict=True)
    ]
    for kind in {id(each.kind): each.kind for each in found}.values():
        own = [(column, each) for column, each in zip(columns, found, strict=True) if each.kind is kind]
        for width in sorted({each.width for _, each in own}):
            # widths divide each other: a node has room for so many of the larger ones as for the smaller ones that they take the place of
            room = len(kind.parts) * (kind.each // width)
            program.row([(column, each.width / width) for column, each in own if each.width >= width], high=room)
    if least > 0:
        program.row([(column, each.capacity) for column, each in zip(columns, found, strict=True)], low=least)
    return program


def _whole(found: list[Candidate], solved: Solved) -> list[int] | None:
    return None if solved.values is None else [solved.whole(number) for number in range(len(found))]


def _answered(solved: Solved, effort: Effort) -> Solved:
    """What was solved; an error where the time was up before it was."""
    if solved.values is None and not solved.proven:
        raise effort.spent()
    return solved


def _refused(found: list[Candidate], counts: list[int], load: LoadOptions, demand: Demand) -> set[int]:
    """Configurations that the estimator, asked again with their part of the demand, does not have within the limits."""
    if demand.amount is None or not demand.is_open:
        return set()
    total = sum(each.capacity * count for each, count in zip(found, counts, strict=True))
    wrong = set()
    for number, (each, count) in enumerate(zip(found, counts, strict=True)):
        if count:
            part = replace(load, request_rate=min(demand.amount / total, 1.0) * each.capacity * (1 - MARGIN))
            again = serve(
                each.model,
                each.kind.cluster(1, each.width),
                each.options,
                part,
                reserve_bytes=each.kind.reserve,
                advise=False,
            )
            if again.status not in (0, 2):
                wrong.add(number)
    return wrong


# ---- the answer ----


def _shown(
    pool: Pool, model: Model, found: list[Candidate], counts: list[int], demand: Demand, effort: Effort, question: dict[str, object],
    refused: list[str], proven: tuple[float, float],
) -> Placement:  # fmt: skip
    used = [(each, count) for each, count in zip(found, counts, strict=True) if count]
    capacity = sum(each.capacity * count for each, count in used)
    usd, words = hourly((each.kind, each.width * count) for each, count in used)
    priced = all(one.kind.price is not None for one in found)
    goal, unit = (
        (f"{demand.unit} of the pool", demand.unit)
        if demand.amount is None
        else ("cost of an hour", "USD")
        if priced
        else ("accelerators", "accelerators")
    )
    shown = searched(effort, goal, unit, len(found), *proven)
    accelerators = sum(each.width * count for each, count in used)
    types = len({each.kind.name for each, _ in used})
    price = f", {human(usd, 'USD')} an hour" if usd is not None else ""
    text = (f"{counted(sum(counts), 'replicas')} of {model.name} on {accelerators} of {counted(pool.size, 'accelerators')}"
            f"{f' of {types} types' if types > 1 else ''}: {capacity:,.4g} {_unit(demand)}{price}, {proof(shown)}")  # fmt: skip
    binding = (
        "the pool: every node that holds a replica is full"
        if demand.amount is None
        else f"the demand: {demand.amount:,.4g} {_unit(demand)}"
    )
    return document(
        pool, shown, "replicas", placed=True, text=text, question=question, replicas=_rows(pool, used), usd=usd, binding=binding,
        figures={"requests_per_second" if demand.is_open else "users": capacity, "accelerators": float(accelerators)},
        warnings=[*words, *(f"not used: {each}" for each in refused), *_notes(model, used)],
    )  # fmt: skip


def _notes(model: Model, used: list[tuple[Candidate, int]]) -> list[str]:
    """What the estimator says of the plans that are used; prices and power are the inventory's."""
    question = Question()
    for each, _ in used:
        serving_plan(
            model, each.kind.cluster(1, each.width), replace(each.options, reserve_bytes=each.kind.reserve), question
        )
    return question.warnings


def _unit(demand: Demand) -> str:
    return "requests a second" if demand.is_open else "users"


def _rows(pool: Pool, used: list[tuple[Candidate, int]]) -> list[ReplicaRow]:
    """Replicas node by node, the widest first, so that all find a place."""
    seats = Seats(pool.kinds)
    counted_at: dict[tuple[str, int], tuple[Candidate, int]] = {}
    for each, count in sorted(used, key=lambda pair: -pair[0].width):
        for _ in range(count):
            (node,) = seats.take(each.kind, each.width)
            key = node, id(each)
            counted_at[key] = (each, counted_at.get(key, (each, 0))[1] + 1)
    return [
        ReplicaRow(node=node, replicas=count, accelerator=each.kind.name, accelerators=each.width, weights=each.weights, capacity=each.capacity,
                   needed_bytes=each.answer.needed_bytes, usable_bytes=each.answer.usable_bytes, on_host_bytes=each.on_host,
                   usd_per_hour=None if each.kind.price is None else each.kind.price * each.width * count)
        for (node, _), (each, count) in counted_at.items()
    ]  # fmt: skip


def _short(
    pool: Pool, model: Model, found: list[Candidate], demand: Demand, effort: Effort, question: dict[str, object], refused: list[str]
) -> Placement:  # fmt: skip
    """More is asked than the pool answers: the most that it does."""
    assert demand.amount is not None
    counts, proven = _solve(found, Demand(is_open=demand.is_open, amount=None), effort)
    shown = searched(effort, f"{demand.unit} of the pool", demand.unit, len(found), *proven)
    used = [(each, count) for each, count in zip(found, counts or [], strict=True) if count]
    capacity = sum(each.capacity * count for each, count in used)
    text = f"the demand is not met: the pool answers at most {capacity:,.4g} of {demand.amount:,.4g} {_unit(demand)} with {model.name}"
    best = max(found, key=lambda each: each.capacity / each.width)
    more = -(-(demand.amount - capacity) // best.capacity) * best.width
    return document(
        pool, shown, "replicas", placed=False, text=text, question=question, replicas=_rows(pool, used),
        figures={"requests_per_second" if demand.is_open else "users": capacity}, binding=f"the accelerators of the pool: {pool.describe()}",
        nearest_miss=f"short by {demand.amount - capacity:,.4g} {_unit(demand)}: {more:,.0f} more {best.kind.name} would do", warnings=refused,
    )  # fmt: skip


def _none(
    pool: Pool, model: Model, effort: Effort, question: dict[str, object], refused: list[str], demand: Demand
) -> Placement:
    shown = searched(effort, f"{demand.unit} of the pool", demand.unit, 0, None, None)
    why = refused[-1] if refused else "no node has so many accelerators"
    level = "service level" in why
    binding = "the service level" if level else f"no node holds a replica of {model.name}"
    text = (
        f"does not fit: {binding}"
        if not level
        else f"the service level is not met on any node of {pool.inventory.pool}"
    )
    return document(pool, shown, "replicas", placed=False, text=text, question=question, binding=binding, nearest_miss=why,
                    warnings=[*refused, "--split pipeline puts the layers of one replica on several nodes."])  # fmt: skip
