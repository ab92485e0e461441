"""Qwen's multimodal families and EXAONE 4.5: exact counts, windows of the tower, deepstack, and flat files."""

import pytest

from architectures.multimodal_more import QWEN, QWEN25_EYE
from architectures.seeing import misses, of_kind, read, size
from tonnage.kernel.errors import InvalidInput

SMALL, MIDDLE = "Qwen/Qwen2.5-VL-3B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"


def test_every_size_has_its_exact_count():
    assert misses(QWEN) == {}


def test_the_tower_of_qwen2_5_vl_7b_and_its_text_add_up():
    model = read(MIDDLE)
    assert size(of_kind(model, "vision")) == 676_550_144
    assert size(model.decoder) == 7_615_616_512  # Qwen2.5-7B


def test_a_flat_file_and_a_nested_one_are_the_same_model():
    flat = QWEN[MIDDLE].fields
    text = {name: value for name, value in flat.items() if name not in ("architectures", "vision_config", "model_type")}
    nested = read(MIDDLE, text_config=text | {"model_type": "qwen2_5_vl_text"})
    assert nested.num_parameters() == read(MIDDLE).num_parameters()


def test_four_layers_of_the_tower_see_all_and_the_others_windows_of_64_patches():
    tower = of_kind(read(MIDDLE), "vision")
    windows = [block.ops[1].window for block in tower.blocks]
    assert [windows[kind] for kind in tower.layers].count(None) == 4
    assert {window for window in windows if window} == {64}


def test_each_deepstack_layer_adds_a_merger():
    tower = of_kind(read("Qwen/Qwen3-VL-2B-Instruct"), "vision")
    merged = 4 * 1024
    each = 2 * merged + (merged + 1) * merged + (merged + 1) * 2048
    assert (
        size(tower) - size(of_kind(read("Qwen/Qwen3-VL-2B-Instruct", vision_config=without_deepstack()), "vision"))
        == 3 * each
    )


def without_deepstack():
    return QWEN["Qwen/Qwen3-VL-2B-Instruct"].fields["vision_config"] | {"deepstack_visual_indexes": []}


def test_multi_token_prediction_stays_a_branch_of_its_own_beside_the_tower():
    assert [branch.kind for branch in read("Qwen/Qwen3.5-27B").branches] == ["decoder", "draft", "vision"]


def test_heads_that_do_not_divide_the_tower_are_refused():
    with pytest.raises(
        InvalidInput, match=r"vision_config: num_heads \(15\) must divide the width of the tower \(1280\)"
    ):
        read(SMALL, vision_config=QWEN25_EYE | {"num_heads": 15, "out_hidden_size": 2048})
