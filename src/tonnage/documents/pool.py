"""Forms of what `tonnage plan --inventory --json` prints: what is placed where on a pool, and what is proven of it."""

from typing import Literal

from msgspec import Struct

from tonnage.documents.document import Document
from tonnage.documents.question import Entry


class PoolShown(Struct, kw_only=True, forbid_unknown_fields=True):
    """The pool: accelerators that are free, by name, and their free bytes. `left`, `joined`: nodes and groups that
    did.
    """

    name: str
    accelerators: int
    types: dict[str, int]
    free_bytes: int
    left: list[str] = []
    joined: list[str] = []


class PoolVerdict(Struct, kw_only=True, forbid_unknown_fields=True):
    """`placed`: everything that was asked for has a place. `optimal`: it is proven that no placement is better (gap
    0), also where some job has no place; `text` says the same.
    """

    placed: bool
    optimal: bool
    text: str


class SearchShown(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was searched. `value` of the objective and the `bound` that no placement passes; `gap` between them, of the
    value.

    `considered`: shapes or configurations; `programs`: that HiGHS solved, in `nodes` nodes of their trees; `cuts`:
    times that the estimator refused what a program had found, after which it was solved again. `seconds`: all of it.
    """

    objective: str
    unit: str
    value: float | None
    bound: float | None
    gap: float | None
    considered: int
    programs: int
    nodes: int
    cuts: int
    seconds: float


class StageRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """A stage of a pipeline: layers from `first_layer` on, on `accelerators` accelerators of these nodes. Bytes are
    of one accelerator; `on_host_bytes` of its weights are in host memory. `seconds`: of its part of a round of
    tokens, or of one micro-batch.
    """

    stage: int
    nodes: list[str]
    accelerator: str
    accelerators: int
    first_layer: int
    layers: int
    needed_bytes: int
    usable_bytes: int
    on_host_bytes: int
    seconds: float


class ReplicaRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """Equal replicas on one node. `capacity`: of one, in users or requests a second; `requests`: that run at once
    then, and of which `needed_bytes` is, as of `tonnage serve --users`; `on_host_bytes` of a rank's weights are in
    host memory.
    """

    node: str
    replicas: int
    accelerator: str
    accelerators: int
    weights: str
    capacity: float
    requests: int
    needed_bytes: int
    usable_bytes: int
    on_host_bytes: int
    usd_per_hour: float | None


class JobRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """One replica of a job. `state`: new, stays, moves, or unplaced, of which `why` tells; `offload`: what is in
    host memory.
    """

    job: str
    replica: int
    kind: Literal["serve", "train"]
    state: Literal["new", "stays", "moves", "unplaced"]
    nodes: list[str] = []
    accelerator: str = ""
    accelerators: int = 0
    shares: bool = False
    needed_bytes: int | None = None
    usable_bytes: int | None = None
    host_bytes: int = 0
    offload: str = ""
    seconds: float | None = None
    tokens_per_second: float | None = None
    usd_per_hour: float | None = None
    why: str = ""


class MoveRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """A replica that leaves a node for others: bytes that are copied, and seconds over the slower of both links,
    null where nobody says them.
    """

    job: str
    replica: int
    leaves: str
    goes_to: list[str]
    copied_bytes: float
    seconds: float | None


class PoolDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `plan --inventory` answers. `figures`: of the whole in base units; `usd_per_hour`: null where a price is not
    known.

    `binding`: what keeps it from being better, or from being placed at all; `nearest_miss`: how much was missing.
    """

    question: dict[str, Entry]
    pool: PoolShown
    verdict: PoolVerdict
    placed_as: Literal["pipeline", "replicas", "jobs"]
    search: SearchShown
    stages: list[StageRow]
    replicas: list[ReplicaRow]
    jobs: list[JobRow]
    moves: list[MoveRow]
    figures: dict[str, float | None]
    usd_per_hour: float | None
    binding: str
    nearest_miss: str
    warnings: list[str]
