"""Adding an option, as a walk: one declaration in a copy of the source, and every face has the option."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUBJECT = Path("question", "subjects", "training.py")
BEFORE = "    reduce_bucket_size: Annotated["
DECLARATION = """    prefetch_layers: Annotated[
        int | None, option("layers fetched ahead of time", size, short=("--prefetch",), unit="layers", default="1")
    ] = None
"""
ASKED = """
import contextlib, io, json, runpy, sys
from pathlib import Path

import msgspec

import tonnage
from tonnage.api import arguments
from tonnage.cli import main
from tonnage.mcp_server import tools
from tonnage.question.form import values
from tonnage.question.option import options_of
from tonnage.question.read import read
from tonnage.web.schema import openapi, options_table

scripts = Path(sys.argv[1])
sys.path.insert(0, str(scripts))
help = io.StringIO()
with contextlib.redirect_stdout(help):
    main(["train", "--help-all"])
asked = read("train", {"model": "gpt2", "on": "h100", "prefetch": "2"})
told = io.StringIO()
with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
    main(["train", "gpt2", "--on", "h100", "--prefetch", "none"])
docs = runpy.run_path(str(scripts / "write_docs.py"))
print(json.dumps({
    "where": tonnage.__file__,
    "help": help.getvalue(),
    "error": told.getvalue(),
    "question": values(asked.given, options_of(tonnage.TrainingOptions)),
    "schema": openapi.document()["components"]["schemas"]["TrainQuestion"]["properties"].get("prefetch_layers"),
    "compared": openapi.document()["components"]["schemas"]["CompareTrainQuestion"]["properties"].get("prefetch_layers"),
    "page": [msgspec.to_builtins(row) for row in options_table.table("train") if row.name == "prefetch_layers"],
    "tools": tools.fields(tools.BY_NAME["train"]).keys() & {"prefetch_layers"} and "taken",
    "python": tonnage.TrainingOptions.__doc__,
    "value": arguments.options_from(tonnage.TrainingOptions, {"prefetch_layers": 3}).prefetch_layers,
    "types": runpy.run_path(str(scripts / "option_types.py"))["options_module"](),
    "docs": [option.name for option in docs["TABLES"]["train"]],
    "texts": [text for text, _ in runpy.run_path(str(scripts / "extract_messages.py"))["declared"]()],
}))
"""


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    """What each face says of the option, in a process that has the changed copy."""
    copy = tmp_path_factory.mktemp("source") / "tonnage"
    shutil.copytree(ROOT / "src" / "tonnage", copy, ignore=shutil.ignore_patterns("__pycache__"))
    subject = copy / SUBJECT
    text = subject.read_text()
    assert text.count(BEFORE) == 1
    subject.write_text(text.replace(BEFORE, DECLARATION + BEFORE))
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "TONNAGE_LANG": "en", "COLUMNS": "200"}
    words = [sys.executable, "-c", ASKED, str(ROOT / "scripts")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=copy.parent)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["where"].startswith(str(copy))
    return said


def test_the_command_line_and_its_help_have_it(faces):
    assert "--prefetch-layers LAYERS, --prefetch LAYERS" in faces["help"]
    assert "layers fetched ahead of time [layers] (default: 1)" in faces["help"]
    assert "--prefetch must be" in faces["error"]


def test_a_question_has_it_under_each_of_its_names(faces):
    assert faces["question"] == {"prefetch_layers": 2}


def test_the_json_schema_and_openapi_have_it(faces):
    described = {"description": "layers fetched ahead of time", "x-unit": "layers", "x-default": "1"}
    assert faces["schema"] == described | {"type": ["number", "string", "null"]}
    assert faces["compared"]["anyOf"][1]["type"] == "array"


def test_the_page_has_an_input_for_it(faces):
    (row,) = faces["page"]
    assert (row["help"], row["unit"], row["default"], row["group"]) == (
        "layers fetched ahead of time",
        "layers",
        "1",
        "training",
    )


def test_assistants_can_give_it(faces):
    assert faces["tools"] == "taken"


def test_python_has_it_with_its_type_and_its_help(faces):
    assert "- prefetch_layers [layers]: layers fetched ahead of time (default: 1)" in faces["python"]
    assert faces["value"] == 3
    assert (
        '    prefetch_layers: int | None\n    """layers fetched ahead of time [layers]; default: 1"""\n'
        in faces["types"]
    )


def test_the_documentation_and_the_texts_to_translate_have_it(faces):
    assert "prefetch_layers" in faces["docs"]
    assert "layers fetched ahead of time" in faces["texts"]
