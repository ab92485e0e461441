"""What is asked of a model that writes no text of its own: documents to embed, pairs to score, files of speech."""

from bisect import bisect

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.bands import serving_band
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LARGEST, LoadOptions, ReplicaLoad
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving_time.speech import WINDOW_TOKENS, windows_of
from tonnage.kernel.errors import InvalidInput, NotApplicable
from tonnage.kernel.message import Message, option_name
from tonnage.models.purpose import DOES, ITEMS, Purpose, is_encoder, purpose
from tonnage.question.amounts import duration
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan

CHUNK = 512  # tokens of a document that a retrieval system has cut: the limit of BERT, and of most benchmarks
CHUNK_SOURCE = "a chunk of a document, at most the context"
WINDOWED = 8192  # a context that holds any chunk, where a decoder's own would only fill a cache
AUDIO_SECONDS = 600
OF_TEXT = ("documents",)
OF_ANSWERS = (
    "output_tokens",
    "images",
    "image_size",
    "video_seconds",
    "video_fps",
    "cached_tokens",
    "cache_hit_rate",
    "prefill_replicas",
    "kv_transfer",
    "spread",
    "burstiness",
    "trace",
    "ttft",
    "tpot",
    "percentile",
    "simulate",
    "num_requests",
    "seed",
)
OF_DECODING = ("speculative", "draft_model", "draft_tokens", "acceptance", "kv_offload", "kv_offload_size")
OF_ADAPTERS = ("lora_adapters", "lora_rank", "lora_active", "lora_on_host")


class Encoded(Struct, frozen=True, kw_only=True):
    """`length`: tokens of a document, or of the text of a window; `at_once`: documents, or windows, of a pass of a
    replica; `total`: documents, pairs or files in all, None where nobody says it.
    """

    purpose: Purpose
    length: int
    at_once: int
    total: int | None
    audio_seconds: int
    requests_per_second: float | None

    @property
    def load(self) -> ReplicaLoad:
        """The same in the terms of a load that answers."""
        form = Load(input_tokens=self.length, output_tokens=1, concurrency=self.at_once)
        return ReplicaLoad(
            load=form, busy=1, ttft=None, tpot=None, percentile="mean", simulate=False, num_requests=None, seed=0
        )


def check_purpose(model: Model, options: ServingOptions, load: LoadOptions) -> Purpose:
    """What the model is for; NotApplicable for options of models for something else."""
    found = purpose(model)
    what = DOES[found]
    wrong: tuple[str, ...] = OF_TEXT
    if found != "generate":
        wrong = (*OF_ANSWERS, "input_tokens" if found == "transcribe" else "audio_seconds", *OF_DECODING)
    if found == "transcribe" or is_encoder(model):  # no engine loads adapters of these
        wrong = (*wrong, *OF_ADAPTERS)
    for name in wrong:
        value = getattr(load if name in load.__struct_fields__ else options, name)
        if value is not None:
            raise NotApplicable(
                Message(
                    "{name} is not of {model}, which {what}. Got {value}.",
                    name=option_name(name),
                    model=model.name,
                    what=what,
                    value=value,
                ),
                name,
                ("model",),
            )
    return found


def encoded_options(model: Model, cluster: Cluster, options: ServingOptions, load: LoadOptions) -> ServingOptions:
    """Options with what serves such models: no context that nobody needs, and no split of what one accelerator
    holds.
    """
    if load.request_rate is not None and options.concurrency is not None:
        raise InvalidInput(
            "{@concurrency} is of users who wait for their answers, {@request_rate} of requests that "
            "come by themselves: give one. Got {concurrency} and {request_rate:g}.",
            concurrency=options.concurrency,
            request_rate=load.request_rate,
        )
    if options.tensor_parallel_size is None and options.pipeline_parallel_size is None:
        options = replace(options, tensor_parallel_size=_ranks(model, cluster))
    if options.context is not None or not model.context or purpose(model) == "transcribe":
        return options
    length = _length(model, load, model.context)
    if is_encoder(model):
        return options
    return replace(options, context=min(model.context, max(WINDOWED, length)))


def _ranks(model: Model, cluster: Cluster) -> int:
    """The fewest accelerators that hold 16-bit weights in half of their memory."""
    size, ranks = 2 * model.num_parameters(), 1
    while not is_encoder(model) and size > ranks * cluster.accelerator.memory.usable_bytes * 0.8:
        if ranks * 2 > cluster.accelerators_per_node or cluster.accelerators_per_node % (ranks * 2):
            break
        ranks *= 2
    return ranks


def _length(model: Model, load: LoadOptions, context: int) -> int:
    length = load.input_tokens
    if length is None:
        return min(CHUNK, context)
    if not 1 <= length <= context:
        raise InvalidInput(
            "{@input_tokens} must be from 1 to the {context:,} tokens of the context. Got {length:,}.",
            context=context,
            length=length,
        )
    return length


def windows_that_fit(model: Model, cluster: Cluster, plan: ServingPlan, most: int) -> int:
    """Windows of 30 seconds that a replica holds at once, with the error band: at most `most`, and 1 at least."""
    usable = cluster.accelerator.memory.usable_bytes - plan.reserve_bytes
    band = serving_band(plan.engine, cluster.accelerator)

    def fits(windows: int) -> bool:
        held = plan.with_fields(concurrency=windows)
        needed = serving_memory(model, held, cluster.accelerator).memory.value
        return (band.around(needed)[1] if band else needed) <= usable

    return max(bisect(range(1, most + 1), False, key=lambda windows: not fits(windows)), 1)


def encoded(
    model: Model, cluster: Cluster, plan: ServingPlan, options: ServingOptions, load: LoadOptions, q: Question
) -> tuple[Encoded, ServingPlan]:
    """What is asked, and the plan that holds as much at once."""
    engine, found = serving_runtime(plan.engine, plan.engine_version), purpose(model)
    replicas = int(plan.data_parallel_size)
    fills = found != "transcribe" and bool(engine.limits[0].tokens or plan.max_num_batched_tokens)
    if found == "transcribe":
        length = WINDOW_TOKENS
        audio = int(duration("audio_seconds", load.audio_seconds) or 0)
        audio = q.take("audio_seconds", audio or None, AUDIO_SECONDS, "default", "a file of ten minutes")
        each = engine.documents
        if options.concurrency is None and each > 1:
            each = windows_that_fit(model, cluster, plan, min(each, windows_of(audio, engine.window_advance)))
        why: str = Message("windows of 30 seconds at once: {engine}'s default", engine=engine.name)
    else:
        audio, length = 0, _length(model, load, int(plan.context))
        q.take("input_tokens", load.input_tokens, length, "default", CHUNK_SOURCE)
        limits = batch_limits(engine, plan, cluster.accelerator)
        most = limits.requests if limits.requests > plan.concurrency else LARGEST
        each = max(min(limits.tokens // length, most), 1) if fills else engine.documents
        why = (
            Message("{items} that fill a pass of {engine}", items=ITEMS[found], engine=engine.name)
            if fills
            else Message("{items} of a batch: {engine}'s default", items=ITEMS[found], engine=engine.name)
        )
    given = -(-options.concurrency // replicas) if options.concurrency else None
    if plan.max_num_seqs and plan.max_num_seqs < (given or each):
        each, why = plan.max_num_seqs, option_name("max_num_seqs")
        given = each if given else None
    at_once = min(given, each) if given and fills else given or each
    if options.concurrency is None:
        q.put("concurrency", at_once * replicas, "runtime", why)
        if replicas > 1:
            q.put("concurrency_per_replica", at_once, "default", "concurrency / replicas, rounded up")
    total = q.put("documents", load.documents, "given", ITEMS[found]) if load.documents is not None else None
    rate = load.request_rate
    if rate is not None:
        if not 1e-9 <= rate <= 1e9:
            raise InvalidInput(
                "{name} must be from {low:g} to {high:g}. Got {value}.",
                name=option_name("request_rate"),
                low=1e-9,
                high=1e9,
                value=f"{rate:g}",
            )
        q.put("request_rate", rate, "given", ITEMS[found])
    asked = Encoded(
        purpose=found, length=length, at_once=at_once, total=total, audio_seconds=audio, requests_per_second=rate
    )
    # engines of a fixed batch hold all of it at once; no other takes more of a document than it is long
    keeps = found == "transcribe" or fills or options.context
    context = plan.context if keeps else length
    if not keeps:
        q.put("context", length, "default", "input_tokens")
        q.put("max_num_batched_tokens", at_once * length, "runtime", why)
    held = at_once if found == "transcribe" or not fills else -(-at_once * length // context)
    return asked, plan.with_fields(context=max(context, 2), concurrency=max(held, 1))
