"""ChatGLM and the first GLM-4: counts of both generations, which share one class name, and what they keep."""

import pytest

from architectures.classic_configs import CHATGLM
from architectures.reading import cache_bytes
from tonnage.architectures import build


@pytest.mark.parametrize("name", CHATGLM)
def test_a_released_chatglm_counts_exactly(name: str):
    assert build(CHATGLM[name].fields, name).num_parameters() == CHATGLM[name].parameters


def test_the_second_generation_keeps_its_two_groups_and_the_first_every_head():
    assert cache_bytes(build(CHATGLM["THUDM/glm-4-9b-chat"].fields, "glm-4"), 1) == 40 * 2 * 2 * 128 * 2
    assert cache_bytes(build(CHATGLM["THUDM/chatglm-6b"].fields, "chatglm"), 1) == 28 * 2 * 4096 * 2


def test_the_bare_class_name_of_its_configs_means_the_language_model():
    made = build(CHATGLM["THUDM/glm-4-9b-chat"].fields, "glm-4")
    assert made.decoder.after[-1].weights()[0].num_parameters == 151552 * 4096
    assert made.context == 131072


def test_a_vision_tower_is_named_as_not_counted():
    fields = CHATGLM["THUDM/glm-4-9b-chat"].fields | {"vision_config": {"hidden_size": 1792}}
    assert build(fields, "glm-4v").notes == ("The vision tower (vision_config) is not counted.",)
