"""Qwen 1: counts, and its intermediate_size of gate and up together."""

import pytest

from architectures.classic_configs import QWEN1
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", QWEN1)
def test_a_released_qwen_counts_exactly(name: str):
    assert build(QWEN1[name].fields, name).num_parameters() == QWEN1[name].parameters


def test_gate_and_up_are_each_half_of_the_intermediate_size():
    made = build(QWEN1["Qwen/Qwen-7B"].fields, "qwen-7b")
    rows = {weight.name: weight.rows for weight in made.decoder.blocks[0].weights() if weight.part == "mlp"}
    assert rows == {"mlp.w2.weight": 11008, "mlp.w1.weight": 11008, "mlp.c_proj.weight": 4096}


def test_only_queries_keys_and_values_have_biases():
    names = {weight.name for weight in build(QWEN1["Qwen/Qwen-7B"].fields, "qwen-7b").decoder.blocks[0].weights()}
    assert [name for name in sorted(names) if name.endswith("bias")] == ["attn.c_attn.bias"]


def test_an_odd_intermediate_size_is_refused():
    with pytest.raises(InvalidInput, match=r"counts gate and up together, so it must be even. Got 22015"):
        build(QWEN1["Qwen/Qwen-7B"].fields | {"intermediate_size": 22015}, "qwen-7b")
