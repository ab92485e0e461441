"""Counts: the Hub's for Qwen3-Next-80B-A3B (81,324,862,720, with its draft layer), Qwen3-Coder-Next
(79,674,391,296, without) and Qwen3.5 (27,781,427,952 and 35,951,822,704 with draft layer and vision tower).
"""

import pytest

from architectures.reading import billions, model, ops, without_table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, GatedDeltaNet


@pytest.mark.parametrize(
    ("name", "count", "drafts", "active"),
    [
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 79_674_391_296, 81_324_862_720, 3.6),
        ("Qwen/Qwen3.5-27B", 26_895_998_464, 27_320_697_856, 25.6),
        ("Qwen/Qwen3.5-35B-A3B", 34_660_610_688, 35_505_251_456, 2.9),
    ],
)
def test_hybrids_have_the_published_parameters(name: str, count: int, drafts: int, active: float):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)
    assert billions(without_table(made), 1) == active


def test_every_fourth_layer_is_gated_attention_and_the_others_are_gated_delta_nets():
    kinds = {
        type(op): count for op, count in ops(model("Qwen/Qwen3.5-27B")) if isinstance(op, Attention | GatedDeltaNet)
    }
    assert kinds == {GatedDeltaNet: 48, Attention: 16}


def test_qwen3_next_stores_two_input_matrices_and_qwen3_5_four():
    def projections(name: str) -> set[str]:
        mixer = next(op for op, _ in ops(model(name)) if isinstance(op, GatedDeltaNet))
        return {weight.name for weight in mixer.weights() if "in_proj" in weight.name}

    assert len(projections("Qwen/Qwen3-Next-80B-A3B-Instruct")) == 2
    assert len(projections("Qwen/Qwen3.5-27B")) == 4


def test_the_draft_branch_shares_the_table_and_the_head():
    draft = model("Qwen/Qwen3.5-27B").branch("multi-token prediction")
    assert draft is not None and draft.kind == "draft"
    assert not {weight.part for weight, _ in draft.weighted()} & {"embedding", "head"}


def test_a_draft_branch_with_a_table_of_its_own_holds_it():
    plain = model("Qwen/Qwen3.5-27B").num_parameters(drafts=True)
    assert (
        model("Qwen/Qwen3.5-27B", mtp_use_dedicated_embeddings=True).num_parameters(drafts=True)
        == plain + 248_320 * 5120
    )


def test_without_mtp_num_hidden_layers_there_is_no_draft_branch():
    assert model("Qwen/Qwen3.5-27B", mtp_num_hidden_layers=None).branch("multi-token prediction") is None


def test_the_state_is_kept_in_the_type_that_the_config_names():
    mixer = next(
        op for op, _ in ops(model("Qwen/Qwen3.5-27B", mamba_ssm_dtype="bfloat16")) if isinstance(op, GatedDeltaNet)
    )
    assert mixer.caches()[0].bytes_per_element == 2
    with pytest.raises(InvalidInput, match="mamba_ssm_dtype"):
        model("Qwen/Qwen3.5-27B", mamba_ssm_dtype="int8")
