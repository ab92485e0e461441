"""The command line when its output cannot be printed, read or stored."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
DOES_NOT_FIT = ["train", "llama-3.1-8b", "--on", "rtx-4090"]


def _tonnage(*arguments, **more):
    return subprocess.run([sys.executable, "-m", "tonnage", *arguments], stderr=subprocess.PIPE, check=False, **more)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_character_that_the_terminal_does_not_have_is_written_as_its_code(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = _tonnage("rules", "D2", env=environment, stdout=subprocess.PIPE)
    assert done.returncode == 0 and not done.stderr
    assert rb"175\u4ebf" in done.stdout
    wrong = _tonnage("models", "通义千问-亿", env=environment, stdout=subprocess.PIPE)
    assert wrong.returncode == 64 and rb"\u4ebf" in wrong.stderr


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_leaves_early_changes_neither_the_status_nor_the_quiet(more):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = _tonnage(*DOES_NOT_FIT, *more, stdout=closed)
    assert done.returncode == 3
    assert not done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [DOES_NOT_FIT, [*DOES_NOT_FIT, "--json"], ["rules"], ["--help"], ["train", "--help"], ["--version"]],
    ids=" ".join,
)
def test_a_full_disk_is_one_line_and_a_status_of_its_own(arguments):
    with FULL.open("wb") as full:
        done = _tonnage(*arguments, stdout=full)
    assert done.returncode == 74
    assert done.stderr.decode().splitlines() == ["error: cannot write the answer: No space left on device"]


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_an_error_whose_document_cannot_be_written_says_both():
    with FULL.open("wb") as full:
        done = _tonnage("train", "no-such-model-here", "--on", "h100", "--json", stdout=full)
    assert done.returncode == 74
    assert [line[:17] for line in done.stderr.decode().splitlines()] == ["error: no model i", "error: cannot wri"]


@pytest.mark.skipif(os.name == "nt", reason="a shell's >&-")
@pytest.mark.parametrize("more", ["", "--json"])
def test_a_closed_stdout_is_one_line_and_the_status_of_a_full_disk(more):
    words = " ".join([*DOES_NOT_FIT, more])
    done = subprocess.run(f"{sys.executable} -m tonnage {words} >&-", shell=True, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 74
    assert done.stderr.decode().splitlines() == ["error: cannot write the answer: standard output is closed"]


def test_a_word_that_is_no_text_is_in_the_document_as_far_as_text_has_it():
    done = _tonnage("models", b"caf\xe9-8b", "--json", stdout=subprocess.PIPE)
    assert done.returncode == 64 and b"Traceback" not in done.stderr
    assert "'caf" in json.loads(done.stdout)["error"]["message"]
