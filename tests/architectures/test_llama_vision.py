"""Llama 4 and Llama 3.2 Vision: exact counts, the tower that copies leave out, the keys and values of an image."""

import pytest

from architectures.multimodal_configs import LLAMA
from architectures.seeing import misses, read, size
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import StateCache, TokenCache

SCOUT, SMALL = "meta-llama/Llama-4-Scout-17B-16E-Instruct", "meta-llama/Llama-3.2-11B-Vision-Instruct"


def caches(model):
    return [
        cache
        for block, count in zip(model.decoder.blocks, model.decoder.counts(), strict=True)
        for _ in range(count)
        for op in block.ops
        for cache in op.caches()
    ]


def test_every_size_has_its_exact_count():
    assert misses(LLAMA) == {}


def test_a_llama_4_file_without_tower_is_read_with_the_released_one_and_says_so():
    model = read(SCOUT, vision_config=None)
    assert model.num_parameters() == LLAMA[SCOUT].parameters
    assert model.assumed["vision_config"]["hidden_size"] == 1408
    assert any("no vision_config" in note for note in model.notes)


def test_the_text_of_llama_4_is_separable():
    assert size(read(SCOUT).decoder) == 107_769_861_120


def test_every_fifth_layer_of_llama_3_2_vision_keeps_one_images_keys_and_values_for_the_request():
    kept = caches(read(SMALL))
    states = [cache for cache in kept if isinstance(cache, StateCache)]
    tokens = 4 * (40 * 40 + 1)  # tiles of 560 / 14 patches a side and a class token
    assert [cache.elements for cache in states] == [2 * 8 * 128 * tokens] * 8
    assert len([cache for cache in kept if isinstance(cache, TokenCache)]) == 32


def test_the_language_model_alone_keeps_no_image():
    text = {**LLAMA[SMALL].fields["text_config"], "architectures": ["MllamaForCausalLM"]}
    assert not [cache for cache in caches(build(text, "text alone")) if isinstance(cache, StateCache)]


def test_the_table_has_eight_rows_more_than_the_head():
    model = read(SMALL)
    assert model.vocab_size == 128_256
    assert model.decoder.before[0].weights()[0].rows == 128_264


def test_a_cross_attention_layer_beyond_the_last_is_refused():
    text = {**LLAMA[SMALL].fields["text_config"], "cross_attention_layers": [3, 40]}
    with pytest.raises(InvalidInput, match="cross_attention_layers must be layers from 0 to 39"):
        read(SMALL, text_config=text)
