"""InternLM 1 to 3: counts, biases, groups, and the reward model."""

import pytest

from architectures.classic_configs import INTERNLM
from architectures.reading import cache_bytes
from tonnage.architectures import build


@pytest.mark.parametrize("name", INTERNLM)
def test_a_released_internlm_counts_exactly(name: str):
    assert build(INTERNLM[name].fields, name).num_parameters() == INTERNLM[name].parameters


def test_only_the_first_generation_has_biases_on_attention():
    def biases(name: str) -> int:
        return sum(
            weight.name.endswith("bias") for weight in build(INTERNLM[name].fields, name).decoder.blocks[0].weights()
        )

    assert biases("internlm/internlm-7b") == 4
    assert biases("internlm/internlm2-7b") == 0


def test_internlm3_keeps_two_heads():
    assert cache_bytes(build(INTERNLM["internlm/internlm3-8b-instruct"].fields, "internlm3"), 1) == 48 * 2 * 2 * 128 * 2


def test_the_reward_model_scores_in_place_of_its_head():
    case = INTERNLM["internlm/internlm2-7b"]
    made = build(case.fields | {"architectures": ["InternLM2ForRewardModel"]}, "internlm2-7b-reward")
    assert made.num_parameters() == case.parameters - 92544 * 4096 + 4096
