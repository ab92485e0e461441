"""Count: the Hub's 199,384,301,376 for Step-3.5-Flash with its three draft layers; without: Step3p7TextModel
with a head.
"""

import pytest

from architectures.reading import billions, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention

STEP = "stepfun-ai/Step-3.5-Flash"


def test_step_3_5_flash_has_the_published_parameters():
    made = model(STEP)
    assert made.num_parameters() == 196_956_130_368
    assert made.num_parameters(drafts=True) == 199_384_301_376
    assert billions(made.num_active_parameters() - made.num_embedding_parameters()) == 11


def test_sliding_layers_have_more_heads_and_each_head_has_a_gate():
    found: dict[tuple[int | None, int, int | None], int] = {}
    for op, count in ops(model(STEP)):
        if isinstance(op, Attention):
            key = (op.window, op.heads, op.gate_width)
            found[key] = found.get(key, 0) + count
    assert found == {(None, 64, 64): 12, (512, 96, 96): 33}


def test_a_file_without_the_sliding_layers_heads_says_what_was_taken():
    made = model(STEP, attention_other_setting=None)
    assert "attention_other_setting" in made.notes[0]
    assert model(STEP).notes == ()


def test_mixtures_may_be_named_by_a_list_of_kinds_or_by_the_number_of_dense_layers():
    listed = model(STEP, moe_layers_enum=None, mlp_layer_types=["dense"] * 3 + ["sparse"] * 42)
    counted = model(STEP, moe_layers_enum=None, first_k_dense_replace=3)
    assert listed.num_parameters() == counted.num_parameters() == model(STEP).num_parameters()


def test_mixtures_are_named_by_number():
    with pytest.raises(InvalidInput, match="moe_layers_enum"):
        model(STEP, moe_layers_enum="3,four")


def test_key_heads_divide_the_heads_of_every_layer():
    with pytest.raises(InvalidInput, match="num_attention_groups"):
        model(STEP, attention_other_setting={"num_attention_heads": 90, "num_attention_groups": 8})
