"""GPT-J and CodeGen: one norm for attention and feed-forward, a head with a bias."""

import pytest

from architectures.classic_configs import GPTJ
from tonnage.architectures import build


@pytest.mark.parametrize("name", GPTJ)
def test_a_released_gptj_or_codegen_counts_exactly(name: str):
    assert build(GPTJ[name].fields, name).num_parameters() == GPTJ[name].parameters


def test_a_layer_has_one_norm_and_the_head_a_bias():
    made = build(GPTJ["EleutherAI/gpt-j-6b"].fields, "gpt-j")
    names = [weight.name for weight in made.decoder.blocks[0].weights()]
    assert [name for name in names if name.startswith("ln")] == ["ln_1.weight", "ln_1.bias"]
    assert [weight.name for op in made.decoder.after for weight in op.weights()][-2:] == [
        "lm_head.weight",
        "lm_head.bias",
    ]
