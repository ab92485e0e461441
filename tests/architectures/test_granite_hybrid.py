"""Counts: the Hub's for Granite 4.0 Micro and H-Small (3,402,836,480 and 32,207,337,984), else transformers' class.

Published active parameters: 9B of H-Small, 1B of H-Tiny. The tensors of H-Small's GGUF file in Q8_0 are 34,261,297,152
bytes.
"""

import pytest

from architectures.reading import GIB, billions, cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, Mamba2, StateCache

SMALL = "ibm-granite/granite-4.0-h-small"
MICRO = "ibm-granite/granite-4.0-micro"


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [
        (MICRO, 3_402_836_480, 3),
        ("ibm-granite/granite-4.0-h-micro", 3_191_396_096, 3),
        ("ibm-granite/granite-4.0-h-tiny", 6_939_037_248, 1),
        (SMALL, 32_207_337_984, 9),
    ],
)
def test_granite_4_has_the_published_parameters(name: str, count: int, active: int):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters()) == active


def test_the_q8_0_file_of_h_small_has_matrices_of_34_bytes_for_32_numbers_and_the_rest_in_fp32():
    matrices = small = 0
    for weight, layers in model(SMALL).decoder.weighted():
        plain = weight.part == "norm" or weight.columns == 1 or "conv1d" in weight.name or weight.part == "router"
        if plain:
            small += weight.num_parameters * layers
        else:
            matrices += weight.num_parameters * layers
    assert small == 13_957_632
    assert matrices * 34 // 32 + small * 4 == 34_261_297_152


def test_four_layers_of_forty_are_of_attention():
    kinds = {type(op): 0 for op, _ in ops(model(SMALL)) if isinstance(op, Attention | Mamba2)}
    for op, count in ops(model(SMALL)):
        if type(op) in kinds:
            kinds[type(op)] += count
    assert kinds == {Mamba2: 36, Attention: 4}


def test_h_small_keeps_2_gib_for_131072_tokens_and_a_state():
    made = model(SMALL)
    assert cache_bytes(made, 131_072) == 2 * GIB
    recurrent = 36 * 128 * 64 * 128 * 2
    convolution = 36 * 3 * (128 * 64 + 2 * 128) * 2
    assert cache_bytes(made, 131_072, StateCache) == recurrent + convolution


def test_the_dense_model_of_the_class_has_no_mamba_layers_and_no_state():
    assert cache_bytes(model(MICRO), 131_072, StateCache) == 0
    assert cache_bytes(model(MICRO), 131_072) == 40 * 2 * 8 * 64 * 2 * 131_072


def test_layers_are_all_of_mamba_where_the_config_names_none():
    assert cache_bytes(model("ibm-granite/granite-4.0-h-micro", layer_types=None), 131_072) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": ["mamba"] * 39}, "layer_types must have 40 items, one a layer. Got 39"),
        ({"layer_types": ["mamba"] * 39 + ["moe"]}, "layer_types may hold mamba, .*Got 'moe'"),
        (
            {"mamba_n_heads": 100},
            r"mamba_n_heads \(100\) times mamba_d_head \(64\) must be the mixer's inner size \(8192\)",
        ),
    ],
)
def test_a_config_that_does_not_fit_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(SMALL, **changes)
