"""Models on this machine: folders, single files, files in parts, and what is wrong with some of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.files import (
    GGUF_LLAMA,
    LLAMA,
    LLAMA_PARAMETERS,
    folder,
    framed,
    gguf_llama_tensors,
    llama,
    safetensors,
    shards,
    write_gguf,
)
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName
from tonnage.models import read


def test_a_folder_with_a_config_alone_is_a_model_without_tensors(tmp_path: Path):
    found = read(str(folder(tmp_path / "m")))
    assert found.tensors is None
    assert found.num_parameters() == LLAMA_PARAMETERS
    assert found.source == str(tmp_path / "m")


def test_a_relative_path_and_one_from_home_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert (
        read("m").num_parameters() == read("./m").num_parameters() == read("~/m").num_parameters() == LLAMA_PARAMETERS
    )
    monkeypatch.chdir(tmp_path / "m")
    assert read(".").num_parameters() == LLAMA_PARAMETERS


def test_a_bare_config_says_what_it_says_whatever_lies_beside_it(tmp_path: Path):
    folder(tmp_path / "m", LLAMA, llama(layers=1))
    found = read(str(tmp_path / "m" / "config.json"))
    assert found.tensors is None
    assert (found.name, found.num_layers) == ("m", 3)
    (tmp_path / "other.json").write_text(json.dumps(LLAMA))
    assert read(str(tmp_path / "other.json")).name == "other"


def test_shards_are_joined_by_their_index(tmp_path: Path):
    folder(tmp_path / "m")
    for name, data in shards(llama(), 3).items():
        (tmp_path / "m" / name).write_bytes(data)
    (tmp_path / "m" / "adapter_model.safetensors").write_bytes(safetensors({"x": ("F32", (1000,))}))
    for path in ("", "model.safetensors.index.json", "model-00002-of-00003.safetensors"):
        found = read(str(tmp_path / "m" / path))
        assert found.tensors.num_parameters == LLAMA_PARAMETERS
        assert found.tensors.files == 3
        assert found.notes == ()


def test_shards_without_an_index_are_joined_too(tmp_path: Path):
    folder(tmp_path / "m")
    for name, data in shards(llama(), 2).items():
        if not name.endswith(".json"):
            (tmp_path / "m" / name).write_bytes(data)
    assert read(str(tmp_path / "m")).tensors.num_parameters == LLAMA_PARAMETERS


@pytest.mark.parametrize("with_index", [True, False])
def test_a_folder_that_lacks_a_shard_falls_back_on_its_config(tmp_path: Path, with_index: bool):
    folder(tmp_path / "m")
    for name, data in shards(llama(), 2).items():
        if "-00002-of" not in name and (with_index or not name.endswith(".json")):
            (tmp_path / "m" / name).write_bytes(data)
    found = read(str(tmp_path / "m"))
    assert found.tensors is None
    assert "lacks 1 of 2 weight files (model-00002-of-00002.safetensors)" in found.notes[0]
    (tmp_path / "m" / "config.json").unlink()
    with pytest.raises(MissingDatum, match="lacks 1 of 2"):
        read(str(tmp_path / "m"))


def test_an_index_that_does_not_tell_the_truth_is_refused(tmp_path: Path):
    folder(tmp_path / "m")
    files = shards(llama(), 2)
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"]["model.ghost.weight"] = "model-00001-of-00002.safetensors"
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    for name, data in files.items():
        (tmp_path / "m" / name).write_bytes(data)
    with pytest.raises(InvalidInput, match=r"'model.ghost.weight'"):
        read(str(tmp_path / "m"))


def test_a_tensor_in_two_files_is_refused(tmp_path: Path):
    folder(tmp_path / "m")
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / "m" / name).write_bytes(safetensors({"x": ("F32", (2,))}))
    with pytest.raises(InvalidInput, match="1 tensors are stored in two files"):
        read(str(tmp_path / "m"))


def test_a_single_file_is_read_with_the_config_beside_it(tmp_path: Path):
    folder(tmp_path / "m", LLAMA, llama())
    assert read(str(tmp_path / "m" / "model.safetensors")).family == "llama"
    (tmp_path / "m" / "config.json").unlink()
    found = read(str(tmp_path / "m" / "model.safetensors"))
    assert found.family == "tensors"
    assert found.num_parameters() == LLAMA_PARAMETERS


def test_a_second_copy_of_the_weights_is_left_aside(tmp_path: Path):
    folder(tmp_path / "m", LLAMA, llama())
    (tmp_path / "m" / "consolidated.safetensors").write_bytes(safetensors(llama()))
    assert read(str(tmp_path / "m")).tensors.num_parameters == LLAMA_PARAMETERS


def test_weights_in_pickles_are_not_opened_and_a_note_says_so(tmp_path: Path):
    folder(tmp_path / "m")
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    assert "pickle" in read(str(tmp_path / "m")).notes[0]


def test_the_quantisation_that_modelopt_writes_apart_is_read(tmp_path: Path):
    folder(tmp_path / "m")
    (tmp_path / "m" / "hf_quant_config.json").write_text(
        '{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}'
    )
    assert read(str(tmp_path / "m")).quantization == {
        "quant_method": "modelopt",
        "quant_algo": "FP8",
        "kv_cache_quant_algo": "FP8",
    }


def test_parts_of_a_gguf_model_are_found_and_joined(tmp_path: Path):
    shapes = gguf_llama_tensors()
    names = list(shapes)
    for number in (1, 2, 3):
        part = {name: shapes[name] for name in names[number - 1 :: 3]}
        write_gguf(tmp_path / f"x-{number:05}-of-00003.gguf", GGUF_LLAMA if number == 1 else {}, part)
    for path in ("", "x-00001-of-00003.gguf", "x-00003-of-00003.gguf"):
        found = read(str(tmp_path / path))
        assert found.num_parameters() == found.tensors.num_parameters
        assert found.tensors.files == 3
        assert found.notes == ()
    (tmp_path / "x-00002-of-00003.gguf").unlink()
    with pytest.raises(MissingDatum, match="x-00002-of-00003"):
        read(str(tmp_path / "x-00001-of-00003.gguf"))


def test_one_gguf_file_of_a_folder_is_taken_and_of_several_one_must_be_named(tmp_path: Path):
    write_gguf(tmp_path / "x-Q4_K_M.gguf", GGUF_LLAMA, gguf_llama_tensors())
    write_gguf(tmp_path / "mmproj-x.gguf", {}, {"v.patch_embd.weight": ("F32", (4, 4))}, "clip")
    assert read(str(tmp_path)).tensors.format == "gguf"
    write_gguf(tmp_path / "x-Q8_0.gguf", GGUF_LLAMA, gguf_llama_tensors("Q8_0"))
    with pytest.raises(InvalidInput, match=r"2 GGUF models.*x-Q4_K_M.gguf, x-Q8_0.gguf"):
        read(str(tmp_path))
    assert "Q8_0" in read(str(tmp_path / "x-Q8_0.gguf")).tensors.bytes_by_dtype


def test_a_model_file_of_the_catalogues_form_is_read(tmp_path: Path):
    config = "\n".join(f"{key} = {json.dumps(value)}" for key, value in LLAMA.items())
    text = f'name = "Mine"\nhub = "me/mine"\npublished = []\n[sources]\n[config]\n{config}\n'
    (tmp_path / "mine.toml").write_text(text)
    found = read(str(tmp_path / "mine.toml"))
    assert (found.name, found.num_parameters()) == ("Mine", LLAMA_PARAMETERS)
    assert found.source.startswith("model file")
    (tmp_path / "mine.toml").write_text(text + "surprise = 1\n[extra]\n")
    with pytest.raises(InvalidInput, match="extra"):
        read(str(tmp_path / "mine.toml"))


@pytest.mark.parametrize("text", ["./nothing", "/nothing/there", "~/nothing-there", "../nothing/config.json"])
def test_a_path_that_is_not_there_says_so(text: str):
    with pytest.raises(InvalidInput, match="there is no file or folder"):
        read(text)


def test_a_folder_without_a_model_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=r"no config.json, no safetensors and no GGUF"):
        read(str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"empty has no config.json, no safetensors and no GGUF"):
        read("empty")


def test_an_adapter_and_a_pipeline_say_what_they_are(tmp_path: Path):
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.safetensors").write_bytes(safetensors({"x": ("F32", (2,))}))
    with pytest.raises(InvalidInput, match="it is an adapter"):
        read(str(tmp_path))
    other = tmp_path / "pipe"
    other.mkdir()
    (other / "model_index.json").write_text("{}")
    with pytest.raises(InvalidInput, match="diffusion pipeline"):
        read(str(other))


def test_what_is_no_regular_file_is_not_read(tmp_path: Path):
    os.mkfifo(tmp_path / "config.json")
    for path in (tmp_path / "config.json", Path("/dev/zero")):
        with pytest.raises(InvalidInput, match="not a regular file"):
            read(str(path))
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InvalidInput, match="a model's file ends with"):
        read(str(tmp_path / "notes.txt"))


def test_large_files_of_holes_are_refused_without_being_read(tmp_path: Path):
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InvalidInput, match="more than 10,000,000"):
        read(str(tmp_path))
    (tmp_path / "config.json").unlink()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(framed(b"{" + b" " * 98))
        file.truncate(2**40)
    with pytest.raises(InvalidInput, match="not JSON"):
        read(str(tmp_path))


def test_an_unreadable_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder(tmp_path / "m", LLAMA, llama())

    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InvalidInput, match="Permission denied"):
        read(str(tmp_path / "m"))


def test_names_that_nobody_has_are_unknown():
    with pytest.raises(UnknownName, match="owner/name"):
        read("no such model")
    for text in ("", "  ", "x\0y", "a" * 5000):
        with pytest.raises((InvalidInput, UnknownName)):
            read(text)


def test_a_revision_belongs_to_a_hub(tmp_path: Path):
    with pytest.raises(InvalidInput, match="revision belongs to"):
        read(str(folder(tmp_path / "m")), revision="main")


def test_dimensions_alone_are_a_model():
    found = read(None, overrides=LLAMA)
    assert found.num_parameters() == LLAMA_PARAMETERS
    sizes = {
        key: LLAMA[key]
        for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
    }
    assert read(None, overrides=sizes).family == "generic"
    assert read(None, overrides=sizes).source == "the dimensions given"
    for nothing in ({}, None, [1]):
        with pytest.raises(InvalidInput):
            read(None, overrides=nothing)


def test_an_entry_of_the_catalogue_is_read_without_any_network_or_its_libraries(tmp_path: Path):
    config = "\n".join(f"{key} = {json.dumps(value)}" for key, value in LLAMA.items())
    models = tmp_path / "models"
    models.mkdir()
    text = f'name = "Mine"\nhub = "me/mine"\nnote = "Remember."\npublished = []\n[sources]\n[config]\n{config}\n'
    (models / "my-model.toml").write_text(text)
    code = (
        "import sys, tonnage.models as m\n"
        "found = m.read('my-model')\n"
        f"assert found.num_parameters() == {LLAMA_PARAMETERS}\n"
        "assert found.notes == ('Remember.',) and found.source == 'catalogue entry my-model'\n"
        "assert m.kind('my-model') == 'catalogue'\n"
        "loaded = {'huggingface_hub', 'urllib.request', 'http', 'socket', 'asyncio', 'numpy', 'json'} & "
        "set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "parsers = {'tonnage.models.' + name for name in ('formats.gguf', 'formats.safetensors', "
        "'hubs.hugging_face', 'hubs.web', 'location')} & set(sys.modules)\n"
        "assert not parsers, parsers\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "TONNAGE_CONFIG": str(tmp_path)})
