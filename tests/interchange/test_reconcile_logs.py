"""An estimate beside what a run says: the same prediction as the verb gives, and a row that `validate` reads."""

import json
from pathlib import Path

import pytest

import tonnage
from tonnage.cli import main
from tonnage.user_files import yaml_text

LOGS = Path(__file__).parent / "logs"
TORCHTITAN, VLLM, SMI = LOGS / "torchtitan.log", LOGS / "vllm.log", LOGS / "nvidia_smi.csv"
TRAIN = ("train", "llama-3.1-8b", "--on", "8xh100", "--seq", "8k", "--recompute", "selective-op")
SERVE = ("serve", "llama-3.1-8b", "--on", "h100", "--context", "8k")


def asked(capsys, *words):
    status = main(["reconcile", *map(str, words)])
    out = capsys.readouterr()
    return status, out.out, out.err


def log(tmp_path, text, name="run.log"):
    file = tmp_path / name
    file.write_text(text)
    return file


def test_figures_of_a_log_stand_beside_the_estimate_of_the_run(capsys):
    status, out, _ = asked(capsys, TORCHTITAN, *TRAIN, "--json")
    found = {one["quantity"]: one for one in json.loads(out)["figures"]}
    answer = tonnage.train("llama-3.1-8b", on="8xh100", sequence_length=8192, recompute="selective-op")
    tokens = 8 * 8192 / answer.step_time.value / 8
    assert status == 0
    assert found["tokens_per_second"]["predicted"] == pytest.approx(tokens)
    assert found["tokens_per_second"]["relative_error"] == pytest.approx(tokens / 5776 - 1)
    assert found["reserved_memory"]["inside"] is True


def test_several_logs_of_one_run_are_compared_together(capsys):
    files = (TORCHTITAN, SMI)
    _, out, _ = asked(capsys, *files, *TRAIN, "--json")
    document = json.loads(out)
    assert document["tools"] == ["torchtitan", "nvidia-smi"]
    assert {one["quantity"] for one in document["figures"]} >= {"process_memory", "reserved_memory"}


def test_memory_of_a_server_is_its_process_and_its_start_up_log_is_compared(capsys):
    _, out, _ = asked(capsys, VLLM, SMI, *SERVE, "--json")
    found = {one["quantity"]: one for one in json.loads(out)["figures"]}
    assert found["weights"]["predicted"] == pytest.approx(14.96, rel=0.01)
    assert found["process_memory"]["predicted"] is not None


def test_the_row_of_a_run_is_read_by_validate(capsys, tmp_path):
    row = tmp_path / "row.yaml"
    asked(capsys, TORCHTITAN, *TRAIN, "--row", row)
    (kept,) = yaml_text.parse(row.read_text(), "row.yaml")
    assert kept["question"] == {
        "model": "llama-3.1-8b",
        "on": "8xh100",
        "sequence_length": 8192,
        "recompute": "selective-op",
    }
    assert main(["validate", str(row)]) == 0


def test_a_config_says_what_was_run(capsys, tmp_path):
    config = log(tmp_path, "vllm serve llama-3.1-8b --max-model-len 8192", "serve.sh")
    _, out, _ = asked(capsys, VLLM, "--config", config, "serve", "--on", "h100", "--json")
    assert json.loads(out)["question"]["context"] == 8192


def test_the_text_begins_with_what_is_furthest_off(capsys):
    _, out, _ = asked(capsys, TORCHTITAN, *TRAIN)
    assert out.startswith("3 figures compared; furthest off: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nothing.log", *TRAIN), "nothing.log"),
        (("{log}",), "say what was run"),
        (("{log}", *SERVE), "ask the other verb"),
        (("{empty}", *TRAIN), "no figure is found"),
        (("{log}", "train", "llama-3.1-8b"), "--on"),
        (TRAIN, "LOG is needed"),
    ],
)
def test_bad_input_says_what_is_missing(capsys, tmp_path, words, says):
    files = {"{log}": str(TORCHTITAN), "{empty}": str(log(tmp_path, "nothing", "empty.log"))}
    status, out, err = asked(capsys, *(files.get(word, word) for word in words))
    assert (status, out) == (64, "")
    assert says in err
