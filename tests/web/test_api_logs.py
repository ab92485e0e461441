"""Logs over HTTP: texts in the body, the documents of the command line out, and no file of the server read."""

from pathlib import Path

import pytest

from web.conftest import Client

LOGS = Path(__file__).parent.parent / "interchange" / "logs"
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TRAIN = {"model": "llama-3.1-8b", "on": "8xh100", "options": {"sequence_length": 8192, "recompute": "selective-op"}}


def test_a_log_says_why_its_run_ran_out_of_memory(client: Client):
    answer = client.post("/v1/diagnose", json={"text": OUT_OF_MEMORY})
    document = answer.json()
    assert answer.status_code == 200
    assert (document["tool"], document["phase"], document["estimate"]) == ("pytorch", "unknown", None)
    assert document["question"]["log"]["value"] == "the log"


def test_fixes_have_numbers_where_the_run_is_said(client: Client):
    run = {"model": "llama-3.1-8b", "on": "h100", "options": {"sequence_length": 8192}}
    asked = {"text": OUT_OF_MEMORY, **run}
    document = client.post("/v1/diagnose", json=asked).json()
    assert document["estimate"]["needed_bytes"] > document["estimate"]["usable_bytes"]
    assert any(fix["basis"] == "estimated" and fix["freed_bytes"] > 0 for fix in document["fixes"])


def test_a_log_without_a_failure_lacks_a_datum(client: Client):
    assert client.post("/v1/diagnose", json={"text": "epoch 1: loss 2.3\n"}).status_code == 422


def test_figures_of_a_log_stand_beside_the_estimate(client: Client):
    text = (LOGS / "torchtitan.log").read_text()
    document = client.post("/v1/reconcile", json={"text": text, "verb": "train", **TRAIN}).json()
    found = {one["quantity"]: one for one in document["figures"]}
    assert found["reserved_memory"]["inside"] is True
    assert document["rows"][0]["verb"] == "train"


def test_several_logs_of_one_run_and_a_config_that_says_it(client: Client):
    texts = [(LOGS / name).read_text() for name in ("vllm.log", "nvidia_smi.csv")]
    config = "vllm serve llama-3.1-8b --max-model-len 8192"
    document = client.post("/v1/reconcile", json={"text": texts, "config": config, "on": "h100"}).json()
    assert document["tools"] == ["nvidia-smi", "vLLM"] or document["tools"] == ["vLLM", "nvidia-smi"]
    assert document["question"]["context"] == 8192


@pytest.mark.parametrize(
    ("verb", "question", "says"),
    [
        ("diagnose", {}, "text is needed"),
        ("diagnose", {"text": 5}, "text is a text"),
        ("diagnose", {"text": OUT_OF_MEMORY, "path": "/etc/passwd"}, "no field is called 'path'"),
        ("diagnose", {"text": OUT_OF_MEMORY, "options": {"seq": 1}}, "options of the run need model and on"),
        ("diagnose", {"text": OUT_OF_MEMORY, **TRAIN, "options": {"sequence_lenght": 1}}, "sequence_length"),
        ("reconcile", {"text": "nothing", "verb": "train", **TRAIN}, "no figure is found"),
        ("reconcile", {"text": OUT_OF_MEMORY, **TRAIN}, "verb is train or serve"),
        ("reconcile", {"text": "Memory used: 1.00 GB", "verb": "train"}, "model"),
        ("reconcile", {"text": [], "verb": "train", **TRAIN}, "text is a text"),
        ("reconcile", {"text": "x", "verb": "train", "options": []}, "options is an object"),
    ],
)
def test_what_is_wrong_is_said(client: Client, verb, question, says):
    answer = client.post(f"/v1/{verb}", json=question)
    assert answer.status_code == 400
    assert says.lower() in answer.json()["error"]["message"].lower()


@pytest.mark.parametrize("verb", ["diagnose", "reconcile"])
def test_a_body_has_the_limit_of_every_question(client: Client, verb):
    assert client.post(f"/v1/{verb}", json={"text": "x" * 1_000_001}).status_code == 413


def test_the_routes_are_described(client: Client):
    paths = client.get("/schema/openapi.json").json()["paths"]
    for verb in ("diagnose", "reconcile"):
        body = paths[f"/v1/{verb}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body["required"] == ["text"]
        assert {"model", "on", "config", "options"} <= body["properties"].keys()
