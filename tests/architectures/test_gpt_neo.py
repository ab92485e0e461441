"""GPT-Neo: counts, and the windows of every second layer."""

import pytest

from architectures.classic_configs import GPT_NEO
from architectures.reading import cache_bytes
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", GPT_NEO)
def test_a_released_gpt_neo_counts_exactly(name: str):
    assert build(GPT_NEO[name].fields, name).num_parameters() == GPT_NEO[name].parameters


def test_every_second_layer_keeps_only_its_window():
    made = build(GPT_NEO["EleutherAI/gpt-neo-1.3B"].fields, "gpt-neo")
    assert cache_bytes(made, 2048) == 2 * 2048 * 2 * (12 * 2048 + 12 * 256)
    assert made.decoder.layers[:4] == (0, 1, 0, 1)


def test_attention_types_must_describe_every_layer():
    with pytest.raises(InvalidInput, match=r"attention_types must describe all 24 layers. It describes 22"):
        build(GPT_NEO["EleutherAI/gpt-neo-1.3B"].fields | {"attention_types": [[["global", "local"], 11]]}, "gpt-neo")


@pytest.mark.parametrize("wrong", [["global"], [[["global"], 10**9]], [["global", 12], 3], [[["global"], -1]]])
def test_attention_types_of_another_form_are_refused(wrong: list):
    with pytest.raises(InvalidInput, match="attention_types must hold pairs"):
        build(GPT_NEO["EleutherAI/gpt-neo-1.3B"].fields | {"attention_types": wrong}, "gpt-neo")
