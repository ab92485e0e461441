"""Counts: the Hub's for OLMoE (6,919,161,856; published 1.3B active), the index of FlexOlmo-7x7B (33,270,665,216)."""

import pytest

from architectures.reading import billions, model, ops


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [("allenai/OLMoE-1B-7B-0924", 6_919_161_856, 1.3), ("allenai/FlexOlmo-7x7B-1T", 33_270_665_216, 33.3)],
)
def test_mixtures_of_olmo_have_the_published_parameters(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters(), 1) == active


def test_olmoe_has_norms_before_its_sublayers_and_flexolmo_after_them():
    def norms(name: str) -> set[str]:
        return {weight.name for op, _ in ops(model(name)) for weight in op.weights() if weight.part == "norm"}

    apart = norms("allenai/OLMoE-1B-7B-0924") ^ norms("allenai/FlexOlmo-7x7B-1T")
    assert apart == {"input_layernorm.weight", "post_feedforward_layernorm.weight"}


def test_without_the_fields_of_experts_the_defaults_of_the_class_hold():
    made = model("allenai/OLMoE-1B-7B-0924", num_experts=None, num_experts_per_tok=None)
    assert made.num_parameters() == 6_919_161_856
    assert set(made.assumed) >= {"num_experts", "num_experts_per_tok"}
