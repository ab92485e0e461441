"""Counts: safetensors totals of the Hub for Qwen/Qwen1.5-MoE-A2.7B and Qwen/Qwen2-57B-A14B."""

import pytest

from architectures.reading import billions, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, MoE


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [("Qwen/Qwen1.5-MoE-A2.7B", 14_315_784_192, 2.7), ("Qwen/Qwen2-57B-A14B", 57_408_658_944, 14.2)],
)
def test_qwen2_moe_has_the_published_parameters(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters(), 1) == active


def test_a_learned_scalar_scales_the_shared_expert():
    experts = next(op for op, _ in ops(model("Qwen/Qwen1.5-MoE-A2.7B")) if isinstance(op, MoE))
    names = {weight.name for weight in experts.weights()}
    assert {"mlp.shared_expert_gate.weight", "mlp.shared_expert.up_proj.weight"} <= names


def test_listed_layers_are_dense_and_only_every_nth_of_the_others_is_a_mixture():
    made = model("Qwen/Qwen1.5-MoE-A2.7B", decoder_sparse_step=2, mlp_only_layers=[1])
    kinds = {type(op): count for op, count in ops(made) if isinstance(op, MLP | MoE)}
    assert kinds == {MLP: 13, MoE: 11}


def test_every_other_of_the_first_layers_slides():
    made = model("Qwen/Qwen1.5-MoE-A2.7B", use_sliding_window=True, max_window_layers=4)
    assert {op.window: count for op, count in ops(made) if isinstance(op, Attention)} == {32_768: 2, None: 22}


def test_more_experts_a_token_than_there_are_is_refused():
    with pytest.raises(InvalidInput, match="61 experts"):
        model("Qwen/Qwen1.5-MoE-A2.7B", num_experts_per_tok=61)


def test_names_of_layers_are_no_numbers_of_layers():
    with pytest.raises(InvalidInput, match="mlp_only_layers"):
        model("Qwen/Qwen1.5-MoE-A2.7B", mlp_only_layers=["first"])
