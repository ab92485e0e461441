"""Towers: branches of their own, no cache, known by their model type, an error for those that nobody described."""

import pytest

from architectures.multimodal_more import CASES
from architectures.seeing import size
from every_row import every_row
from tonnage.architectures import TOWERS, Config, build, load_all
from tonnage.kernel.errors import MissingDatum


@every_row("name", CASES, at_least=70)
def test_a_tower_caches_nothing_and_adds_nothing_to_the_text(name):
    model = build(CASES[name].fields, name)
    towers = [branch for branch in model.branches if branch.kind in ("vision", "audio")]
    assert towers
    assert not [cache for tower in towers for block in tower.blocks for op in block.ops for cache in op.caches()]
    text = sum(size(branch) for branch in model.branches if branch.kind not in ("vision", "audio", "draft"))
    assert text + sum(map(size, towers)) == model.num_parameters()


@every_row("name", CASES, at_least=70)
def test_a_tower_has_no_tensor_in_the_vocabulary(name):
    model = build(CASES[name].fields, name)
    for branch in model.branches:
        if branch.kind in ("vision", "audio"):
            assert not [weight.name for weight, _ in branch.weighted() if weight.part in ("embedding", "head")]


def test_a_tower_that_nobody_described_is_named_with_the_nearest():
    fields = CASES["llava-hf/llava-1.5-7b-hf"].fields
    with pytest.raises(
        MissingDatum, match=r"vision_config is a tower that tonnage does not describe.*'siglip_vison_model'"
    ):
        build({**fields, "vision_config": {**fields["vision_config"], "model_type": "siglip_vison_model"}}, "other")


def test_towers_fill_what_nested_sections_leave_out():
    load_all()
    for name in (
        "clip_vision_model",
        "siglip_vision_model",
        "pixtral",
        "qwen2_5_vl",
        "qwen3_vl",
        "gemma4_vision",
        "moonvit",
        "whisper",
    ):
        assert size(TOWERS[name](Config({}, "vision_config"))) > 0
