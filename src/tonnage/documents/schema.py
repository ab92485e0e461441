"""The JSON Schema of the documents that every face prints. Values only; nothing here computes.

`tonnage.schema.json` in this package is generated from these types (`python -m tonnage.documents.schema`), and a test
keeps it so.
"""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.documents.answer import AnswerDocument, AnswerSummary
from tonnage.documents.catalogue import (
    AcceleratorDocument,
    AcceleratorsDocument,
    ModelDocument,
    ModelsDocument,
    NodeDocument,
)
from tonnage.documents.compare import CompareDocument
from tonnage.documents.document import SCHEMA, ErrorDocument, OptionsDocument, ToolsDocument
from tonnage.documents.explain import FormulaDocument, NamesDocument, SourceDocument, SymbolDocument, WordDocument
from tonnage.documents.interchange.calibration import CalibrationDocument
from tonnage.documents.interchange.checks import ChecksDocument
from tonnage.documents.interchange.diagnose import DiagnosisDocument
from tonnage.documents.interchange.export import ExportDocument
from tonnage.documents.interchange.reconcile import ReconcileDocument
from tonnage.documents.max import MaxDocument
from tonnage.documents.plan import PlansDocument
from tonnage.documents.plan_serving import ServingPlansDocument
from tonnage.documents.pool import PoolDocument
from tonnage.documents.prices import ApiPricesDocument, PricesDocument, RefreshDocument
from tonnage.documents.serving import FrontierDocument, MachineDocument
from tonnage.documents.sweep import ServeBatchDocument, SweepDocument, TrainBatchDocument
from tonnage.documents.timeline import TimelineDocument
from tonnage.documents.trace import MeasureDocument, TraceDocument
from tonnage.documents.validation import RulesDocument, ValidationDocument

# A struct of Terms is named as it is in code: "RunDocument", not "RunDocument[TermDocument]" and its reference; that of
# a summary "RunSummary".
OF_FIGURES = re.compile(r"_TermDocument_|\[TermDocument\]")
OF_SUMMARIES = re.compile(r"(Document)?(_FigureDocument_|\[FigureDocument\])")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of all documents, one definition each."""
    import msgspec

    types = (
        AnswerDocument,
        AnswerSummary,
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
        OptionsDocument,
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
        TrainBatchDocument,
        ServeBatchDocument,
        ChecksDocument,
        ExportDocument,
        ReconcileDocument,
        CalibrationDocument,
        DiagnosisDocument,
        ErrorDocument,
    )
    _, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://tonnage.dev/schema/tonnage-2.json",
        "title": SCHEMA,
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in types],
        "$defs": components,
    }
    return plain_names(schema)


def plain_names(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same JSON Schema, with lists for tuples and structs of figures under their own names."""
    import msgspec

    text = msgspec.json.encode(schema).decode()
    return dict(msgspec.json.decode(OF_SUMMARIES.sub("Summary", OF_FIGURES.sub("", text))))


if __name__ == "__main__":
    import json
    from pathlib import Path

    Path(__file__).parents[1].joinpath("tonnage.schema.json").write_text(
        f"{json.dumps(json_schema(), indent=1)}\n", "utf-8"
    )
