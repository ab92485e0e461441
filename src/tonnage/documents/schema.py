"""The forms of the documents that every face prints, and their JSON Schema. Values only; nothing here computes.

`tonnage.schema.json` in this package is generated from these types (`python -m tonnage.documents.schema`), and a test
keeps it so.
"""

from typing import Any, Literal

from msgspec import Struct

from tonnage.documents.advice import Advice, NearestMiss
from tonnage.documents.compare import CompareDocument
from tonnage.documents.max import MaxDocument
from tonnage.documents.plan import PlansDocument
from tonnage.documents.plan_serving import ServingPlansDocument
from tonnage.documents.pool import PoolDocument
from tonnage.documents.prices import ApiPricesDocument, PricesDocument, RefreshDocument
from tonnage.documents.run import HostDocument, OwnershipDocument, RunDocument, StorageDocument
from tonnage.documents.serving import FrontierDocument, MachineDocument, ServingDocument
from tonnage.documents.sweep import SweepDocument
from tonnage.documents.term import TermDocument
from tonnage.documents.timeline import TimelineDocument
from tonnage.kernel.glossary import Word
from tonnage.kernel.references import Reference
from tonnage.spec import Accelerator, Fact, Node

SCHEMA = "tonnage/1"


class Verdict(Struct, kw_only=True):
    """Whether it fits. `band`: low and high in bytes, null where no measured rows back the estimate.

    With a band, `fits` is true where its high end is usable, false where its low end is not, and null in between
    (status 2, tight). It is null too where not enough is known (status 4). `missed`: the service level, deadline or
    budget that is missed, in words, whether it fits or not; where it fits, the status is 3.
    """

    fits: bool | None
    needed_bytes: int | None
    usable_bytes: int | None
    band: tuple[int, int] | None
    missed: str | None = None


class Slopes(Struct, kw_only=True):
    """Bytes that one more sequence, and one more token in each sequence, add on the fullest rank."""

    bytes_per_sequence: float
    bytes_per_token: float


class AnswerDocument(Struct, kw_only=True):
    """What `train` and `serve` answer. Keys that a verb does not answer are left out; with --no-advice `train` leaves
    out `slopes`, which needs two more estimates.

    `question` has every input: {"value", "from": given, default, model, cluster, runtime, catalogue or measurements,
    "why"}.
    """

    schema: Literal["tonnage/1"]
    question: dict[str, Any]
    verdict: Verdict
    memory: TermDocument
    ranks: list[TermDocument]
    advice: list[Advice]
    warnings: list[str]
    slopes: Slopes | None = None
    phases: list[TermDocument] = []
    flops: TermDocument | None = None
    step_time: TermDocument | None = None
    traffic: TermDocument | None = None
    run: RunDocument | None = None
    cost: TermDocument | None = None
    energy: TermDocument | None = None
    carbon: TermDocument | None = None
    ownership: OwnershipDocument | None = None
    checkpoint: TermDocument | None = None
    host: HostDocument | None = None
    storage: StorageDocument | None = None
    serving: ServingDocument | None = None
    nearest_miss: NearestMiss | None = None


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
    inputs: dict[str, float]
    exact: TermDocument
    model: str | None
    of_document: list[str]
    example: str
    follows: dict[str, float]
    stages: list[dict[str, Any]] = []
    variants: list[dict[str, Any]] = []


class RulesDocument(Struct, kw_only=True):
    schema: Literal["tonnage/1"]
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
    agrees: bool | None = None
    band: tuple[float, float] | None = None
    skipped: str | None = None
    notes: list[str] = []


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


class ValidationDocument(Struct, kw_only=True):
    schema: Literal["tonnage/1"]
    rows: list[RowDocument]
    summary: list[SummaryDocument]


class MeasureDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `measure` measured: a row in the form of validation/sources/README.md; of kind `trial` where no GPU was
    asked for.
    """

    schema: Literal["tonnage/1"]
    row: dict[str, Any]


class BranchDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A stack of layers of a model: its decoder, its encoder, a tower, a draft."""

    name: str
    kind: str
    layers: int


class PublishedDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A published count: an exact number, or a text such as "8.03B"; `counts` says what was counted."""

    parameters: int | str
    counts: str
    source: str
    as_of: str


class ModelDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `models NAME` answers. The keys from `hub` on are the catalogue's: other models have none."""

    schema: Literal["tonnage/1"]
    name: str
    family: str
    architecture: str
    hidden_size: int
    num_layers: int
    vocab_size: int
    context: int | None
    dtype: str | None
    tied: bool
    source: str
    parameters: TermDocument
    active_parameters: TermDocument
    embedding_parameters: TermDocument
    non_embedding_parameters: TermDocument
    branches: list[BranchDocument]
    warnings: list[str]
    draft_parameters: TermDocument | None = None
    kv_bytes_per_token: TermDocument | None = None
    kv_bytes_per_request: TermDocument | None = None
    hub: str = ""
    released: str = ""
    license: str = ""
    aliases: list[str] = []
    published: list[PublishedDocument] = []
    sources: dict[str, Fact] = {}


class ModelRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """A line of the catalogue of models. `experts`: that a layer's router chooses from, 0 in a dense model.
    `released`: YYYY-MM-DD, or shorter where that is all that is known.
    """

    name: str
    hub: str
    family: str
    parameters: int
    active_parameters: int
    layers: int
    experts: int
    context: int | None
    released: str


class ModelsDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    schema: Literal["tonnage/1"]
    models: list[ModelRow]


class AcceleratorDocument(Accelerator, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `accelerators NAME` answers: bytes, bytes a second in one direction, dense FLOP/s, watts."""

    schema: Literal["tonnage/1"]
    kind: Literal["gpu", "tpu", "npu", "cpu", "apple"]


class NodeDocument(Node, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `accelerators NAME` answers about a node."""

    schema: Literal["tonnage/1"]
    kind: Literal["node"]


class AcceleratorsDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    schema: Literal["tonnage/1"]
    accelerators: list[Accelerator]
    nodes: list[Node]
    aliases: dict[str, str]  # other name of an accelerator -> its name in `accelerators`


class LetterDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A letter of the formulas."""

    letter: str
    long_name: str
    unit: str
    meaning: str


class KeyedReference(Reference, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of the bibliography with its key."""

    key: str


class FormulaDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers about a formula. (A rule of thumb is explained by a RulesDocument.)"""

    schema: Literal["tonnage/1"]
    kind: Literal["formula"]
    name: str
    text: str
    unit: str
    meaning: str
    assumes: str
    basis: Literal["rule", "analytic", "traced", "measured"]
    source: str
    symbols: list[LetterDocument]
    references: list[KeyedReference]


class SymbolDocument(LetterDocument, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers about a letter; `formulas` are those that use it."""

    schema: Literal["tonnage/1"]
    kind: Literal["symbol"]
    name: str
    formulas: list[str]


class WordDocument(Word, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers about a word of the answers."""

    schema: Literal["tonnage/1"]
    kind: Literal["word"]


class SourceDocument(Reference, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers about a source."""

    schema: Literal["tonnage/1"]
    kind: Literal["source"]
    name: str


class NamesDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers without a name."""

    schema: Literal["tonnage/1"]
    formulas: list[str]
    symbols: list[str]
    words: list[str]
    sources: list[str]


class ToolsDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `mcp --json` prints: the tools that assistants are offered, each with its name, description and the JSON
    Schema of its fields.
    """

    schema: Literal["tonnage/1"]
    tools: list[dict[str, Any]]


class TraceVerdict(Struct, kw_only=True, forbid_unknown_fields=True):
    """`needed_bytes`: in how little the program runs, with what is outside of the allocator; `failure`: where it
    runs out.
    """

    fits: bool | None
    needed_bytes: int
    usable_bytes: int | None
    band: None
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    retries: int
    failure: dict[str, Any] | None


class StageDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """The end of a stage; `peak_allocated_bytes` is the most since the one before."""

    name: str
    allocated_bytes: int
    reserved_bytes: int
    peak_allocated_bytes: int


class TraceDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `trace` answers. `modules`: what holds most at the peak; `overlays`: memory that no tensor shows;
    `answers`: what operations that need data were told; `unmodelled`: operations whose scratch memory is not
    counted, and how often they ran.
    """

    schema: Literal["tonnage/1"]
    question: dict[str, dict[str, Any]]
    verdict: TraceVerdict
    stages: list[StageDocument]
    memory: TermDocument
    modules: list[dict[str, Any]]
    timeline: dict[str, Any]
    overlays: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    attention: dict[str, int]
    unmodelled: dict[str, int]
    warnings: list[str]
    against: dict[str, Any] | None = None


class ErrorDocument(Struct, kw_only=True):
    """What --json prints when there is no answer."""

    schema: Literal["tonnage/1"]
    error: dict[str, str]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of all documents, one definition each."""
    import msgspec

    types = (
        AnswerDocument,
        RulesDocument,
        ValidationDocument,
        ModelsDocument,
        ModelDocument,
        AcceleratorsDocument,
        AcceleratorDocument,
        NodeDocument,
        PoolDocument,
        PricesDocument,
        ApiPricesDocument,
        RefreshDocument,
        NamesDocument,
        FormulaDocument,
        SymbolDocument,
        WordDocument,
        SourceDocument,
        ToolsDocument,
        TraceDocument,
        MeasureDocument,
        FrontierDocument,
        MachineDocument,
        CompareDocument,
        MaxDocument,
        PlansDocument,
        ServingPlansDocument,
        SweepDocument,
        TimelineDocument,
        ErrorDocument,
    )
    _, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://tonnage.dev/schema/tonnage-1.json",
        "title": SCHEMA,
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in types],
        "$defs": components,
    }
    return dict(msgspec.json.decode(msgspec.json.encode(schema)))  # lists for tuples


if __name__ == "__main__":
    import json
    from pathlib import Path

    Path(__file__).parents[1].joinpath("tonnage.schema.json").write_text(
        f"{json.dumps(json_schema(), indent=1)}\n", "utf-8"
    )
