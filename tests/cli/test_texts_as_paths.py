"""A text that is looked for among files may be no name of a file at all: too long, with a null byte, of nobody's
home.
"""

import pytest

from tonnage.catalogue import model_names
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import Reach, allowed_file, called, is_there, limited
from tonnage.models import read

LONG = "a" * 300
COMMANDS = {
    "compare": ("compare", LONG, "--on", "h100"),
    "train": ("train", LONG, "--on", "h100"),
    "a folder's name": ("train", f"{LONG}/", "--on", "h100"),
    "a path": ("train", f"/{LONG}", "--on", "h100"),
    "a machine": ("train", "gpt2", "--on", f"{LONG}.toml"),
    "rows": ("validate", LONG),
    "a plot": ("train", "gpt2", "--on", "h100", "--plot", f"{LONG}/x.html"),
    "a report": ("train", "gpt2", "--on", "h100", "--html", f"{LONG}/x.html"),
    "prices": ("prices", "refresh", "--from", LONG),
    "a server's folder": ("web", "--models", LONG),
    "an assistant's folder": ("mcp", "--models", LONG),
    "a trace of requests": ("serve", "gpt2", "--on", "h100", "--trace", f"{LONG}.jsonl"),
    "an inventory": ("plan", "--inventory", f"{LONG}.yaml"),
    "a program": ("trace", f"{LONG}.py:main"),
    "rows that are measured": ("measure", "gpt2", "--out", LONG),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_text_too_long_for_a_files_name_is_refused_with_its_beginning(words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(list(words)) == 64
    said = capsys.readouterr().err
    assert LONG[:40] in said and "Traceback" not in said


def test_a_list_of_models_longer_than_a_files_name_is_compared(capsys):
    names = ",".join(name for name in model_names() if name.startswith("llama"))
    assert len(names) > 255
    main(["compare", names, "--on", "8xh200", "--csv"])
    assert len(capsys.readouterr().out.splitlines()) == names.count(",") + 2  # and the names of the columns


def test_a_name_too_long_for_a_file_is_no_model_and_no_path():
    with pytest.raises(ValueError, match="no model is called"):
        read(LONG)


def test_a_directory_of_a_sweep_that_cannot_be_is_named(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    spec = tmp_path / "s.yaml"
    spec.write_text("models: [gpt2]\non: [h100]\n", encoding="utf-8")
    assert main(["sweep", str(spec), "--out", str(tmp_path / LONG)]) == 64
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize("files", ["everywhere", "a folder"])
def test_no_path_has_a_null_byte(files, tmp_path):
    with limited(Reach(files=tmp_path if files == "a folder" else files)):
        assert not is_there("a\0b")
        with pytest.raises(InvalidInput, match=r"no null byte\. Got 'a\\x00b'"):
            allowed_file("a\0b")


def test_a_link_that_leads_to_itself_is_an_error_and_not_there(tmp_path):
    (tmp_path / "a").symlink_to("a")
    with limited(Reach(files=tmp_path)):
        assert not is_there("a")
        with pytest.raises(InvalidInput, match=r"'\./a'"):
            read("./a")


def test_what_is_there_is_looked_for_where_files_may_be_read_alone(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "a").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert is_there("a") and called(tmp_path / "a") == str(tmp_path / "a")
    with limited(Reach(files=tmp_path / "mine")):
        assert not is_there("a") and not is_there("../a")
        assert called(tmp_path / "mine" / "b" / "c.json") == "b/c.json"
    with limited(Reach(files=None)):
        assert not is_there("a")
