"""Arithmetic of a forward pass and of a step, against closed forms and known counts."""

import pytest

from tonnage import read
from tonnage.estimate.flops import forward_flops, training_flops
from tonnage.formulas import flops as f


def test_a_step_of_a_dense_model_is_6_n_d_and_attention():
    model, tokens, length = read("llama-3.1-8b"), 8192, 4096
    multiplied = model.num_parameters() - 128_256 * 4096 - 65 * 4096  # without the input table and the norms
    attention = 3 * 4 * 32 * 4096 * (length + 1) / 2 * tokens
    assert training_flops(model, tokens, length).value == 6 * multiplied * tokens + attention


def test_a_mixture_computes_with_its_active_parameters():
    model = read("mixtral-8x7b")
    assert forward_flops(model, 1, 1).value == pytest.approx(
        2 * (model.num_active_parameters() - 32_000 * 4096), rel=1e-3
    )


def test_a_tied_head_is_multiplied_though_it_has_no_parameters_of_its_own():
    model = read("qwen3-0.6b")
    head = next(node for _, node in forward_flops(model, 1, 1).walk() if node.name == "lm_head")
    assert head.value == 2 * 151_936 * 1024


def test_a_window_sees_what_is_in_it():
    assert f.windowed_attention_flops(y=1, L=1, T=10, s=10, r=3) == 1 + 2 + 8 * 3
    assert (
        f.windowed_attention_flops(y=1, L=1, T=10, s=10, r=99) == f.causal_attention_flops(y=1, L=1, T=10, s=10) == 55
    )


def test_an_encoder_sees_every_token():
    model = read("bert-base-uncased")
    scores = [node for _, node in forward_flops(model, 512, 512).walk() if node.formula is f.full_attention_flops]
    assert scores and sum(node.value for node in scores) == 12 * 4 * 768 * 512 * 512


def test_recurrent_layers_cost_the_same_at_every_length():
    model = read("mamba-2.8b")
    assert forward_flops(model, 1000, 1000).value == forward_flops(model, 1000, 100_000).value
