"""A model's file that is not there is answered as a file, with the files of its folder that are called alike."""

import json

import pytest

from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import Reach, limited
from tonnage.models import kind, read

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.mark.parametrize(
    "text", ["nope.json", "weights.gguf", "model.safetensors", "a/b/c", "models/nope.json", "./nope", "mine.toml"]
)
def test_a_file_that_is_not_there_is_no_name_of_a_model(folder, text):
    with pytest.raises(InvalidInput, match=f"^there is no file or folder '{text}'[.]"):
        read(text)


@pytest.mark.parametrize(("text", "near"), [("confg.json", "config.json"), ("./confg.json", "./config.json")])
def test_a_file_of_nearly_that_name_is_suggested(folder, text, near):
    with pytest.raises(InvalidInput, match=f"Did you mean '{near}'[?]"):
        read(text)


def test_a_repository_that_ends_like_a_file_is_shown_how_it_is_written(folder):
    with pytest.raises(InvalidInput, match="is written hf:owner/name"):
        read("owner/name.gguf")


def test_other_names_mean_what_they_meant(folder):
    assert kind("owner/name") == "hub" and kind("hf:owner/name.gguf") == "hub"
    assert kind("huggingface.co/owner/name") == "hub" and kind("llama-3.1-8b") == "catalogue"


def test_where_no_file_is_read_it_is_not_said_whether_it_exists(folder):
    with limited(Reach(files=None, hubs=False)), pytest.raises(InvalidInput, match="files of the machine"):
        read("config.json")


@pytest.mark.parametrize("text", ["model.safetensors.index.json", "."])
def test_a_broken_neighbour_is_named_with_its_folder(folder, text):
    (folder / "model.safetensors.index.json").write_text("{")
    with pytest.raises(InvalidInput) as error:
        read(text)
    assert str(error.value).startswith(f"{folder}: model.safetensors.index.json is not JSON")


def test_a_missing_file_and_another_mistake_are_said_together(folder, capsys):
    assert main(["serve", "confg.json", "--on", "h100", "--engine", "vlm"]) == 64
    printed = capsys.readouterr().err
    assert "error: 2 inputs" in printed and "no such file or folder" in printed
    assert "tonnage serve config.json --on h100 --engine vllm" in printed


def test_a_path_that_cannot_be_read_and_another_mistake_are_said_together(folder, capsys):
    assert main(["serve", "/dev/null", "--on", "h100", "--engine", "vlm"]) == 64
    printed = capsys.readouterr().err
    assert "error: 2 inputs" in printed and "device" in printed and "\ntry" not in printed
