"""Snowflake Arctic: published 480B with 17B active (10B dense and 128 experts of 3.66B); no exact count was found."""

from architectures.reading import billions, model, ops
from tonnage.ops import MLP, MoE

NAME = "Snowflake/snowflake-arctic-base"


def test_arctic_has_about_the_published_parameters():
    made = model(NAME)
    assert made.num_parameters() == 478_584_608_768
    assert billions(made.num_active_parameters()) == 17


def test_an_expert_of_all_layers_is_3_66_billion():
    experts = next(op for op, _ in ops(model(NAME)) if isinstance(op, MoE))
    one = sum(weight.num_parameters // 128 for weight in experts.weights() if weight.part == "experts")
    assert billions(35 * one, 2) == 3.66


def test_a_dense_feed_forward_of_the_models_width_runs_beside_the_experts():
    residual = next(op for op, _ in ops(model(NAME)) if isinstance(op, MLP))
    assert sum(weight.num_parameters for weight in residual.weights()) == 3 * 7168 * 7168


def test_layers_between_the_mixtures_are_dense():
    made = model(NAME, moe_layer_frequency=2)
    counts = {type(op): 0 for op, _ in ops(made) if isinstance(op, MoE)}
    for op, count in ops(made):
        if isinstance(op, MoE):
            counts[MoE] += count
    assert counts == {MoE: 17}
