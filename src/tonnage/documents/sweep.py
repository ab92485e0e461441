"""The forms of what many questions at once are answered with: what became of a sweep (`tonnage sweep --json`), whose
rows are in its dataset, and the columns of a batch (`POST /v1/batch`), an entry for each row in the order of the rows.
"""

from typing import Any, Literal

from msgspec import Struct

from tonnage.documents.document import Document


class LeftOutRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """Plans that a constraint took away, of those that the ones before it had left."""

    constraint: str
    plans: int


class FailedRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """A chunk that could not be computed, and why: its rows are missing."""

    chunk: int
    why: str


class SweepDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `sweep` answers. `sweep`: the digest of its file's choices. Counts are of the whole dataset: `valid` plans
    are those whose sizes belong together and of which enough is known; `fitting` those that fit with the high end of
    the error band; `rows` are kept, in `bytes` of Parquet. `chunks_before` lay there already. `seconds`,
    `plans_per_second`: of what was made now. `best`: the best row of each workload (model, cluster, sequence length,
    and global batch size where it is swept) by tokens a second, of the first 20; best.parquet has all `best_rows`.
    """

    kind: Literal["train", "serve"]
    directory: str
    sweep: str
    plans: int
    chunks: int
    chunks_before: int
    chunks_made: int
    failed: list[FailedRow]
    considered: int
    valid: int
    fitting: int
    rows: int
    bytes: int
    left_out: list[LeftOutRow]
    seconds: float
    plans_per_second: float
    workers: str
    best_rows: int
    best: list[dict[str, Any]]
    warnings: list[str]


Truths = list[bool | None]
Wholes = list[int | None]
Numbers = list[float | None]
Texts = list[str | None]


class VerdictColumns(Struct, kw_only=True, forbid_unknown_fields=True):
    """`fits`: null inside the error band, or where there is no answer. `status`: of each row the exit status of the
    command line: 0 fits, 2 tight, 3 does not fit or misses a limit, 4 not enough is known, 64 bad input. `error`: why
    a row has no answer. Bytes are of the fullest GPU.
    """

    fits: Truths
    status: list[int]
    needed_bytes: Wholes
    usable_bytes: Wholes
    band_low_bytes: Wholes
    band_high_bytes: Wholes


class TrainColumns(VerdictColumns, kw_only=True, forbid_unknown_fields=True):
    """Figures of training, null where a row has none. `mfu` and `hfu` are shares; `step_usd`: of a step; `run_seconds`
    and `run_usd`: of rows that say how long the run is.
    """

    weights_bytes: Numbers
    gradients_bytes: Numbers
    optimizer_bytes: Numbers
    activations_bytes: Numbers
    temporary_bytes: Numbers
    communication_buffers_bytes: Numbers
    runtime_overhead_bytes: Numbers
    step_seconds: Numbers
    step_seconds_low: Numbers
    step_seconds_high: Numbers
    tokens_per_second: Numbers
    mfu: Numbers
    hfu: Numbers
    bound_by: Texts
    step_usd: Numbers
    run_seconds: Numbers
    run_usd: Numbers
    usd_per_million_tokens: Numbers
    error: Texts


class ServeColumns(VerdictColumns, kw_only=True, forbid_unknown_fields=True):
    """Figures of serving, null where a row has none. `max_concurrency`: requests that fit by the estimate,
    `max_safe_concurrency` at the high end of the error band. Rates are of all replicas; `usd_per_hour` of all machines.
    """

    weights_bytes: Numbers
    kv_cache_bytes: Numbers
    activations_bytes: Numbers
    communication_buffers_bytes: Numbers
    runtime_overhead_bytes: Numbers
    kv_bytes_per_token: Numbers
    kv_bytes_per_request: Numbers
    max_concurrency: Numbers
    max_safe_concurrency: Numbers
    kv_capacity_tokens: Numbers
    ttft_seconds: Numbers
    tpot_seconds: Numbers
    end_to_end_seconds: Numbers
    tokens_per_second_per_user: Numbers
    output_tokens_per_second: Numbers
    total_tokens_per_second: Numbers
    requests_per_second: Numbers
    largest_rate: Numbers
    usd_per_hour: Numbers
    usd_per_million_tokens: Numbers
    usd_per_million_output_tokens: Numbers
    error: Texts


class TrainBatchDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `POST /v1/batch` answers of training: as many entries in each column as there are `rows`. `kept`: columns
    that were asked to come back as they are.
    """

    verb: Literal["train"]
    rows: int
    kept: dict[str, list[Any]]
    columns: TrainColumns


class ServeBatchDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `POST /v1/batch` answers of serving: as many entries in each column as there are `rows`. `kept`: columns
    that were asked to come back as they are.
    """

    verb: Literal["serve"]
    rows: int
    kept: dict[str, list[Any]]
    columns: ServeColumns
