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
    configurations, refused = candidates(pool, model, options, load, demand, offload=offload)
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
    if configurations:  # what the estimator takes where only some lengths are said
        question |= {name: configurations[0].answer.question[name] for name in NAMES if name not in question}
    else:
        return _none(pool, model, effort, question, refused, demand)
    counts, proven = choose_counts(configurations, demand, effort)
    while counts is not None and (wrong := _refused(configurations, counts, load, demand)):
        effort.cuts += 1
        configurations = [
            replace(configuration, capacity=configuration.capacity * 0.98) if number in wrong else configuration
            for number, configuration in enumerate(configurations)
        ]
        counts, proven = choose_counts(configurations, demand, effort)
    if counts is None:  # the demand is more than the pool answers
        return _answer_shortfall(pool, model, configurations, demand, effort, question, refused)
    return _answer_shown(pool, model, configurations, counts, demand, effort, question, refused, proven)


# ---- the program ----


def choose_counts(
    configurations: list[Candidate], demand: Demand, effort: Effort
) -> tuple[list[int] | None, tuple[float, float]]:
    """The number of replicas of each configuration, and (value, bound) of the search: the demand first, then the least
    cost.
    """
    if demand.amount is not None:
        solved = _program(
            configurations,
            [hourly_cost(configurations, configuration) for configuration in configurations],
            demand.amount,
        ).solve(effort)
        _answered(solved, effort)
        return _replica_counts(configurations, solved), (solved.objective, solved.bound)
    most = _answered(
        _program(configurations, [-configuration.capacity for configuration in configurations], 0.0).solve(effort),
        effort,
    )
    if most.values is None:
        return None, (inf, inf)
    again = _program(
        configurations,
        [hourly_cost(configurations, configuration) for configuration in configurations],
        -most.objective * (1 - MARGIN),
    ).solve(effort)
    return _replica_counts(configurations, again if again.values is not None else most), (-most.objective, -most.bound)


def hourly_cost(configurations: list[Candidate], configuration: Candidate) -> float:
    """US dollars an hour; where a price is not known, accelerators are counted. Of equal ones the fewer."""
    priced = all(one.kind.price is not None for one in configurations)
    return configuration.width * ((configuration.kind.price or 0.0) + 1e-6 if priced else 1.0)


def _program(configurations: list[Candidate], costs: list[float], least: float) -> Program:
    program = Program()
    columns = [
        program.column(cost, 0, len(configuration.kind.parts) * (configuration.kind.each // configuration.width))
        for cost, configuration in zip(costs, configurations, strict=True)
    ]
    for kind in {id(configuration.kind): configuration.kind for configuration in configurations}.values():
        own = [
            (column, configuration)
            for column, configuration in zip(columns, configurations, strict=True)
            if configuration.kind is kind
        ]
        for width in sorted({configuration.width for _, configuration in own}):
            # widths divide each other: a node has room for so many of the larger ones as for the smaller ones that they
            # take the place of
            room = len(kind.parts) * (kind.each // width)
            program.row(
                [
                    (column, configuration.width / width)
                    for column, configuration in own
                    if configuration.width >= width
                ],
                high=room,
            )
    if least > 0:
        program.row(
            [(column, configuration.capacity) for column, configuration in zip(columns, configurations, strict=True)],
            low=least,
        )
    return program


def _replica_counts(configurations: list[Candidate], solved: Solved) -> list[int] | None:
    return None if solved.values is None else [solved.whole(number) for number in range(len(configurations))]


def _answered(solved: Solved, effort: Effort) -> Solved:
    """The solution; an error where the time was up before there was one."""
    if solved.values is None and not solved.proven:
        raise effort.spent()
    return solved


def _refused(configurations: list[Candidate], counts: list[int], load: LoadOptions, demand: Demand) -> set[int]:
    """Configurations that the estimator, asked again with their part of the demand, does not have within the limits."""
    if demand.amount is None or not demand.is_open:
        return set()
    total = sum(configuration.capacity * count for configuration, count in zip(configurations, counts, strict=True))
    wrong = set()
    for number, (configuration, count) in enumerate(zip(configurations, counts, strict=True)):
        if count:
            part = replace(load, request_rate=min(demand.amount / total, 1.0) * configuration.capacity * (1 - MARGIN))
            again = serve(
                configuration.model,
                configuration.kind.cluster(1, configuration.width),
                configuration.options,
                part,
                reserve_bytes=configuration.kind.reserve,
                advise=False,
            )
            if again.status not in (0, 2):
                wrong.add(number)
    return wrong


# ---- the answer ----


def _answer_shown(
    pool: Pool,
    model: Model,
    configurations: list[Candidate],
    counts: list[int],
    demand: Demand,
    effort: Effort,
    question: dict[str, Entry],
    refused: list[Refusal],
    proven: tuple[float, float],
) -> Placement:
    used = [(configuration, count) for configuration, count in zip(configurations, counts, strict=True) if count]
    capacity = sum(configuration.capacity * count for configuration, count in used)
    usd, words = hourly((configuration.kind, configuration.width * count) for configuration, count in used)
    priced = all(one.kind.price is not None for one in configurations)
    goal, unit = (
        (Message("{unit} of the pool", unit=demand.unit), demand.unit)
        if demand.amount is None
        else ("cost of an hour", "USD")
        if priced
        else ("accelerators", "accelerators")
    )
    shown = searched(effort, goal, unit, len(configurations), *proven)
    accelerators = sum(configuration.width * count for configuration, count in used)
    types = len({configuration.kind.name for configuration, _ in used})
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
        else Message("the demand: {said}", said=_amount_text(demand.amount, demand))
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
        warnings=[*words, *(Message("not used: {each}", each=note) for note in merged(refused)), *_notes(model, used)],
    )


def _notes(model: Model, used: list[tuple[Candidate, int]]) -> list[str]:
    """The estimator's warnings on the plans that are used; prices and power are the inventory's."""
    question = Question()
    for configuration, _ in used:
        serving_plan(
            model,
            configuration.kind.cluster(1, configuration.width),
            replace(configuration.options, reserve_bytes=configuration.kind.reserve),
            question,
        )
    return question.warnings


def _answers(capacity: float, demand: Demand) -> str:
    """The load that is answered as text, and how much more there is room for; without a demand the most that is
    answered.
    """
    if demand.amount is None or plain(capacity) == plain(demand.amount):
        return _amount_text(capacity, demand)
    return Message("{said} (room for {capacity})", said=_amount_text(demand.amount, demand), capacity=plain(capacity))


def _amount_text(value: float, demand: Demand) -> str:
    units = ("request a second", "requests a second") if demand.is_open else ("user", "users")
    return f"{plain(value)} {units[value != 1]}"


def _rows(pool: Pool, used: list[tuple[Candidate, int]]) -> list[ReplicaRow]:
    """Replicas node by node, the widest first, so that all find a place."""
    seats = Seats(pool.kinds)
    counted_at: dict[tuple[str, int], tuple[Candidate, int]] = {}
    for configuration, count in sorted(used, key=lambda pair: -pair[0].width):
        for _ in range(count):
            (node,) = seats.take(configuration.kind, configuration.width)
            key = node, id(configuration)
            counted_at[key] = (configuration, counted_at.get(key, (configuration, 0))[1] + 1)
    return [
        ReplicaRow(
            node=node,
            replicas=count,
            accelerator=configuration.kind.name,
            accelerators=configuration.width,
            weights=configuration.weights,
            capacity=configuration.capacity,
            requests=configuration.requests,
            needed_bytes=configuration.needed,
            usable_bytes=configuration.answer.usable_bytes,
            on_host_bytes=configuration.on_host,
            usd_per_hour=None
            if configuration.kind.price is None
            else configuration.kind.price * configuration.width * count,
        )
        for (node, _), (configuration, count) in counted_at.items()
    ]


def _answer_shortfall(
    pool: Pool,
    model: Model,
    configurations: list[Candidate],
    demand: Demand,
    effort: Effort,
    question: dict[str, Entry],
    refused: list[Refusal],
) -> Placement:
    """More is asked than the pool answers: the most that it does."""
    assert demand.amount is not None
    counts, proven = choose_counts(configurations, Demand(is_open=demand.is_open, amount=None), effort)
    shown = searched(effort, Message("{unit} of the pool", unit=demand.unit), demand.unit, len(configurations), *proven)
    used = [(configuration, count) for configuration, count in zip(configurations, counts or [], strict=True) if count]
    capacity = sum(configuration.capacity * count for configuration, count in used)
    text = Message(
        "the demand is not met: the pool answers {capacity} of {said} with {model}, {proof}",
        capacity=plain(capacity),
        said=_amount_text(demand.amount, demand),
        model=model.name,
        proof=proof(shown),
    )
    best = max(configurations, key=lambda configuration: configuration.capacity / configuration.width)
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
            said=_amount_text(demand.amount - capacity, demand),
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
