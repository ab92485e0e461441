"""Gemma 1, 2 and 3. Counts: keras-hub's presets (metadata.params) and the safetensors totals of the Hub."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.ops import Attention


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("google/gemma-2b", 2_506_172_416),
        ("google/gemma-7b", 8_537_680_896),
        ("google/gemma-2-9b", 9_241_705_984),
        ("google/gemma-2-27b", 27_227_128_320),
        ("google/gemma-3-1b-pt", 999_885_952),
        ("google/gemma-3-4b-pt text", 3_880_263_168),  # keras-hub: 3,880,099,328 with 262,144 tokens instead of 262,208
        ("google/gemma-3-27b-pt text", 27_009_346_304),
    ],
)
def test_gemma_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_gemma_ties_its_table_where_the_config_says_nothing():
    assert model("google/gemma-2b").tied
    assert model("google/gemma-2b", tie_word_embeddings=False).num_parameters() == 2_506_172_416 + 256_000 * 2048


def test_every_other_layer_of_gemma_2_slides_and_five_of_six_of_gemma_3():
    def windows(name: str) -> dict[int | None, int]:
        return {op.window: count for op, count in ops(model(name)) if isinstance(op, Attention)}

    assert windows("google/gemma-2-9b") == {4096: 21, None: 21}
    assert windows("google/gemma-3-27b-pt text") == {1024: 52, None: 10}


def test_fields_that_a_gemma_3_file_leaves_out_are_the_classs_and_are_remembered():
    made = model("google/gemma-3-4b-pt text")
    assert made.assumed["num_attention_heads"] == 8
    assert made.assumed["vocab_size"] == 262_208
    assert made.context == 131_072


def test_an_embedding_gemma_sees_both_ways_and_caches_nothing():
    made = model("google/gemma-3-1b-pt", architectures=["Gemma3TextModel"], use_bidirectional_attention=True)
    assert cache_bytes(made, 2048) == 0
