"""Kimi-VL, Kimi K2.5 and Kimi K3: exact counts, and the two projectors."""

import pytest

from architectures.multimodal_more import KIMI, MOONVIT, MOONVIT_K3
from architectures.seeing import misses, of_kind, read, size
from tonnage.kernel.errors import InvalidInput


def test_every_size_has_its_exact_count():
    assert misses(KIMI) == {}


def test_kimi_k2_5_is_kimi_k2_and_a_tower():
    model = read("moonshotai/Kimi-K2.5")
    assert size(model.decoder) == 1_026_408_232_448  # the Hub's count of Kimi-K2-Instruct-0905 and of Kimi-K2-Thinking
    assert size(of_kind(model, "vision")) == 471_143_920


def test_a_model_type_that_is_empty_or_absent_means_moonvit():
    assert (
        read("moonshotai/Kimi-K2.5", vision_config=MOONVIT | {"model_type": ""}).num_parameters()
        == KIMI["moonshotai/Kimi-K2.5"].parameters
    )


def test_attention_may_be_wider_than_the_layer():
    tower = of_kind(read("moonshotai/Kimi-K3"), "vision")
    assert tower.blocks[0].ops[1].out_width == 1536
    assert tower.hidden_size == 1024


def test_an_unknown_projector_is_refused():
    with pytest.raises(
        InvalidInput, match=r"mm_projector_type must be one of patchmerger, patchmergerv2\. Got 'identity'"
    ):
        read("moonshotai/Kimi-K3", vision_config=MOONVIT_K3 | {"mm_projector_type": "identity"})
