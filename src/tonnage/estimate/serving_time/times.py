"""How fast a replica answers under a load: from passes, with those of whoever drafts tokens, to what users wait for."""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.load import Policy, Steady, mean_lengths, steady
from tonnage.estimate.load.shape import where
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import ServingMemory, draft_plan, serving_memory
from tonnage.estimate.serving.placement import AT_ONCE, drafting, uses_own_layers
from tonnage.estimate.serving_time.encoding import eager_seconds
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.rates import ServingRates, serving_rates
from tonnage.estimate.serving_time.towers import encoding
from tonnage.estimate.serving_time.work import Work, kv_bytes, stage_works
from tonnage.estimate.site.terms import Correction
from tonnage.formulas import passes as f
from tonnage.formulas import service as h
from tonnage.formulas import serving as g
from tonnage.formulas.load import cold_share
from tonnage.kernel.formula import Number, exp, maximum, minimum
from tonnage.runtimes import serving_runtime
from tonnage.spec import Accelerator, Cluster, Load, ServingPlan

UNEVEN = 1.02  # a cache that takes so much more, or less, than in proportion to its tokens has windows or states


class SiteTimes:
    """What the site's own runs say of the times of a replica."""

    def __init__(self, model: Model, plan: ServingPlan, cluster: Cluster):
        self.model, self.plan, self.cluster = model, plan, cluster

    def of(self, load: Load) -> dict[str, Correction]:
        """By `ttft` and `tpot`; without runs that say these, as runs that say the time of whole requests have it."""
        from tonnage.estimate.site.cases import serving_case  # nothing of it is needed where nobody asks

        case = serving_case(self.model, self.plan, self.cluster, load)
        whole = self.plan.site.correction("request_time", case)
        found = {name: self.plan.site.correction(name, case) or whole for name in ("ttft", "tpot")}
        return {name: correction for name, correction in found.items() if correction is not None}


class Drafted:
    """Passes of a replica that drafts `tokens` ahead: `checks` takes them all in one pass, and `guesses` is run
    before it for each (None: guessing costs nothing, as n-grams do). `at_once`: one pass guesses all of them, from the
    model's own hidden states; `of_prompts`: who guesses passes prompts too.
    """

    site: SiteTimes | None = None

    def __init__(
        self,
        checks: PassTime,
        guesses: PassTime | None,
        tokens: int,
        *,
        at_once: bool = False,
        of_prompts: bool = True,
    ):
        self.checks, self.guesses, self.tokens = checks, guesses, tokens
        self.at_once, self.of_prompts = at_once, of_prompts
        self.plan, self.engine, self.knows_prompts = checks.plan, checks.engine, checks.knows_prompts
        self.works, self.bandwidth, self.is_measured = checks.works, checks.bandwidth, checks.is_measured
        self.tokens_each: Number = f.tokens_per_pass.evaluate(n_draft=tokens, p_take=checks.plan.drafting.acceptance)

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """See PassTime."""
        return self.spent(prompt_tokens, prompt_keys, requests, keys).seconds

    def spent(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Prompts pass who guesses as well, once; each guessed token is a pass of its own."""
        check = self.checks.spent(prompt_tokens, prompt_keys, requests, keys)
        if self.guesses is None:
            return check
        if self.at_once:
            tokens, seen = (prompt_tokens, prompt_keys) if self.of_prompts else (0, 0)
            guess = self.guesses.spent(tokens, seen, requests, keys)
            one = Spent._make(a + b for a, b in zip(check, guess, strict=True))
            return one._replace(engine=check.engine)
        first = self.guesses.spent(prompt_tokens, prompt_keys, requests, keys)
        others = self.guesses.spent(0, 0, requests, keys)
        both = Spent._make(a + b + (self.tokens - 1) * c for a, b, c in zip(check, first, others, strict=True))
        return both._replace(engine=check.engine)  # who guesses does so inside of the same step


class DecodeTime:
    """The passes of replicas that compute no prompts: a request comes with its cache and joins those that decode,
    without a pass of its own (SGLang, sglang/srt/disaggregation/decode.py: get_new_prebuilt_batch). What counts as its
    prompt is the last token, whose pass makes the first token here.
    """

    def __init__(self, passes: PassTime | Drafted):
        self.passes = passes

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """Seconds of a pass, all of whose tokens are decoded."""
        return self.passes.seconds(0, 0, requests + prompt_tokens, keys + prompt_keys)


class Denoised(Drafted):
    """Passes of a replica that denoises answers (`Denoising`). A pass is the mean of those of an answer: of the block
    that is denoised, beside the cache of what stands before it, or of everything where nothing is cached.
    """

    def __init__(self, model: Model, plan: ServingPlan, cluster: Cluster, rates: ServingRates):
        denoising = plan.denoising
        assert denoising is not None
        self.denoising = denoising
        prompt, answer, block = denoising.prompt_tokens, denoising.answer_tokens, denoising.block
        whole = prompt + answer
        blocks = -(-answer // block)
        share = blocks / denoising.steps  # of passes that fill a cache anew
        mean = prompt + (answer + block) / 2
        tokens = {
            "none": ((1.0, whole, whole),),
            "window": ((1.0, mean, mean),),
            "block": ((1.0, block, mean),),
            "prefix": ((share, whole, whole), (1 - share, (answer + block) / 2, whole)),
            "dual": ((share, whole, whole), (1 - share, block, whole)),
        }[denoising.cache]
        #: (share of the passes, tokens of a request, keys that each sees, their clock)
        self.kinds = [
            (part, size, keys, self._clock(model, plan, cluster, rates, round(size)))
            for part, size, keys in tokens
            if part > 0
        ]
        super().__init__(self.kinds[0][3], None, 0)
        self.plan = plan
        size = sum(part * size for part, size, _, _ in self.kinds)
        eager = serving_runtime(plan.engine, plan.engine_version).encoding == "eager"
        #: Seconds of a request's part of a pass between products, where no kernel is fused.
        self.beside = eager_seconds(model, cluster.accelerator, size) / plan.tensor_parallel_size if eager else 0.0
        passes = denoising.steps + (blocks if denoising.cache == "block" else 0)
        self.tokens_each = f.tokens_per_denoising_pass.evaluate(O=answer, n_pass=passes)
        #: Tokens that appear at once: a block, or all where the answer is returned when it is whole.
        self.first_tokens = block if denoising.cache == "block" else answer

    @staticmethod
    def _clock(model: Model, plan: ServingPlan, cluster: Cluster, rates: ServingRates, tokens: int) -> PassTime:
        """Passes in which each request has so many tokens."""
        own = plan.with_fields(draft_tokens=tokens - 1)
        return PassTime(_works(model, own, peaks(own, cluster.accelerator)), own, cluster, model.hidden_size, rates)

    def spent(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Prompts have passes of their own where their cache stays; else each pass has them in it."""
        prompts = prompt_tokens if self.denoising.cache == "block" else 0
        seen = prompt_keys if self.denoising.cache == "block" else 0
        runs = 1.0 if self.denoising.cache == "block" else (requests > 0) * 1.0
        parts = [
            (part * runs, clock.spent(prompts, seen, requests, requests * reach))
            for part, _, reach, clock in self.kinds
        ]
        found = Spent._make(sum(part * spent[i] for part, spent in parts) for i in range(len(Spent._fields)))
        return found._replace(between=requests * self.beside)


class ServingTimes(Struct, frozen=True, kw_only=True, eq=False):
    """Means of one replica, in seconds and tokens a second. `prompt_tokens`, `answer_tokens`, `context_tokens`: of a
    request, and what is in its cache while it decodes; `tokens_each`: of a pass for each request; `decode`: the pass in
    which all running requests decode, by what spends it; `around_seconds`: of TTFT outside of passes. TPOT is
    (end-to-end - TTFT) / (output tokens - 1). What depends on how long prompts take is None where no source gives the
    accelerator's peak.
    """

    prompt_tokens: Number
    answer_tokens: Number
    context_tokens: Number

    ttft_seconds: Number | None
    tpot_seconds: Number
    end_to_end_seconds: Number | None
    output_tokens_per_second: Number
    requests_per_second: Number
    running: Number
    largest_rate: Number
    around_seconds: Number
    #: Of TTFT, in which cached tokens come from host memory, disks or a store.
    loaded_seconds: Number = 0
    #: Of TTFT, in which LoRA adapters come from host memory: the mean of all requests.
    swapped_seconds: Number = 0
    tokens_each: Number
    decode: Spent
    steady: Steady
    #: Of TTFT, the passes that denoise what appears with the first token.
    first_block_seconds: Number = 0
    #: By `ttft` and `tpot`: what own runs corrected; the times above are after it.
    corrections: Mapping[str, Correction] = {}


def pass_time(
    model: Model, plan: ServingPlan, cluster: Cluster, rates: ServingRates | None = None
) -> PassTime | Drafted:
    """The time of passes of one replica of this plan, with those of whoever drafts tokens for it."""
    rates = rates or serving_rates()
    works = _works(model, plan, peaks(plan, cluster.accelerator))
    checks = PassTime(works, plan, cluster, model.hidden_size, rates)
    if plan.media is not None:
        checks.encoding = encoding(model, plan, peaks(plan, cluster.accelerator), cluster, rates)
        checks.encoded_prompt = plan.media.prompt_tokens
    passes = (
        drafted(checks, model, plan, cluster, rates)
        if plan.denoising is None
        else Denoised(model, plan, cluster, rates)
    )
    if plan.site is not None:
        passes.site = SiteTimes(model, plan, cluster)
    return passes


def peaks(plan: ServingPlan, chip: Accelerator) -> tuple[str, ...]:
    """Precisions that the plan's engine multiplies on this accelerator: those of its peaks, but for integers where the
    engine has no kernels for them.
    """
    engine = serving_runtime(plan.engine, plan.engine_version)
    has_integers = not engine.integer_vendors or chip.vendor in engine.integer_vendors
    return tuple(name for name in chip.dense_flops if has_integers or name not in engine.integer_products)


def drafted(
    passes: PassTime, model: Model, plan: ServingPlan, cluster: Cluster, rates: ServingRates
) -> "PassTime | Drafted":
    """The passes of a plan, with those of its draft model or of the model's own layers of multi-token prediction."""
    if not plan.drafting.draft_tokens:
        return passes
    small, method = drafting(model, plan, shared=True), plan.drafting.speculative
    if small is not None:
        own = draft_plan(plan).with_fields(draft_tokens=_beside(plan))
        works = stage_works(small, own, peaks(own, cluster.accelerator), kv_bytes(own))
        guesses: PassTime | None = PassTime(works, own, cluster, small.hidden_size, rates)
    elif uses_own_layers(model, plan):
        own = draft_plan(plan)
        works = stage_works(model, own, peaks(own, cluster.accelerator), kv_bytes(own), kind="draft")
        guesses = PassTime(works, own, cluster, model.hidden_size, rates)
    else:
        guesses = None
    return Drafted(
        passes,
        guesses,
        plan.drafting.draft_tokens,
        at_once=method in AT_ONCE,
        of_prompts=method not in ("medusa", "dflash"),
    )


def _beside(plan: ServingPlan) -> int:
    """Tokens of a request beside its last one in a pass that guesses: masks of a drafter that guesses all at once,
    whose block begins with the last token (dflash), or is the first guess (p-eagle).
    """
    tokens = plan.drafting.draft_tokens
    return {"dflash": tokens, "p-eagle": tokens - 1}.get(plan.drafting.speculative, 0)


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
        poll_passes=plan.poll_passes,
        pool_tokens=None if pool_tokens is None else int(pool_tokens),
    )


def pool_tokens(
    model: Model, plan: ServingPlan, cluster: Cluster, memory: ServingMemory, usable: int, load: Load
) -> int | None:
    """Tokens of cache of one replica, for requests as long as these: a window takes less of a long one, and a state
    as much of each. None for an engine that takes as many requests as are asked for.
    """
    if not serving_runtime(plan.engine, plan.engine_version).queues:
        return None
    length, ranks = int(plan.context), memory.ranks
    request_tokens = int(load.input_tokens + load.output_tokens)
    if request_tokens < length and any(
        _is_uneven(rank.per_request.value, rank.per_token.value * length) for rank in ranks
    ):
        length, ranks = (
            request_tokens,
            serving_memory(model, replace(plan, context=request_tokens), cluster.accelerator).ranks,
        )
    pools = [
        g.pool_tokens.evaluate(
            U=g.cache_pool_bytes.evaluate(U=usable, M=rank.besides_cache.value), M=held.per_request.value, s=length
        )
        for rank, held in zip(memory.ranks, ranks, strict=True)
        if held.per_request.value
    ]
    return int(min(pools)) * int(plan.attention_data_parallel_size) if pools else None


def _is_uneven(held: float, in_proportion: float) -> bool:
    """Whether a request takes more, or less, than its tokens one by one: it has windows or states."""
    return not in_proportion or not 1 / UNEVEN < held / in_proportion < UNEVEN


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
    passes = pass_time(model, plan, cluster, rates)
    rules = policy(plan, cluster.accelerator, pool_tokens)
    return times(passes, rules, load, rounds)


def times(passes: PassTime | Drafted, rules: Policy, load: Load, rounds: int | None = None) -> ServingTimes:
    """The steady state of one replica, from passes and a policy that were made already."""
    tokens_each = passes.tokens_each
    state = steady(passes, rules, load, rounds=rounds, tokens_each=tokens_each)
    tpot = state.tpot / tokens_each
    prompt, answer = mean_lengths(load)
    context = prompt + answer / 2
    returns = load.requests_per_second is None
    busy = minimum(maximum(state.running - 1, 0), 1) if returns else 1 - exp(-state.running)
    overhead = around_seconds(passes, state.tpot) + scheduled_seconds(passes, state.tpot, busy, returns=returns)
    ttft = state.ttft + overhead if passes.knows_prompts else None
    together = minimum(passes.first_tokens, answer) if isinstance(passes, Denoised) else 1
    first = (together - 1) * tpot  # until the first block, of which all tokens appear at once
    found = ServingTimes(
        prompt_tokens=prompt,
        answer_tokens=answer,
        context_tokens=context,
        ttft_seconds=None if ttft is None else ttft + first,
        first_block_seconds=first,
        tpot_seconds=tpot,
        end_to_end_seconds=None if ttft is None else ttft + h.later_tokens_seconds.evaluate(O=answer, tau=tpot),
        output_tokens_per_second=state.output_tokens_per_second,
        requests_per_second=state.requests_per_second,
        running=state.running,
        largest_rate=state.largest_rate,
        around_seconds=overhead,
        tokens_each=tokens_each,
        decode=passes.spent(0, 0, state.running, state.running * context),
        steady=state,
    )
    if passes.plan.tier.kv_offload and load.cached_tokens:
        found = _loaded(found, passes, load)
    if passes.plan.adapters.lora_on_host > passes.plan.adapters.lora_adapters:
        found = _swapped(found, passes.checks if isinstance(passes, Drafted) else passes, load)
    return found if passes.site is None else _corrected(found, passes.site.of(load), returns=returns)


def _loaded(found: ServingTimes, passes: PassTime | Drafted, load: Load) -> ServingTimes:
    """The times where cached tokens come from host memory, disks or a store: TTFT is later by the loading and the wait
    for other requests' loading, and the links answer no more requests than they load.
    """
    from tonnage.estimate.serving_time.kv_tier import load_seconds, wait_seconds

    checks = passes.checks if isinstance(passes, Drafted) else passes
    loading, first = load_seconds(checks, load.cached_tokens), found.ttft_seconds
    if first is None:
        return found
    tail = h.later_tokens_seconds.evaluate(O=found.answer_tokens, tau=found.tpot_seconds)
    rate = found.requests_per_second
    if load.requests_per_second is None:  # users who wait for their answers ask less often
        rate = minimum(rate / (1 + loading / (first + tail)), 1 / loading)
        later = loading + wait_seconds(rate, loading)
        full = rate * loading >= FULL_LINK
        ttft = where(full, maximum(first + loading, (load.concurrency or 1) / rate - tail), first + later)
    else:
        later = loading + wait_seconds(rate, loading)
        ttft = where(rate * loading < 1, first + later, float("inf"))
    slower = rate / found.requests_per_second
    return replace(
        found,
        ttft_seconds=ttft,
        loaded_seconds=ttft - first,
        end_to_end_seconds=ttft + tail,
        requests_per_second=rate,
        output_tokens_per_second=found.output_tokens_per_second * slower,
        running=found.running * slower,
        largest_rate=minimum(found.largest_rate, 1 / loading),
    )


def _swapped(found: ServingTimes, passes: PassTime, load: Load) -> ServingTimes:
    """The times where requests ask for adapters of which some are in host memory: theirs waits for its adapter, and the
    pass in which it is copied waits too (vllm/v1/worker/lora_model_runner_mixin.py: set_active_loras, before the pass).
    """
    from tonnage.estimate.serving_time.adapters import swap_seconds

    adapters = passes.plan.adapters
    cold = float(cold_share.evaluate(A=adapters.lora_adapters, n_copies=adapters.lora_on_host))
    swap = swap_seconds(passes)
    if found.ttft_seconds is None or not cold:
        return found
    waits: Number = cold * swap
    tail = h.later_tokens_seconds.evaluate(O=found.answer_tokens, tau=found.tpot_seconds)
    stretched = 1 + found.requests_per_second * waits
    ttft, later = found.ttft_seconds + waits, tail * stretched
    slower: Number = 1
    if load.requests_per_second is None:
        slower = (ttft + later) / (found.ttft_seconds + tail)
    return replace(
        found,
        ttft_seconds=ttft,
        tpot_seconds=found.tpot_seconds * stretched,
        end_to_end_seconds=ttft + later,
        swapped_seconds=waits,
        requests_per_second=found.requests_per_second / slower,
        output_tokens_per_second=found.output_tokens_per_second / slower,
        largest_rate=found.largest_rate / stretched,
    )


FULL_LINK = 0.9  # of the time that links load: beyond it users wait for them, and not they for users


def _corrected(found: ServingTimes, corrections: Mapping[str, Correction], *, returns: bool) -> ServingTimes:
    """The times as own runs have them. Users who wait for their answers ask less often by as much as these take longer;
    requests that come at a rate come as before.
    """
    factor = {name: corrections[name].factor if name in corrections else 1 for name in ("ttft", "tpot")}
    tpot = found.tpot_seconds * factor["tpot"]
    ttft = None if found.ttft_seconds is None else found.ttft_seconds * factor["ttft"]
    tail = h.later_tokens_seconds.evaluate(O=found.answer_tokens, tau=tpot)
    longer = factor["tpot"]
    if ttft is not None and found.end_to_end_seconds is not None:
        longer = (ttft + tail) / found.end_to_end_seconds
    slower = longer if returns else 1
    return replace(
        found,
        ttft_seconds=ttft,
        tpot_seconds=tpot,
        end_to_end_seconds=None if ttft is None else ttft + tail,
        output_tokens_per_second=found.output_tokens_per_second / slower,
        requests_per_second=found.requests_per_second / slower,
        largest_rate=found.largest_rate / longer,
        corrections=corrections,
    )


def around_seconds(passes: PassTime | Drafted, tpot: Number) -> Number:
    """Seconds of a request outside of passes: into the engine, until it looks at its queue, and from the token back."""
    return passes.engine.arrive + f.poll_seconds.evaluate(n_pass=passes.plan.poll_passes, tau=tpot)


def scheduled_seconds(passes: PassTime | Drafted, tpot: Number, share: Number, *, returns: bool) -> Number:
    """Seconds that a request waits for passes that were scheduled before it came; `share` of the requests find the
    engine at work. `returns`: a user sends it when an answer ends, so that a pass has just begun.
    """
    ahead = serving_runtime(passes.plan.engine, passes.plan.engine_version).passes_ahead
    return f.scheduled_seconds.evaluate(n_pass=ahead + returns, share_w=share, tau=tpot)


@lru_cache(maxsize=256)
def _works_of(model: Model, plan: ServingPlan, peaks: tuple[str, ...]) -> tuple[Work, ...]:
    return stage_works(model, plan, peaks, kv_bytes(plan))


def _works(model: Model, plan: ServingPlan, peaks: tuple[str, ...]) -> tuple[Work, ...]:
    try:
        return _works_of(model, plan, peaks)
    except TypeError:  # arrays in the plan
        return stage_works(model, plan, peaks, kv_bytes(plan))
