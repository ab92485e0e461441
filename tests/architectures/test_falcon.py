"""Falcon: counts, one key/value head of the 7B, groups of the 40B, and the names of the first releases."""

import pytest

from architectures.classic_configs import FALCON
from architectures.reading import cache_bytes
from tonnage.architectures import build
from tonnage.kernel.errors import InvalidInput


@pytest.mark.parametrize("name", FALCON)
def test_a_released_falcon_counts_exactly(name: str):
    assert build(FALCON[name].fields, name).num_parameters() == FALCON[name].parameters


def test_falcon_7b_keeps_one_head_although_its_config_says_71():
    made = build(FALCON["tiiuae/falcon-7b"].fields, "falcon-7b")
    assert cache_bytes(made, 1) == 32 * 2 * 64 * 2


def test_the_new_decoder_keeps_its_groups():
    assert cache_bytes(build(FALCON["tiiuae/falcon-40b"].fields, "falcon-40b"), 1) == 60 * 2 * 8 * 64 * 2


@pytest.mark.parametrize(
    ("name", "model_type", "renamed"),
    [
        ("tiiuae/falcon-7b", "RefinedWebModel", {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}),
        (
            "tiiuae/falcon-40b",
            "RefinedWeb",
            {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer", "num_kv_heads": "n_head_kv"},
        ),
    ],
)
def test_the_first_releases_count_the_same_under_their_old_names(name: str, model_type: str, renamed: dict):
    fields = {
        renamed.get(key, key): value for key, value in FALCON[name].fields.items() if key != "new_decoder_architecture"
    }
    fields |= {"architectures": ["RWForCausalLM"], "model_type": model_type}
    assert build(fields, name).num_parameters() == FALCON[name].parameters


def test_groups_that_do_not_divide_the_heads_are_refused_by_name():
    with pytest.raises(InvalidInput, match=r"num_kv_heads \(7\) must divide the number of attention heads \(128\)"):
        build(FALCON["tiiuae/falcon-40b"].fields | {"num_kv_heads": 7}, "falcon-40b")
