"""Aya Vision, Command A Vision and LFM2-VL: exact counts, and the gated projector."""

from architectures.multimodal_more import COHERE
from architectures.seeing import misses, read


def test_every_size_has_its_exact_count():
    assert misses(COHERE) == {}


def test_the_second_matrix_of_the_projector_has_half_the_inputs():
    name = "CohereLabs/aya-vision-8b"
    wider = read(name, alignment_intermediate_size=28_674)
    assert wider.num_parameters() - read(name).num_parameters() == 2 * (4 * 1152 + 1) + 4096


def test_lfm2_vl_may_have_a_norm_before_its_projector():
    name = "LiquidAI/LFM2.5-VL-1.6B"
    assert read(name, projector_use_layernorm=True).num_parameters() - read(name).num_parameters() == 2 * 4 * 1152
