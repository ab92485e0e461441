"""What is asked of a served model: lengths, users or arrivals, limits, and how it is found out. From what was said
to a load of one replica.
"""

from typing import TYPE_CHECKING, cast

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.documents.serving import Percentile
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import decode_replicas
from tonnage.formulas.load import prefix_tokens
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable, shown
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.question.amounts import wait
from tonnage.question.subjects.load import LoadOptions
from tonnage.runtimes import serving_runtime, serving_runtimes
from tonnage.spec import Load, ServingPlan

if TYPE_CHECKING:
    from tonnage.estimate.load import Requests

USUAL = 1024  # tokens of a prompt and of an answer
USUAL_SOURCE = "a chat of InferenceMAX: 1,024 tokens and 1,024 tokens"
LARGEST = 2**40
PERCENTILES = ("mean", "p50", "p90", "p99")
MOST_REQUESTS = 1_000_000  # of a simulation


class ReplicaLoad(Struct, frozen=True, kw_only=True):
    """What is asked of one replica. `busy`: replicas that have users; `load`: of each of them; `ttft`, `tpot`:
    limits [seconds].
    """

    load: Load
    busy: int
    ttft: float | None
    tpot: float | None
    percentile: Percentile
    simulate: bool
    num_requests: int | None
    seed: int
    requests: "Requests | None" = None
    prefill_replicas: int | None = None
    kv_transfer: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests arrive by themselves."""
        return self.load.requests_per_second is not None

    @property
    def wanted(self) -> float:
        """Requests a second, or users, of one replica."""
        each = self.load.requests_per_second if self.is_open else self.load.concurrency
        return each or 0

    @property
    def limited(self) -> bool:
        return self.ttft is not None or self.tpot is not None


class Lengths(Struct, frozen=True, kw_only=True):
    """Tokens of a prompt and of its answer, of which some were said; `context`: of a request, where the lengths say
    it.
    """

    input_tokens: int | None
    output_tokens: int | None
    context: int | None
    why: str = ""
    requests: "Requests | None" = None


def is_stated(options: ServingOptions, load: LoadOptions) -> bool:
    """Whether anybody said what is asked of the model: users, arrivals or lengths."""
    lengths_stated = (load.input_tokens, load.output_tokens, load.images, load.video_seconds, load.audio_seconds)
    stated = (options.concurrency, load.request_rate, load.trace, *lengths_stated)
    return any(value is not None for value in stated)


def lengths(model: Model, options: ServingOptions, load: LoadOptions) -> Lengths:
    """What the load says about the length of a request, of its prompt that of the text; a context that is too short
    for it, with the tokens of images, video and sounds, is refused.
    """
    for name in ("input_tokens", "output_tokens"):
        _count(name, getattr(load, name))
    if load.trace is not None:
        return _of_trace(options, load)
    prompt, answer = load.input_tokens, load.output_tokens
    if prompt is None and answer is None and not is_stated(options, load):
        return Lengths(input_tokens=None, output_tokens=None, context=None)
    media = media_tokens(options)
    room = (options.context or model.context or LARGEST) - media
    if prompt is None and answer is None and room < 2:  # refused with the plan
        return Lengths(input_tokens=None, output_tokens=None, context=None)
    if prompt is None:
        prompt = max(min(USUAL, room * 3 // 4, room - (answer or 0)), 1)
    if answer is None:
        answer = max(min(USUAL, room - prompt), 1)
    if options.context is not None and media and prompt + answer + media > options.context:
        raise InvalidInput(
            "{@context} must hold the prompt, its images, video and sounds, and the answer, {prompt:,} + {media:,} + "
            "{answer:,} = {total:,} tokens. Got {context:,}.",
            prompt=prompt,
            media=media,
            answer=answer,
            total=prompt + media + answer,
            context=options.context,
        )
    if options.context is not None and prompt + answer > options.context:
        raise InvalidInput(
            "{@context} must hold the prompt and its answer, {prompt:,} + {answer:,} = {prompt2:,} "
            "tokens. Got {context:,}.",
            prompt=prompt,
            answer=answer,
            prompt2=prompt + answer,
            context=options.context,
        )
    context = prompt + media + answer if options.context is None else None
    why = "input_tokens + image and audio tokens + output_tokens" if media else "input_tokens + output_tokens"
    if options.media is not None and options.media.video is not None:
        why = "input_tokens + image, video and audio tokens + output_tokens"
    return Lengths(input_tokens=prompt, output_tokens=answer, context=context, why=why)


def media_tokens(options: ServingOptions) -> int:
    """Tokens of the images, video and sounds of a request, on top of its text."""
    return options.media.tokens if options.media else 0


def _of_trace(options: ServingOptions, load: LoadOptions) -> Lengths:
    from tonnage.estimate.load.requests import read_requests

    for name in (
        "input_tokens",
        "output_tokens",
        "request_rate",
        "spread",
        "burstiness",
        "cached_tokens",
        "cache_hit_rate",
        "num_requests",
        "images",
        "video_seconds",
        "audio_seconds",
    ):
        if getattr(load, name) is not None:
            raise InvalidInput(
                "{@trace} has lengths and arrivals of its own: leave out {name}. Got both.", name=option_name(name)
            )
    if options.concurrency is not None:
        raise InvalidInput(
            "{@trace} says when requests come: leave out {@concurrency}. Got {concurrency} with {@trace}.",
            concurrency=options.concurrency,
        )
    requests = read_requests(load.trace or "")
    longest = int((requests.input_tokens + requests.output_tokens).max())
    if options.context is not None and longest > options.context:
        raise InvalidInput(
            "{@context} must hold the longest request of {trace}, {longest:,} tokens. Got {context:,}.",
            trace=load.trace,
            longest=longest,
            context=options.context,
        )
    return Lengths(
        input_tokens=max(round(float(requests.input_tokens.mean())), 1),
        output_tokens=max(round(float(requests.output_tokens.mean())), 1),
        context=None if options.context is not None else longest,
        why="the longest request of the trace",
        requests=requests,
    )


def asked(
    plan: ServingPlan, options: ServingOptions, load: LoadOptions, lengths_given: Lengths, q: Question
) -> ReplicaLoad:
    """The load of one replica, checked, with its defaults in the question."""
    if load.request_rate is not None and options.concurrency is not None:
        raise InvalidInput(
            "{@concurrency} is of users who wait for their answers, {@request_rate} of requests that "
            "come by themselves: give one. Got {concurrency} and {request_rate:g}.",
            concurrency=options.concurrency,
            request_rate=load.request_rate,
        )
    media = plan.media.tokens if plan.media else 0
    prompt, answer = _lengths(int(plan.context) - media, load, lengths_given, q)
    prompt += media
    cached = _cached(plan, load, prompt, q)
    spread = q.take("spread", _ranged("spread", load.spread, 0, 1), 0) if load.spread is not None else 0.0
    form = Load(
        input_tokens=prompt,
        output_tokens=answer,
        cached_tokens=cached,
        spread=spread,
        in_step=load.spread is not None,  # who says nothing of it has users, not a benchmark of equal requests
    )
    form, busy = _arriving(plan, options, load, lengths_given, form, q)
    percentile = load.percentile or "mean"
    if percentile not in PERCENTILES:
        raise unknown("percentile", percentile, PERCENTILES)
    ttft, tpot = wait("ttft", load.ttft), wait("tpot", load.tpot)
    for name, limit in (("ttft", ttft), ("tpot", tpot)):
        if limit is not None:
            q.put(name, limit, "given", Message("seconds, {percentile}", percentile=percentile))
    if load.percentile and not (ttft or tpot):
        raise NotApplicable(
            Message(
                "{@percentile} is of the limits {@ttft} and {@tpot}, and none is given. Got {percentile}.",
                percentile=percentile,
            ),
            "percentile",
            ("ttft", "tpot"),
        )
    _count("num_requests", load.num_requests, MOST_REQUESTS)
    _count("prefill_replicas", load.prefill_replicas)
    if load.prefill_replicas is not None:
        q.put("prefill_replicas", load.prefill_replicas, "given")
    elif load.kv_transfer is not None:
        raise NotApplicable(
            Message(
                "{@kv_transfer} is of prefill and decode replicas: add {@prefill_replicas}. Got {transfer}.",
                transfer=shown(load.kv_transfer),
            ),
            "kv_transfer",
            ("prefill_replicas",),
        )
    if load.seed is not None and not 0 <= load.seed < 2**32:
        raise InvalidInput("{@seed} must be from 0 to {number:,}. Got {seed}.", number=2**32 - 1, seed=load.seed)
    simulate = bool(load.simulate or load.trace or percentile != "mean")
    if simulate and plan.tier.kv_offload:
        raise InvalidPlan(
            "{@kv_offload} has means alone, no simulation: leave out {@simulate}, {@percentile} and {@trace}, or "
            "{@kv_offload}. Got {place}.",
            place=plan.tier.kv_offload,
        )
    for name in ("num_requests", "seed"):
        if getattr(load, name) is not None and not simulate:
            raise NotApplicable(
                Message(
                    "{name} is of a simulation: add {@simulate}. Got {value}.",
                    name=option_name(name),
                    value=getattr(load, name),
                ),
                name,
                ("simulate", "trace", "percentile"),
            )
    return ReplicaLoad(
        load=form,
        busy=busy,
        ttft=ttft,
        tpot=tpot,
        percentile=cast("Percentile", percentile),
        simulate=simulate,
        num_requests=load.num_requests,
        seed=load.seed or 0,
        requests=lengths_given.requests,
        prefill_replicas=load.prefill_replicas,
        kv_transfer=load.kv_transfer,
    )


def _lengths(context: int, load: LoadOptions, lengths_given: Lengths, q: Question) -> tuple[int, int]:
    if lengths_given.requests is not None:
        q.put("trace", load.trace, "given", Message("{count:,} requests", count=len(lengths_given.requests)))
        if lengths_given.requests.note:
            q.warn(Message("{@trace}: {note}.", note=lengths_given.requests.note))
        return (
            q.put("input_tokens", lengths_given.input_tokens, "given", "the mean of the trace"),
            q.put("output_tokens", lengths_given.output_tokens, "given", "the mean of the trace"),
        )
    if context < 2:
        raise InvalidInput(
            "{@context} must hold a token of a prompt and one of its answer. Got {context}.", context=context
        )
    prompt = q.take(
        "input_tokens",
        load.input_tokens,
        lengths_given.input_tokens or min(USUAL, max(context * 3 // 4, 1)),
        "default",
        Message("{usual_source}, at most 3/4 of the context", usual_source=USUAL_SOURCE),
    )
    answer = q.take(
        "output_tokens",
        load.output_tokens,
        lengths_given.output_tokens or min(USUAL, context - prompt),
        "default",
        Message("{usual_source}, at most what the context leaves", usual_source=USUAL_SOURCE),
    )
    return prompt, answer


def lengths_within(context: int, load: LoadOptions, q: Question) -> LoadOptions:
    """The lengths that are usual in a context, where nobody says any."""
    from msgspec.structs import replace

    prompt, answer = _lengths(context, load, Lengths(input_tokens=None, output_tokens=None, context=None), q)
    return replace(load, input_tokens=prompt, output_tokens=answer)


def _cached(plan: ServingPlan, load: LoadOptions, prompt: int, q: Question) -> int:
    if load.cache_hit_rate is not None:
        return _hit(plan, load, load.cache_hit_rate, prompt, q)
    if load.cached_tokens is None:
        return 0
    if not 0 <= load.cached_tokens < prompt:
        raise InvalidInput(
            "{@cached_tokens} must be at least 0 and fewer than the {prompt:,} {@input_tokens}. Got {cached_tokens:,}.",
            prompt=prompt,
            cached_tokens=load.cached_tokens,
        )
    return int(q.put("cached_tokens", load.cached_tokens, "given"))


def _hit(plan: ServingPlan, load: LoadOptions, rate: float, prompt: int, q: Question) -> int:
    """Tokens of a prompt that are cached at this hit rate; a prompt's last token is always computed."""
    if load.cached_tokens is not None:
        raise InvalidInput(
            "{@cache_hit_rate} is a share of the prompt and {@cached_tokens} its tokens: give one. Got {rate:g} and "
            "{cached_tokens}.",
            rate=rate,
            cached_tokens=load.cached_tokens,
        )
    if not 0 <= rate < 1:
        raise InvalidInput("{@cache_hit_rate} must be at least 0 and less than 1. Got {rate:g}.", rate=rate)
    engine = serving_runtime(plan.engine, plan.engine_version)
    if rate and not engine.prefix_caching:
        having = [name for name in serving_runtimes() if serving_runtime(name).prefix_caching]
        raise InvalidPlan(
            "{@cache_hit_rate}: {version} caches no prefixes by default. Engines that do: {engines}. Got {rate:g}.",
            version=engine.version,
            engines=listed(having),
            rate=rate,
        )
    q.put("cache_hit_rate", rate, "given", engine.prefix_caching)
    cached = min(int(prefix_tokens.evaluate(s=prompt, share_hit=rate)), prompt - 1)
    return int(q.put("cached_tokens", cached, "default", "input_tokens x cache_hit_rate"))


def _arriving(
    plan: ServingPlan, options: ServingOptions, load: LoadOptions, lengths_given: Lengths, form: Load, q: Question
) -> tuple[Load, int]:
    """Users, or arrivals, of each replica that has any, and how many have."""
    from msgspec.structs import replace

    replicas = int(plan.data_parallel_size)
    if lengths_given.requests is not None:
        span = float(lengths_given.requests.arrival[-1])
        rate = len(lengths_given.requests) / span if span > 0 else float(len(lengths_given.requests))
        return replace(form, requests_per_second=rate / replicas), replicas
    if load.request_rate is None:
        if load.burstiness is not None:
            raise NotApplicable(
                Message(
                    "{@burstiness} is of requests that arrive by themselves: add {@request_rate}. Got {burstiness:g}.",
                    burstiness=load.burstiness,
                ),
                "burstiness",
                ("request_rate", "trace"),
            )
        answering = decode_replicas(replicas, load.prefill_replicas)
        total = options.concurrency or answering
        busy = min(answering, total)
        return replace(form, concurrency=total / busy if total % busy else total // busy), busy
    rate = q.put("request_rate", _ranged("request_rate", load.request_rate, 1e-9, 1e9), "given")
    burst = 1.0
    if load.burstiness is not None:
        burst = 1 / q.put("burstiness", _ranged("burstiness", load.burstiness, 1e-3, 1e6), "given")
    return replace(form, requests_per_second=rate / replicas, burstiness=burst), replicas


def _ranged(name: str, value: float | None, low: float, high: float) -> float:
    if value is None or not low <= value <= high:
        raise InvalidInput(
            "{name} must be from {low:g} to {high:g}. Got {value}.",
            name=option_name(name),
            low=low,
            high=high,
            value=shown(value),
        )
    return value


def _count(name: str, value: int | None, most: int = LARGEST) -> None:
    if value is not None and not 1 <= value <= most:
        raise InvalidInput(
            "{name} must be from 1 to {most:,}. Got {value:,}.", name=option_name(name), most=most, value=value
        )
