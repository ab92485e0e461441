"""Every verb builds its document as a struct, and documents of older releases are still read."""

import ast
import json
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

import tonnage
from tonnage.documents.answer import AnswerDocument
from tonnage.documents.document import READABLE, SCHEMA, Document, builtins, encode
from tonnage.documents.question import Entry
from tonnage.estimate.answer.frontier import Frontier
from tonnage.estimate.answer.my_machine import ModelsForMachine
from tonnage.estimate.host.memory import HostMemory
from tonnage.estimate.money.bill import Bill
from tonnage.estimate.plan.pipeline_boxes import StepSeconds
from tonnage.estimate.run.checkpoint import Disks
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.term import Term, TermDocument
from tonnage.measure.answer import Measured
from tonnage.render.headline import headline
from tonnage.render.report import html_of, markdown_of
from tonnage.search.compare import Comparison
from tonnage.search.maximum.answer import Maximum
from tonnage.search.pool.placement import Placement
from tonnage.search.serving.answer import ServingPlans
from tonnage.search.training.document import TrainingPlans
from tonnage.trace.answer import TraceAnswer

PACKAGE = Path(tonnage.__file__).parent
OLD = sorted(Path(__file__).parent.glob("*_1.json"))  # as the release before tonnage/2 printed them
# JSON Schema and OpenAPI have a key "schema" of their own; the manifest of a sweep is a file with its own versions.
WITH_A_SCHEMA = ("documents/", "web/schema/", "search/sweep/manifest.py", "mcp_server/server.py")
ANSWERS = (
    tonnage.Answer,
    Frontier,
    ModelsForMachine,
    Maximum,
    Comparison,
    ServingPlans,
    TraceAnswer,
    Measured,
)


def test_no_dictionary_is_written_as_a_document():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(WITH_A_SCHEMA):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            keys = node.keys if isinstance(node, ast.Dict) else ()
            if any(isinstance(key, ast.Constant) and key.value == "schema" for key in keys):
                found.append(f"{name}:{node.lineno}")
    assert found == []


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_the_document_of_an_answer_is_typed(kind):
    made = get_type_hints(kind.document.fget)["return"]
    assert issubclass(made, Document) and made.__struct_config__.tag == SCHEMA
    assert made.__struct_config__.tag_field == "schema"


def test_documents_that_are_kept_are_typed():
    assert issubclass(get_type_hints(Placement)["document"], Document)
    assert issubclass(get_type_hints(TrainingPlans.__init__)["document"], Document)


def test_no_field_of_an_answer_is_a_dictionary_of_anything():
    # named for type checkers alone: an answer imports what it has
    fields = {kind.__name__: kind for kind in (Bill, Disks, HostMemory, StepSeconds)}
    hints = get_type_hints(tonnage.Answer, localns=fields)
    assert [name for name, hint in hints.items() if dict in (hint, getattr(hint, "__origin__", None))] == []
    assert get_args(hints["question"])[1] is Entry


def test_an_answer_its_document_and_its_dictionary_say_the_same():
    answer = tonnage.serve("llama-3.1-8b", on="8xh100", concurrency=4, input_tokens=500, output_tokens=100)
    document = answer.document
    assert isinstance(document, AnswerDocument) and isinstance(answer.serving.ttft_seconds, Term)
    assert isinstance(document.serving.ttft_seconds, TermDocument)
    assert document.serving.ttft_seconds.value == answer.serving.ttft_seconds.value
    whole, short = answer.to_dict(), answer.without_trees()
    assert whole == builtins(document) == json.loads(encode(document))
    assert whole["schema"] == short["schema"] == SCHEMA and next(iter(whole)) == "schema"
    assert set(whole) - set(short) == {"memory", "ranks"}
    assert short["serving"]["ttft_seconds"] == {
        name: whole["serving"]["ttft_seconds"][name] for name in ("name", "value", "unit")
    }
    assert builtins(msgspec.convert(whole, AnswerDocument)) == whole


def test_what_is_not_answered_is_left_out_and_what_nobody_knows_is_null():
    step = tonnage.train("llama-3.1-8b", on="8xh100").to_dict()
    assert "serving" not in step and "tokens" not in step["run"]
    one = tonnage.serve("llama-3.1-8b", on="8xh100", input_tokens=500, output_tokens=1).to_dict()
    assert one["serving"]["tpot_seconds"] is None and "run" not in one


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_documents_of_the_schema_before_are_still_read(path):
    document = json.loads(path.read_text())
    assert document["schema"] == "tonnage/1" and document["schema"] in READABLE
    assert "<html" in html_of(document) and markdown_of(document).startswith("# ") and headline(document)


@pytest.mark.parametrize("schema", ["tonnage/0", "tonnage/3", "somebody/1", None, 2])
def test_documents_of_other_schemas_are_refused_by_name(schema):
    document = {**json.loads(OLD[0].read_text()), "schema": schema}
    with pytest.raises(InvalidInput, match=r"must be one of tonnage/1, tonnage/2\. Got"):
        markdown_of(document)
