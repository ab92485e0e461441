"""The JSON Schema ships with the package and is that of the types."""

import json
from pathlib import Path

import jsonschema
import pytest

import tonnage
from schema_forms import form, validate
from tonnage.cli import VERBS, main
from tonnage.documents.schema import json_schema

SHIPPED = Path(tonnage.__file__).with_name("tonnage.schema.json")


def test_the_shipped_schema_is_generated_from_the_types():
    assert json.loads(SHIPPED.read_text()) == json_schema(), "run `make schema`"


def test_the_schema_is_a_schema_and_refuses_what_is_no_document():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert not form().is_valid({})
    assert not form().is_valid({"schema": "tonnage/2", "question": {}})


LOG = str(Path(__file__).parents[1] / "interchange" / "files" / "diagnose" / "vllm.log")
# What a verb prints -> the definition that describes it.
PRINTED = {
    ("check", "vllm serve gpt2 --made-up-key 1", "--on", "h100"): "AnswerDocument",
    ("check", "src/tonnage/py.typed", "pyproject.toml"): "ChecksDocument",
    (
        "reconcile",
        "tests/interchange/logs/torchtitan.log",
        *("train", "llama-3.1-8b", "--on", "8xh100", "--seq", "8k"),
    ): "ReconcileDocument",
    ("calibrate", "show"): "CalibrationDocument",
    ("export", "vllm", "serve", "gpt2", "--on", "h100"): "ExportDocument",
    ("diagnose", LOG, "--on", "h100"): "DiagnosisDocument",
    ("train", "llama-3.1-8b", "--on", "8xh100"): "AnswerDocument",
    ("train", "deepseek-v3", "--on", "8xh100"): "AnswerDocument",
    ("train", "llama-3.1-8b", "--on", "8xh100", "--no-advice"): "AnswerDocument",
    ("serve", "qwen3-32b", "--on", "rtx-4090", "--weights", "awq"): "AnswerDocument",
    (
        "serve",
        "llama-3.1-8b",
        "--on",
        "8xh100",
        "--users",
        "16",
        "--input",
        "500",
        "--output",
        "200",
        "--simulate",
        "--ttft",
        "200ms",
    ): "AnswerDocument",
    (
        "serve",
        "llama-3.1-8b",
        "--on",
        "8xh100",
        "--input",
        "500",
        "--output",
        "200",
        "--rate",
        "1000",
    ): "AnswerDocument",
    ("serve", "llama-3.1-8b", "--on", "8xh100", "--frontier", "--points", "4"): "FrontierDocument",
    ("serve", "--for-my-machine", "--on", "rtx-4060-ti", "--context", "64k"): "MachineDocument",
    (
        "compare",
        "llama-3.1-8b",
        "--on",
        "h100,8xrtx-4090",
        "--weights",
        "own,fp8",
        "--context",
        "8k,32k",
    ): "CompareDocument",
    ("compare", "llama-3.1-8b", "--train", "--on", "8xh100,2xh100", "--tp", "1,3", "--tokens", "1T"): "CompareDocument",
    ("plan", "llama-3.2-1b", "--on", "8xh100", "--runtime", "fsdp2", "--top", "2"): "PlansDocument",
    ("plan", "llama-3.1-70b", "--train", "--on", "2xrtx-4090", "--runtime", "fsdp2"): "PlansDocument",
    ("max", "context", "llama-3.1-8b", "--on", "rtx-4090"): "MaxDocument",
    ("max", "sequence", "llama-3.1-8b", "--on", "8xh100"): "MaxDocument",
    ("max", "context", "gpt2", "--on", "rtx-4090"): "MaxDocument",
    ("max", "context", "llama-3.1-70b", "--on", "rtx-4090"): "MaxDocument",
    ("max", "layers", "llama-3.1-70b", "--on", "rtx-4090", "--weights", "q4_k_m"): "MaxDocument",
    ("max", "model", "--on", "rtx-4090"): "MaxDocument",
    (
        "max",
        "users",
        "llama-3.1-8b",
        "--on",
        "8xh100",
        "--input",
        "500",
        "--output",
        "200",
        "--ttft",
        "200ms",
    ): "MaxDocument",
    (
        "plan",
        "llama-3.1-8b",
        "--serve",
        "--on",
        "h100,l4",
        "--users",
        "8",
        "--pareto",
        "--top",
        "2",
    ): "ServingPlansDocument",
    ("plan", "llama-3.1-70b", "--serve", "--on", "1xrtx-4090", "--max-accelerators", "2"): "ServingPlansDocument",
    ("rules",): "RulesDocument",
    ("rules", "E5"): "RulesDocument",
    ("rules", "B", "--model", "mixtral-8x7b"): "RulesDocument",
    ("explain",): "NamesDocument",
    ("explain", "kv_cache_bytes"): "FormulaDocument",
    ("explain", "k"): "SymbolDocument",
    ("explain", "checkpoint"): "WordDocument",
    ("explain", "Pope2023"): "SourceDocument",
    ("explain", "A6"): "RulesDocument",
    ("models",): "ModelsDocument",
    ("models", "mixtral-8x7b"): "ModelDocument",
    ("models", "deepseek-v3"): "ModelDocument",
    ("models", "t5-small"): "ModelDocument",
    (
        "models",
        "--hidden-size",
        "64",
        "--num-layers",
        "2",
        "--num-attention-heads",
        "2",
        "--vocab-size",
        "100",
    ): "ModelDocument",
    ("accelerators",): "AcceleratorsDocument",
    ("accelerators", "h100"): "AcceleratorDocument",
    ("accelerators", "h100:1g.10gb"): "AcceleratorDocument",
    ("prices", "--api", "gpt-oss-120b", "--input", "500", "--output", "200"): "ApiPricesDocument",
    ("prices",): "PricesDocument",
    ("prices", "h100"): "PricesDocument",
    ("accelerators", "dgx-h100"): "NodeDocument",
    ("accelerators", "tpu-v4"): "AcceleratorDocument",
    ("trace", "e5"): "TraceDocument",
    ("trace", "e5", "--capacity", "100MiB"): "TraceDocument",
    ("validate", "validation/params.yaml"): "ValidationDocument",
    ("plan", "--inventory", "docs/examples/pool.yaml"): "PoolDocument",
    ("plan", "--inventory", "docs/examples/pool.yaml", "--leave", "a100"): "PoolDocument",
    (
        "plan",
        "--inventory",
        "docs/examples/pool.yaml",
        "llama-3.1-405b",
        "--users",
        "64",
        "--context",
        "8k",
    ): "PoolDocument",
    ("plan", "--inventory", "docs/examples/pool.yaml", "llama-3.1-8b", "--rate", "40"): "PoolDocument",
    ("mcp",): "ToolsDocument",
    ("mcp", "--http", "0"): "ErrorDocument",
    ("sweep", "no-such-file.yaml", "--out", "nowhere"): "ErrorDocument",
    ("web", "--port", "0"): "ErrorDocument",
    ("measure", "no-such-model-anywhere"): "ErrorDocument",
    ("models", "no-such-model-anywhere"): "ErrorDocument",
    ("explain", "no_such_thing"): "ErrorDocument",
    ("rules", "Q7"): "ErrorDocument",
}
# tests/trace/test_measure.py, tests/estimate/money/test_prices_refresh.py, tests/search/test_sweep_local.py,
# tests/web/test_timeline.py, tests/web/test_batch.py, tests/mcp_server/test_mcp.py
ELSEWHERE = (
    "AnswerSummary",
    "MeasureDocument",
    "OptionsDocument",
    "RefreshDocument",
    "ServeBatchDocument",
    "SweepDocument",
    "TimelineDocument",
    "TrainBatchDocument",
)


DOCUMENTS = {}


def _document(arguments, capsys):
    """What a command prints: run once for all that is said of it."""
    if arguments not in DOCUMENTS:
        main([*arguments, "--json"])
        DOCUMENTS[arguments] = json.loads(capsys.readouterr().out)
    return DOCUMENTS[arguments]


@pytest.mark.parametrize("arguments", PRINTED, ids=" ".join)
def test_what_a_verb_prints_is_described_by_its_own_definition(arguments, capsys):
    document = _document(arguments, capsys)
    validate(document, PRINTED[arguments])
    validate(document)
    broken = {**document, "schema": "tonnage/0"}
    assert not form().is_valid(broken)


def test_every_verb_and_every_definition_of_a_document_is_tried():
    assert {arguments[0] for arguments in PRINTED} == set(VERBS)
    assert {f"#/$defs/{name}" for name in {*PRINTED.values(), *ELSEWHERE}} == {
        entry["$ref"] for entry in json_schema()["anyOf"]
    }


def test_documents_of_the_catalogues_have_no_undescribed_key(capsys):
    for arguments, definition in PRINTED.items():
        if arguments[0] in ("models", "accelerators", "prices", "explain") and definition not in (
            "RulesDocument",
            "ErrorDocument",
        ):
            document = _document(arguments, capsys)
            assert not form(definition).is_valid({**document, "surprise": 1}), arguments
