"""How fast a served model answers, as an answer shows it: figures of all replicas together, each with what spends
the time.
"""

from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.serving import KVOffloadDocument, ServingDocument
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.inputs import Question
from tonnage.estimate.load import Policy
from tonnage.estimate.load.options import ReplicaLoad
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.pass_terms import pass_term, some, walked, with_encoder
from tonnage.estimate.serving_time.rates import OTHER_KINDS
from tonnage.estimate.serving_time.times import (
    Denoised,
    Drafted,
    ServingTimes,
    pass_time,
    policy,
    pool_tokens,
    times,
)
from tonnage.estimate.site.terms import Correction, calibrated, calibration_note
from tonnage.formulas import passes as f
from tonnage.formulas import service as h
from tonnage.formulas import serving as g
from tonnage.formulas.load import prefixes_beside
from tonnage.formulas.time import memory_seconds
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message, listed
from tonnage.kernel.part_names import PREFILL, TPOT, TTFT
from tonnage.kernel.term import Term
from tonnage.spec import Cluster, Load, ServingPlan

BALANCE = "Little1961, L = lambda W; Kleinrock1975, sec. 5.6"
MEASURED = ("ttft_seconds", "tpot_seconds")  # under load, by many sources
NOTHING = 1e-4  # of a time: what is left of a closed form that has nothing to say


class Replica(Struct, frozen=True, kw_only=True, eq=False):
    """One replica as its clock and its policy have it. `pool`: tokens of cache for requests of this load, None: as
    many as are asked for.
    """

    clock: PassTime | Drafted
    policy: Policy
    pool: int | None


class Speed(Struct, frozen=True, kw_only=True, eq=False):
    """`figures`: what the document has of them. `times`: of one replica. Tokens a second are of all replicas; `alone`:
    those of prompts and answers with one user on each. None where prompts have no time.
    """

    figures: ServingDocument[Term]
    times: ServingTimes
    replica: Replica
    tokens_per_second: float = 0.0
    all_tokens_per_second: float = 0.0
    alone_tokens_per_second: float = 0.0
    prompt_share: Term | None = None
    answer_share: Term | None = None


def serving_speed(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    memory: ServingMemory,
    usable: int,
    replica_load: ReplicaLoad,
    question: Question,
) -> Speed | None:
    """Figures of this load; None, and a note, where nobody can say them."""
    try:
        replica = replica_of(model, plan, cluster, memory, usable, replica_load.load)
        if replica.pool is not None and replica.pool < replica_load.load.input_tokens + replica_load.load.output_tokens:
            question.warn("there is no room for the KV cache of one request: no request runs, and there are no times.")
            return None
        served = times(replica.clock, replica.policy, replica_load.load)
    except MissingDatum as error:
        question.warn(str(error))
        return None
    if memory.memory.value > usable and replica.pool is None:
        question.warn("it does not fit: the times are those of an accelerator with enough memory.")
    _notes(replica.clock, plan, cluster, served, replica_load, question)
    if plan.site is not None:
        question.warn(
            calibration_note({name.upper(): served.corrections.get(name) for name in ("ttft", "tpot")}), first=True
        )
    if (
        "cache_hit_rate" in question
        and not plan.tier.kv_offload
        and replica.pool is not None
        and replica_load.load.cached_tokens
    ):
        _note_prefixes(replica.pool, served, replica_load.load, question)
    speed = speed_of(replica, plan, cluster, served, replica_load)
    if plan.tier.kv_offload:
        from tonnage.estimate.serving_time.kv_tier import check_tier

        offload = _offload(replica, plan, memory, replica_load)
        check_tier(offload, plan, memory, replica_load, question)
        speed = replace(speed, figures=replace(speed.figures, kv_offload=offload))
    bands = _bands(replica.clock, speed.figures) | _own_bands(served, plan)
    return replace(speed, figures=replace(speed.figures, **bands))


def _offload(
    replica: Replica, plan: ServingPlan, memory: ServingMemory, replica_load: ReplicaLoad
) -> KVOffloadDocument[Term]:
    """What is said of caches beside the accelerators, and of loading them against computing them again."""
    from tonnage.estimate.serving_time.kv_tier import offload_figures

    prompt, cached = replica_load.load.input_tokens, replica_load.load.cached_tokens
    recomputed = 0.0
    if cached and replica.clock.knows_prompts:
        whole, rest = (prompt_pass(replica.clock, replica.policy, prompt, held) for held in (0, cached))
        recomputed = float(whole.seconds - rest.seconds)
    known = cached if recomputed > 0 else 0
    return offload_figures(_checks(replica.clock), plan, memory, known, recomputed)


def replica_of(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    memory: ServingMemory,
    usable: int,
    load: Load,
    passes: PassTime | Drafted | None = None,
) -> Replica:
    """One replica of a plan; `passes`: its clock, where somebody has made it. MissingDatum where the times of this
    plan, or of this machine, are not known.
    """
    if not any(branch.kind == "decoder" for branch in model.branches):
        raise MissingDatum("{model} generates no tokens: it has no TTFT and no TPOT.", model=model.name)
    pool = pool_tokens(model, plan, cluster, memory, usable, load)
    return Replica(
        clock=passes or clock(model, replace(plan, concurrency=1), cluster),
        policy=policy(plan, cluster.accelerator, pool),
        pool=pool,
    )


def clock(model: Model, plan: ServingPlan, cluster: Cluster) -> PassTime | Drafted:
    """The time of passes, of drafts too, made once for a plan."""
    return _clock(ByIdentity(model), plan, ByIdentity(cluster))


@lru_cache(maxsize=256)
def _clock(model: ByIdentity, plan: ServingPlan, cluster: ByIdentity) -> PassTime | Drafted:
    return pass_time(model.thing, plan, cluster.thing)


def _checks(passes: PassTime | Drafted) -> PassTime:
    """The passes of the model itself."""
    return passes.checks if isinstance(passes, Drafted) else passes


def prompt_pass(passes: PassTime | Drafted, rules: Policy, prompt: float, cached: float = 0) -> Spent:
    """A prompt alone in an idle replica: full passes, and one with the rest, as the engine cuts it and as the steady
    state counts it.
    """
    fresh = max(prompt - cached, 1)
    full = fresh // rules.max_num_batched_tokens if rules.chunked_prefill else 0
    rest = fresh - full * rules.max_num_batched_tokens
    keys = prompt - fresh / 2  # that a token sees on average
    parts = [(full, rules.max_num_batched_tokens)] * (full > 0) + [(1, rest)] * (rest > 0)
    counted = [(times, passes.spent(tokens, tokens * keys, 0, 0)) for times, tokens in parts]
    return Spent._make(sum(times * spent[part] for times, spent in counted) for part in range(len(Spent._fields)))


def _notes(
    clock: PassTime | Drafted,
    plan: ServingPlan,
    cluster: Cluster,
    served: ServingTimes,
    replica_load: ReplicaLoad,
    question: Question,
) -> None:
    chip = cluster.accelerator.name
    if not clock.knows_prompts:
        question.warn(
            Message(
                "no source gives a bf16, fp16 or fp32 peak of {chip}: prefill time, TTFT and requests per second "
                "are unknown.",
                chip=chip,
            )
        )
        return
    if not _checks(clock).is_measured and cluster.accelerator.kind in OTHER_KINDS:
        question.warn(
            Message(
                "there are no published runs on {chip} to fit rates to: the times use the efficiency of GPUs, whose "
                "kernels are others, and their error band is as wide twice over.",
                chip=chip,
            )
        )
    elif not _checks(clock).is_measured:
        question.warn(
            Message(
                "there are no published runs on {chip} to fit rates to: the times use the efficiency of other "
                "accelerators.",
                chip=chip,
            )
        )
    if unmeasured := _checks(clock).runtime.unmeasured:
        question.warn(
            Message(
                "no published runs of {engine} give its {times}: the efficiency is that of other engines, and the "
                "error band is as wide twice over.",
                engine=plan.engine,
                times=listed(name.removesuffix("_seconds").upper() for name in unmeasured),
            )
        )
    elif not _checks(clock).runtime.is_fitted:
        question.warn(
            Message(
                "no published runs of {engine} are fitted: its times are those of vLLM, SGLang and TensorRT-LLM on "
                "average.",
                engine=plan.engine,
            )
        )
    if plan.enforce_eager and _checks(clock).engine.replays:
        question.warn(
            Message(
                "there are no published runs of {engine} without CUDA graphs: kernel launches are assumed to be as "
                "fast as in training. Small models and few users are slower than shown here.",
                engine=plan.engine,
            )
        )
    if replica_load.prefill_replicas:
        return  # whose load the replicas share otherwise
    rate = replica_load.load.requests_per_second
    if rate is not None and rate >= served.largest_rate:
        most = served.largest_rate * replica_load.busy
        question.warn(
            Message(
                "{@request_rate} {rate:g} exceeds the capacity of {most:.3g} requests per second: the queue grows "
                "without end, and there is no mean TTFT.",
                rate=rate * replica_load.busy,
                most=most,
            )
        )
    users = replica_load.load.concurrency
    if users is not None and users > served.steady.places:
        question.warn(
            Message(
                "on average {places:.3g} of {users:g} users of a replica run at once, limited by KV cache and engine; "
                "the others queue.",
                users=users,
                places=served.steady.places,
            )
        )


def _note_prefixes(pool: int, served: ServingTimes, load: Load, question: Question) -> None:
    """How many prefixes stay cached: a hit rate holds while those in use are no more."""
    count = prefixes_beside.evaluate(
        D_pool=pool, R=served.running, s_mean=served.context_tokens, s_hit=load.cached_tokens
    )
    question.warn(
        Message(
            "beside the running requests the KV cache of a replica keeps {count:,} prefixes of {tokens:,} tokens; with "
            "more of them in use the hit rate falls.",
            count=int(count),
            tokens=int(load.cached_tokens),
        )
    )


def _bands(clock: PassTime | Drafted, figures: ServingDocument[Term]) -> dict[str, tuple[float, float]]:
    """Between what nine in ten measured times lie, by rows that the rates had not seen: those of machines like it, or
    of a whole generation where none of its own was measured.
    """
    checks = _checks(clock)
    low, high = _of_acceptance(checks.plan)
    return {
        name.replace("_seconds", "_band"): (band[0] * low, band[1] * high) if name == "tpot_seconds" else band
        for name in checks.rates.bands
        if name in MEASURED and (figure := getattr(figures, name))
        if (band := checks.rates.around(name, figure.value, checks.chip, checks.runtime))
    }


def _own_bands(served: ServingTimes, plan: ServingPlan) -> dict[str, tuple[float, float]]:
    """The same by the site's own runs, of what they correct."""
    seconds = {"ttft": served.ttft_seconds, "tpot": served.tpot_seconds}
    wider = {"ttft": (1.0, 1.0), "tpot": _of_acceptance(plan)}
    return {
        f"{name}_band": (
            seconds[name] * correction.low * wider[name][0],
            seconds[name] * correction.high * wider[name][1],
        )
        for name, correction in served.corrections.items()
        if seconds[name] is not None
    }


def _of_acceptance(plan: ServingPlan) -> tuple[float, float]:
    """What TPOT is multiplied with where drafted tokens are accepted as often, and as seldom, as was published."""
    drafting = plan.drafting
    if not drafting.draft_tokens or drafting.acceptance_low is None or drafting.acceptance_high is None:
        return 1.0, 1.0
    least, mean, most = (
        float(f.tokens_per_pass.evaluate(n_draft=drafting.draft_tokens, p_take=share))
        for share in (drafting.acceptance_low, drafting.acceptance, drafting.acceptance_high)
    )
    return mean / most, mean / least


def speed_of(
    replica: Replica, plan: ServingPlan, cluster: Cluster, served: ServingTimes, replica_load: ReplicaLoad
) -> Speed:
    """The figures of all replicas, from the times of one."""
    load, clock = replica_load.load, replica.clock
    prompt, answer, context = served.prompt_tokens, served.answer_tokens, served.context_tokens
    steady = _Steady(load, plan)
    one = clock.spent(0, 0, 1, context)
    tpot = _tpot(served, steady, plan)
    alone = calibrated(
        _each_token(
            "TPOT of one user alone", pass_term("decode step of one user alone", one, requests=1, keys=context), plan
        ),
        _correction_alone(clock, load),
    )
    checks = _checks(clock)
    least = Term.of(
        "weights of one token, read at full bandwidth",
        memory_seconds,
        M=least_bytes(checks),
        W=checks.bandwidth,
        u=1,
    )
    figures: ServingDocument[Term] = ServingDocument(
        tpot_seconds=tpot,
        itl_seconds=steady.term("inter-token latency (ITL)", served.tpot_seconds, "seconds"),
        tokens_per_second_per_user=Term.of(
            "output tokens per second per user", h.user_tokens_per_second, tau=tpot.value
        ),
        tpot_seconds_alone=alone,
        tokens_per_second_alone=Term.of(
            "output tokens per second of one user alone", h.user_tokens_per_second, tau=alone.value
        ),
        weights_read_seconds=_each_token("weights of one token, with drafts", least, plan),
    )
    if not clock.knows_prompts:
        return Speed(figures=figures, times=served, replica=replica)
    own = prompt_pass(clock, replica.policy, prompt, load.cached_tokens)
    first = with_encoder(
        pass_term(PREFILL, own, prompt_tokens=max(prompt - load.cached_tokens, 1)), own, _checks(clock)
    )
    loading = 0.0
    if plan.tier.kv_offload and load.cached_tokens:
        from tonnage.estimate.serving_time.kv_tier import load_seconds

        loading = float(load_seconds(checks, load.cached_tokens))
    first_alone = Term.sum(
        "TTFT of one user alone",
        first,
        *some(walked("request overhead", clock.engine.arrive, {})),
        *some(walked("KV cache loaded", loading, {})),
    )
    if isinstance(clock, Denoised):
        until = (min(clock.first_tokens, answer) - 1) * alone.value
        first_alone = Term.sum(
            first_alone.name, *first_alone.children, *some(walked("denoising of the first block", until, {}))
        )
    rates = _rates(plan, cluster, served, steady, replica_load, prompt, answer)
    ttft = _ttft(served, steady, first)
    together = min(clock.first_tokens, answer) if isinstance(clock, Denoised) else 1
    tail = Term.of("tokens after the first", h.later_tokens_seconds, O=answer - together + 1, tau=tpot.value)
    figures = replace(
        figures,
        **rates,
        ttft_seconds=ttft,
        ttft_seconds_alone=first_alone,
        end_to_end_seconds=Term.sum("end-to-end latency", ttft, tail) if ttft is not None else None,
    )
    seconds_alone = first_alone.value + h.later_tokens_seconds.evaluate(O=answer, tau=alone.value)
    mine = h.shared_answer_seconds.evaluate(
        O=answer, tau_d=served.decode.seconds / clock.tokens_each, R=max(served.running, 1)
    )
    both = {"tau_m": own.seconds, "tau_d": mine}
    return Speed(
        figures=figures,
        times=served,
        replica=replica,
        tokens_per_second=rates["tokens_per_second"].value,
        all_tokens_per_second=rates["total_tokens_per_second"].value,
        alone_tokens_per_second=h.all_tokens_per_second.evaluate(
            X=plan.data_parallel_size / seconds_alone, s=prompt, O=answer
        ),
        prompt_share=Term.of("of it for prompts", h.prompt_cost_share, **both),
        answer_share=Term.of("of it for answers", h.answer_cost_share, **both),
    )


def _correction_alone(clock: PassTime | Drafted, load: Load) -> Correction | None:
    """What own runs say of TPOT with one user on each replica."""
    if clock.site is None:
        return None
    return clock.site.of(replace(load, concurrency=1, requests_per_second=None)).get("tpot")


class _Steady:
    """Figures of the steady state: which loop, of which load."""

    def __init__(self, load: Load, plan: ServingPlan):
        loop = "an open" if load.requests_per_second is not None else "a closed"
        self.procedure = Message("steady state of {loop} loop (estimate.load.steady)", loop=loop)
        names = (
            "input_tokens",
            "output_tokens",
            "concurrency",
            "requests_per_second",
            "cached_tokens",
            "spread",
            "burstiness",
        )
        self.parameters = {name: value for name in names if (value := getattr(load, name)) is not None}

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


def _rates(
    plan: ServingPlan,
    cluster: Cluster,
    served: ServingTimes,
    steady: _Steady,
    replica_load: ReplicaLoad,
    prompt: float,
    answer: float,
) -> dict[str, Term]:
    """The rates of all replicas together."""
    many = Term.of("replicas that have requests", g.replicas, n_copies=replica_load.busy)
    rate = Term.product(
        "requests per second",
        "requests/s",
        many,
        steady.term("of one replica", served.requests_per_second, "requests/s"),
    )
    output = Term.of("output tokens per second", h.answered_tokens_per_second, X=rate.value, O=answer)
    most = steady.term("of one replica", served.largest_rate, "requests/s")
    return {
        "tokens_per_second": output,
        "total_tokens_per_second": Term.of(
            "input and output tokens per second", h.all_tokens_per_second, X=rate.value, s=prompt, O=answer
        ),
        "tokens_per_second_per_gpu": Term.of(
            "output tokens per second per GPU",
            h.accelerator_tokens_per_second,
            tps=output.value,
            n=cluster.size,
        ),
        "requests_per_second": rate,
        "largest_rate": Term.product(
            "requests per second at full load",
            "requests/s",
            Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size),
            most,
        ),
        "running": Term.product(
            "running requests", "requests", many, steady.term("of one replica", served.running, "requests")
        ),
    }


def _tpot(served: ServingTimes, steady: _Steady, plan: ServingPlan) -> Term:
    keys = served.running * served.context_tokens
    correction = served.corrections.get("tpot")
    tpot = served.tpot_seconds if correction is None else served.tpot_seconds / correction.factor
    decode = pass_term("decode step", served.decode, requests=served.running, keys=keys)
    others = tpot * served.tokens_each - served.decode.seconds
    parts = (
        [steady.term("prefill interference", others, "seconds")]
        if abs(others) > NOTHING * served.decode.seconds
        else []
    )
    return calibrated(_each_token(TPOT, Term.sum("time of a pass", decode, *parts), plan), correction)


def _each_token(name: str, of_pass: Term, plan: ServingPlan) -> Term:
    """A token's part of a pass: with drafts, and where an answer is denoised, one gives several."""
    if plan.denoising is not None:
        done = plan.denoising
        blocks = -(-done.answer_tokens // done.block) if done.cache == "block" else 0
        share = Term.of(
            "tokens of a pass", f.tokens_per_denoising_pass, O=done.answer_tokens, n_pass=done.steps + blocks
        )
        return Term.ratio(name, "seconds", of_pass, share)
    if not plan.drafting.draft_tokens:
        return of_pass.named(name)
    several = Term.of(
        "tokens of a pass", f.tokens_per_pass, n_draft=plan.drafting.draft_tokens, p_take=plan.drafting.acceptance
    )
    return Term.ratio(name, "seconds", of_pass, several)


def _ttft(served: ServingTimes, steady: _Steady, own: Term) -> Term | None:
    if served.ttft_seconds is None or served.ttft_seconds == float("inf"):
        return None
    overhead, correction = served.around_seconds, served.corrections.get("ttft")
    ttft = served.ttft_seconds if correction is None else served.ttft_seconds / correction.factor
    loaded, swapped, block = float(served.loaded_seconds), float(served.swapped_seconds), served.first_block_seconds
    waits = ttft - own.value - overhead - loaded - swapped - block
    parts = [walked("request overhead", overhead, {})] if overhead else []
    parts += [steady.term("KV cache loaded", loaded, "seconds")] if loaded else []
    parts += [steady.term("LoRA adapters loaded", swapped, "seconds")] if swapped else []
    parts += [steady.term("denoising of the first block", block, "seconds")] if block else []
    if abs(waits) > NOTHING * ttft:
        parts.append(steady.term("queueing and batching", waits, "seconds"))
    return calibrated(Term.sum(TTFT, own, *parts), correction)


def least_bytes(clock: PassTime) -> float:
    """Weights that a token cannot do without, of one rank of each stage that it passes: of the experts those that it
    chooses. What stays in host memory is not read from here.
    """
    dense = sum(work.dense_bytes for work in clock.works)
    chosen = sum(work.chosen_bytes for work in clock.works)
    here, experts = 1 - clock.host.layers, 1 - clock.host.experts
    return float(dense * here + chosen * experts / clock.plan.expert_parallel_size)
