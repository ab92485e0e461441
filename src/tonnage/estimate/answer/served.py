"""What a served model does for its users: times, rates, limits, prices. The part of an answer of `serve` beside
memory.
"""

from datetime import date
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.serving import HostedDocument, ServingDocument
from tonnage.estimate.answer.launch import launch_command
from tonnage.estimate.answer.serving_notes import warn_of_context
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.inputs import Question, today
from tonnage.estimate.load import mean_lengths
from tonnage.estimate.load.options import LoadOptions, ReplicaLoad
from tonnage.estimate.money.bill import Bill, BillOptions, bill
from tonnage.estimate.money.hosted import beside_hosted
from tonnage.estimate.serving.limits import longest_context
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving.weights.storage import is_mlx, storage
from tonnage.estimate.serving_time.service_level import service_level
from tonnage.estimate.serving_time.speed import Speed, serving_speed
from tonnage.formulas import service as h
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.start import Roles
from tonnage.spec import Cluster, ServingPlan

# ---- What serving costs and draws: an hour of the machines, and a million tokens of it.

OF = "an hour"


def hour(cluster: Cluster, options: BillOptions, price: float | None, question: Question) -> Bill:
    """The bill of an hour of all machines, busy or not."""
    bill, notes = _hour(ByIdentity(cluster), options, price, today())
    for name, entry in notes.entries.items():
        question.put(name, entry.value, entry.origin, entry.why)
    for warning in notes.warnings:
        question.warn(warning)
    return bill


@lru_cache(maxsize=64)
def _hour(cluster: ByIdentity, options: BillOptions, price: float | None, day: date) -> tuple[Bill, Question]:
    """Prices are read once a day."""
    notes = Question()
    seconds = Term.of("an hour", h.paid_seconds, tau=HOUR)
    return bill(cluster.thing, seconds, OF, options, notes, price=price, today=day), notes


def prices(bill: Bill, cluster: Cluster, speed: Speed) -> dict[str, Any]:
    """Price and energy of a million tokens under this load, and with one user on each replica; None where no price,
    or no power, is known.
    """
    everything, answers = speed.all_tokens_per_second, speed.tokens_per_second
    prompts, alone = everything - answers, speed.alone_tokens_per_second
    cost = bill.cost
    figures: dict[str, Any] = {
        "cost_per_million_tokens": _usd("cost per million tokens (input + output)", cost, everything),
        "cost_per_million_input_tokens": _part(
            "cost per million input tokens (by time spent)", cost, prompts, speed.prompt_share
        ),
        "cost_per_million_output_tokens": _part(
            "cost per million output tokens (by time spent)", cost, answers, speed.answer_share
        ),
        "cost_per_million_output_tokens_all": _usd("cost per million output tokens (input included)", cost, answers),
        "cost_per_million_tokens_alone": _usd(
            "cost per million tokens (input + output), one user per replica", cost, alone
        ),
    }
    own = bill.ownership.own_hour if bill.ownership else None
    if own is not None:
        figures["own_cost_per_million_tokens"] = Term.of(
            "cost per million tokens (input + output) on own machines",
            h.usd_per_million_tokens,
            source=own.source,
            USD_all=own.value * cluster.size,
            tps=everything,
        )
    figures["energy_per_million_tokens"] = _joules(
        "energy per million tokens (input + output)", bill.energy, everything
    )
    figures["energy_per_million_tokens_alone"] = _joules(
        "energy per million tokens (input + output), one user per replica", bill.energy, alone
    )
    return figures


def _usd(name: str, cost: Term | None, rate: float) -> Term | None:
    return (
        None
        if cost is None
        else Term.of(name, h.usd_per_million_tokens, source=cost.source, basis=cost.basis, USD_all=cost.value, tps=rate)
    )


def _part(name: str, cost: Term | None, rate: float, share: Term | None) -> Term | None:
    """What is paid for these tokens alone."""
    full_price = _usd("if they paid for everything", cost, rate)
    return None if full_price is None or share is None else Term.product(name, "USD", full_price, share)


def _joules(name: str, energy: Term | None, rate: float) -> Term | None:
    return (
        None
        if energy is None
        else Term.of(
            name, h.joules_per_million_tokens, source=energy.source, basis=energy.basis, en=energy.value, tps=rate
        )
    )


# None where answers have one token.
OF_LATER_TOKENS = (
    "tpot_seconds",
    "itl_seconds",
    "tokens_per_second_per_user",
    "tpot_seconds_alone",
    "tokens_per_second_alone",
)


class Served(Struct, frozen=True, kw_only=True, eq=False):
    """`figures` of the block `serving`; `bill` of an hour, and `speed`, None where the times are not known."""

    figures: ServingDocument[Term]
    bill: Bill | None = None
    speed: Speed | None = None


def served(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    memory: ServingMemory,
    usable: int,
    wanted: ReplicaLoad,
    load: LoadOptions,
    money: BillOptions,
    question: Question,
) -> Served:
    """Figures of the block `serving`, and the bill of an hour."""
    launch: str | UnsetType = UNSET
    if plan.tier.kv_offload:
        from tonnage.estimate.serving_time.kv_tier import sized_plan
        from tonnage.estimate.serving_time.times import pool_tokens

        pool = pool_tokens(model, plan, cluster, memory, usable, wanted.load)
        plan = sized_plan(model, plan, cluster, memory, pool, question)
    if is_mlx(storage(model, plan.weights)) and not serving_runtime(plan.engine, plan.engine_version).mlx:
        question.warn(
            Message(
                "{engine} loads no MLX files; {--engine} mlx does, on Apple. Bytes and times are those of {engine} "
                "with weights as wide.",
                engine=plan.engine,
            )
        )
    else:
        roles = _roles(plan, wanted)
        notes = () if roles else _how_to_split(plan, wanted)
        launch = launch_command(model, plan, cluster, *notes, roles=roles)
    longest: Term | UnsetType = UNSET
    if any(rank.per_token.value for rank in memory.ranks):
        longest = longest_context(model, plan, cluster, memory, usable)
    tokens = wanted.load.input_tokens + wanted.load.output_tokens
    warn_of_context(model, plan, cluster, memory, usable, float(tokens), question)
    speed = serving_speed(model, plan, cluster, memory, usable, wanted, question)
    if speed is None:
        return Served(figures=ServingDocument(launch=launch, longest_context=longest))
    split = None
    if wanted.prefill_replicas and speed.replica.clock.knows_prompts:
        from tonnage.estimate.serving_time.split import (
            speed_of_split,
            split_figures,
            split_replicas,
            split_service_level,
        )

        split = split_replicas(model, plan, cluster, wanted, speed.replica.pool)
        speed = speed_of_split(split, speed, plan, cluster)
    figures = replace(speed.figures, launch=launch, longest_context=longest)
    if wanted.load.output_tokens <= 1:
        figures = replace(figures, **dict.fromkeys(OF_LATER_TOKENS))
        question.warn("an answer of one token has no later ones, and no time of them.")
    if not speed.replica.clock.knows_prompts:
        return Served(figures=figures)
    if split is not None:
        figures = replace(figures, split=split_figures(split), **split_service_level(split, wanted, question))
    else:
        figures = replace(figures, **service_level(plan, speed, wanted, question))
    if wanted.simulate:
        from tonnage.estimate.serving_time.simulated import simulated

        figures = replace(figures, simulated=simulated(speed.replica, wanted, question))
    made_bill = hour(cluster, money, load.price_per_accelerator_hour, question)
    figures = replace(figures, **prices(made_bill, cluster, speed))
    fits = memory.memory.value <= usable  # what does not run is not cheaper from any number of requests
    if fits and _is_said(load, question) and (compared := _beside_hosted(model, figures, made_bill, wanted)):
        figures = replace(figures, hosted=compared)
    return Served(figures=figures, bill=made_bill, speed=speed)


def _roles(plan: ServingPlan, wanted: ReplicaLoad) -> Roles | None:
    """Prefill and decode servers, where they are apart and the engine starts them so."""
    number, total = wanted.prefill_replicas or 0, int(plan.data_parallel_size)
    if not number or number >= total:
        return None
    from tonnage.estimate.serving_time.split import transfer_of

    transfer = transfer_of(plan, wanted.kv_transfer)
    return Roles(prefill=number, decode=total - number, transfer=transfer) if transfer else None


def _how_to_split(plan: ServingPlan, wanted: ReplicaLoad) -> tuple[str, ...]:
    """What the launch command leaves to the user where prompts have replicas of their own."""
    if not wanted.prefill_replicas:
        return ()
    return (
        Message(
            "The command starts replicas that do both prefill and decode. For disaggregated serving, start "
            "{prefill} prefill and {decode} decode replicas as servers of their own, with the engine's options for "
            "KV cache transfer, behind a router.",
            prefill=wanted.prefill_replicas,
            decode=int(plan.data_parallel_size) - wanted.prefill_replicas,
        ),
    )


def _is_said(load: LoadOptions, question: Question) -> bool:
    """Whether it was said what is asked of the model: a price of a load that nobody has is none."""
    given_options = (load.input_tokens, load.output_tokens, load.request_rate, load.trace)
    users = question.entries.get("concurrency")
    return any(value is not None for value in given_options) or (users is not None and users.origin == "given")


def _beside_hosted(
    model: Model, figures: ServingDocument[Term], bill: Bill, wanted: ReplicaLoad
) -> HostedDocument[Term] | None:
    """What the load that was asked about costs at those who host the model."""
    load = wanted.load
    prompt, answer = map(float, mean_lengths(load))
    limits = ""
    if figures.service_level:
        limits = "within" if figures.service_level.met else "past"
    most = figures.rate_at_service_level if limits else figures.largest_rate
    if not most:
        return None
    return beside_hosted(
        model.name,
        bill.cost,
        figures.cost_per_million_tokens or None,
        most,
        prompt,
        answer,
        min(load.cached_tokens, prompt),
        today(),
        limits,
    )
