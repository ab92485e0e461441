"""A file that an answer is written to is checked before the work, in every verb."""

import pytest

import tonnage.estimate.answer.training
from tonnage.cli import main

NO_FOLDER = "cannot be written: '/nonexistent' is no folder."
EVERY = [
    ["train", "llama-3.1-8b", "--on", "rtx-4090"],
    ["serve", "llama-3.1-8b", "--on", "h100"],
    ["plan", "llama-3.1-8b", "--on", "h100"],
    ["plan", "--serve", "llama-3.1-8b", "--on", "h100"],
    ["max", "users", "llama-3.1-8b", "--on", "h100"],
    ["compare", "llama-3.1-8b", "--on", "h100,a100"],
]


@pytest.mark.parametrize("words", EVERY, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize(("flag", "path"), [("--html", "/nonexistent/x.html"), ("--markdown", "/nonexistent/x.md")])
def test_a_path_that_cannot_be_written_is_bad_input_before_anything_is_computed(words, flag, path, capsys, monkeypatch):
    def compute(*_: object, **__: object) -> None:
        raise AssertionError("the answer is computed before the path is checked")

    monkeypatch.setattr("tonnage.models.read", compute)
    monkeypatch.setattr(tonnage.estimate.answer.training, "train", compute)
    assert main([*words, flag, path]) == 64
    printed = capsys.readouterr()
    assert not printed.out and NO_FOLDER in printed.err and flag in printed.err


@pytest.mark.parametrize(
    "words",
    [
        ["trace", "e5", "--save", "/nonexistent/a"],
        ["trace", "e5", "--snapshot", "/nonexistent/a"],
        ["trace", "e5", "--plot", "/nonexistent/a.svg"],
        ["measure", "llama-3.1-8b", "--out", "/nonexistent/a.yaml"],
        ["train", "llama-3.1-8b", "--on", "h100", "--plot", "/nonexistent/a.svg"],
    ],
    ids=" ".join,
)
def test_other_files_of_output_are_checked_too(words, capsys):
    assert main(words) == 64
    printed = capsys.readouterr()
    assert not printed.out and NO_FOLDER in printed.err


def test_a_folder_is_no_file_of_output(tmp_path, capsys):
    (tmp_path / "a.html").mkdir()
    assert main([*EVERY[0], "--html", str(tmp_path / "a.html")]) == 64
    assert "cannot be written: Is a directory." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "said"), [("nope.py", "nope.py: "), ("nope.py:f", "nope.py: "), ("e99", "no model is called")]
)
def test_a_trace_of_nothing_is_bad_input_even_where_torch_is_not_installed(target, said, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert main(["trace", target, "--offline"]) == 64
    assert said in capsys.readouterr().err
