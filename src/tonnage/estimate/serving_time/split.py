"""Prompts and answers on replicas of their own (disaggregated prefill and decode): caches pass from one to the other
over the network. As a search asks, and as an answer that is asked for it shows it.
"""

from collections.abc import Callable
from copy import copy
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.serving import SplitDocument
from tonnage.estimate.hardware.network import Network
from tonnage.estimate.inputs import Question
from tonnage.estimate.load import Shape, Steady, mean_lengths, steady
from tonnage.estimate.load.options import ReplicaLoad
from tonnage.estimate.load.shape import between, where
from tonnage.estimate.load.steady import Means, full_load
from tonnage.estimate.serving_time.kv_tier import cache_bytes
from tonnage.estimate.serving_time.rates import ServingRates, serving_rates
from tonnage.estimate.serving_time.service_level import (
    STEP,
    Waits,
    largest_rate,
    level_document,
    most_users,
    warn_of_limits,
)
from tonnage.estimate.serving_time.speed import Speed
from tonnage.estimate.serving_time.times import DecodeTime, around_seconds, pass_time, policy
from tonnage.estimate.serving_time.work import Work
from tonnage.formulas import service as h
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number, is_any, maximum, minimum
from tonnage.kernel.message import Message, listed
from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.kernel.term import Term
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan

SOURCE = "Zhong2024, abstract: prompts and answers on different accelerators"
NAMES = {
    "ttft_seconds": (TTFT, "seconds"),
    "tpot_seconds": (TPOT, "seconds"),
    "end_to_end_seconds": ("end-to-end latency", "seconds"),
    "tokens_per_second": ("output tokens per second", "tokens/s"),
    "requests_per_second": ("requests per second", "requests/s"),
    "largest_rate": ("requests per second, at most", "requests/s"),
}
# What people call what carries caches.
TRANSFERS = {"nixl": "NIXL", "mooncake": "Mooncake", "mori": "MORI", "ucx": "UCX", "mpi": "MPI"}
# UCX, on which NIXL runs too, takes NVLink between GPUs of a node (UCX_TLS cuda_ipc); Mooncake and MORI send by RDMA
# unless told otherwise (SGLang, docs/advanced_features/pd_disaggregation.md: NVLink Transport Configuration).
INSIDE_A_NODE = ("nixl", "ucx", "mpi")
FEW, HALVINGS = 4, 10  # rounds of a bound
ROUNDS, CLOSE = 60, 1e-12  # rounds at most, and the part of the rate to which it is found
NEARLY = 1 - 1e-6  # of a bound: what rounding takes


class Side(NamedTuple):
    """Replicas of one kind: how each is spread, on what, and how many there are, or an array of numbers;
    `pool_tokens`: of cache of each, None for more than is needed.
    """

    plan: ServingPlan
    cluster: Cluster
    replicas: Number
    pool_tokens: int | None = None


class SplitTimes(Struct, frozen=True, kw_only=True):
    """Means, in seconds and a second of all replicas together; the answer takes TTFT and its later tokens.
    `transfer_seconds`: of a prompt's cache, which is in TTFT.
    """

    ttft_seconds: Number
    tpot_seconds: Number
    end_to_end_seconds: Number
    requests_per_second: Number
    output_tokens_per_second: Number
    transfer_seconds: Number
    largest_rate: Number
    #: Of TTFT: prefill and its queue, and what lies outside of passes.
    prefill_seconds: Number
    overhead_seconds: Number
    #: Of TTFT: until a decode replica, which has all of the prompt's cache, has a place and gives the first token.
    decode_wait_seconds: Number
    #: Of a prompt's cache, that a rank sends.
    transfer_bytes: Number

    @property
    def waits(self) -> Waits:
        """What is held against limits."""
        return Waits(float(self.ttft_seconds), float(self.tpot_seconds))


def split_times(
    model: Model,
    prompts: Side,
    answers: Side,
    load: Load,
    rates: ServingRates | None = None,
    transfer: str = "",
) -> SplitTimes:
    """Times of requests whose prompts are computed by `prompts` and whose answers by `answers`. `transfer`: what
    carries the caches, as `transfer_of` has it.
    """
    for name, side in (("prompts", prompts), ("answers", answers)):
        if is_any(side.replicas < 1):
            raise InvalidPlan(
                "replicas of {name} must be at least 1. Got {replicas}.", name=name, replicas=side.replicas
            )
    return SplitRates(model, prompts, answers, load, rates or serving_rates(), transfer).times


def _rate_of(excess: Callable[[Number], Number], most: Number) -> Number:
    """The rate between 0 and `most` at which `excess`, which falls with it, is 0. The Illinois method: false position,
    in which the value at an end is halved that stays for two rounds; about ten rounds are needed.
    """
    low, high = 1e-9 * most, most
    above, below = excess(low), excess(high)
    rate, was_low = high, most < 0
    for _ in range(ROUNDS):
        last = rate
        rate = between(low, low + (high - low) * above / maximum(above - below, 1e-300), high)
        if not is_any(abs(rate - last) > CLOSE * rate):
            break
        found = excess(rate)
        is_low = found > 0
        again = is_low == was_low
        above, below = (
            where(is_low, found, where(again, above / 2, above)),
            where(is_low, where(again, below / 2, below), found),
        )
        low, high, was_low = where(is_low, rate, low), where(is_low, high, rate), is_low
    return rate


class SplitRates:
    """Times of replicas that are split so, as functions of the rate of requests. What does not depend on the rate is
    computed once.
    """

    def __init__(self, model: Model, prompts: Side, answers: Side, load: Load, rates: ServingRates, transfer: str = ""):
        self.load, self.sides = load, (prompts, answers)
        of_prompts, of_answers = (pass_time(model, side.plan, side.cluster, rates) for side in self.sides)
        self.of_prompts, self.passes = of_prompts, (of_prompts, DecodeTime(of_answers))
        first, second = (policy(side.plan, side.cluster.accelerator, side.pool_tokens) for side in self.sides)
        # SGLang lets a request in while each that runs has room for 512 more tokens: num_reserved_decode_tokens
        self.rules = [first, replace(second, mixed=True, reserves_answer=True)]
        alone = replace(load, concurrency=None)
        # prefill makes the first token; who answers finds all of the prompt but its last token in the cache
        self.loads = (replace(alone, output_tokens=1), replace(alone, cached_tokens=load.input_tokens - 1))
        self.shapes = [Shape(*each) for each in zip(self.passes, self.rules, self.loads, strict=True)]
        self.sent = self._sent(of_prompts.works, prompts)
        self.transfer = self._transfer(prompts, transfer)
        self.places = self.shapes[1].places * answers.replicas

    @cached_property
    def full(self) -> list[Means]:
        """A replica of each kind with all places taken."""
        return [full_load(shape) for shape in self.shapes]

    @property
    def _most(self) -> list[Number]:
        """Requests a second that all replicas of each kind answer at most."""
        return [full.rate * side.replicas for full, side in zip(self.full, self.sides, strict=True)]

    @property
    def largest(self) -> Number:
        return minimum(*self._most) * (1 - 1e-6)

    @property
    def waits_for_prefill(self) -> Number:
        first, second = self._most
        return first <= second

    def of_ways(self, ways: Any) -> "SplitRates":
        """The same for some of the numbers of replicas; `ways`: a mask."""
        some = copy(self)
        prompts, answers = (side._replace(replicas=side.replicas[ways]) for side in self.sides)
        some.sides, some.places = (prompts, answers), self.places[ways]
        return some

    def _steady(self, n: int, rate: Number) -> Steady:
        load = replace(self.loads[n], requests_per_second=rate)
        return steady(self.passes[n], self.rules[n], load, full=self.full[n])

    def _transfer(self, side: Side, transfer: str) -> Number:
        """Seconds in which every rank sends its part of a prompt's cache to its like: over the network, or inside of
        the only node where the transfer takes its links, or where it has no network that is known.
        """
        cluster = side.cluster
        if cluster.num_nodes > 1:
            return Network(cluster, stated=side.plan.links).send(self.sent, cluster.accelerators_per_node)
        if transfer not in INSIDE_A_NODE and cluster.node is not None and cluster.node.outside is not None:
            of_two = replace(cluster, num_nodes=2)
            return Network(of_two, stated=side.plan.links).send(self.sent, cluster.accelerators_per_node)
        return Network(cluster, stated=side.plan.links).send(self.sent, cluster.accelerators_per_node - 1)

    def _sent(self, works: tuple[Work, ...], side: Side) -> Number:
        """Bytes of a prompt's cache that a rank sends."""
        return cache_bytes(works, self.load.input_tokens, side.plan)

    @property
    def times(self) -> SplitTimes:
        """Under the load."""
        if self.load.requests_per_second is not None:
            return self.at(self.load.requests_per_second)
        return self.of(self.load.concurrency or 1)

    def may_hold(self, users: int, ttft: float, tpot: float, least: float) -> Number:
        """False for numbers of replicas that cannot keep these limits with so many users, from few passes; `least`:
        requests a second. TTFT and TPOT rise with the rate, so that what breaks a limit at a rate breaks it at any
        higher one.
        """
        shape, side = self.shapes[1], self.sides[1]
        _, answer = mean_lengths(self.load)
        answer_seconds = ttft + (answer - 1) * tpot if answer > 1 else ttft
        least = max(least, users / answer_seconds) * NEARLY
        decode = shape.decode(1)
        for _ in range(FEW if least > 0 else 0):  # a token takes at least as long as a step of those that then decode
            running = minimum(least / side.replicas * (answer - 1) * decode, shape.places)
            decode = shape.decode(minimum(running + 1, shape.places))
        may = decode * NEARLY <= tpot
        if not is_any(may):
            return may
        most = self.largest
        may = may & (most >= least)
        if not is_any(may):
            return may
        for tried in (least, self._rate_at(tpot)):
            rate = maximum(minimum(tried, most), 1e-9 * most)
            times = self.at(rate)
            is_reached = (rate <= least) | (users / times.end_to_end_seconds >= rate)
            breaks = (times.ttft_seconds * NEARLY > ttft) | (times.tpot_seconds * NEARLY > tpot)
            may = may & ~(is_reached & breaks)
            if not is_any(may):
                break
        return may

    def _rate_at(self, tpot: float) -> Number:
        """The rate at which as many requests decode as make a decode step so long; tokens take longer at it, as prompts
        come in between.
        """
        shape, side = self.shapes[1], self.sides[1]
        if shape.decode(shape.places) <= tpot:
            return self.largest
        low, high = 1.0, shape.places
        for _ in range(HALVINGS):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if shape.decode(middle) <= tpot else (low, middle)
        _, answer = mean_lengths(self.load)
        return side.replicas * high / maximum((answer - 1) * tpot, 1e-12)

    def of(self, users: Number) -> SplitTimes:
        """With so many users, of whom each sends the next request when an answer ends."""
        return self.at(_rate_of(lambda rate: users / self.at(rate).end_to_end_seconds - rate, self.largest), users)

    def at(self, rate: Number, users: Number | None = None) -> SplitTimes:
        """At so many requests a second. `users`: who send them; those beyond what the replicas have inside at their
        largest rate wait for the kind that is the limit (Little1961: users = rate x time of an answer).
        """
        first, second = (self._steady(n, rate / side.replicas) for n, side in enumerate(self.sides))
        _, answer = mean_lengths(self.load)
        overhead = around_seconds(self.of_prompts, first.tpot)
        later = h.later_tokens_seconds.evaluate(O=answer, tau=second.tpot)
        inside = first.ttft + self.transfer + overhead + second.ttft + later
        beyond = 0 if users is None else maximum(users / rate - inside, 0)
        beyond = where(beyond > 1e-6 * inside, beyond, 0)  # what is left of the search for the rate is no wait
        prefill = first.ttft + where(self.waits_for_prefill, beyond, 0)
        decode = second.ttft + where(self.waits_for_prefill, 0, beyond)
        ttft = prefill + self.transfer + overhead + decode
        return SplitTimes(
            ttft_seconds=ttft,
            tpot_seconds=second.tpot,
            end_to_end_seconds=ttft + later,
            requests_per_second=rate,
            output_tokens_per_second=h.answered_tokens_per_second.evaluate(X=rate, O=answer),
            transfer_seconds=self.transfer,
            largest_rate=self.largest,
            prefill_seconds=prefill,
            overhead_seconds=overhead,
            decode_wait_seconds=decode,
            transfer_bytes=self.sent,
        )


# ---- in an answer ----


class SplitReplicas(Struct, frozen=True, kw_only=True, eq=False):
    """All replicas, of which `prefill` compute prompts and the others answer, and their times under a load.

    `rates`: the times at so many requests a second; `load`: of all replicas together.
    """

    prefill: int
    decode: int
    load: Load
    rates: SplitRates
    times: SplitTimes
    transfer: str


def split_replicas(
    model: Model, plan: ServingPlan, cluster: Cluster, replica_load: ReplicaLoad, pool: int | None
) -> SplitReplicas:
    """The replicas of a plan, parted as `prefill_replicas` says. `pool`: tokens of cache of a replica. InvalidPlan
    where they cannot be parted so.
    """
    number, total = int(replica_load.prefill_replicas or 0), int(plan.data_parallel_size)
    _check(plan, replica_load, number, total)
    prompts, answers = (Side(plan, cluster, replicas, pool) for replicas in (number, total - number))
    load, transfer = _of_all(replica_load), transfer_of(plan, replica_load.kv_transfer)
    rates = SplitRates(model, prompts, answers, load, serving_rates(), transfer)
    return SplitReplicas(
        prefill=number,
        decode=total - number,
        load=load,
        rates=rates,
        times=rates.times,
        transfer=transfer,
    )


def transfer_of(plan: ServingPlan, asked: str | None) -> str:
    """What carries caches from prefill to decode replicas: as asked, else the engine's default; "" where nothing is
    known of it. UnknownName for one that the engine does not have.
    """
    engine = serving_runtime(plan.engine, plan.engine_version)
    if asked is None:
        return engine.transfers[0] if engine.transfers else ""
    if asked not in engine.transfers:
        raise InvalidPlan(
            "{@kv_transfer}: {version} has {transfers} ({source}). Got {asked}.",
            version=engine.version,
            transfers=listed(engine.transfers) if engine.transfers else "none that is known",
            source=engine.transfers_source or engine.source,
            asked=asked,
        )
    return asked


def _check(plan: ServingPlan, replica_load: ReplicaLoad, number: int, total: int) -> None:
    if not serving_runtime(plan.engine, plan.engine_version).queues:
        raise InvalidPlan(
            "{@prefill_replicas}: {engine} does not hand caches on. Nearest: vllm, sglang, tensorrt-llm.",
            engine=plan.engine,
        )
    if plan.drafting.draft_tokens:
        raise InvalidPlan(
            "{@prefill_replicas} and {@draft_tokens} together are not timed: leave one out. Got "
            "{number} and {draft_tokens}.",
            number=number,
            draft_tokens=plan.drafting.draft_tokens,
        )
    if plan.tier.kv_offload:
        raise InvalidPlan(
            "{@prefill_replicas} and {@kv_offload} together are not timed: leave one out. Got {number} and {place}.",
            number=number,
            place=plan.tier.kv_offload,
        )
    if replica_load.simulate:
        raise InvalidPlan(
            "{@prefill_replicas} has means alone, no simulation: leave out {@simulate}, {@percentile} and {@trace}, or "
            "{@prefill_replicas}. Got {number}.",
            number=number,
        )
    if total < 2:
        raise InvalidPlan(
            "{@prefill_replicas} needs two replicas, one of which answers: a smaller "
            "{--tensor-parallel-size}, or a larger machine. Got {total}.",
            total=total,
        )
    if number >= total:
        raise InvalidPlan(
            "{@prefill_replicas} must be from 1 to {total}, as one of the {total2} replicas has to "
            "answer. Got {number}.",
            total=total - 1,
            total2=total,
            number=number,
        )


def _of_all(replica_load: ReplicaLoad) -> Load:
    """The load of all replicas together."""
    load = replica_load.load
    if load.requests_per_second is not None:
        return replace(load, requests_per_second=load.requests_per_second * replica_load.busy)
    return replace(load, concurrency=(load.concurrency or 1) * replica_load.busy)


def split_figures(split: SplitReplicas) -> SplitDocument[Term]:
    """Figures of the block `split`; times are null where the queue grows without end."""
    terms = {name: _term(split, name) for name in NAMES} | {"ttft_seconds": _ttft(split)}
    terms["transfer_seconds"] = _transfer_term(split)
    terms["decode_wait_seconds"] = _decode_wait(split) if terms["ttft_seconds"] else None
    return SplitDocument(prefill_replicas=split.prefill, decode_replicas=split.decode, **terms)


def _term(split: SplitReplicas, name: str) -> Term | None:
    title, unit = NAMES[name]
    value = getattr(split.times, "output_tokens_per_second" if name == "tokens_per_second" else name)
    return _by(title, value, unit, split) if isfinite(value) else None


def _ttft(split: SplitReplicas) -> Term | None:
    """TTFT with its parts: prefill with its queue, the cache on its way, the wait for a decode replica and its first
    pass, and what lies outside of passes.
    """
    if not isfinite(float(split.times.ttft_seconds)):
        return None
    return Term.sum(
        TTFT,
        _by("prefill and its queue", float(split.times.prefill_seconds), "seconds", split),
        _transfer_term(split),
        _decode_wait(split),
        _by("request overhead", float(split.times.overhead_seconds), "seconds", split),
    )


def _decode_wait(split: SplitReplicas) -> Term:
    return _by("wait for a decode replica", float(split.times.decode_wait_seconds), "seconds", split)


def _transfer_term(split: SplitReplicas) -> Term:
    """Bytes of a prompt's cache by what the link carries of them a second, its latency in it."""
    sent, seconds = float(split.times.transfer_bytes), float(split.times.transfer_seconds)
    name: str = "KV cache transfer"
    if split.transfer:
        name = Message("KV cache transfer ({transfer})", transfer=TRANSFERS.get(split.transfer, split.transfer))
    return Term.of(name, transfer_seconds, source=SOURCE, M=sent, W=sent / seconds if seconds else 1.0)


def _by(title: str, value: float, unit: str, split: SplitReplicas) -> Term:
    return Term.by(
        title,
        value,
        unit,
        basis="analytic",
        source=SOURCE,
        procedure="steady states of both kinds of replicas (estimate.inference.split)",
        version="1",
        prefill_replicas=split.prefill,
    )


def speed_of_split(split: SplitReplicas, speed: Speed, plan: ServingPlan, cluster: Cluster) -> Speed:
    """The speed of replicas that share their work so, in the place of that of replicas that do both; times of one user
    alone stay. How much of the machines' time prompts take is not said: each kind has machines of its own.
    """
    held, rates = split.times, serving_rates()
    prompt, answer = mean_lengths(split.load)
    rate = min(float(held.requests_per_second), float(held.largest_rate))
    output = Term.of("output tokens per second", h.answered_tokens_per_second, X=rate, O=answer)
    everything = Term.of("input and output tokens per second", h.all_tokens_per_second, X=rate, s=prompt, O=answer)
    named = {name: _term(split, name) for name in ("tpot_seconds", "end_to_end_seconds")}
    named = {"ttft_seconds": _ttft(split), **named}
    chip = cluster.accelerator
    runtime = serving_runtime(plan.engine, plan.engine_version)
    bands = {
        name.replace("_seconds", "_band"): ((rates.around(name, term.value, chip, runtime) or UNSET) if term else UNSET)
        for name, term in named.items()
        if name != "end_to_end_seconds"
    }
    tpot = float(held.tpot_seconds)
    figures = replace(
        speed.figures,
        **named,
        **bands,
        itl_seconds=_by("inter-token latency (ITL)", tpot, "seconds", split),
        tokens_per_second_per_user=Term.of("output tokens per second per user", h.user_tokens_per_second, tau=tpot),
        tokens_per_second=output,
        total_tokens_per_second=everything,
        tokens_per_second_per_gpu=Term.of(
            "output tokens per second per GPU", h.accelerator_tokens_per_second, tps=output.value, n=cluster.size
        ),
        requests_per_second=_by("requests per second", rate, "requests/s", split),
        largest_rate=_by("requests per second at full load", float(held.largest_rate), "requests/s", split),
        running=_by("running requests", rate * (answer - 1) * tpot, "requests", split),
    )
    return replace(
        speed,
        figures=figures,
        tokens_per_second=output.value,
        all_tokens_per_second=everything.value,
        prompt_share=None,
        answer_share=None,
    )


def split_service_level(split: SplitReplicas, replica_load: ReplicaLoad, question: Question) -> dict[str, Any]:
    """Fields of a ServingDocument as those of `service_level`, of replicas that share their work so."""
    if not replica_load.limited:
        if replica_load.is_open and split.times.ttft_seconds == float("inf"):
            _warn_of_overload(split, question)
        return {}

    is_open = replica_load.is_open

    def at(load: float) -> Waits:
        return (split.rates.at if is_open else split.rates.of)(load).waits

    waits = split.times.waits
    bound = waits.over(replica_load)
    largest = (
        largest_rate(at, replica_load, float(split.rates.largest))
        if is_open
        else most_users(at, replica_load, float(split.rates.places))
    )
    most = largest if is_open or not largest else float(split.rates.of(largest).requests_per_second)
    figures: dict[str, Any] = {
        "service_level": level_document(waits, bound, replica_load),
        "rate_at_service_level": _by("requests per second within the limits", most, "requests/s", split),
    }
    if not is_open:
        figures["users_at_service_level"] = _by(
            Message("{what} within the limits", what="users"), largest, "requests", split
        )
    alone = split.rates.at(split.rates.largest * STEP).waits
    warn_of_limits(lambda _: alone, replica_load, waits, bound, largest, question)
    return figures


def _warn_of_overload(split: SplitReplicas, question: Question) -> None:
    question.warn(
        Message(
            "{@request_rate} {rate:g} exceeds the capacity of {most:.3g} requests per second: the queue grows "
            "without end, and there is no mean TTFT.",
            rate=split.load.requests_per_second,
            most=float(split.times.largest_rate),
        )
    )
