"""Verbs as people say them: what a search is for by its options, two names to compare, a form's name as a word."""

import json

import pytest

from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.question.verbs import kind_of, kind_of_plan
from tonnage.verbs.ask import ask


@pytest.fixture
def run(capsys):
    def call(line):
        status = main(line.split())
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.mark.parametrize(
    "option", ["--users 2", "--ttft 2s", "--input-tokens 1k", "--engine vllm", "--max-model-len 4k"]
)
def test_a_plan_with_an_option_of_serving_is_a_plan_to_serve(run, option):
    status, out, _ = run(f"plan qwen3-0.6b --on l4 {option} --top 1 --json summary")
    assert status in (0, 2, 3)
    assert {"input_tokens", "users"} & json.loads(out)["question"].keys()


def test_a_plan_without_any_is_a_plan_to_train():
    assert kind_of_plan(["model", "on", "tokens"]) == kind_of_plan([]) == kind_of_plan(["budget"]) == "train"
    assert kind_of("plan", {"model": "gpt2", "users": 4}) == "serve"
    assert kind_of("plan", {"model": "gpt2", "users": None, "on": "l4"}) == "train"
    assert kind_of("plan", {"model": "gpt2", "users": 4, "train": True}) == "train"


def test_options_of_both_are_refused_by_name(run):
    with pytest.raises(InvalidInput, match=r"users is of serving, recompute of training"):
        kind_of_plan(["users", "recompute"])
    status, _, err = run("plan qwen3-0.6b --on l4 --users 2 --recompute full")
    assert status == 64 and "--users is of serving, --recompute of training" in err


@pytest.mark.parametrize(
    ("spoken", "written"),
    [
        ("plan serve qwen3-0.6b --on l4 --top 1", "plan qwen3-0.6b --on l4 --top 1 --serve"),
        ("plan train qwen3-0.6b --on l4 --top 1", "plan qwen3-0.6b --on l4 --top 1 --train"),
        ("compare qwen3-0.6b gpt2 --on l4", "compare qwen3-0.6b,gpt2 --on l4"),
        ("compare --on l4 qwen3-0.6b --context 1k gpt2", "compare qwen3-0.6b,gpt2 --on l4 --context 1k"),
        ("compare qwen3-0.6b l4 t4", "compare qwen3-0.6b --on l4,t4"),
        ("compare qwen3-0.6b --on l4 t4", "compare qwen3-0.6b --on l4,t4"),
        ("compare train qwen3-0.6b 8xh100 8xa100", "compare --train qwen3-0.6b --on 8xh100,8xa100"),
        ("compare serve qwen3-0.6b gpt2 l4", "compare --serve qwen3-0.6b,gpt2 --on l4"),
    ],
)
def test_a_verb_as_people_say_it_answers_as_it_is_written(run, spoken, written):
    assert run(f"{spoken} --csv" if "compare" in spoken else spoken) == run(
        f"{written} --csv" if "compare" in spoken else written
    )


def test_machines_without_a_model_are_told_how_they_are_compared(run):
    status, _, err = run("compare h100 l40s")
    assert status == 64 and "tonnage compare MODEL --on h100,l40s" in err


def test_a_question_of_names_and_values_is_understood_too():
    answer = ask("plan", {"model": "qwen3-0.6b", "on": "l4", "users": 2, "top": 1})
    assert "--users" in " ".join(answer.words) or "users" in " ".join(answer.words)
    assert answer.status in (0, 2, 3)


@pytest.mark.parametrize(
    ("typed", "quoted"),
    [
        ("serve llama 3.1 8b --on 8 x h100", ["serve", "llama 3.1 8b", "--on", "8 x h100"]),
        ("serve --on mac studio gpt2 --tp 1", ["serve", "--on", "mac studio", "gpt2", "--tp", "1"]),
        ("serve qwen3 32b awq --on rtx 4090", ["serve", "qwen3 32b awq", "--on", "rtx 4090"]),
        ("max users qwen3 0.6b --on l4", ["max", "users", "qwen3 0.6b", "--on", "l4"]),
        ("train --on 8xh100 gpt2", ["train", "--on", "8xh100", "gpt2"]),
        ("train gpt2 more --on h100", ["train", "gpt2", "more", "--on", "h100"]),
        ("train gpt2 --on rtx foo", ["train", "gpt2", "--on", "rtx", "foo"]),
    ],
)
def test_names_with_blanks_need_no_quotes(typed, quoted):
    from tonnage.cli import spelled

    verb, *words = typed.split()
    assert spelled(verb, words) == quoted[1:]


def test_names_without_blanks_are_not_looked_up_twice(monkeypatch):
    from tonnage.cli import spelled

    monkeypatch.setattr("tonnage.cli.common.unquoted.quoted", lambda *_, **__: pytest.fail("looked up"))
    assert spelled("train", ["gpt2", "--on", "h100", "--tp=2", "--json"]) == [
        "gpt2",
        "--on",
        "h100",
        "--tp=2",
        "--json",
    ]
