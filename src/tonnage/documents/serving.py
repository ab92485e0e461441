"""The form of what an answer says of serving: cache, times, rates, limits and prices."""

from typing import Any, Literal

from msgspec import Struct

from tonnage.documents.term import TermDocument

Bound = Literal["ttft", "tpot"]


class WaysDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A time [seconds] of all simulated requests: its mean and percentiles."""

    mean: TermDocument
    p50: TermDocument
    p90: TermDocument
    p99: TermDocument


class SimulatedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a simulation request by request saw; rates are of all replicas. `tpot` and `itl` are left out where
    answers have one token; `goodput` [requests/s] and its share of all requests are of those within the limits that
    were given.
    """

    ttft: WaysDocument
    end_to_end: WaysDocument
    queueing: WaysDocument
    tokens_per_second: TermDocument
    requests_per_second: TermDocument
    preemptions: TermDocument
    tpot: WaysDocument | None = None
    itl: WaysDocument | None = None
    goodput_share: TermDocument | None = None
    goodput: TermDocument | None = None


class SplitDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The same load where some replicas compute prompts alone and the others answer; null where the queue grows
    without end. `transfer_seconds`: of a prompt's cache between them, which is in the time to the first token.
    """

    prefill_replicas: int
    decode_replicas: int
    ttft_seconds: TermDocument | None
    tpot_seconds: TermDocument | None
    end_to_end_seconds: TermDocument | None
    transfer_seconds: TermDocument | None
    tokens_per_second: TermDocument | None
    requests_per_second: TermDocument | None
    largest_rate: TermDocument | None


class HostedOffer(Struct, kw_only=True, forbid_unknown_fields=True):
    """A provider that hosts the model: USD a million tokens of prompts, of those that it has already (null: as any
    others), and of answers; what a request of this length costs. With own machines beside it, the load from which
    they are cheaper, and whether they can answer so much.
    """

    provider: str
    model: str
    called: str
    input_usd: float
    cached_input_usd: float | None
    output_usd: float
    source: str
    as_of: str
    age_days: int
    stale: bool
    note: str
    request: TermDocument | None = None
    cost_per_million_tokens: TermDocument | None = None
    usd_per_day: TermDocument | None = None
    break_even_requests_per_day: TermDocument | None = None
    break_even_tokens_per_day: TermDocument | None = None
    within_reach: bool | None = None


class HostedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Own machines under this load beside those who host the model, the cheapest first. `cheaper`: which has the
    lower price of a million tokens. `cost_per_million_tokens`: that of own machines, under this load, or under the
    largest within `ttft` and `tpot` where this one is past them; null where no load is within.
    `most_requests_per_day` is within them too.
    """

    cheaper: Literal["own machines", "hosted"]
    cost_per_million_tokens: TermDocument | None
    most_requests_per_day: TermDocument
    offers: list[HostedOffer]


class ServiceLevelDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether the load keeps within the limits. `bound_by`: the limit that it exceeds most; `ttft_seconds` is left
    out where the queue grows without end.
    """

    met: bool
    percentile: Literal["mean", "p50", "p90", "p99"]
    tpot_seconds: float
    ttft_seconds: float | None = None
    ttft_limit_seconds: float | None = None
    tpot_limit_seconds: float | None = None
    bound_by: Bound | None = None


class ServingDocument(Struct, kw_only=True, forbid_unknown_fields=True):
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
    requests a second that come by themselves.
    """

    kv_bytes_per_token: TermDocument | None = None
    kv_bytes_per_request: TermDocument | None = None
    concurrency: TermDocument | None = None
    safe_concurrency: TermDocument | None = None
    kv_capacity_tokens: TermDocument | None = None
    host_memory: TermDocument | None = None
    longest_context: TermDocument | None = None
    load_seconds: TermDocument | None = None
    launch: str | None = None
    ttft_seconds: TermDocument | None = None
    tpot_seconds: TermDocument | None = None
    ttft_band: tuple[float, float] | None = None
    tpot_band: tuple[float, float] | None = None
    itl_seconds: TermDocument | None = None
    end_to_end_seconds: TermDocument | None = None
    tokens_per_second: TermDocument | None = None
    total_tokens_per_second: TermDocument | None = None
    tokens_per_second_per_user: TermDocument | None = None
    tokens_per_second_per_gpu: TermDocument | None = None
    requests_per_second: TermDocument | None = None
    largest_rate: TermDocument | None = None
    running: TermDocument | None = None
    ttft_seconds_alone: TermDocument | None = None
    tpot_seconds_alone: TermDocument | None = None
    tokens_per_second_alone: TermDocument | None = None
    weights_read_seconds: TermDocument | None = None
    service_level: ServiceLevelDocument | None = None
    users_at_service_level: TermDocument | None = None
    rate_at_service_level: TermDocument | None = None
    replicas_needed: TermDocument | None = None
    accelerators_needed: TermDocument | None = None
    split: SplitDocument | None = None
    simulated: SimulatedDocument | None = None
    cost_per_million_tokens: TermDocument | None = None
    cost_per_million_input_tokens: TermDocument | None = None
    cost_per_million_output_tokens: TermDocument | None = None
    cost_per_million_output_tokens_all: TermDocument | None = None
    cost_per_million_tokens_alone: TermDocument | None = None
    own_cost_per_million_tokens: TermDocument | None = None
    hosted: HostedDocument | None = None
    energy_per_million_tokens: TermDocument | None = None
    energy_per_million_tokens_alone: TermDocument | None = None


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


class FrontierDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `serve --frontier` answers: every configuration, the fastest for a user first."""

    schema: Literal["tonnage/1"]
    question: dict[str, Any]
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


class MachineDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `serve --for-my-machine` answers."""

    schema: Literal["tonnage/1"]
    question: dict[str, Any]
    usable_bytes: int
    models_tried: int
    runs: list[RunsDocument]
    warnings: list[str]
