"""GPT-2 against released models, and GPT-3 against its paper."""

import pytest

from architectures.classic_configs import GPT2, GPT3
from architectures.reading import cache_bytes
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", GPT2)
def test_a_released_gpt2_counts_exactly(name: str):
    assert build(GPT2[name].fields, name).num_parameters() == GPT2[name].parameters


def test_gpt3_has_the_174_6_billion_parameters_of_its_paper():
    # Brown2020, table D.1: 174,600M; vocabulary and positions are GPT-2's defaults with 2,048 tokens
    made = build(GPT3, "gpt3-175b")
    assert made.num_parameters() == 174_604_259_328
    assert round(made.num_parameters() / 1e6, -2) == 174_600
    assert (made.context, made.vocab_size, made.tied) == (2048, 50257, True)
    assert made.assumed == {"n_positions": 2048, "vocab_size": 50257}


def test_a_tied_head_adds_no_parameters_but_still_multiplies():
    made = build(GPT2["openai-community/gpt2"].fields, "gpt2")
    head = made.decoder.after[-1]
    assert head.weights() == ()
    assert head.core()[0].flops == 2 * 768 * 50257


def test_a_token_of_gpt2_keeps_keys_and_values_of_the_full_width_in_each_layer():
    assert cache_bytes(build(GPT2["openai-community/gpt2-xl"].fields, "gpt2-xl"), 1) == 48 * 2 * 1600 * 2


def test_heads_that_do_not_divide_the_width_are_refused_by_name():
    with pytest.raises(InvalidInput, match="12 attention heads must divide the hidden size, 700"):
        build(GPT2["openai-community/gpt2"].fields | {"n_embd": 700}, "gpt2")
