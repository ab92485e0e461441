"""Replicas of one served model over unlike nodes: how many of which configuration, for a demand at least cost, or
for the most that the pool answers.
"""

from math import inf

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.pool import ReplicaRow
from tonnage.documents.question import Entry
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.units import counted, human
from tonnage.search.pool.candidates import MARGIN, Candidate, Demand, Refusal, candidates, holds_one, merged, nearest
from tonnage.search.pool.highs import Effort, Program, Solved
from tonnage.search.pool.parts import Pool
from tonnage.search.pool.placement import Placement, Seats, asked_of, document, hourly, plain, proof, searched
from tonnage.search.pool.serving import NAMES, usual


def runs_on_one_node(pool: Pool, model: Model, options: ServingOptions, load: LoadOptions) -> bool:
    """Whether some node holds a whole replica; whether it keeps the service level is another question."""
    options, load, _ = usual(model, options, load)
    return holds_one(pool, model, options, load)


def replicas(
    pool: Pool, model: Model, options: ServingOptions, load: LoadOptions, *, effort: Effort, offload: bool = False
) -> Placement:
    """The cheapest replicas that hold a demand, or without one the most that the pool answers."""
    if load.request_rate is not None and options.concurrency is not None:
        raise InvalidInput(
            "{@concurrency} and {@request_rate} are two demands: give one. Got {concurrency} and {request_rate:g}.",
            concurrency=options.concurrency,
            request_rate=load.request_rate,
        )
    options, load, lengths = usual(model, options, load)
    demand = Demand(
        is_open=options.concurrency is None,
        amount=load.request_rate if options.concurrency is None else float(options.concurrency),
    )
    found, refused = candidates(pool, model, options, load, demand, offload=offload)
    question = (
        asked_of(
            pool,
            effort,
            model=model.name,
            kind="serve",
            request_rate=load.request_rate,
            concurrency=options.concurrency,
            ttft=load.ttft,
            tpot=load.tpot,
            weights=options.weights,
            offload=offload,
        )
        | lengths
    )
    if found:  # what the estimator takes where only some lengths are said
        question |= {name: found[0].answer.question[name] for name in NAMES if name not in question}
    else:
        return _none(pool, model, effort, question, refused, demand)
    counts, proven = choose_counts(found, demand, effort)
    while counts is not None and (wrong := _refused(found, counts, load, demand)):
        effort.cuts += 1
        found = [
            replace(each, capacity=each.capacity * 0.98) if number in wrong else each
            for number, each in enumerate(found)
        ]
        counts, proven = choose_counts(found, demand, effort)
    if counts is None:  # the demand is more than the pool answers
        return _short(pool, model, found, demand, effort, question, refused)
    return _shown(pool, model, found, counts, demand, effort, question, refused, proven)


# ---- the program ----


def choose_counts(
    found: list[Candidate], demand: Demand, effort: Effort
) -> tuple[list[int] | None, tuple[float, float]]:
    """How many of each, and (value, bound): first what is asked for, then at least cost."""
    if demand.amount is not None:
        solved = _program(found, [hourly_cost(found, each) for each in found], demand.amount).solve(effort)
        _answered(solved, effort)
        return _whole(found, solved), (solved.objective, solved.bound)
    most = _answered(_program(found, [-each.capacity for each in found], 0.0).solve(effort), effort)
    if most.values is None:
        return None, (inf, inf)
    again = _program(found, [hourly_cost(found, each) for each in found], -most.objective * (1 - MARGIN)).solve(effort)
    return _whole(found, again if again.values is not None else most), (-most.objective, -most.bound)


def hourly_cost(found: list[Candidate], each: Candidate) -> float:
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
            # widths divide each other: a node has room for so many of the larger ones as for the smaller ones that they
            # take the place of
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
    pool: Pool,
    model: Model,
    found: list[Candidate],
    counts: list[int],
    demand: Demand,
    effort: Effort,
    question: dict[str, Entry],
    refused: list[Refusal],
    proven: tuple[float, float],
) -> Placement:
    used = [(each, count) for each, count in zip(found, counts, strict=True) if count]
    capacity = sum(each.capacity * count for each, count in used)
    usd, words = hourly((each.kind, each.width * count) for each, count in used)
    priced = all(one.kind.price is not None for one in found)
    goal, unit = (
        (Message("{unit} of the pool", unit=demand.unit), demand.unit)
        if demand.amount is None
        else ("cost of an hour", "USD")
        if priced
        else ("accelerators", "accelerators")
    )
    shown = searched(effort, goal, unit, len(found), *proven)
    accelerators = sum(each.width * count for each, count in used)
    types = len({each.kind.name for each, _ in used})
    price = Message(", {usd} an hour", usd=human(usd, "USD")) if usd is not None else ""
    text = (
        Message(
            "{counts} of {model} on {accelerators} of {size} of {types} types: {answers}{price}, {proof}",
            counts=counted(sum(counts), "replicas"),
            model=model.name,
            accelerators=accelerators,
            size=counted(pool.size, "accelerators"),
            types=types,
            answers=_answers(capacity, demand),
            price=price,
            proof=proof(shown),
        )
        if types > 1
        else Message(
            "{counts} of {model} on {accelerators} of {size}: {answers}{price}, {proof}",
            counts=counted(sum(counts), "replicas"),
            model=model.name,
            accelerators=accelerators,
            size=counted(pool.size, "accelerators"),
            answers=_answers(capacity, demand),
            price=price,
            proof=proof(shown),
        )
    )
    binding = (
        "the pool: every node that holds a replica is full"
        if demand.amount is None
        else Message("the demand: {said}", said=_said(demand.amount, demand))
    )
    return document(
        pool,
        shown,
        "replicas",
        placed=True,
        text=text,
        question=question,
        replicas=_rows(pool, used),
        usd=usd,
        binding=binding,
        figures={"requests_per_second" if demand.is_open else "users": capacity, "accelerators": float(accelerators)},
        warnings=[*words, *(Message("not used: {each}", each=each) for each in merged(refused)), *_notes(model, used)],
    )


def _notes(model: Model, used: list[tuple[Candidate, int]]) -> list[str]:
    """What the estimator says of the plans that are used; prices and power are the inventory's."""
    question = Question()
    for each, _ in used:
        serving_plan(
            model, each.kind.cluster(1, each.width), replace(each.options, reserve_bytes=each.kind.reserve), question
        )
    return question.warnings


def _answers(capacity: float, demand: Demand) -> str:
    """What is asked for, and how much more there is room for; without a demand what is answered at most."""
    if demand.amount is None or plain(capacity) == plain(demand.amount):
        return _said(capacity, demand)
    return Message("{said} (room for {capacity})", said=_said(demand.amount, demand), capacity=plain(capacity))


def _said(value: float, demand: Demand) -> str:
    things = ("request a second", "requests a second") if demand.is_open else ("user", "users")
    return f"{plain(value)} {things[value != 1]}"


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
        ReplicaRow(
            node=node,
            replicas=count,
            accelerator=each.kind.name,
            accelerators=each.width,
            weights=each.weights,
            capacity=each.capacity,
            requests=each.requests,
            needed_bytes=each.needed,
            usable_bytes=each.answer.usable_bytes,
            on_host_bytes=each.on_host,
            usd_per_hour=None if each.kind.price is None else each.kind.price * each.width * count,
        )
        for (node, _), (each, count) in counted_at.items()
    ]


def _short(
    pool: Pool,
    model: Model,
    found: list[Candidate],
    demand: Demand,
    effort: Effort,
    question: dict[str, Entry],
    refused: list[Refusal],
) -> Placement:
    """More is asked than the pool answers: the most that it does."""
    assert demand.amount is not None
    counts, proven = choose_counts(found, Demand(is_open=demand.is_open, amount=None), effort)
    shown = searched(effort, Message("{unit} of the pool", unit=demand.unit), demand.unit, len(found), *proven)
    used = [(each, count) for each, count in zip(found, counts or [], strict=True) if count]
    capacity = sum(each.capacity * count for each, count in used)
    text = Message(
        "the demand is not met: the pool answers {capacity} of {said} with {model}, {proof}",
        capacity=plain(capacity),
        said=_said(demand.amount, demand),
        model=model.name,
        proof=proof(shown),
    )
    best = max(found, key=lambda each: each.capacity / each.width)
    more = -(-(demand.amount - capacity) // best.capacity) * best.width
    return document(
        pool,
        shown,
        "replicas",
        placed=False,
        text=text,
        question=question,
        replicas=_rows(pool, used),
        figures={"requests_per_second" if demand.is_open else "users": capacity},
        binding=Message("the accelerators of the pool: {describe}", describe=pool.describe()),
        nearest_miss=Message(
            "short by {said}: {more:,.0f} more {kind} would do",
            said=_said(demand.amount - capacity, demand),
            more=more,
            kind=best.kind.name,
        ),
        warnings=merged(refused),
    )


def _none(
    pool: Pool, model: Model, effort: Effort, question: dict[str, Entry], refused: list[Refusal], demand: Demand
) -> Placement:
    shown = searched(effort, Message("{unit} of the pool", unit=demand.unit), demand.unit, 0, None, None)
    best = nearest(refused)
    why = str(best) if best else "no node has so many accelerators"
    if best is not None and best.level is not None:
        why = best.why
        binding = Message("the service level: {why} (the least there is, on {on})", why=why, on=best.on)
        text = Message(
            "the service level is not met on any node of {pool}: on {on} {why}",
            pool=pool.inventory.pool,
            on=best.on,
            why=why,
        )
        why, hint = Message("on {on} {why}", on=best.on, why=why), ["narrower --weights may be faster."]
    else:
        binding = Message("no node holds a replica of {model}", model=model.name)
        text, hint = (
            Message("does not fit: {binding}", binding=binding),
            ["--split pipeline puts the layers of one replica on several nodes."],
        )
    return document(
        pool,
        shown,
        "replicas",
        placed=False,
        text=text,
        question=question,
        binding=binding,
        nearest_miss=why,
        warnings=[*merged(refused), *hint],
    )
