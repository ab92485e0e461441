"""The best plans to serve a model: which machines, how many, in which precision, spread how; for users, arrivals, a
service level, a budget.
"""

from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.media import with_load
from tonnage.estimate.load.options import USUAL, USUAL_SOURCE, LoadOptions, lengths, lengths_within, media_tokens
from tonnage.estimate.media import note_media
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.machine import check_uncalibrated
from tonnage.estimate.plan.rule import check_size
from tonnage.estimate.serving.engine_checks import check_answers
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.units import counted
from tonnage.question.amounts import wait
from tonnage.search.serving.answer import ServingPlans, nearest_of
from tonnage.search.serving.limits import ALLOWED, FORMAT, KNOWN, MEMORY, WEIGHTS
from tonnage.search.serving.machines import Machine, catalogued
from tonnage.search.serving.nearest import missed
from tonnage.search.serving.options import (
    MAX_ACCELERATORS_SEARCHED,
    OBJECTIVES,
    OF_MONEY,
    OF_USERS,
    Goal,
    ServingPlanOptions,
    goal,
)
from tonnage.search.serving.rows import FEW, USERS
from tonnage.search.serving.space import Prices, Space
from tonnage.search.serving.walk import Search

NO_PLAN, NO_SERVING, NO_LOAD, NO_BILL = ServingPlanOptions(), ServingOptions(), LoadOptions(), BillOptions()
SIMULATED = ("trace", "simulate", "num_requests", "seed")


def plan_serving(
    model: Model,
    machines: tuple[Machine, ...] | None = None,
    said: ServingPlanOptions = NO_PLAN,
    options: ServingOptions = NO_SERVING,
    load: LoadOptions = NO_LOAD,
    money: BillOptions = NO_BILL,
    *,
    prunes: bool = True,
) -> ServingPlans:
    """The best plans on these machines, None: on every accelerator of the catalogue. What the options give is not
    varied.
    """
    if model.family == "tensors":
        raise needs_family(model, "a plan to serve it")
    check_answers(model)
    _check(options, load)
    wanted, question = goal(said), Question()
    compared = catalogued() if machines is None else machines
    question.put("model", model.name, "given", model.source)
    on = ", ".join(machine.name for machine in compared)
    question.put(
        "on",
        on if machines is not None else Message("all {count} accelerators of the catalogue", count=len(compared)),
        "given" if machines is not None else "default",
    )
    options = with_load(model, options, load)
    options, load = _lengths(model, options, load, question)
    note_media(options.media, question)
    prices = Prices(money, load.price_per_accelerator_hour)
    objective = _objective(wanted, compared, options, load, prices, question)
    check_uncalibrated(options.calibrated)
    space = Space(
        model=model,
        machines=compared,
        options=replace(options, concurrency=None),
        load=load,
        goal=wanted,
        prices=prices,
        ttft=wait("ttft", load.ttft),
        tpot=wait("tpot", load.tpot),
        users=_users(options, load, objective, question),
    )
    if space.searches_users and ("disaggregation" in wanted.vary or load.prefill_replicas):
        raise InvalidInput(
            "disaggregation is searched for a load that is given: add users or a {@request_rate}. "
            "Got {--goal} {objective} alone.",
            objective=objective,
        )
    _say(space, wanted, question)
    search = Search(space, objective, prunes=prunes).run()
    _check_known(search)
    return ServingPlans(
        question=question.entries,
        objective=objective,
        search=search,
        money=money,
        nearest=nearest_of(search),
        warnings=tuple(_warnings(search)),
    )


def _check(options: ServingOptions, load: LoadOptions) -> None:
    check_size("concurrency", options.concurrency)
    if load.request_rate is not None and options.concurrency is not None:
        raise InvalidInput(
            "{@concurrency} is of users who wait for their answers, {@request_rate} of requests that "
            "come by themselves: give one. Got {concurrency} and {request_rate:g}.",
            concurrency=options.concurrency,
            request_rate=load.request_rate,
        )
    for name in SIMULATED:
        if getattr(load, name):
            raise InvalidInput(
                "a search knows means: leave out {name}, and give it to `tonnage serve` for the plan "
                "that is found. Got {value}.",
                name=option_name(name),
                value=shown(getattr(load, name)),
            )
    if load.percentile not in (None, "mean"):
        raise InvalidInput(
            "a search keeps the means of {--ttft} and {--tpot}; `tonnage serve --percentile` "
            "simulates the plan that is found. Got {percentile}.",
            percentile=shown(load.percentile),
        )
    check_size("prefill_replicas", load.prefill_replicas)
    if load.request_rate is not None and not 1e-9 <= load.request_rate <= 1e9:
        raise InvalidInput(
            "{@request_rate} must be from 1e-09 to 1e+09. Got {request_rate:g}.", request_rate=load.request_rate
        )


def _lengths(
    model: Model, options: ServingOptions, load: LoadOptions, question: Question
) -> tuple[ServingOptions, LoadOptions]:
    """Every plan is asked for requests of the same length."""
    if load.input_tokens is None and load.output_tokens is None and options.context is None:
        load = replace(load, input_tokens=USUAL, output_tokens=USUAL)
        why: tuple[Any, ...] = ("default", USUAL_SOURCE)
    else:
        why = ("given",)
    if load.input_tokens is None and load.output_tokens is None:
        load = lengths_within(int(options.context or 0) - media_tokens(options), load, question)
    usual_lengths = lengths(model, options, load)
    load = replace(load, input_tokens=usual_lengths.input_tokens, output_tokens=usual_lengths.output_tokens)
    if usual_lengths.context is not None:
        options = replace(options, context=usual_lengths.context)
    for name in ("input_tokens", "output_tokens"):
        if getattr(load, name) is not None and name not in question.entries:
            question.put(name, getattr(load, name), *why)
    if options.context is not None:
        question.put("context", options.context, "default" if usual_lengths.context else "given", usual_lengths.why)
    return options, load


def _objective(
    wanted: Goal,
    machines: tuple[Machine, ...],
    options: ServingOptions,
    load: LoadOptions,
    prices: Prices,
    question: Question,
) -> str:
    """The one that is asked for; MissingDatum for one of money where no price is known."""
    priced = any(prices.knows(machine.accelerator) for machine in machines)
    if not priced and (wanted.objective in OF_MONEY or wanted.budget is not None):
        names = listed(machine.name for machine in machines[:8])
        raise MissingDatum(
            "no price of {names} is known: give {--price-per-accelerator-hour}, or {--goal} "
            "accelerators without a budget.",
            names=names,
        )
    is_given = all(machine.fixed is not None for machine in machines)
    free = options.concurrency is None and load.request_rate is None
    if is_given:
        usual, why = (
            ("goodput", "the machines are given, and nobody says how many users there are")
            if free
            else ("tpot", "the machines are given")
        )
    else:
        usual, why = ("cost", "prices are known") if priced else ("accelerators", "no price is known")
    name = str(question.take("goal", wanted.objective, usual, "default", joined(": ", (OBJECTIVES[usual], why))))
    if len(machines) > 1 and wanted.objective is None and is_given:
        name = str(question.put("goal", "cost" if priced and not free else usual, "default", "machines are compared"))
    return name


def _users(options: ServingOptions, load: LoadOptions, objective: str, question: Question) -> int | None:
    if load.request_rate is not None:
        question.put("request_rate", load.request_rate, "given")
        return None
    if options.concurrency is None and objective in OF_USERS:
        question.put(
            "concurrency",
            Message("from 1 to {users:,} a replica ({few} of engines without a queue)", users=USERS[-1], few=FEW[-1]),
            "default",
            "searched",
        )
        return None
    return int(question.take("concurrency", options.concurrency, 1, "default", "one user"))


def _say(space: Space, wanted: Goal, question: Question) -> None:
    for name in ("ttft", "tpot"):
        if getattr(space, name) is not None:
            question.put(name, getattr(space, name), "given", "seconds, mean")
    if wanted.budget is not None:
        question.put("budget", wanted.budget, "given", "USD an hour")
    if any(machine.fixed is None for machine in space.machines):
        question.take("max_accelerators", wanted.most, MAX_ACCELERATORS_SEARCHED, "default", "of a kind")
    elif wanted.most is not None:
        question.put("max_accelerators", wanted.most, "given")
    if wanted.vary:
        question.put("vary", ", ".join(sorted(wanted.vary)), "given")
    for name in ("prefill_replicas", "kv_transfer"):
        if getattr(space.load, name) is not None:
            question.put(name, getattr(space.load, name), "given")
    for name in (
        "engine",
        "weights",
        "kv_cache",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "expert_parallel_size",
        "attention_data_parallel_size",
        "max_num_batched_tokens",
        "max_num_seqs",
        "gpu_memory_utilization",
    ):
        if getattr(space.options, name) is not None:
            question.put(name, getattr(space.options, name), "given")


def _check_known(search: Search) -> None:
    """Raises where the search could say nothing: all was refused for one reason, or nothing is known."""
    if search.board.plans:
        return
    removed = {removal.constraint for removal in search.tally if removal.plans}
    limited_formats = {removal for removal in removed if removal == FORMAT or removal.endswith(ALLOWED)}
    if search.refused is not None and removed == limited_formats:
        raise search.refused
    if KNOWN in removed and removed == limited_formats | {KNOWN}:
        raise MissingDatum(next(iter(search.unknown.values())))


def _warnings(search: Search) -> list[str]:
    warnings: list[str] = []
    if search.unpriced:
        some = listed(sorted(search.unpriced)[:6])
        more = Message(" and {count} more", count=len(search.unpriced) - 6) if len(search.unpriced) > 6 else ""
        warnings.append(
            Message(
                "no price of {count} is known, which are not compared: {some}{more}. {--goal} "
                "accelerators compares them.",
                count=counted(len(search.unpriced), "accelerators"),
                some=some,
                more=more,
            )
        )
    unknown = sorted(name for name in search.unknown if name not in search.answered)
    if unknown:
        warnings.append(
            Message(
                "not enough is known of {unknown} and {count} more to time a plan: {unknown2}",
                unknown=listed(unknown[:6]),
                count=len(unknown) - 6,
                unknown2=search.unknown[unknown[0]],
            )
            if len(unknown) > 6
            else Message(
                "not enough is known of {unknown} to time a plan: {unknown2}",
                unknown=listed(unknown[:6]),
                unknown2=search.unknown[unknown[0]],
            )
        )
    if (
        not search.board.plans
        and search.miss is not None
        and all(_is_of_memory(removal.constraint) for removal in search.tally if removal.plans)
    ):
        warnings.append(missed(search.miss))
    best = search.board.plans[0] if search.board.plans else None
    if best is not None and best.changes_weights:
        warnings.append(
            Message(
                "{stored} weights change the numerics: measure what the model answers with them before "
                "you rent. {--weights} holds a precision.",
                stored=best.config.stored,
            )
        )
    if best is not None and best.has_uneven_users:
        warnings.append(
            Message(
                "times of a plan, and what limits them, are of its fullest replica: of plan 1 of {fullest}. "
                "The estimate of plan 1 by itself has the {each:.4g} users that a replica has in the mean.",
                fullest=counted(best.fullest, "users"),
                each=best.each,
            )
        )
    if best is not None and search.space.searches_users and best.each == USERS[-1]:
        warnings.append(Message("more than {users:,} users of a replica were not tried.", users=USERS[-1]))
    return warnings


def _is_of_memory(constraint: str) -> bool:
    return constraint in (WEIGHTS, MEMORY, FORMAT) or constraint.endswith(ALLOWED)
