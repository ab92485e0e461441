"""The form of what `tonnage sweep --json` prints: what became of a sweep, and its best rows. The rows themselves are
in the dataset.
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
