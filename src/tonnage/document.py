"""The forms of the documents that every face prints, and their JSON Schema. Values only; nothing here computes.

`tonnage.schema.json` in this package is generated from these types (`python -m tonnage.document`), and a test keeps it so.
"""

from typing import Any, Literal

from msgspec import Struct

SCHEMA = "tonnage/1"


class TermDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One number with everything that made it, in its base unit."""

    name: str
    value: float
    unit: str
    combine: Literal["leaf", "sum", "max", "product", "ratio", "method"]
    basis: Literal["rule", "analytic", "traced", "measured"]
    formula: str | None
    text: str
    source: str
    inputs: dict[str, float]
    children: list["TermDocument"]
    method: dict[str, Any] | None = None


class Verdict(Struct, kw_only=True):
    """Whether it fits. `band`: low and high in bytes, null where no measured rows back the estimate."""

    fits: bool | None
    needed_bytes: int | None
    usable_bytes: int | None
    band: tuple[int, int] | None


class Slopes(Struct, kw_only=True):
    """Bytes that one more sequence, and one more token in each sequence, add on the fullest rank."""

    bytes_per_sequence: float
    bytes_per_token: float


class Advice(Struct, kw_only=True):
    """A change that was estimated again: what it needs then, and whether that fits.

    `change` are options of the command line; `text` the same as flags, which are added to those that were given. `changes`: what it
    changes beside memory and speed. The workload is the data of a step, or the requests.
    """

    change: dict[str, Any]
    text: str
    changes: Literal["nothing", "machine", "workload", "numerics"]
    needed_bytes: int
    freed_bytes: int
    fits: bool


class AnswerDocument(Struct, kw_only=True):
    """What `train` and `serve` answer. Keys that a verb does not answer are left out.

    `question` has every input: {"value", "from": given, default, model, cluster, runtime or catalogue, "why"}.
    """

    schema: Literal["tonnage/1"]
    question: dict[str, Any]
    verdict: Verdict
    memory: TermDocument
    ranks: list[TermDocument]
    slopes: Slopes
    advice: list[Advice]
    warnings: list[str]
    phases: list[TermDocument] = []
    flops: TermDocument | None = None
    checkpoint: TermDocument | None = None
    serving: dict[str, TermDocument] = {}


class RuleDocument(Struct, kw_only=True):
    """One rule of thumb, worked on its document's own example. `exact` is what tonnage computes beside it."""

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
    inputs: dict[str, float]
    exact: TermDocument
    stages: list[dict[str, Any]] = []


class RulesDocument(Struct, kw_only=True):
    schema: Literal["tonnage/1"]
    rules: list[RuleDocument]


class RowDocument(Struct, kw_only=True):
    """One published measurement beside our prediction. `relative_error` is signed: positive is too high."""

    id: str
    kind: str
    completeness: str
    metric: str
    main: bool
    measured: float | str
    predicted: float | None
    unit: str
    relative_error: float | None
    agrees: bool | None = None
    band: tuple[float, float] | None = None
    skipped: str | None = None


class SummaryDocument(Struct, kw_only=True):
    """Errors of the rows of one kind, completeness and source; null where no row was covered."""

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


class ValidationDocument(Struct, kw_only=True):
    schema: Literal["tonnage/1"]
    rows: list[RowDocument]
    summary: list[SummaryDocument]


class MeasureDocument(Struct, kw_only=True):
    """What `measure` measured: a row in the form of validation/README.md; of kind `trial` where no GPU was asked for."""

    schema: Literal["tonnage/1"]
    row: dict[str, Any]


class ErrorDocument(Struct, kw_only=True):
    """What --json prints when there is no answer."""

    schema: Literal["tonnage/1"]
    error: dict[str, str]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of all documents, one definition each."""
    import msgspec

    types = (AnswerDocument, RulesDocument, ValidationDocument, MeasureDocument, ErrorDocument)
    _, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://tonnage.dev/schema/tonnage-1.json",
        "title": SCHEMA,
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in types],
        "$defs": components,
    }


if __name__ == "__main__":
    import json
    from pathlib import Path

    Path(__file__).with_name("tonnage.schema.json").write_text(
        json.dumps(json_schema(), indent=1) + "\n", encoding="utf-8"
    )
