"""A summary is the document without its trees, in at most 8 kB: from the command line, Python and each other face."""

import json

import jsonschema
import msgspec
import pytest

import tonnage
from tonnage.cli import main
from tonnage.documents.answer import LONGEST, AnswerSummary
from tonnage.documents.document import builtins, encode
from tonnage.documents.schema import json_schema
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.term import Term
from tonnage.verbs.ask import ask
from tonnage.verbs.shortened import shortened

FORM = jsonschema.Draft202012Validator({**json_schema(), "anyOf": [{"$ref": "#/$defs/AnswerSummary"}]})
RUN = {"tokens": "1T", "deadline": "30d", "budget": 1_000_000}
LOAD = {"concurrency": 32, "input_tokens": 1000, "output_tokens": 500, "ttft": "1s", "tpot": "50ms"}
ARRIVALS = {
    "request_rate": 3.0,
    "input_tokens": 800,
    "output_tokens": 50,
    "ttft": "1s",
    "percentile": "p90",
    "num_requests": 300,
}
SPREAD = [
    ("train", "llama-3.1-8b", "8xh100", {}),
    ("train", "llama-3.1-70b", "8xh100", RUN),
    ("train", "llama-3.1-70b", "8xh100", {**RUN, "advice": False}),
    ("train", "deepseek-v3", "32x8xh800", {"runtime": "megatron", "tensor_parallel_size": 8, "tokens": "15T"}),
    ("train", "qwen3-vl-32b-instruct", "32x8xh800", {"runtime": "deepspeed", "tokens": "2T", "grid": "germany"}),
    ("train", "kimi-k2-instruct", "mi300x", {**RUN, "method": "lora"}),
    ("train", "gpt2", "rtx-4090", {}),
    ("train", "mamba2-2.7b", "tpu-v5e", {"sequence_length": 2048}),
    ("serve", "llama-3.1-70b", "8xh100", LOAD),
    ("serve", "llama-3.1-70b", "8xh100", {**LOAD, "advice": False}),
    ("serve", "qwen3-4b", "4x8xh100", ARRIVALS),
    ("serve", "flan-t5-base", "8xh100", {**ARRIVALS, "input_tokens": 400}),
    ("serve", "llama-3.2-1b", "rtx-4090", {**ARRIVALS, "simulate": True}),
    ("serve", "deepseek-v3", "8xb200", {"weights": "fp8", "context": 8192}),
    ("serve", "llama-3.1-405b", "l4", {}),
]


def _asked(verb, model, on, options):
    return getattr(tonnage, verb)(model, on=on, **options)


def _keys(item):
    if isinstance(item, dict):
        for name, each in item.items():
            yield name
            yield from _keys(each)
    elif isinstance(item, list):
        for each in item:
            yield from _keys(each)


def _is_part(part, whole):
    """Whether each figure, input and entry of a summary is that of the document."""
    if isinstance(part, dict):
        return all(name == "parts" or (name in whole and _is_part(each, whole[name])) for name, each in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(_is_part, part, whole))
    return part == whole


@pytest.mark.parametrize(("verb", "model", "on", "options"), SPREAD, ids=lambda value: str(value)[:30])
def test_a_summary_is_a_part_of_the_document_without_trees_in_8_kb(verb, model, on, options):
    answer = _asked(verb, model, on, options)
    short, whole = answer.summary(), answer.to_dict()
    assert len(encode(answer.summary_document)) <= LONGEST < 8_000
    assert not {"children", "inputs", "formula", "combine", "ranks", "phases"} & {*_keys(short)}
    left_out = short.pop("left_out", {})
    assert _is_part(short, whole)
    assert short["verdict"] == whole["verdict"] and short["memory"]["value"] == whole["memory"]["value"]
    for name in ("warnings", "advice"):
        assert len(short[name]) + left_out.get(name, 0) == len(whole[name])
    assert len(short["question"]) + left_out.get("question", 0) == len(whole["question"])
    assert all({*entry} == {"value", "from"} for entry in short["question"].values())
    assert FORM.is_valid(answer.summary())
    assert builtins(msgspec.convert(answer.summary(), AnswerSummary)) == answer.summary()


@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b-v0.1"])
@pytest.mark.parametrize("verb", ["train", "serve"])
def test_the_parts_of_memory_are_its_first_level_and_add_up(verb, model):
    answer = _asked(verb, model, "8xh100", {})
    parts = answer.summary()["memory"]["parts"]
    assert [*parts] == [child.name for child in answer.memory.children]
    assert sum(parts.values()) == pytest.approx(answer.needed_bytes, abs=1)


def test_a_summary_asks_no_term_for_its_text(monkeypatch):
    answer = tonnage.train("llama-3.1-8b", on="8xh100")
    asked = []
    monkeypatch.setattr(Term, "text", property(lambda term: asked.append(term.name) or ""))
    answer.summary()
    assert not asked
    answer.to_dict()
    assert len(asked) > 200  # each Term once


def test_texts_of_any_length_do_not_make_it_long():
    question = {"model": {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}}
    question["model"] |= {"vocab_size": 100, "intermediate_size": 128, "_name_or_path": "x" * 20_000}
    document = ask("train", {**question, "on": "8xh100", "lora_targets": "q_proj," * 3000 + "v_proj", "method": "lora"})
    assert len(encode(document.document)) > 20_000
    asked = {**question, "on": "8xh100", "lora_targets": "q_proj," * 3000 + "v_proj", "method": "lora"}
    short = ask("train", asked, detail="summary").document
    assert len(encode(short)) <= LONGEST and short.left_out["question"] >= 1


SEARCHED = {
    "plan": {"model": "llama-3.2-1b", "on": "8xh100", "runtime": "fsdp2", "top": 20},
    "max": {"what": "context", "model": "llama-3.1-8b", "on": "rtx-4090"},
    "compare": {
        "model": "llama-3.1-8b",
        "on": ["h100", "8xa100", "l4"],
        "context": ["8k", "32k"],
        "concurrency": [1, 2],
    },
    "serve": {"model": "llama-3.1-8b", "on": "8xh100", "frontier": True},
}


@pytest.mark.parametrize("verb", SEARCHED)
def test_a_summary_of_a_search_is_a_part_of_its_document_and_says_what_is_left_out(verb):
    whole = json.loads(encode(ask(verb, SEARCHED[verb]).document))
    short = ask(verb, SEARCHED[verb], detail="summary").document
    assert len(encode(short)) <= LONGEST
    left_out = short.pop("left_out", {})
    assert _is_part(short, whole) and not {"children", "inputs", "formula"} & {*_keys(short)}
    longest = {"plan": "plans", "compare": "cells", "serve": "points"}.get(verb)
    if longest:
        assert len(short[longest]) > 0 and len(short[longest]) + left_out.get(longest, 0) == len(whole[longest])


def test_what_is_short_is_shown_whole_and_what_is_long_is_cut_from_its_end():
    assert shortened({"plans": [1, 2], "warnings": []}) == {"plans": [1, 2], "warnings": []}
    rows = [{"number": number, "said": "x" * 100, "nothing": None} for number in range(500)]
    cut = shortened({"cells": rows, "notes": ["a"] * 20})
    kept = len(cut["cells"])
    assert cut["cells"] == [{"number": number, "said": "x" * 100} for number in range(kept)]
    assert cut["left_out"]["cells"] == 500 - kept and kept > 40


@pytest.mark.parametrize(
    ("words", "summary"),
    [
        (["--json", "llama-3.1-8b", "--on", "8xh100"], False),
        (["--json", "summary", "llama-3.1-8b", "--on", "8xh100"], True),
        (["llama-3.1-8b", "--on", "8xh100", "--json=summary"], True),
        (["llama-3.1-8b", "--json", "full", "--on", "8xh100"], False),
        (["llama-3.1-8b", "--on", "8xh100", "--json"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
@pytest.mark.parametrize("verb", ["train", "serve"])
def test_json_takes_summary_and_never_the_model(verb, words, summary, capsys):
    main([verb, *words])
    document = json.loads(capsys.readouterr().out)
    answer = _asked(verb, "llama-3.1-8b", "8xh100", {})
    assert document == json.loads(encode(answer.summary_document if summary else answer.document))


def test_another_word_for_json_is_refused_in_a_document(capsys):
    assert main(["train", "llama-3.1-8b", "--on", "8xh100", "--json=short"]) == 64
    assert "invalid choice: 'short'" in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("verb", ["train", "serve"])
def test_suggestions_are_left_out_in_python_as_on_the_command_line(verb, capsys):
    answer = _asked(verb, "llama-3.1-70b", "8xh100", {"advice": False})
    assert answer.advice == () and answer.question["advice"].value is False
    assert answer.command == f"tonnage {verb} llama-3.1-70b --on 8xh100 --no-advice"
    main([*answer.command.split()[1:], "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads(encode(answer.document))
    with pytest.raises(InvalidInput, match="advice takes True or False"):
        _asked(verb, "llama-3.1-70b", "8xh100", {"advice": 0})


@pytest.mark.parametrize(
    "question",
    [
        "train deepseek-v3 --on 32x8xH800-SXM-80GB --tokens 1T",
        "serve deepseek-v3 --on 8xh200 --users 32 --input 1000 --output 200",
        "compare llama-3.1-8b --on h100,l40s,mi300x --weights fp8,bf16 --context 4096,8192",
    ],
)
def test_what_a_command_prints_as_a_summary_has_at_most_8_kb(question, capsys):
    main([*question.split(), "--json", "summary"])
    printed = capsys.readouterr().out
    assert len(printed.encode()) <= 8192
    assert json.loads(printed)["schema"] == "tonnage/2"


@pytest.mark.parametrize("detail", ["sumary", "short"])
def test_a_detail_that_there_is_not_is_answered_with_those_that_there_are(detail, capsys):
    assert main(["train", "llama-3.1-8b", "--on", "h100", "--json", detail]) == 64
    assert "--json takes full or summary." in capsys.readouterr().err
