"""Forms of what `rules` and `validate` answer: figures beside others."""

from typing import Any

from msgspec import Struct

from tonnage.documents.document import Document
from tonnage.kernel.term import TermDocument


class RuleDocument(Struct, kw_only=True):
    """One rule of thumb, worked on its document's own example or on `model`. `exact` is what tonnage computes beside
    it.

    `of_document` lists the names in `inputs` and `values` whose numbers are the document's own whatever the model is,
    and "value" where the figure itself is. `example`: the model of the document's example; `follows`: the options that
    move the rule or the exact figure, with what they are.
    """

    name: str
    title: str
    formula: str
    text: str
    source: str
    value: float
    unit: str
    values: dict[str, float]
    printed: str
    erratum: str | None
    note: str
    model: str | None
    of_document: list[str]
    exact: TermDocument
    inputs: dict[str, float]
    example: str
    follows: dict[str, float]
    stages: list[dict[str, Any]]
    variants: list[dict[str, Any]]


class RulesDocument(Document, kw_only=True):
    rules: list[RuleDocument]


class RowDocument(Struct, kw_only=True):
    """One published measurement beside our prediction. `relative_error` is signed: positive is too high. A row that has
    not the form of one is of kind malformed, without a measured value.

    `agrees`: for what has no number to compare with (out of memory, a bound), whether the prediction says the same;
    `band`: low and high in the row's unit; `notes`: what was assumed about the run, or left out of it.
    """

    id: str
    kind: str
    completeness: str
    metric: str
    main: bool
    measured: float | str | None
    predicted: float | None
    unit: str
    relative_error: float | None
    agrees: bool | None
    band: tuple[float, float] | None
    skipped: str | None
    notes: list[str]


class SummaryDocument(Struct, kw_only=True):
    """Errors of the rows of one kind, completeness and source; null where no row was covered. `covered`: rows that were
    predicted;
    `inside_band`: the share of those with a band whose measured value lies inside it."""

    kind: str
    completeness: str
    source: str
    rows: int
    covered: int
    mean_abs: float | None
    median_abs: float | None
    p90_abs: float | None
    bias: float | None
    inside_band: float | None


class ValidationDocument(Document, kw_only=True):
    rows: list[RowDocument]
    summary: list[SummaryDocument]
