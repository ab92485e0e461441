"""How fast a served model answers, as an answer shows it: figures of all replicas together, each with what spends the time."""

from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.errors import MissingDatum
from tonnage.estimate._kept import Kept
from tonnage.estimate._question import Question
from tonnage.estimate.inference._pass import PassTime, Spent
from tonnage.estimate.inference.times import ServingTimes, pass_time, policy, times
from tonnage.estimate.load import Policy
from tonnage.estimate.load_options import Asked
from tonnage.estimate.serving import ServingMemory, serving_memory
from tonnage.formulas import passes as f
from tonnage.formulas import service as h
from tonnage.formulas import serving as g
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan

FITTED = "fitted: scripts/fit_serving.py"
BALANCE = "Little1961, L = lambda W; Kleinrock1975, sec. 5.6"
NOTHING = 1e-5  # of a time: what is left of a closed form that has nothing to say
UNEVEN = 1.02  # a cache that takes so much more, or less, than in proportion to its tokens has windows or states


class Replica(Struct, frozen=True, kw_only=True, eq=False):
    """One replica as its clock and its policy have it. `pool`: tokens of cache for requests of this load, None: as many as are asked for."""

    clock: PassTime
    policy: Policy
    pool: int | None


class Speed(Struct, frozen=True, kw_only=True, eq=False):
    """`figures`: of the document, by name. `times`: of one replica. Tokens a second are of all replicas; `alone`: those of prompts and answers with one
    user on each."""

    figures: dict[str, Any]
    times: ServingTimes
    replica: Replica
    tokens_per_second: float
    all_tokens_per_second: float
    alone_tokens_per_second: float
    prompt_share: Term
    answer_share: Term


def serving_speed(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    made: ServingMemory,
    usable: int,
    asked: Asked,
    question: Question,
) -> Speed | None:
    """Figures of this load; None, and a note, where nobody can say them."""
    try:
        replica = replica_of(model, plan, cluster, made, usable, asked.load)
        if replica.pool is not None and replica.pool < asked.load.input_tokens + asked.load.output_tokens:
            question.warn(
                "beside everything else there is no room for the cache of one request: nothing is answered, and there are no times."
            )
            return None
        found = times(replica.clock, replica.policy, asked.load)
    except MissingDatum as error:
        question.warn(str(error))
        return None
    _notes(replica.clock, plan, cluster, found, asked, question)
    return _speed(replica, plan, cluster, found, asked)


def replica_of(
    model: Model, plan: ServingPlan, cluster: Cluster, made: ServingMemory, usable: int, load: Load
) -> Replica:
    """MissingDatum where the times of this plan, or of this machine, are not known."""
    if not any(branch.kind == "decoder" for branch in model.branches):
        raise MissingDatum(f"{model.name} makes no tokens: there are no times of an answer.")
    pool = _pool_tokens(model, plan, cluster, made, usable, load)
    return Replica(
        clock=clock(model, replace(plan, concurrency=1), cluster),
        policy=policy(plan, cluster.accelerator, pool),
        pool=pool,
    )


def clock(model: Model, plan: ServingPlan, cluster: Cluster) -> PassTime:
    """The time of passes, made once for a plan."""
    return _clock(Kept(model), plan, Kept(cluster))


@lru_cache(maxsize=256)
def _clock(model: Kept, plan: ServingPlan, cluster: Kept) -> PassTime:
    return pass_time(model.thing, plan, cluster.thing)


def _pool_tokens(
    model: Model, plan: ServingPlan, cluster: Cluster, made: ServingMemory, usable: int, load: Load
) -> int | None:
    """Tokens of cache of one replica, for requests as long as these: a window takes less of a long one."""
    if not serving_runtime(plan.engine, plan.engine_version).queues:
        return None
    length, ranks = int(plan.context), made.ranks
    asked = int(load.input_tokens + load.output_tokens)
    if asked < length and any(_is_uneven(rank.per_request.value, rank.per_token.value * length) for rank in ranks):
        length, ranks = asked, serving_memory(model, replace(plan, context=asked), cluster.accelerator).ranks
    pools = [
        g.pool_tokens.evaluate(U=g.cache_pool_bytes.evaluate(U=usable, M=rank.besides_cache.value), M=held.per_request.value, s=length)
        for rank, held in zip(made.ranks, ranks, strict=True) if held.per_request.value
    ]  # fmt: skip
    return int(min(pools)) * int(plan.attention_data_parallel_size) if pools else None


def _is_uneven(held: float, in_proportion: float) -> bool:
    """Whether a request takes more, or less, than its tokens one by one: it has windows or states."""
    return not in_proportion or not 1 / UNEVEN < held / in_proportion < UNEVEN


def _notes(
    clock: PassTime, plan: ServingPlan, cluster: Cluster, found: ServingTimes, asked: Asked, question: Question
) -> None:
    chip = cluster.accelerator.name
    if not clock.is_measured:
        question.warn(
            f"nobody published runs on {chip} that rates were fitted to: the times take the shares of peaks that other accelerators reach."
        )
    if plan.draft_tokens:
        question.warn(
            "the work of drafted tokens is in the times, the passes that they save are not yet: a token takes a pass."
        )
    rate = asked.load.requests_per_second
    if rate is not None and rate >= found.largest_rate:
        most = found.largest_rate * asked.busy
        question.warn(
            f"request_rate {rate * asked.busy:g} is more than the {most:.3g} requests a second that are answered at most: the queue grows without end, "
            "and there is no mean time to the first token."
        )
    users = asked.load.concurrency
    if users is not None and users > found.steady.places:
        question.warn(
            f"of {users:g} users of a replica {found.steady.places:.0f} run at once, as far as cache and engine let them; others wait."
        )


def _speed(replica: Replica, plan: ServingPlan, cluster: Cluster, found: ServingTimes, asked: Asked) -> Speed:
    load, clock = asked.load, replica.clock
    half = 1 - load.spread / 2
    prompt, answer = load.input_tokens * half, 1 + (load.output_tokens - 1) * half
    many = Term.of("replicas that have requests", g.replicas, n_copies=asked.busy)
    steady = _Steady("open" if load.requests_per_second is not None else "closed", load)
    tpot = _tpot(found, steady, prompt + answer / 2)
    ttft = _ttft(found, steady, prompt, load.cached_tokens)
    one = clock.spent(0, 0, 1, prompt + answer / 2)
    rate = Term.product(
        "requests a second", "requests/s", many, steady.term("of one replica", found.requests_per_second, "requests/s")
    )
    output = Term.of("tokens of answers a second", h.answered_tokens_per_second, X=rate.value, O=answer)
    everything = Term.of(
        "tokens of prompts and answers a second", h.all_tokens_per_second, X=rate.value, s=prompt, O=answer
    )
    tail = Term.of("tokens after the first", h.later_tokens_seconds, O=answer, tau=tpot.value)
    first_alone = Term.sum("first token of one user alone", _pass("the prompt's own pass", found.prompt, prompt_tokens=prompt),
                           *_some(_walked("into the engine and back", clock.engine.arrive, {})))  # fmt: skip
    figures: dict[str, Any] = {
        "ttft_seconds": ttft, "tpot_seconds": tpot,
        "itl_seconds": steady.term("time between two tokens", found.tpot_seconds, "seconds"),
        "end_to_end_seconds": Term.sum("time of a whole answer", ttft, tail) if ttft is not None else None,
        "tokens_per_second": output, "total_tokens_per_second": everything,
        "tokens_per_second_per_user": Term.of("tokens a second that a user sees", h.user_tokens_per_second, tau=tpot.value),
        "tokens_per_second_per_gpu": Term.of("tokens of answers a second and accelerator", h.accelerator_tokens_per_second, tps=output.value, n=cluster.size),
        "requests_per_second": rate,
        "largest_rate": Term.product("requests a second that can be answered", "requests/s", Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size),
                                     steady.term("of one replica", found.largest_rate, "requests/s")),
        "running": Term.product("requests that decode", "requests", many, steady.term("of one replica", found.running, "requests")),
        "ttft_seconds_alone": first_alone,
        "tpot_seconds_alone": _pass("each later token of one user alone", one, requests=1, keys=prompt + answer / 2),
        "tokens_per_second_alone": Term.of("tokens a second of one user alone", h.user_tokens_per_second, tau=one.seconds),
        "weights_read_seconds": Term.of("weights of one token, read at the memory's full bandwidth", f.read_seconds, M=least_bytes(clock), W=clock.bandwidth, u=1),
    }  # fmt: skip
    mine = h.shared_answer_seconds.evaluate(O=answer, tau_d=found.decode.seconds, R=max(found.running, 1))
    both = {"tau_m": found.prompt.seconds, "tau_d": mine}
    whole = first_alone.value + h.later_tokens_seconds.evaluate(O=answer, tau=one.seconds)
    alone = h.all_tokens_per_second.evaluate(X=plan.data_parallel_size / whole, s=prompt, O=answer)
    return Speed(
        figures=figures, times=found, replica=replica, alone_tokens_per_second=alone, tokens_per_second=output.value, all_tokens_per_second=everything.value,
        prompt_share=Term.of("of it for prompts", h.prompt_cost_share, **both), answer_share=Term.of("of it for answers", h.answer_cost_share, **both),
    )  # fmt: skip


class _Steady:
    """Figures of the steady state: which loop, of which load."""

    def __init__(self, loop: str, load: Load):
        self.procedure = f"steady state of a{'n' if loop == 'open' else ''} {loop} loop (estimate.load.steady)"
        said = (
            "input_tokens",
            "output_tokens",
            "concurrency",
            "requests_per_second",
            "cached_tokens",
            "spread",
            "burstiness",
        )
        self.parameters = {name: value for name in said if (value := getattr(load, name)) is not None}

    def term(self, name: str, value: float, unit: str) -> Term:
        return Term.by(
            name,
            value,
            unit,
            basis="analytic",
            source=BALANCE,
            procedure=self.procedure,
            version="1",
            **self.parameters,
        )


def _tpot(found: ServingTimes, steady: _Steady, context: float) -> Term:
    decode = _pass("a pass in which all decode", found.decode, requests=found.running, keys=found.running * context)
    others = found.tpot_seconds - found.decode.seconds
    parts = (
        [steady.term("prompts of others in between", others, "seconds")]
        if abs(others) > NOTHING * found.tpot_seconds
        else []
    )
    return Term.sum("time of each later token", decode, *parts)


def _ttft(found: ServingTimes, steady: _Steady, prompt: float, cached: float) -> Term | None:
    if found.ttft_seconds == float("inf"):
        return None
    own = _pass("the prompt's own pass", found.prompt, prompt_tokens=max(prompt - cached, 1))
    waits = found.ttft_seconds - found.alone_seconds
    return Term.sum(
        "time to the first token", own, steady.term("waiting, and what shares its passes", waits, "seconds")
    )


def _pass(name: str, spent: Spent, **parameters: float) -> Term:
    """A pass by what spends it; what takes nothing is left out."""
    parts = [_walked(part, value, parameters) for part, value in zip(Spent._fields, spent, strict=True) if value]
    return Term.sum(name, *parts, unit="seconds")


def _walked(name: str, seconds: float, parameters: dict[str, float]) -> Term:
    return Term.by(name, seconds, "seconds", basis="analytic", source=FITTED, procedure="walk of the kernels of a pass (estimate.inference)", version="1",
                   **parameters)  # fmt: skip


def _some(term: Term) -> tuple[Term, ...]:
    return (term,) if term.value else ()


def least_bytes(clock: PassTime) -> float:
    """Weights that a token cannot do without, of one rank of each stage that it passes: of the experts those that it chooses."""
    whole = sum(each.bytes for work in clock.works for each in (*work.products, *work.head))
    chosen = sum(each.layers * each.top_k * each.bytes for work in clock.works for each in work.experts)
    return float(whole + chosen / clock.plan.expert_parallel_size)
