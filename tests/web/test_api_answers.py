"""The API answers with the document of the command line, in the form that its description says."""

import json
import shlex
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import pytest
import yaml

from schema_forms import form
from tonnage.cli import main
from tonnage.models import read
from tonnage.question.verbs import form_of
from tonnage.web.schema.openapi import ANSWERS, LISTED, document
from tonnage.web.schema.options import NAMED
from web.conftest import Client

ROOT = Path(__file__).parents[2]
SHIPPED = form()
POOL = ROOT / "docs" / "examples" / "pool.yaml"
# Verb, question, the words of the same question on the command line, the name of the document.
SAME = (
    (
        "train",
        {
            "model": "llama-3.1-8b",
            "on": "8xh100",
            "sequence_length": "8k",
            "recompute": "full",
            "sequence_parallel": False,
        },
        "train llama-3.1-8b --on 8xh100 --seq 8k --recompute full --no-sequence-parallel",
        "AnswerDocument",
    ),
    (
        "train",
        {
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "vocab_size": 100,
            "on": "h100",
            "tokens": 1e9,
        },
        "train --hidden-size 64 --num-layers 2 --num-attention-heads 2 --vocab-size 100 --on h100 --tokens 1B",
        "AnswerDocument",
    ),
    (
        "serve",
        {"model": "qwen3-32b", "on": "rtx-4090", "weights": "awq"},
        "serve qwen3-32b --on rtx-4090 --weights awq",
        "AnswerDocument",
    ),
    (
        "serve",
        {"model": "llama-3.1-8b", "on": "8xh100", "frontier": True, "points": 4},
        "serve llama-3.1-8b --on 8xh100 --frontier --points 4",
        "FrontierDocument",
    ),
    (
        "serve",
        {"for_my_machine": True, "on": "rtx-4060-ti", "context": "64k"},
        "serve --for-my-machine --on rtx-4060-ti --context 64k",
        "MachineDocument",
    ),
    (
        "plan",
        {"train": True, "model": "llama-3.2-1b", "on": ["8xh100"], "runtime": "fsdp2", "top": 2},
        "plan llama-3.2-1b --on 8xh100 --runtime fsdp2 --top 2",
        "PlansDocument",
    ),
    (
        "plan",
        {"serve": True, "model": "llama-3.1-8b", "on": "h100,l4", "users": 8, "top": 2},
        "plan llama-3.1-8b --serve --on h100,l4 --users 8 --top 2",
        "ServingPlansDocument",
    ),
    ("plan", {"inventory": yaml.safe_load(POOL.read_text())}, f"plan --inventory {POOL}", "PoolDocument"),
    (
        "max",
        {"what": "context", "model": "llama-3.1-8b", "on": "rtx-4090"},
        "max context llama-3.1-8b --on rtx-4090",
        "MaxDocument",
    ),
    (
        "max",
        {"what": "layers", "train": True, "model": "llama-3.1-8b", "on": "8xh100"},
        "max layers llama-3.1-8b --train --on 8xh100",
        "MaxDocument",
    ),
    (
        "compare",
        {"model": ["llama-3.1-8b", "qwen3-8b"], "on": ["h100", "rtx-4090"], "weights": [None, "fp8"]},
        "compare llama-3.1-8b,qwen3-8b --on h100,rtx-4090 --weights own,fp8",
        "CompareDocument",
    ),
    (
        "compare",
        {"train": True, "model": "llama-3.1-8b", "on": "8xh100", "tensor_parallel_size": [1, 2]},
        "compare llama-3.1-8b --train --on 8xh100 --tp 1,2",
        "CompareDocument",
    ),
    ("rules", {}, "rules", "RulesDocument"),
    ("rules", {"names": ["A6", "E5"]}, "rules A6 E5", "RulesDocument"),
    ("rules", {"names": "B", "model": "mixtral-8x7b"}, "rules B --model mixtral-8x7b", "RulesDocument"),
    ("explain", {}, "explain", "NamesDocument"),
    ("explain", {"name": "kv_cache_bytes"}, "explain kv_cache_bytes", "FormulaDocument"),
    ("explain", {"name": "k"}, "explain k", "SymbolDocument"),
    ("explain", {"name": "checkpoint"}, "explain checkpoint", "WordDocument"),
    ("explain", {"name": "power_share"}, "explain power_share", "WordDocument"),
    ("explain", {"name": "Pope2023"}, "explain Pope2023", "SourceDocument"),
)
LISTS = (
    ("/v1/models", "models", "ModelsDocument"),
    ("/v1/models/mixtral-8x7b", "models mixtral-8x7b", "ModelDocument"),
    ("/v1/models/meta-llama/Llama-3.1-8B", "models meta-llama/Llama-3.1-8B", "ModelDocument"),
    ("/v1/models/meta-llama%2FLlama-3.1-8B", "models meta-llama/Llama-3.1-8B", "ModelDocument"),
    ("/v1/accelerators", "accelerators", "AcceleratorsDocument"),
    ("/v1/accelerators/h100:1g.10gb", "accelerators h100:1g.10gb", "AcceleratorDocument"),
    ("/v1/accelerators/dgx-h100", "accelerators dgx-h100", "NodeDocument"),
    ("/v1/prices", "prices", "PricesDocument"),
    ("/v1/prices/h100?kind=spot&as_of=2026-11-22", "prices h100 --kind spot --as-of 2026-11-22", "PricesDocument"),
)


@cache
def described() -> dict:
    """The OpenAPI document as a client gets it."""
    return json.loads(json.dumps(document()))


def follows(found: object, schema: dict) -> None:
    jsonschema.Draft202012Validator({**schema, "components": described()["components"]}).validate(found)


PRINTED: dict[tuple[str, ...], tuple[int, dict]] = {}


def printed(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    """The status of a command and its document: run once in each folder, however it was written."""
    asked = (str(Path.cwd()), *shlex.split(words))
    if asked not in PRINTED:
        status = main([*asked[1:], "--json"])
        PRINTED[asked] = status, json.loads(capsys.readouterr().out)
    return PRINTED[asked]


def without_search_time(found: dict) -> dict:
    """A pool's document says how long its search took, which is never twice the same."""
    return json.loads(
        json.dumps(found),
        object_hook=lambda made: {
            name: value for name, value in made.items() if name not in ("seconds", "search_seconds")
        },
    )


@pytest.mark.parametrize(("verb", "question", "words", "name"), SAME, ids=[words for _, _, words, _ in SAME])
def test_an_answer_is_the_document_of_the_command_line(client: Client, capsys, verb, question, words, name):
    answer = client.post(f"/v1/{verb}", json=question)
    assert answer.status_code == 200, answer.text
    status, document = printed(words, capsys)
    clean = without_search_time if name == "PoolDocument" else dict
    assert clean(answer.json()) == clean(document)
    assert int(answer.headers["Tonnage-Status"]) == status
    follows(answer.json(), {"$ref": f"#/components/schemas/{name}"})
    follows(
        answer.json(),
        described()["paths"][f"/v1/{verb}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"],
    )
    SHIPPED.validate(answer.json())


@pytest.mark.parametrize(("verb", "question", "words", "name"), SAME, ids=[words for _, _, words, _ in SAME])
def test_the_command_line_that_comes_with_an_answer_asks_the_same(
    client: Client, capsys, tmp_path, monkeypatch, verb, question, words, name
):
    answer = client.post(f"/v1/{verb}", json=question)
    command = unquote(answer.headers["Tonnage-Command"])
    assert command.startswith(f"tonnage {verb}")
    sent = {"config.json": question.get("model"), "inventory.json": question.get("inventory")}
    if any(isinstance(content, dict) for content in sent.values()):  # which is saved beside the line
        monkeypatch.chdir(tmp_path)
        for file, content in sent.items():
            (tmp_path / file).write_text(json.dumps(content))
        assert printed(command.removeprefix("tonnage "), capsys)[0] == int(answer.headers["Tonnage-Status"])
    else:
        _, document = printed(command.removeprefix("tonnage "), capsys)
        assert document == answer.json()


@pytest.mark.parametrize(("verb", "question", "words", "name"), SAME, ids=[words for _, _, words, _ in SAME])
def test_the_description_of_a_question_has_every_question(verb, question, words, name):
    follows(
        question, described()["paths"][f"/v1/{verb}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    )


@pytest.mark.parametrize(("path", "words", "name"), LISTS, ids=[path for path, _, _ in LISTS])
def test_a_list_is_the_document_of_the_command_line(client: Client, capsys, path, words, name):
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.json() == printed(words, capsys)[1]
    follows(answer.json(), {"$ref": f"#/components/schemas/{name}"})


@pytest.mark.parametrize("path", ["/v1/formulas", "/v1/glossary", "/v1/server", "/healthz"])
def test_what_only_the_api_answers_is_described(client: Client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    follows(
        answer.json(), described()["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    )


@pytest.mark.parametrize("verb", ["train", "serve"])
def test_a_summary_is_the_one_of_the_command_line_and_of_the_form_that_is_described(client: Client, capsys, verb):
    question = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"}
    answer = client.post(f"/v1/{verb}?detail=summary", json=question)
    words = [verb, "llama-3.1-8b", "--on", "8xH100-SXM-80GB"]
    main([*words, "--json", "summary"])
    document = json.loads(capsys.readouterr().out)
    assert answer.json() == document and len(answer.content) <= 8_000
    assert answer.headers["Tonnage-Command"] == "tonnage%20" + "%20".join(words)
    follows(document, {"$ref": "#/components/schemas/AnswerSummary"})
    whole = client.post(f"/v1/{verb}?detail=full", json=question)
    assert whole.json() == client.post(f"/v1/{verb}", json=question).json() != document


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/train?detail=short", "detail is full or summary. Got 'short'."),
        ("/v1/plan?detail=summary", "'detail' is no parameter here."),
    ],
)
def test_another_detail_and_a_detail_of_other_verbs_are_refused(client: Client, path, words):
    answer = client.post(path, json={"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"})
    assert answer.status_code == 400 and words in answer.json()["error"]["message"]


def test_every_verb_and_every_list_is_asked_here():
    assert {verb for verb, *_ in SAME} == set(ANSWERS)
    answered = {kind.__name__ for kinds in ANSWERS.values() for kind in kinds}
    assert {name for _, _, _, name in SAME} | {"AnswerSummary"} == answered
    listed = {
        kind.__name__
        for path, (kinds, _, _) in LISTED.items()
        if path.startswith(("/v1/m", "/v1/a", "/v1/p"))
        for kind in kinds
    }
    assert {name for _, _, name in LISTS} == listed


def test_a_pasted_config_is_a_model(client: Client):
    config = dict(read("llama-3.1-8b").config)
    pasted = client.post("/v1/train", json={"model": config, "on": "8xh100"}).json()
    named = client.post("/v1/train", json={"model": "llama-3.1-8b", "on": "8xh100"}).json()
    assert pasted["memory"] == named["memory"]
    assert pasted["question"]["model"]["value"] == "pasted config"


@pytest.mark.parametrize(
    ("verb", "rest"),
    [
        ("serve", {"on": "8xh100"}),
        ("plan", {"on": "8xh100", "runtime": "fsdp2", "top": 1}),
        ("max", {"what": "context", "on": "h100"}),
        ("compare", {"on": "h100,h200"}),
        ("rules", {}),
        ("rules", {"names": ["A", "E5"], "num_hidden_layers": 8}),
        ("launch", {"verb": "train", "on": "8xh100"}),
        ("timeline", {"on": "8xh100"}),
    ],
)
def test_every_verb_with_a_model_takes_a_pasted_config(client: Client, verb, rest):
    answer = client.post(f"/v1/{verb}", json={"model": dict(read("llama-3.1-8b").config), **rest})
    assert answer.status_code == 200, answer.text


def test_rules_are_worked_on_a_pasted_config_as_on_the_model_that_it_is_of(client: Client):
    pasted, named = (
        client.post("/v1/rules", json={"model": model, "names": ["A6", "B1b"]}).json()["rules"]
        for model in (dict(read("mixtral-8x7b").config), "mixtral-8x7b")
    )
    assert {each["model"] for each in pasted} == {"pasted config"}
    for own, other in zip(pasted, named, strict=True):
        assert own["exact"]["value"] == other["exact"]["value"]
        assert {name: own[name] for name in ("value", "values", "inputs", "follows")} == {
            name: other[name] for name in ("value", "values", "inputs", "follows")
        }


def test_an_empty_config_is_no_model_to_the_rules(client: Client):
    answer = client.post("/v1/rules", json={"model": {}})
    assert answer.status_code == 400 and "architectures" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("question", "runtime", "words"),
    [
        (
            {"verb": "train", "model": "llama-3.1-8b", "on": "8xh100", "runtime": "megatron", "pp": 2},
            "megatron",
            "--pipeline-model-parallel-size 2",
        ),
        ({"verb": "train", "model": "llama-3.1-8b", "on": "8xh100"}, "fsdp2", "--training.local_batch_size 1"),
        (
            {"verb": "train", "model": "llama-3.1-8b", "on": "8xh100", "method": "lora"},
            "fsdp2",
            "trl sft --accelerate_config fsdp2 --num_processes 8",
        ),
        (
            {"verb": "serve", "model": "llama-3.1-8b", "on": "8xh100"},
            "vllm",
            "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 8",
        ),
        (
            {"verb": "serve", "model": "llama-3.1-8b", "on": "rtx-4090", "engine": "llama.cpp"},
            "llama.cpp",
            "llama-server -m",
        ),
    ],
)
def test_a_launch_is_in_the_words_of_its_runtime(client: Client, question, runtime, words):
    answer = client.post("/v1/launch", json=question)
    assert answer.status_code == 200
    follows(answer.json(), {"$ref": "#/components/schemas/LaunchDocument"})
    assert answer.json()["runtime"] == runtime
    assert words in answer.json()["launch"]


def test_a_launch_says_what_its_words_do_not_say(client: Client):
    asked = {"verb": "train", "model": "llama-3.1-8b", "on": "8xh100", "runtime": "deepspeed"}
    answer = client.post("/v1/launch", json=asked).json()
    assert answer["launch"] == ""
    assert answer["notes"] == ["nothing is written down here of how deepspeed is started."]
    asked = {"verb": "train", "model": "llama-3.1-8b", "on": "8xh100", "method": "freeze"}
    answer = client.post("/v1/launch", json=asked).json()
    assert answer["launch"] == "" and answer["notes"] == [
        "nothing is written down here of how fsdp2 is started for method freeze."
    ]
    stored = client.post("/v1/launch", json={"verb": "serve", "model": "llama-3.1-8b", "on": "h100", "weights": "awq"})
    assert "#" not in stored.json()["launch"] and "vllm does not make awq" in stored.json()["notes"][0]


@pytest.mark.parametrize(
    "question", [{}, {"verb": "plan"}, {"verb": ["train"]}, {"verb": "serve", "for_my_machine": True, "on": "rtx-4090"}]
)
def test_what_is_not_launched_is_said(client: Client, question):
    answer = client.post("/v1/launch", json=question)
    assert answer.status_code == 400
    assert "launched" in answer.json()["error"]["message"]


def lists(schema: dict) -> bool:
    """Whether a list may stand where this schema is."""
    return jsonschema.Draft202012Validator(schema).is_valid(["fp8"]) or jsonschema.Draft202012Validator(
        schema
    ).is_valid([True])


@pytest.mark.parametrize(
    ("verb", "name", "kind"), [(verb, *each) for verb, forms in NAMED.items() for each in forms.items()]
)
def test_the_description_of_a_field_says_that_it_may_be_a_list_where_it_may(verb, name, kind):
    schema = described()["components"]["schemas"][name]["properties"]
    assert {field for field in schema if lists(schema[field])} == {
        field for field in schema if form_of(verb, kind).takes_lists(field)
    }


def test_the_description_of_a_plan_has_lists_of_machines_weights_caches_and_engines(client: Client):
    question = {
        "model": "llama-3.1-8b",
        "serve": True,
        "on": ["h100", "a100"],
        "weights": ["bf16", "fp8"],
        "kv_cache": ["auto", "fp8"],
        "engine": ["vllm", "sglang"],
        "context": "8k",
    }
    follows(question, described()["components"]["schemas"]["PlanServeQuestion"])
    assert client.post("/v1/plan", json=question).status_code == 200


def test_what_a_plan_varies_may_be_a_list_of_options_each_with_values(client: Client):
    question = {
        "model": "llama-3.1-8b",
        "train": True,
        "on": "8xh100",
        "vary": ["precision=bf16-mixed,fp8-te", "optimizer=adamw,muon"],
    }
    follows(question, described()["components"]["schemas"]["PlanTrainQuestion"])
    same = question | {"vary": {"precision": ["bf16-mixed", "fp8-te"], "optimizer": ["adamw", "muon"]}}
    assert client.post("/v1/plan", json=question).json() == client.post("/v1/plan", json=same).json()


def test_which_form_of_a_comparison_is_asked_is_no_list(client: Client):
    answer = client.post("/v1/compare", json={"model": "llama-3.1-8b", "on": "h100", "train": [True, False]})
    assert answer.status_code == 400 and "train takes one value" in answer.json()["error"]["message"]


def test_a_plan_tries_each_cache_of_a_list(client: Client):
    question = {"model": "llama-3.1-8b", "serve": True, "on": "h100", "weights": "fp8", "context": "8k", "users": 16}
    both, *each = [
        client.post("/v1/plan", json=question | {"kv_cache": said}).json() for said in (["bf16", "fp8"], "bf16", "fp8")
    ]
    assert {plan["kv_cache"] for plan in both["plans"]} == {"bf16", "fp8-e4m3"}
    assert both["considered"] == sum(one["considered"] for one in each)


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, forms in NAMED.items() for name in forms])
def test_null_is_what_was_not_said_in_every_field_but_what_is_needed(verb, name):
    schema = described()["components"]["schemas"][name]
    taken = {field for field, of in schema["properties"].items() if jsonschema.Draft202012Validator(of).is_valid(None)}
    assert set(schema["properties"]) - taken == set(schema.get("required", ()))


def test_a_null_changes_no_answer(client: Client):
    question = {"model": "llama-3.1-8b", "on": "8xh100", "sequence_length": "4k"}
    nulls = dict.fromkeys(described()["components"]["schemas"]["TrainQuestion"]["properties"])
    assert client.post("/v1/train", json=nulls | question).content == client.post("/v1/train", json=question).content


def test_the_description_of_a_maximum_needs_what_is_asked(client: Client):
    for name in ("MaxServeQuestion", "MaxTrainQuestion"):
        assert described()["components"]["schemas"][name]["required"] == ["what"]
    assert client.post("/v1/max", json={"model": "gpt2", "on": "h100"}).status_code == 400


COMPARED = {"model": "llama-3.1-8b", "on": "h100"}
NO_LISTS = {
    "a list of machines within a list": (
        "compare",
        {"on": ["h100", ["l40s"]]},
        "on holds a list within its list: give its values in one. Got ['h100', ['l40s']].",
    ),
    "of values": (
        "compare",
        {"context": [4096, [8192]]},
        "context holds a list within its list: give its values in one. Got [4096, [8192]].",
    ),
    "of models": (
        "compare",
        {"model": ["gpt2", ["t5-small"]]},
        "model holds a list within its list: give its values in one. Got ['gpt2', ['t5-small']].",
    ),
    "of a plan": (
        "plan",
        {"serve": True, "on": ["h100", ["l40s"]]},
        "on holds a list within its list: give its values in one. Got ['h100', ['l40s']].",
    ),
    "of rules": (
        "rules",
        {"names": ["B2", ["E1"]], "on": None},
        "names holds a list within its list: give its values in one. Got ['B2', ['E1']].",
    ),
    "of what a plan varies": (
        "plan",
        {"train": True, "vary": {"recompute": ["full", ["none"]]}},
        "vary holds a list within its list: give its values in one. Got ['full', ['none']].",
    ),
    "no machine": (
        "compare",
        {"on": ["h100", None]},
        "on takes no null in its list: give a value, or leave it out. Got ['h100', None].",
    ),
    "no model": (
        "compare",
        {"model": ["gpt2", None]},
        "model takes no null in its list: give a value, or leave it out. Got ['gpt2', None].",
    ),
    "no cache": (
        "plan",
        {"serve": True, "kv_cache": ["fp8", None]},
        "kv_cache takes no null in its list: give a value, or leave it out. Got ['fp8', None].",
    ),
}


@pytest.mark.parametrize(("verb", "question", "message"), NO_LISTS.values(), ids=NO_LISTS.keys())
def test_a_list_holds_values_and_the_field_that_does_not_is_named(client: Client, verb, question, message):
    answer = client.post(f"/v1/{verb}", json=(COMPARED if verb != "rules" else {}) | question)
    assert answer.status_code == 400 and answer.json()["error"]["message"] == message
    form = next(name for name in NAMED[verb] if verb != "plan" or "Serve" in name)
    if "vary" not in question:  # a mapping of anything
        assert not jsonschema.Draft202012Validator(described()["components"]["schemas"][form]).is_valid(question)


def test_null_in_a_list_to_compare_is_the_default(client: Client):
    answer = client.post("/v1/compare", json=COMPARED | {"weights": [None, "fp8"]})
    assert answer.status_code == 200 and len(answer.json()["cells"]) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b" ", "the body is empty"),
        (b'{"a": NaN}', "JSON has no NaN"),
        (b'{"a": [1,-Infinity]}', "JSON has no -Infinity"),
    ],
)
def test_a_body_that_is_no_json_says_what_is_wrong(body, said):
    from tonnage.web.answer import Refusal
    from tonnage.web.wire.body import question_of

    with pytest.raises(Refusal) as refused:
        question_of(body)
    assert said in str(refused.value)
