"""Counts: the Hub's for state-spaces/mamba-*-hf and Falcon Mamba; mamba_ssm prints 2,768,345,600 for the 2.8B."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.ops import StateCache


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("state-spaces/mamba-130m-hf", 129_135_360),
        ("state-spaces/mamba-370m-hf", 371_516_416),
        ("state-spaces/mamba-790m-hf", 793_204_224),
        ("state-spaces/mamba-2.8b-hf", 2_768_345_600),
        ("tiiuae/falcon-mamba-7b", 7_272_665_088),
    ],
)
def test_mamba_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_a_request_keeps_as_much_of_one_token_as_of_a_million():
    made = model("state-spaces/mamba-2.8b-hf")
    assert cache_bytes(made, 1_000_000) == 0
    assert cache_bytes(made, 1_000_000, StateCache) == cache_bytes(made, 1, StateCache) == 64 * 5120 * (16 + 3) * 2


def test_names_are_those_of_the_checkpoint():
    names = [weight.name for op, _ in ops(model("state-spaces/mamba-130m-hf")) for weight in op.weights()]
    assert names == [
        "norm.weight",
        "mixer.in_proj.weight",
        "mixer.conv1d.weight",
        "mixer.conv1d.bias",
        "mixer.x_proj.weight",
        "mixer.dt_proj.weight",
        "mixer.dt_proj.bias",
        "mixer.A_log",
        "mixer.D",
        "mixer.out_proj.weight",
    ]


def test_the_inner_size_of_falcon_mamba_is_intermediate_size_and_not_expand_times_the_width():
    given = model("tiiuae/falcon-mamba-7b").num_parameters()
    assert given == model("tiiuae/falcon-mamba-7b", intermediate_size=None, expand=2).num_parameters()


def test_the_rank_of_the_step_is_the_width_over_16_rounded_up():
    name = "state-spaces/mamba-130m-hf"
    given = model(name).num_parameters()
    assert model(name, time_step_rank=None).num_parameters() == given
    assert model(name, time_step_rank="auto").num_parameters() == given
    one_more = model(name, hidden_size=770, intermediate_size=None, time_step_rank=None)
    rank = next(weight for op, _ in ops(one_more) for weight in op.weights() if weight.name == "mixer.dt_proj.weight")
    assert (rank.rows, rank.columns) == (1540, 49)


def test_a_config_in_the_names_of_mamba_ssm_is_read_too():
    fields = {"hidden_size": None, "d_model": 768}
    assert model("state-spaces/mamba-130m-hf", **fields).num_parameters() == 129_135_360
