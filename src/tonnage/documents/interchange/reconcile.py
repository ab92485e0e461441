"""The form of an estimate beside what a run says."""

from typing import Any

from msgspec import Struct

from tonnage.documents.document import Document


class ReconciledFigure(Struct, kw_only=True, forbid_unknown_fields=True):
    """A figure that a log states, and what is predicted. `quantity`, `unit`: as docs/rows.md has them; `metric`: as the
    log calls it; `count`: of how many values it is the median or the largest. `relative_error` is signed: positive is
    predicted too high. `inside`: whether what was measured lies in `band`. `skipped`: why nothing is predicted.
    """

    tool: str
    quantity: str
    metric: str
    count: int
    measured: float
    predicted: float | None
    unit: str
    relative_error: float | None
    band: tuple[float, float] | None
    inside: bool | None
    skipped: str | None
    notes: list[str]


class ReconcileDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `reconcile --json` prints. `question`: the inputs that were given; `rows`: the run in the form of
    docs/rows.md, which `tonnage validate` reads.
    """

    verb: str
    question: dict[str, Any]
    tools: list[str]
    figures: list[ReconciledFigure]
    rows: list[dict[str, Any]]
