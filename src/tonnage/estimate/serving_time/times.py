"""How fast a replica answers under a load: from passes to what users wait for."""

from functools import lru_cache

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.load import Policy, Steady, steady
from tonnage.estimate.serving.token_batch import batch_limits
from tonnage.estimate.serving_time.drafts import Drafted, drafted
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.rates import ServingRates, serving_rates
from tonnage.estimate.serving_time.work import Work, kv_bytes, stage_works
from tonnage.formulas import passes as f
from tonnage.kernel.formula import Number, maximum
from tonnage.runtimes import serving_runtime
from tonnage.spec import Accelerator, Cluster, Load, ServingPlan


class ServingTimes(Struct, frozen=True, kw_only=True, eq=False):
    """Means of one replica, in seconds and tokens a second. `tokens_each`: of a pass for each request; `alone`: a
    prompt through an idle replica; `decode`, `prompt`: the pass in which all running requests decode, and the one of
    a prompt, by what spends them. TPOT is (end-to-end - TTFT) / (output tokens - 1). What depends on how long
    prompts take is None where no source gives the accelerator's peak.
    """

    ttft_seconds: Number | None
    tpot_seconds: Number
    end_to_end_seconds: Number | None
    output_tokens_per_second: Number
    requests_per_second: Number
    running: Number
    largest_rate: Number
    alone_seconds: Number | None
    tokens_each: Number
    decode: Spent
    prompt: Spent | None
    steady: Steady


def pass_time(
    model: Model, plan: ServingPlan, cluster: Cluster, rates: ServingRates | None = None
) -> PassTime | Drafted:
    """The time of passes of one replica of this plan, with those of whoever drafts tokens for it."""
    rates = rates or serving_rates()
    works = _works(model, plan, tuple(cluster.accelerator.dense_flops))
    return drafted(PassTime(works, plan, cluster, model.hidden_size, rates), model, plan, cluster, rates)


def policy(plan: ServingPlan, accelerator: Accelerator, pool_tokens: Number | None = None) -> Policy:
    """How the plan's engine fills its passes; `pool_tokens`: of cache, None for more than is needed."""
    engine = serving_runtime(plan.engine, plan.engine_version)
    limits = batch_limits(engine, plan, accelerator)
    groups, p = plan.attention_data_parallel_size, plan.pipeline_parallel_size
    # each stage of a pipeline has a micro-batch, with a budget of its own; llama.cpp sends those of a prompt one after
    # the other
    budget = limits.tokens * groups * (p if engine.queues else 1)
    chunked = engine.chunks_prompts if plan.chunked_prefill is None else plan.chunked_prefill
    whole_prompts = p > 1 and engine.cells is not None and engine.cells.by_layers
    return Policy(
        max_num_seqs=int(limits.requests * groups),
        max_num_batched_tokens=int(maximum(budget, limits.requests * groups)),
        chunked_prefill=chunked and not whole_prompts,
        mixed=engine.mixes_prompts,
        reserves_answer=engine.reserves_answers,
        pool_tokens=None if pool_tokens is None else int(pool_tokens),
    )


def serving_times(
    model: Model,
    plan: ServingPlan,
    load: Load,
    cluster: Cluster,
    *,
    pool_tokens: Number | None = None,
    rounds: int | None = None,
    rates: ServingRates | None = None,
) -> ServingTimes:
    """The steady state of one replica under a load; `rounds`: of a benchmark whose users all begin at once (see
    load.steady).
    """
    made = pass_time(model, plan, cluster, rates)
    rules = policy(plan, cluster.accelerator, pool_tokens)
    return times(made, rules, load, rounds)


def times(made: PassTime | Drafted, rules: Policy, load: Load, rounds: int | None = None) -> ServingTimes:
    """The same of passes and a policy that are there already."""
    each = made.tokens_each
    found = steady(made, rules, load, rounds=rounds, tokens_each=each)
    tpot = found.tpot / each
    half = 1 - load.spread / 2
    prompt, answer = load.input_tokens * half, load.output_tokens * half
    context = prompt + answer / 2
    decode = made.spent(0, 0, found.running, found.running * context)
    fresh = maximum(prompt - load.cached_tokens, 1)
    alone = made.spent(fresh, fresh * (prompt - fresh / 2), 0, 0) if made.knows_prompts else None
    ttft = found.ttft + around_seconds(made, found.tpot)
    whole = ttft + tpot * (answer - 1)
    return ServingTimes(
        ttft_seconds=alone and ttft,
        tpot_seconds=tpot,
        end_to_end_seconds=alone and whole,
        output_tokens_per_second=found.output_tokens_per_second,
        requests_per_second=found.requests_per_second,
        running=found.running,
        largest_rate=found.largest_rate,
        alone_seconds=alone and alone.seconds,
        tokens_each=each,
        decode=decode,
        prompt=alone,
        steady=found,
    )


def around_seconds(made: PassTime | Drafted, tpot: Number) -> Number:
    """Of a request outside of passes: into the engine, until it looks at what has come, and from the token back."""
    return made.engine.arrive + f.poll_seconds.evaluate(n_pass=made.plan.poll_passes, tau=tpot)


@lru_cache(maxsize=256)
def _works_of(model: Model, plan: ServingPlan, peaks: tuple[str, ...]) -> tuple[Work, ...]:
    return stage_works(model, plan, peaks, kv_bytes(plan))


def _works(model: Model, plan: ServingPlan, peaks: tuple[str, ...]) -> tuple[Work, ...]:
    try:
        return _works_of(model, plan, peaks)
    except TypeError:  # arrays in the plan
        return stage_works(model, plan, peaks, kv_bytes(plan))
