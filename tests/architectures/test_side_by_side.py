"""What attention and feed-forward side by side keep for backward: the tensor that both read once, not twice."""

import pytest

from architectures.classic_configs import FAMILIES
from tonnage.architectures import build
from tonnage.ops import Kernels

SEQUENTIAL = {"parallel_attn": False, "use_parallel_residual": False}


def inputs_kept(fields: dict) -> list[str]:
    block = build(fields, "model").decoder.blocks[0]
    return [saved.name for op in block.ops for saved in op.saved(Kernels()) if saved.name.endswith(" input")]


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("gptj", "EleutherAI/gpt-j-6b"),
        ("falcon", "tiiuae/falcon-7b"),
        ("cohere", "CohereForAI/c4ai-command-r-v01"),
        ("phi", "microsoft/phi-2"),
        ("stablelm", "stabilityai/stablelm-2-12b"),
    ],
)
def test_one_norm_feeds_both_and_its_output_is_kept_once(family: str, name: str):
    kept = inputs_kept(FAMILIES[family][name].fields)
    assert "attention input" in kept and "mlp input" not in kept
    assert len([each for each in kept if "layernorm" in each or "ln_" in each]) == 1


@pytest.mark.parametrize(("family", "name"), [("gpt_neox", "EleutherAI/pythia-6.9b"), ("falcon", "tiiuae/falcon-40b")])
def test_two_norms_of_one_input_keep_it_once(family: str, name: str):
    fields = FAMILIES[family][name].fields
    side_by_side, in_turn = inputs_kept(fields), inputs_kept(fields | SEQUENTIAL)
    assert len(in_turn) == len(side_by_side) + 1
    assert {"attention input", "mlp input"} <= set(side_by_side)
