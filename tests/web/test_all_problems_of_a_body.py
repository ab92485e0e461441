"""A question with several mistakes is answered once, with all of them, over HTTP and to assistants."""

import json

import pytest

from tonnage.kernel.reach import Reach
from tonnage.verbs.ask import ask
from tonnage.web.answer import Refusal, answered

WITHIN = Reach(files=None, hubs=False, machine=False)
SEVERAL = {"model": "lama-3.1-70b", "on": "8xH100X", "recompute": "ful", "zero_stge": 3}


def refused(verb: str, question: object) -> dict:
    outcome = answered(verb, question, WITHIN)
    assert isinstance(outcome, Refusal) and outcome.code == 400
    return json.loads(outcome.body)


def test_every_field_has_its_problem_its_place_and_what_is_nearest():
    document = refused("train", SEVERAL)
    assert [(each["input"], each["pointer"]) for each in document["errors"]] == [
        (name, f"#/{name}") for name in SEVERAL
    ]
    assert [each["nearest"][:1] for each in document["errors"]] == [
        ["llama-3.1-70b"],
        ["8xH100-SXM-80GB"],
        ["full"],
        ["zero_stage"],
    ]
    assert document["corrected"] == ("tonnage train llama-3.1-70b --on 8xH100-SXM-80GB --recompute full --zero-stage 3")


def test_it_is_a_problem_of_rfc_9457_and_the_first_error_stays_where_it_was(client):
    reply = client.post("/v1/train", json=SEVERAL)
    document = reply.json()
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert document["type"] == "about:blank" and document["title"] == "Bad Request"
    assert document["status"] == reply.status_code == 400
    assert document["detail"] == document["error"]["message"] and document["error"]["kind"] == "UnknownName"
    assert len(document["errors"]) == 4


@pytest.mark.parametrize(
    ("verb", "question", "inputs"),
    [
        ("serve", {"model": "llama-3.1-8b", "users": "x", "context": "y"}, ["users", "context", "on"]),
        ("serve", {"model": "qwen3-32", "on": "h1000"}, ["model", "on"]),
        ("train", {}, ["model", "on"]),
        ("plan", {"model": "lama-3.1-8b", "on": ["h1000", "l4"]}, ["model", "on"]),
        ("max", {"what": "users", "modle": "llama-3.1-8b", "on": "h1000"}, ["modle", "on"]),
        ("compare", {"model": ["llama-3.1-8b", "x"], "on": "h100", "context": ["4k", "z"]}, ["model", "context"]),
        ("train", {"model": "llama-3.1-8b", "on": "h100", "liger": 3, "optimizer": "adamm"}, ["liger", "optimizer"]),
        ("train", {"model": "llama-3.1-8b", "on": True, "Sequence Length": 3}, ["on", "Sequence Length"]),
    ],
)
def test_mistakes_of_every_kind_are_gathered(verb, question, inputs):
    assert [each["input"] for each in refused(verb, question)["errors"]] == inputs


def test_what_only_the_estimate_sees_is_said_with_the_rest_and_then_nothing_is_corrected():
    document = refused(
        "train", {"model": "llama-3.1-8b", "on": "8xh100", "recompute": "ful", "tensor_parallel_size": 3}
    )
    assert [each["input"] for each in document["errors"]] == ["recompute", "tensor_parallel_size"]
    assert "corrected" not in document


def test_one_mistake_is_a_list_of_one():
    document = refused("train", {"model": "llama-3.1-8b", "on": "8xh100", "tensor_parallel_size": 3})
    (only,) = document["errors"]
    assert only == {
        "input": "tensor_parallel_size",
        "problem": document["error"]["message"],
        "nearest": [],
        "pointer": "#/tensor_parallel_size",
    }


@pytest.mark.parametrize(
    ("verb", "question"),
    [("serve", {"model": "qwen3-32", "on": "h1000"}), ("plan", {"model": "lama-3.1-8b", "on": ["h1000", "l4"]})],
)
def test_what_is_corrected_is_the_command_line_of_a_right_question(verb, question):
    words = refused(verb, question)["corrected"].split()
    model, on = words[2], words[words.index("--on") + 1]
    assert words[:2] == ["tonnage", verb]
    assert ask(verb, {"model": model, "on": on}, WITHIN).status in (0, 2, 3)


@pytest.mark.parametrize("name", ["", "a/b", "~x", "\ud800", "x" * 5000, "on\n", "__class__"])
def test_names_that_are_none_have_a_place_and_end_nothing(name):
    document = refused("train", {name: 1, "model": "llama-3.1-8b", "on": "h1000"})
    assert document["errors"][-1]["input"] == "on" and len(document["errors"]) == 2


def test_an_assistant_reads_all_of_it_in_lines():
    pytest.importorskip("mcp")
    from tonnage.mcp_server.server import Settings, answer

    result = answer("train", SEVERAL, Settings(WITHIN))
    lines = result.content[0].text.splitlines()
    assert result.is_error and lines[0].startswith("error: ") and len(lines) == 6
    assert lines[3] == "recompute: no such policy (nearest: full, none, selective, selective-op)"
    assert lines[5].startswith("corrected: tonnage train llama-3.1-70b")
    assert len(result.structured_content["errors"]) == 4


LLAMA = {"model": "llama-3.1-8b", "on": "h100"}


@pytest.mark.parametrize(
    ("verb", "question", "message"),
    [
        ("train", None, "a question is an object of names and values. Got NoneType."),
        ("train", {**LLAMA, "micro_batch_size": float("nan")}, "micro_batch_size must be a number such as 8"),
        ("train", {**LLAMA, "on": []}, "on is an empty list: give it a value, or leave it out."),
        ("train", {**LLAMA, "lora": 16}, "lora is an option of TRL. Write method lora."),
        ("max", {**LLAMA, "what": "users", "users": 3}, "max users looks for users: leave it out"),
        ("serve", {**LLAMA, "zero": 3}, "zero is an option of train, not of serve."),
    ],
)
def test_an_error_of_a_field_names_it_as_it_was_given(verb, question, message):
    assert refused(verb, question)["error"]["message"].startswith(message)


@pytest.mark.parametrize(
    ("field", "nearest"),
    [({"provider": "Amazn"}, ["AWS"]), ({"weights": "fp9"}, ["fp8"]), ({"method": "lorra"}, ["lora"])],
)
def test_the_nearest_choices_are_data(field, nearest):
    verb = "serve" if "weights" in field else "train"
    (problem,) = refused(verb, {**LLAMA, **field})["errors"]
    assert problem["nearest"][:1] == nearest
