"""Counts: transformers' class with the configs of Falcon-H1 0.5B and 34B."""

import pytest

from architectures.reading import GIB, cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import StateCache

SMALL = "tiiuae/Falcon-H1-0.5B-Base"
LARGE = "tiiuae/Falcon-H1-34B-Base"


@pytest.mark.parametrize(("name", "count"), [(SMALL, 521_411_104), (LARGE, 33_642_221_312)])
def test_falcon_h1_has_the_parameters_of_its_class(name: str, count: int):
    assert model(name).num_parameters() == count


def test_every_layer_keeps_keys_and_values_and_a_state():
    made = model(LARGE)
    assert cache_bytes(made, 131_072) == 72 * 2 * 4 * 128 * 2 * 131_072 == 18 * GIB
    state = 72 * (32 * 128 * 256 + (32 * 128 + 2 * 2 * 256) * 3) * 2
    assert cache_bytes(made, 131_072, StateCache) == state


def test_the_mixer_has_a_norm_only_where_the_config_says_so():
    def norms(**changes: object) -> set[str]:
        return {
            weight.name for op, _ in ops(model(SMALL, **changes)) for weight in op.weights() if weight.part == "norm"
        }

    assert norms() == {"input_layernorm.weight", "pre_ff_layernorm.weight"}
    assert norms(mamba_rms_norm=True) - norms() == {"mamba.norm.weight"}


def test_the_bias_of_out_proj_is_said_by_projectors_bias():
    more = model(SMALL, projectors_bias=True).num_parameters() - model(SMALL).num_parameters()
    assert more == 36 * 1024


def test_an_inner_size_of_null_is_expand_times_the_width():
    made = model(SMALL)
    wider = model(SMALL, mamba_d_ssm=2048, mamba_n_heads=32)
    assert wider.num_parameters() > made.num_parameters()
    with pytest.raises(InvalidInput, match="mamba_n_heads"):
        model(SMALL, mamba_d_ssm=2048)
