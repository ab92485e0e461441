"""LLaVA's families, DeepSeek-VL and Phi-3.5-vision: exact counts, the text alone, and what the files leave out."""

import pytest

from architectures.multimodal_configs import LLAVA
from architectures.seeing import misses, of_kind, read, size
from tonnage.kernel.errors import InvalidInput

LLAVA_7B = "llava-hf/llava-1.5-7b-hf"


def test_every_size_has_its_exact_count():
    assert misses(LLAVA) == {}


def test_the_text_alone_is_vicuna_with_64_more_tokens():
    assert (
        size(read(LLAVA_7B).decoder) == 6_738_415_616 + 64 * 2 * 4096
    )  # Llama 2 7B and the rows that the wrapper added


def test_a_text_section_without_sizes_has_its_class_defaults_and_says_so():
    assumed = read(LLAVA_7B).assumed
    assert assumed["text_config.hidden_size"] == 4096
    assert assumed["text_config.num_hidden_layers"] == 32


def test_a_null_window_stands_though_the_class_has_a_default():
    assert all(
        cache.window is None
        for op in read("llava-hf/llava-v1.6-mistral-7b-hf").decoder.blocks[0].ops
        for cache in op.caches()
    )


def test_several_feature_layers_widen_the_projector():
    one, two = read(LLAVA_7B), read(LLAVA_7B, vision_feature_layer=[-2, -5])
    assert two.num_parameters() - one.num_parameters() == 1024 * 4096


def test_either_section_can_tie_the_table_to_the_head():
    tied = read("llava-hf/llava-onevision-qwen2-0.5b-ov-hf")
    assert tied.tied
    assert not read("llava-hf/llava-onevision-qwen2-7b-ov-hf").tied


def test_a_patch_of_three_sides_is_refused():
    vision = {**LLAVA[LLAVA_7B].fields["vision_config"], "patch_size": [14, 14, 2]}
    with pytest.raises(InvalidInput, match="patch_size must hold 2 whole numbers from 1"):
        read(LLAVA_7B, vision_config=vision)


def test_the_tower_keeps_no_keys_and_values():
    tower = of_kind(read(LLAVA_7B), "vision")
    assert tower.num_layers == 24
    assert not [cache for block in tower.blocks for op in block.ops for cache in op.caches()]
