"""What looks like a model and is none says what it is and what to give instead; what is cut off says so."""

import json
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
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.models import read

LORA = {
    f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_{side}.weight": ("F32", shape)
    for layer in range(3)
    for side, shape in (("A", (8, 32)), ("B", (32, 8)))
}


def adapter(path: Path, base: object = "meta-llama/Llama-3.1-8B") -> Path:
    path.mkdir()
    (path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "base_model_name_or_path": base}))
    (path / "adapter_model.safetensors").write_bytes(safetensors(LORA))
    return path


@pytest.mark.parametrize("file", ["", "adapter_config.json", "adapter_model.safetensors"])
def test_an_adapter_names_the_model_to_give_instead(tmp_path: Path, file: str):
    path = adapter(tmp_path / "lora")
    with pytest.raises(InvalidInput, match=r"is an adapter of 'meta-llama/Llama-3.1-8B': give that model instead"):
        read(str(path / file))


@pytest.mark.parametrize("base", [None, "", 3, ["x"]])
def test_an_adapter_that_names_no_model_is_an_adapter_all_the_same(tmp_path: Path, base: object):
    path = adapter(tmp_path / "lora", base)
    with pytest.raises(InvalidInput, match="is an adapter: give the model that it was trained on"):
        read(str(path))
    (path / "adapter_config.json").write_text("{")
    with pytest.raises(InvalidInput, match="is an adapter: give the model that it was trained on"):
        read(str(path))


def test_an_adapter_of_pickles_and_one_by_its_bare_name_are_adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = adapter(tmp_path / "lora")
    (path / "adapter_model.safetensors").rename(path / "adapter_model.bin")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="give that model instead"):
        read("lora")


def test_tensors_of_a_lora_are_no_model_whatever_their_file_is_called(tmp_path: Path):
    (tmp_path / "style.safetensors").write_bytes(safetensors(LORA))
    with pytest.raises(InvalidInput, match="is an adapter: 6 of its 6 tensors are a LoRA's"):
        read(str(tmp_path / "style.safetensors"))


def test_a_model_with_its_adapter_beside_it_is_the_model(tmp_path: Path):
    path = folder(adapter(tmp_path / "both"), LLAMA, llama())
    assert read(str(path)).num_parameters() == LLAMA_PARAMETERS == read(str(path)).tensors.num_parameters


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ((), "it is empty"),
        (("tokenizer.json", "tokenizer_config.json"), r"holds a tokenizer \(tokenizer.json\) and no model"),
        (("README.md",), "nothing says what the model is"),
        (("pytorch_model.bin",), "pickle files"),
        (("mmproj-x.gguf",), "'mmproj-x.gguf' is a projector"),
        (("model_index.json", "sd_xl_base.safetensors"), "diffusion pipeline"),
    ],
)
def test_a_folder_without_a_model_says_what_it_holds(tmp_path: Path, files: tuple[str, ...], says: str):
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(MissingDatum if "pickle" in says else InvalidInput, match=says):
        read(str(tmp_path))
    assert main(["train", str(tmp_path), "--on", "h100"]) == (4 if "pickle" in says else 64)


def test_a_part_of_a_pipeline_says_that_it_is_one(tmp_path: Path):
    path = folder(tmp_path / "unet", {"_class_name": "UNet2DConditionModel", "sample_size": 64})
    with pytest.raises(InvalidInput, match="'UNet2DConditionModel' of a diffusion pipeline"):
        read(str(path))


@pytest.mark.parametrize("config", ["{}", "[]", "null", ""])
def test_a_config_that_says_nothing_is_refused(tmp_path: Path, config: str):
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(InvalidInput, match=r"config\.json"):
        read(str(tmp_path))


def test_a_sentence_transformers_folder_is_the_encoder_in_it(tmp_path: Path):
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 100,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
    }
    path = folder(tmp_path / "mini", config)
    (path / "modules.json").write_text(
        json.dumps([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}])
    )
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 32}')
    assert read(str(path)).family == "bert"
    assert read(str(path)).num_layers == 2


@pytest.mark.parametrize("config", [None, LLAMA])
@pytest.mark.parametrize("shapes", [{}, {"x": ("F32", (0, 4))}])
def test_a_file_without_tensors_is_no_model(tmp_path: Path, config: dict | None, shapes: dict):
    path = folder(tmp_path / "m", config, shapes)
    with pytest.raises(InvalidInput, match=r"model.safetensors holds no tensors"):
        read(str(path))


def test_an_index_whose_files_are_all_missing_names_the_first_and_their_number(tmp_path: Path, capsys):
    (tmp_path / "model.safetensors.index.json").write_bytes(shards(llama(), 3)["model.safetensors.index.json"])
    with pytest.raises(MissingDatum, match=r"lacks 3 of 3 weight files \(model-00001-of-00003.safetensors\)"):
        read(str(tmp_path))
    assert main(["train", str(tmp_path), "--on", "h100"]) == 4
    assert "lacks 3 of 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("metadata", "architecture", "says"),
    [
        (
            {"general.type": "adapter", "general.base_model.0.repo_url": "https://huggingface.co/a/b"},
            "llama",
            "an adapter .* 'https://huggingface.co/a/b'",
        ),
        ({"general.type": "adapter"}, "llama", "an adapter .*the GGUF file of the model that it belongs to"),
        ({"general.type": "mmproj"}, "clip", "the projector"),
        ({}, "clip", "the projector"),
        ({"general.type": "imatrix"}, "", "an importance matrix"),
        ({}, "controlvector", "a control vector"),
        ({"general.type": "surprise"}, "llama", "of general.type 'surprise'"),
        ({"general.type": 3}, "llama", "of general.type 3"),
    ],
)
def test_a_gguf_file_of_another_kind_says_what_it_is(tmp_path: Path, metadata: dict, architecture: str, says: str):
    path = write_gguf(tmp_path / "x.gguf", metadata, {"x.weight": ("F32", (4, 4))}, architecture)
    with pytest.raises(InvalidInput, match=f"is no model: it is {says}"):
        read(str(path))


def test_a_gguf_vocabulary_is_no_model(tmp_path: Path):
    with pytest.raises(InvalidInput, match="holds no tensors"):
        read(str(write_gguf(tmp_path / "x.gguf", GGUF_LLAMA, {}, tokens=512)))


def test_a_gguf_cut_off_anywhere_in_its_header_or_data_says_so(tmp_path: Path):
    path = write_gguf(tmp_path / "x.gguf", {**GGUF_LLAMA, "general.name": "Tiny"}, gguf_llama_tensors(), tokens=64)
    whole = path.read_bytes()
    assert read(str(path)).num_parameters() > 0
    header = whole.index(b"blk.1.ffn_norm.weight") + 60
    for end in [*range(4, header, 37), header + 1000, len(whole) - 64]:
        path.write_bytes(whole[:end])
        with pytest.raises(
            TonnageError, match=r"cut off|no whole GGUF|does not begin|more than the file holds"
        ) as error:
            read(str(path))
        assert type(error.value) is InvalidInput


def test_a_safetensors_file_cut_off_anywhere_says_so(tmp_path: Path):
    whole = safetensors(llama())
    header = 8 + int.from_bytes(whole[:8], "little")
    path = folder(tmp_path / "m", LLAMA) / "model.safetensors"
    for end in (0, 5, 8, 100, header - 1, header, header + 10, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(InvalidInput, match=r"model\.safetensors"):
            read(str(path.parent))


def test_a_header_without_any_tensor_is_no_model_beside_metadata_either(tmp_path: Path):
    (tmp_path / "x.safetensors").write_bytes(framed({"__metadata__": {"format": "pt"}}))
    with pytest.raises(InvalidInput, match="holds no tensors"):
        read(str(tmp_path / "x.safetensors"))
