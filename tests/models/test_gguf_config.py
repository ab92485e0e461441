"""GGUF metadata as the config of the family that the file was made from.

gguf_tiny.jsonl: for each architecture a small model of transformers 5.23, its tensors named by the gguf package's own
tensor map, its metadata written by the gguf package as llama.cpp's converter does, and its number of parameters
(with the routers' correction biases, which transformers keeps as buffers).
"""

import json
from pathlib import Path

import pytest

from models.files import GGUF_LLAMA, gguf_llama_tensors, write_gguf
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.models import read
from tonnage.ops import StateCache, TokenCache

TINY = [
    json.loads(line) for line in (Path(__file__).parent / "gguf_tiny.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", TINY, ids=lambda case: case["case"])
def test_every_architecture_has_the_parameters_of_the_model_it_was_made_from(case: dict, tmp_path: Path):
    shapes = {name: ("F32", tuple(shape)) for name, shape in case["tensors"].items()}
    path = write_gguf(tmp_path / "x.gguf", case["metadata"], shapes, case["architecture"], file_type=0)
    made = read(str(path))
    assert made.family != "tensors"
    assert made.num_parameters() == case["parameters"] == made.tensors.num_parameters
    assert made.tensors.total_bytes == 4 * case["parameters"]
    assert made.notes == ()
    assert made.dtype == "float32"
    assert made.quantization is None


def caches(made) -> list[TokenCache | StateCache]:
    return [cache for block in made.decoder.blocks for op in block.ops for cache in op.caches()]


def test_a_quantised_llama_has_exact_bytes_and_its_cache(tmp_path: Path):
    made = read(str(write_gguf(tmp_path / "x.gguf", GGUF_LLAMA, gguf_llama_tensors(), tokens=512)))
    weights = 2 * (256 * 256 * 2 + 128 * 256 * 2 + 3 * 512 * 256)
    assert made.tensors.bytes_by_dtype == {
        "Q4_K": weights // 256 * 144,
        "Q6_K": 2 * 512 * 256 // 256 * 210,
        "F32": 5 * 256 * 4,
    }
    assert made.num_parameters() == made.tensors.num_parameters == weights + 2 * 512 * 256 + 5 * 256
    assert made.quantization == {"quant_method": "gguf", "file_type": "Q4_K_M"}
    assert [(cache.elements, cache.heads) for cache in caches(made)] == [(2 * 2 * 64, 2)]
    assert made.context == 1024
    assert (made.vocab_size, made.tied) == (512, False)


def test_a_file_without_output_is_tied(tmp_path: Path):
    shapes = gguf_llama_tensors()
    del shapes["output.weight"]
    made = read(str(write_gguf(tmp_path / "x.gguf", GGUF_LLAMA, shapes)))
    assert made.tied
    assert made.num_parameters() == made.tensors.num_parameters


def test_the_file_gives_the_name_and_says_where_it_was_read(tmp_path: Path):
    path = write_gguf(tmp_path / "x.gguf", {**GGUF_LLAMA, "general.name": "Tiny Llama"}, gguf_llama_tensors())
    made = read(str(path))
    assert made.name == "Tiny Llama"
    assert "x.gguf" in made.source


def test_rope_factors_are_no_parameters(tmp_path: Path):
    shapes = gguf_llama_tensors() | {"rope_freqs.weight": ("F32", (32,))}
    made = read(str(write_gguf(tmp_path / "x.gguf", GGUF_LLAMA, shapes)))
    assert made.num_parameters() == made.tensors.num_parameters
    assert made.notes == ()


def test_an_architecture_that_nobody_knows_is_built_of_its_tensors(tmp_path: Path):
    metadata = {key.replace("llama.", "newest."): value for key, value in GGUF_LLAMA.items()}
    made = read(str(write_gguf(tmp_path / "x.gguf", metadata, gguf_llama_tensors(), "newest")))
    assert made.family == "tensors"
    assert made.num_parameters() == made.tensors.num_parameters
    assert made.num_layers == 2
    assert "newest" in made.architecture
    with pytest.raises(MissingDatum, match="keeps of each token is not known"):
        caches(made)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"llama.block_count": 0}, "llama.block_count is missing"),
        ({"llama.embedding_length": [1, 2, 3]}, ""),
        ({"llama.attention.head_count": "many"}, "llama.attention.head_count must be a whole number"),
    ],
)
def test_metadata_that_cannot_be_leave_the_exact_weights_and_a_note(change: dict, says: str, tmp_path: Path):
    made = read(str(write_gguf(tmp_path / "x.gguf", GGUF_LLAMA | change, gguf_llama_tensors())))
    assert made.family == "tensors"
    assert made.num_parameters() == made.tensors.num_parameters
    assert says in " ".join(made.notes)


def test_a_file_that_is_no_model_says_so(tmp_path: Path):
    path = write_gguf(tmp_path / "x.gguf", {"general.type": "adapter"}, gguf_llama_tensors())
    with pytest.raises(InvalidInput, match="'adapter'"):
        read(str(path))
