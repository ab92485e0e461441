"""What is answered about jobs, and how OpenAPI describes it."""

from typing import Any, Literal

from msgspec import Raw, Struct

from tonnage.documents.document import Document
from tonnage.documents.plan import FoundPlanDocument

SEARCHES = ("plan", "max", "compare")


class AskedJob(Struct, forbid_unknown_fields=True):
    """The body of a new job: a verb, and its question as POST /v1/VERB takes it."""

    verb: Literal["plan", "max", "compare"]
    question: dict[str, Any]


class StepDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """How far a count is. `what`: plans, estimated, machines, configurations, cells, estimates or programs; `of`:
    null where nobody knows before the end.
    """

    what: str
    done: int
    of: int | None


class ResultDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """`status` is the exit status of the command line, `command` that line, `document` what it prints with --json."""

    status: int
    command: str
    document: Raw


class ReasonDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a job has no answer: an error of the command line, or TooLong, TooLarge, Lost, Broken, Cancelled."""

    kind: str
    message: str


class JobDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """A job as it is: `best`, the best plan so far of plan --train, `result` where it is done, `error` where it has
    failed or was cancelled. Times are in UTC.
    """

    id: str
    verb: Literal["plan", "max", "compare"]
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    created: str
    started: str | None
    ended: str | None
    progress: list[StepDocument]
    best: FoundPlanDocument | None = None
    result: ResultDocument | None = None
    error: ReasonDocument | None = None
