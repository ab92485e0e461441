"""The first line of the questions that people asked when they tried the program: what a reader of no more acts on.

`first_lines.txt` has each command with its status and first line; `python tests/render/test_first_lines.py` records
them anew.
"""

import contextlib
import io
import itertools
import os
import shlex
from pathlib import Path

import pytest

import tonnage

RECORD = Path(__file__).with_name("first_lines.txt")
COLUMNS = "120"


def recorded() -> dict[str, str]:
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return dict(zip((line[2:] for line in lines[::2]), lines[1::2], strict=True))


def first_line(command: str) -> str:
    """The status and the first line that a command prints, with what was wrapped of it; of an error that of stderr."""
    from tonnage.cli import main

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(shlex.split(command)[1:])
    first, *rest = (out.getvalue() or errors.getvalue()).splitlines()
    wrapped = itertools.takewhile(lambda line: line.startswith("  ") and line.strip(), rest)
    return f"{status}: {' '.join([first, *(line.strip() for line in wrapped)])}"


@pytest.mark.parametrize("command", recorded())
def test_the_first_line_is_the_one_that_was_read_and_found_right(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", COLUMNS)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert first_line(command) == recorded()[command]


def test_a_machine_of_many_times_the_size_is_not_the_first_thing_to_try():
    """QLoRA of 70B fits two 24 GB cards with its states on the host; 32 of them are no answer to who has two."""
    assert "4x8xRTX-4090" not in recorded()["tonnage train llama-3.1-70b --on 2x4090 --method qlora"]


def test_drafts_whose_acceptance_is_said_are_not_told_to_say_it():
    asked = "tonnage serve llama-3.1-70b --on 8xH100 --draft-model llama-3.2-1b --acceptance 0.7 --users 8"
    assert "--acceptance" not in recorded()[asked]
    answer = tonnage.serve("llama-3.1-70b", on="8xh100", draft_model="llama-3.2-1b", acceptance=0.7, concurrency=8)
    assert (answer.question["acceptance"].value, answer.question["draft_model"].value) == (0.7, "llama-3.2-1b")


def test_a_context_beyond_the_models_own_is_refused_where_the_engine_refuses_it():
    asked = {"on": "4xh100", "context": 2**18}
    refused = tonnage.serve("llama-3.1-8b", **asked)
    taken = tonnage.serve("llama-3.1-8b", **asked, engine="llama.cpp")
    assert (refused.status, taken.status) == (3, 0)
    assert refused.to_dict()["verdict"]["made_for"] == 131072
    rows = tonnage.serve_many([{"model": "llama-3.1-8b", **asked}])
    assert rows[0]["status"] == 3


def test_files_of_mlx_have_no_command_that_starts_another_engine():
    answer = tonnage.serve("mlx-community/Qwen3-8B-4bit", on="m3-max-64gb", engine="llama.cpp")
    assert "launch" not in answer.to_dict()["serving"] and "llama-server" not in answer.text()
    assert "llama.cpp loads no MLX files; mlx does" in " ".join(answer.text().split())
    answer = tonnage.serve("mlx-community/Qwen3-8B-4bit", on="m3-max-64gb")
    assert answer.to_dict()["serving"]["launch"].startswith("mlx_lm.server --model mlx-community/Qwen3-8B-4bit")
    assert "launch" in tonnage.serve("qwen3-8b", on="m3-max-64gb").to_dict()["serving"]


def test_all_weights_of_a_quantised_copy_are_not_trained_and_adapters_are():
    with pytest.raises(tonnage.InvalidPlan, match="train adapters alone"):
        tonnage.train("Qwen/Qwen3-8B-AWQ", on="8xh100")
    adapters = tonnage.train("Qwen/Qwen3-8B-AWQ", on="h100", method="qlora")
    assert any("is stored as awq-4bit-128g" in note for note in adapters.warnings)
    assert tonnage.train("Qwen/Qwen3-8B-FP8", on="8xh100").fits


def test_what_is_launched_is_what_was_chosen_and_not_the_defaults_that_did_not_fit():
    from tonnage.kernel.reach import Reach
    from tonnage.web.launch import launched

    asked = {"model": "qwen3-32b", "on": "8xh100"}
    chosen = tonnage.train("qwen3-32b", on="8xh100", advice=False).chosen
    said = {**asked, **chosen.change}
    with_chosen, alone = (launched({"verb": "train", **one}, Reach()).document.launch for one in (said, asked))
    assert alone == with_chosen
    assert alone != launched({"verb": "train", **asked, "as_is": True}, Reach()).document.launch


if __name__ == "__main__":
    os.environ |= {"COLUMNS": COLUMNS, "HF_HUB_OFFLINE": "1"}
    RECORD.write_text("".join(f"> {one}\n{first_line(one)}\n" for one in recorded()), encoding="utf-8")
