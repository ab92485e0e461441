"""`check` and `export` in every face: the same answer, the same statuses, where each input came from."""

import json
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage.cli import main
from tonnage.interchange.check import understood
from tonnage.interchange.json_questions import checked, exported
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, text_source
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.reach import Reach

COMMAND = "vllm serve qwen3-32b --tensor-parallel-size 2 --max-model-len 8192"
ON = "2xh100"


def printed(capsys, *words):
    status = main(list(words))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_a_command_is_read_as_a_question_and_each_input_says_its_key(capsys):
    status, out, _ = printed(capsys, "check", "--on", ON, "--json", "full", *COMMAND.split())
    document = json.loads(out)
    assert status == 0
    context = document["question"]["context"]
    assert (context["value"], context["from"], context["keys"]) == (8192, "file", ["max-model-len"])
    assert document["question"]["on"]["from"] == "given"
    assert document["read"]["tool"] == "vLLM"


def test_a_file_a_quoted_command_and_standard_input_say_the_same(capsys, tmp_path, monkeypatch):
    file = tmp_path / "run.sh"
    file.write_text(f"#!/bin/bash\n{COMMAND}\n")
    answers = [
        printed(capsys, "check", str(file), "--on", ON),
        printed(capsys, "check", COMMAND, "--on", ON),
        printed(capsys, "check", "--on", ON, *COMMAND.split()),
    ]
    assert len({(status, out.splitlines()[0]) for status, out, _ in answers}) == 1
    done = subprocess.run(
        [sys.executable, "-m", "tonnage", "check", "-", "--on", ON],
        input=file.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, answers[0][1].splitlines()[0])


@pytest.mark.parametrize(("on", "notes"), [("8xh100", 1), ("4xh100", 0), ("h100", 0)])
def test_another_number_of_accelerators_than_the_file_says_is_noted(on, notes):
    command = "accelerate launch --num_processes 4 train.py --model_name_or_path gpt2"
    found = understood(command_source(command.split()), Asker(on=on))
    said = [note for note in found.notes if "--on" in note]
    assert len(said) == notes
    assert all("4 accelerators, --on 8xh100 has 8" in note for note in said)


def test_an_edited_file_is_printed_with_a_newline_at_its_end(capsys, tmp_path):
    file = tmp_path / "ds.json"
    file.write_text('{"zero_optimization": {"stage": 2}}')
    out = printed(capsys, "export", "deepspeed", "train", "gpt2", "--on", "h100", "--edit", str(file))[1]
    assert '"stage"' in out and out.endswith("}\n")


def test_a_key_that_is_not_understood_makes_the_verdict_unsure(capsys):
    status, out, _ = printed(capsys, "check", f"{COMMAND} --made-up-key 3", "--on", ON)
    assert status == 4
    assert out.startswith("not sure: made-up-key")


def test_who_is_lenient_gets_the_verdict_of_the_rest(capsys):
    status, out, _ = printed(capsys, "check", f"{COMMAND} --made-up-key 3", "--on", ON, "--lenient")
    assert status == 0
    assert out.startswith("fits")


def test_nothing_is_chosen_for_a_job_that_is_checked():
    answer = tonnage.check("vllm serve llama-3.1-70b", on="h100")
    assert answer.fits is False
    assert answer.chosen is None


def test_what_stands_beside_the_file_is_stronger():
    answer = tonnage.check(COMMAND, model="qwen3-8b", on="2xh100")
    assert answer.question["model"].value == "qwen3-8b"
    assert answer.question["model"].origin == "given"


def test_serve_takes_a_command_and_options_beside_it(capsys):
    status, out, _ = printed(capsys, "serve", COMMAND, "--on", ON, "--users", "16")
    assert status == 0
    assert "16 users" in out


def test_config_of_another_verb_names_that_verb(capsys, tmp_path):
    file = tmp_path / "run.sh"
    file.write_text(COMMAND)
    status, _, err = printed(capsys, "train", "--config", str(file), "--on", ON)
    assert status == 64
    assert "tonnage serve" in err


def test_a_wrong_value_is_an_error_that_names_the_key(capsys):
    status, _, err = printed(capsys, "check", "vllm serve gpt2 --max-model-len banana", "--on", "h100")
    assert status == 64
    assert "max-model-len" in err


def test_an_error_names_the_keys_that_were_not_understood_too(capsys):
    status, _, err = printed(
        capsys, "check", "vllm serve gpt2 --made-up-key 1 --gpu-memory-utilization 7", "--on", "h100"
    )
    assert status == 64
    assert "Not understood: made-up-key." in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["check", "vllm serve gpt2"], "names no accelerators"),
        (["check", "no-such-file.yaml"], "no-such-file.yaml"),
        (["check", " "], "empty"),
        (["check", "make all", "--on", "h100"], "of no tool"),
        (["check", COMMAND, "--tool", "vlm"], "vllm"),
        (["export", "vlm", "serve", "gpt2", "--on", "h100"], "vllm"),
        (["export", "vllm", "train", "gpt2", "--on", "h100"], "format of serve"),
        (["export", "vllm", "fly", "gpt2"], "train or serve"),
        (["export", "vllm", "serve", "gpt2", "--on", "h100", "--engine", "sglang"], "starts vllm"),
    ],
)
def test_bad_input_says_what_is_wrong_and_ends_with_64(capsys, words, says):
    status, out, err = printed(capsys, *words)
    assert (status, out) == (64, "")
    assert says in err


@pytest.mark.parametrize("name", ["run.sh", "config.yaml", "config.json", "config.toml"])
def test_an_empty_file_is_called_empty(capsys, tmp_path, name):
    (tmp_path / name).write_text("\n")
    status, _, err = printed(capsys, "check", str(tmp_path / name), "--on", "h100")
    assert status == 64
    assert f"{name} is empty." in err


@pytest.mark.parametrize("shape", ["github", "markdown", "sarif"])
def test_other_programs_get_the_verdict_and_the_keys_that_were_not_understood(capsys, shape):
    status, out, _ = printed(capsys, "check", f"{COMMAND} --made-up-key 3", "--on", ON, "--format", shape)
    assert status == 4
    assert "not sure" in out
    assert "made-up-key" in out


def test_sarif_is_a_log_with_a_rule_for_each_result(capsys):
    _, out, _ = printed(capsys, "check", f"{COMMAND} --made-up-key 3", "--on", ON, "--format", "sarif")
    (run,) = json.loads(out)["runs"]
    assert {result["ruleId"] for result in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_several_files_get_a_line_each_and_the_status_of_the_worst(capsys, tmp_path):
    for name, text in (
        ("good.sh", "vllm serve gpt2"),
        ("new.sh", "vllm serve gpt2 --made-up-key 1"),
        ("bad.sh", "make"),
    ):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in ("good.sh", "new.sh", "bad.sh")]
    status, out, _ = printed(capsys, "check", *files[:2], "--on", "h100")
    assert (status, [line.split(": ")[1] for line in out.splitlines()]) == (4, ["fits", "not sure"])
    status, out, _ = printed(capsys, "check", *files, "--on", "h100", "--json")
    document = json.loads(out)
    assert (status, document["status"]) == (64, 64)
    assert [file["status"] for file in document["files"]] == [0, 4, 64]
    status, out, _ = printed(capsys, "check", *files, "--on", "h100", "--format", "sarif")
    assert [result["level"] for result in json.loads(out)["runs"][0]["results"]] == [
        "note",
        "warning",
        "warning",
        "error",
    ]


def test_what_is_exported_is_read_again_as_the_same_question():
    question = {"model": "qwen3-32b", "on": ON, "concurrency": 32, "input_tokens": 2048, "context": 8192}
    text = exported({**question, "verb": "serve", "format": "vllm"}).document.text
    found = understood(text_source(text, "run.sh"))
    asked = tonnage.serve("qwen3-32b", on=ON, concurrency=32, input_tokens=2048, context=8192)
    answer = tonnage.check(text)
    assert found.document.is_sure
    assert (answer.needed_bytes, answer.serving.tpot_seconds.value) == (
        asked.needed_bytes,
        asked.serving.tpot_seconds.value,
    )


def test_the_comment_of_a_file_does_not_speak_against_its_keys():
    text = "# tonnage: serve gpt2 --on h100 --context 512 --users 3\nvllm serve gpt2 --max-model-len 1024\n"
    assert int(understood(text_source(text)).question["context"]) == 1024


def test_a_comment_of_another_verb_is_refused():
    with pytest.raises(InvalidInput, match="asks train"):
        understood(text_source("# tonnage: train gpt2 --on h100\nvllm serve gpt2\n"))


def test_the_server_reads_no_files_for_what_is_pasted():
    with pytest.raises(InvalidInput):
        checked({"text": "vllm serve ./secret --on h100", "on": "h100"}, Reach(files=None, hubs=False))


@pytest.mark.parametrize(
    "question",
    [{}, {"text": 3}, {"text": "vllm serve gpt2", "lenient": "yes"}, {"text": "vllm serve gpt2", "onn": "h100"}],
)
def test_a_check_over_json_refuses_fields_that_are_wrong(question):
    with pytest.raises(TonnageError):
        checked(question)


@given(st.lists(st.text(max_size=12), max_size=6))
def test_any_command_is_understood_or_refused(words):
    source = command_source(["vllm", "serve", *words])
    with suppress(TonnageError):
        understood(source, Asker(model="gpt2", on="h100"))
