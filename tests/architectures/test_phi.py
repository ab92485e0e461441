"""Phi from 1.5 to 4: counts under old and new names, windows, experts."""

import pytest

from architectures.classic_configs import PHI
from architectures.reading import billions, cache_bytes
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", PHI)
def test_a_released_phi_counts_exactly(name: str):
    assert build(PHI[name].fields, name).num_parameters() == PHI[name].parameters


def test_the_first_releases_count_the_same_under_the_names_of_today():
    old = PHI["microsoft/phi-1_5"]
    new = {
        "architectures": ["PhiForCausalLM"],
        "model_type": "phi",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "num_key_value_heads": None,
        "vocab_size": 51200,
    }
    assert build(new, "phi-1_5").num_parameters() == old.parameters


def test_phi_3_mini_keeps_no_more_than_its_window_of_2047():
    made = build(PHI["microsoft/Phi-3-mini-4k-instruct"].fields, "phi-3-mini")
    assert cache_bytes(made, 4096) == 32 * 2 * 3072 * 2 * 2047


def test_phi_3_small_keeps_the_whole_past_of_8_heads():
    assert (
        cache_bytes(build(PHI["microsoft/Phi-3-small-8k-instruct"].fields, "small"), 8192)
        == 32 * 2 * 8 * 128 * 2 * 8192
    )


def test_a_token_passes_through_2_of_16_experts():
    # the model card: 16x3.8B parameters with 6.6B active parameters when using 2 experts
    made = build(PHI["microsoft/Phi-3.5-MoE-instruct"].fields, "phi-3.5-moe")
    assert billions(made.num_active_parameters(), 1) == 6.6


def test_more_experts_chosen_than_there_are_is_refused():
    with pytest.raises(InvalidInput, match=r"num_experts_per_tok \(17\) exceeds num_local_experts \(16\)"):
        build(PHI["microsoft/Phi-3.5-MoE-instruct"].fields | {"num_experts_per_tok": 17}, "phi-3.5-moe")
