"""The form of what an answer says of serving: cache, times, rates, limits and prices."""

from typing import Generic, Literal

from msgspec import UNSET, Struct, UnsetType

from tonnage.documents.document import Document
from tonnage.documents.question import Entry
from tonnage.documents.term import Figure

Bound = Literal["ttft", "tpot"]
Percentile = Literal["mean", "p50", "p90", "p99"]


class WaysDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """A time [seconds] of all simulated requests: its mean and percentiles."""

    mean: Figure
    p50: Figure
    p90: Figure
    p99: Figure


class SimulatedDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """What a simulation request by request saw; rates are of all replicas. `tpot` and `itl` are left out where
    answers have one token; `goodput` [requests/s] and its share of all requests are of those within the limits that
    were given.
    """

    ttft: WaysDocument[Figure]
    end_to_end: WaysDocument[Figure]
    queueing: WaysDocument[Figure]
    tpot: WaysDocument[Figure] | UnsetType = UNSET
    itl: WaysDocument[Figure] | UnsetType = UNSET
    tokens_per_second: Figure
    requests_per_second: Figure
    preemptions: Figure
    goodput_share: Figure | UnsetType = UNSET
    goodput: Figure | UnsetType = UNSET


class SplitDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """Replicas of which some compute prompts alone and the others answer: the times and rates of the answer are these;
    null where the queue grows without end. `transfer_seconds`: of a prompt's cache between them, and
    `decode_wait_seconds`: until a decode replica gives the first token, are in TTFT.
    """

    prefill_replicas: int
    decode_replicas: int
    ttft_seconds: Figure | None
    tpot_seconds: Figure | None
    end_to_end_seconds: Figure | None
    transfer_seconds: Figure | None
    decode_wait_seconds: Figure | None
    tokens_per_second: Figure | None
    requests_per_second: Figure | None
    largest_rate: Figure | None


class KVOffloadDocument(Struct, Generic[Figure], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Caches of prefixes that are kept in host memory, on disks or in a store, for each replica. `load_seconds`: until
    a request's cached tokens are back, `recompute_seconds`: in which an idle replica computes them;
    `break_even_bandwidth` [bytes/s of a rank]: from which loading is faster. All but the capacity is left out where no
    tokens are cached.
    """

    place: Literal["host", "disk", "store"]
    capacity_tokens: Figure
    load_seconds: Figure | UnsetType = UNSET
    recompute_seconds: Figure | UnsetType = UNSET
    break_even_bandwidth: Figure | UnsetType = UNSET
    faster: bool | UnsetType = UNSET


class HostedOffer(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """A provider that hosts the model: USD a million tokens of prompts, of those that it has already (null: as any
    others), and of answers; what a request of this length costs. With own machines beside it, the load from which
    they are cheaper, and whether they can answer so much.
    """

    provider: str
    model: str
    called: str
    input_usd: float
    output_usd: float
    cached_input_usd: float | None
    source: str
    as_of: str
    age_days: int
    stale: bool
    note: str
    request: Figure | UnsetType = UNSET
    cost_per_million_tokens: Figure | UnsetType = UNSET
    usd_per_day: Figure | UnsetType = UNSET
    break_even_requests_per_day: Figure | UnsetType = UNSET
    break_even_tokens_per_day: Figure | UnsetType = UNSET
    within_reach: bool | UnsetType = UNSET


class HostedDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """Own machines under this load beside those who host the model, the cheapest first. `cheaper`: which has the
    lower price of a million tokens. `cost_per_million_tokens`: that of own machines, under this load, or under the
    largest within `ttft` and `tpot` where this one is past them; null where no load is within.
    `most_requests_per_day` is within them too.
    """

    cheaper: Literal["own machines", "hosted"]
    cost_per_million_tokens: Figure | None
    most_requests_per_day: Figure
    offers: list[HostedOffer[Figure]]


class ServiceLevelDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether the load keeps within the limits. `bound_by`: the limit that it exceeds most; `ttft_seconds` is left
    out where the queue grows without end.
    """

    met: bool
    percentile: Percentile
    ttft_limit_seconds: float | UnsetType = UNSET
    tpot_limit_seconds: float | UnsetType = UNSET
    ttft_seconds: float | UnsetType = UNSET
    tpot_seconds: float
    bound_by: Bound | UnsetType = UNSET


class EncodedDocument(Struct, Generic[Figure], kw_only=True, forbid_unknown_fields=True):
    """What comes out of a model that writes no text of its own, all replicas together: documents that it embeds, pairs
    that it scores, files of speech that it writes down.

    `per_second`: documents or pairs at saturation, `at_once` of them in a pass of a replica; of speech, seconds of
    sound a second. `seconds`: one alone on an idle replica, or a whole file. `band`: between which nine in ten
    measured values of `per_second` lie; left out where too few are published. `bound_by`: what takes most of a pass.
    `total_seconds`, `total_cost`: of as many as were asked about. `busy`: the share of `per_second` that comes; more
    than 1 where more comes than can be done. Prices are null where nobody publishes one: of a million tokens and of a
    million documents or pairs; of an hour of sound.
    """

    item: Literal["documents", "pairs", "files"]
    at_once: int
    per_second: Figure
    seconds: Figure
    bound_by: str
    band: tuple[float, float] | UnsetType = UNSET
    tokens_per_second: Figure | UnsetType = UNSET
    cost_per_million: Figure | UnsetType | None = UNSET
    cost_per_audio_hour: Figure | UnsetType | None = UNSET
    total_seconds: Figure | UnsetType = UNSET
    total_cost: Figure | UnsetType | None = UNSET
    busy: Figure | UnsetType = UNSET


class ServingDocument(Struct, Generic[Figure], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a served model does, all replicas together. Bytes, seconds, tokens a second, USD and joules of a million
    tokens.

    The times are means of the steady state under the load of the question; those `_alone` are of one user on an idle
    replica. `ttft_seconds` and `end_to_end_seconds` are null where more comes than can be answered; prices where nobody
    publishes one, energy where no source gives the power, times and rates of later tokens where an answer has one. All
    but the cache and the loading is left out where the times of a plan or a machine are not known. `ttft_band`,
    `tpot_band`: seconds, between which nine in ten measured times lie; left out where no run on such a machine is
    published. `weights_read_seconds`: no token is faster. `launch`: the command that starts the engine so.
    `concurrency`: requests that fit by the estimate, `safe_concurrency` at the high end of the error band, where one is
    known; `longest_context`: the same, at its high end.
    `hosted`: where a load was said, and prices of own machines and of the model by the token are known.
    `users_at_service_level`: the most within `ttft` and `tpot`; `rate_at_service_level`: what they ask, or the most
    requests a second that come by themselves. `encoded`: of embedding models, rerankers and speech models, in place of
    times and rates of answers.
    """

    kv_bytes_per_token: Figure | UnsetType = UNSET
    kv_bytes_per_request: Figure | UnsetType = UNSET
    host_memory: Figure | UnsetType = UNSET
    concurrency: Figure | UnsetType = UNSET
    safe_concurrency: Figure | UnsetType = UNSET
    kv_capacity_tokens: Figure | UnsetType = UNSET
    load_seconds: Figure | UnsetType = UNSET
    longest_context: Figure | UnsetType = UNSET
    launch: str | UnsetType = UNSET
    ttft_seconds: Figure | UnsetType | None = UNSET
    tpot_seconds: Figure | UnsetType | None = UNSET
    itl_seconds: Figure | UnsetType | None = UNSET
    tokens_per_second_per_user: Figure | UnsetType | None = UNSET
    tpot_seconds_alone: Figure | UnsetType | None = UNSET
    tokens_per_second_alone: Figure | UnsetType | None = UNSET
    weights_read_seconds: Figure | UnsetType = UNSET
    ttft_seconds_alone: Figure | UnsetType = UNSET
    end_to_end_seconds: Figure | UnsetType | None = UNSET
    tokens_per_second: Figure | UnsetType = UNSET
    total_tokens_per_second: Figure | UnsetType = UNSET
    tokens_per_second_per_gpu: Figure | UnsetType = UNSET
    requests_per_second: Figure | UnsetType = UNSET
    largest_rate: Figure | UnsetType = UNSET
    running: Figure | UnsetType = UNSET
    ttft_band: tuple[float, float] | UnsetType = UNSET
    tpot_band: tuple[float, float] | UnsetType = UNSET
    service_level: ServiceLevelDocument | UnsetType = UNSET
    users_at_service_level: Figure | UnsetType = UNSET
    rate_at_service_level: Figure | UnsetType = UNSET
    replicas_needed: Figure | UnsetType = UNSET
    accelerators_needed: Figure | UnsetType = UNSET
    split: SplitDocument[Figure] | UnsetType = UNSET
    kv_offload: KVOffloadDocument[Figure] | UnsetType = UNSET
    simulated: SimulatedDocument[Figure] | UnsetType = UNSET
    cost_per_million_tokens: Figure | UnsetType | None = UNSET
    cost_per_million_input_tokens: Figure | UnsetType | None = UNSET
    cost_per_million_output_tokens: Figure | UnsetType | None = UNSET
    cost_per_million_output_tokens_all: Figure | UnsetType | None = UNSET
    cost_per_million_tokens_alone: Figure | UnsetType | None = UNSET
    own_cost_per_million_tokens: Figure | UnsetType = UNSET
    energy_per_million_tokens: Figure | UnsetType | None = UNSET
    energy_per_million_tokens_alone: Figure | UnsetType | None = UNSET
    hosted: HostedDocument[Figure] | UnsetType = UNSET
    encoded: EncodedDocument[Figure] | UnsetType = UNSET


class FrontierPoint(Struct, kw_only=True, forbid_unknown_fields=True):
    """One configuration: `concurrency` users of one replica. `pareto`: none is as fast for a user and makes more of
    an accelerator.
    """

    tensor_parallel_size: int
    weights: str
    concurrency: int
    tokens_per_second_per_user: float
    tokens_per_second_per_gpu: float
    ttft_seconds: float
    tpot_seconds: float
    pareto: bool
    cost_per_million_output_tokens_all: float | None


class FrontierDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `serve --frontier` answers: every configuration, the fastest for a user first."""

    question: dict[str, Entry]
    configurations: int
    points: list[FrontierPoint]
    warnings: list[str]


class RunsDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A model that runs on the machine in one precision; `option`: what --weights says so, empty as the checkpoint is
    stored.

    Speeds are of one user alone with a prompt of 1,024 tokens, null where nobody can say them; `longest_context` is
    within a hundredth, and `serve` of this model has it to the token.
    """

    model: str
    hub: str
    parameters: int
    active_parameters: int
    weights: str
    option: str
    engine: str
    needed_bytes: int
    download_bytes: int
    context: int
    longest_context: int
    tokens_per_second: float | None
    ttft_seconds: float | None


class MachineDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `serve --for-my-machine` answers."""

    question: dict[str, Entry]
    usable_bytes: int
    models_tried: int
    runs: list[RunsDocument]
    warnings: list[str]
