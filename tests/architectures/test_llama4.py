"""Counts: Llama4ForCausalLM of transformers 5.23; with the vision tower the Hub counts 108,641,793,536 for Scout."""

import pytest

from architectures.reading import billions, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, MoE


@pytest.mark.parametrize(
    ("name", "count"),
    [("meta-llama/Llama-4-Scout text", 107_769_861_120), ("meta-llama/Llama-4-Maverick text", 400_711_848_960)],
)
def test_llama_4_has_the_parameters_of_the_class_and_17_billion_active_ones(name: str, count: int):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters()) == 17


def test_three_of_four_layers_see_the_chunk_that_they_are_in():
    windows = {
        op.window: count for op, count in ops(model("meta-llama/Llama-4-Scout text")) if isinstance(op, Attention)
    }
    assert windows == {8192: 36, None: 12}


def test_no_rope_layers_says_which_layers_are_chunked():
    made = model("meta-llama/Llama-4-Scout text", no_rope_layers=[1] * 47 + [0])
    assert {op.window: count for op, count in ops(made) if isinstance(op, Attention)} == {8192: 47, None: 1}


def test_an_empty_list_of_rotary_layers_means_the_usual_ones():
    assert model("meta-llama/Llama-4-Scout text", no_rope_layers=[]).decoder.counts() == (36, 12)


def test_every_layer_of_scout_and_every_other_of_maverick_is_a_mixture():
    def feeds(name: str) -> dict[type, int]:
        found: dict[type, int] = {}
        for op, count in ops(model(name)):
            if isinstance(op, MLP | MoE):
                found[type(op)] = found.get(type(op), 0) + count
        return found

    assert feeds("meta-llama/Llama-4-Scout text") == {MoE: 48}
    assert feeds("meta-llama/Llama-4-Maverick text") == {MLP: 24, MoE: 24}


def test_lists_of_layers_hold_numbers_and_are_as_long_as_the_model():
    with pytest.raises(InvalidInput, match="moe_layers"):
        model("meta-llama/Llama-4-Scout text", moe_layers=["all"])
    with pytest.raises(InvalidInput, match="no_rope_layers"):
        model("meta-llama/Llama-4-Scout text", no_rope_layers=[1, 0])
