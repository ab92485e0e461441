"""ALBERT: weights counted once although every layer uses them, arithmetic and kept tensors in each."""

import pytest

from architectures.encoder_configs import ALBERT
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Kernels

BASE = ALBERT["albert/albert-base-v2"].fields


@pytest.mark.parametrize("name", ALBERT)
def test_a_released_albert_counts_exactly(name: str):
    assert build(ALBERT[name].fields, name).num_parameters() == ALBERT[name].parameters


def test_only_the_first_of_twelve_layers_holds_weights():
    made = build(BASE, "albert")
    owner, reuser = made.decoder.blocks
    assert made.decoder.layers == (0,) + (1,) * 11
    assert list(reuser.weights()) == []
    assert sum(weight.num_parameters for weight in owner.weights()) == 7_087_872


def test_a_repeated_layer_computes_and_keeps_as_much_as_the_first():
    owner, reuser = build(BASE, "albert").decoder.blocks
    products = sum(2 * weight.num_active_parameters for weight in owner.weights() if weight.linear)
    repeated = [core.flops for op in reuser.ops for core in op.core() if core.name == "reused weights"]
    assert sum(repeated) == products
    kernels = Kernels()
    assert [[saved.elements for saved in op.saved(kernels)] for op in reuser.ops] == [
        [saved.elements for saved in op.saved(kernels)] for op in owner.ops
    ]


def test_groups_begin_where_transformers_begins_them():
    made = build(BASE | {"num_hidden_layers": 7, "num_hidden_groups": 3}, "albert")
    assert made.decoder.layers == (0, 1, 1, 0, 1, 0, 1)


def test_more_groups_than_layers_are_refused():
    with pytest.raises(InvalidInput, match=r"num_hidden_groups \(13\) exceeds num_hidden_layers \(12\)"):
        build(BASE | {"num_hidden_groups": 13}, "albert")
