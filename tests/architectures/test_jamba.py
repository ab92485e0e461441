"""Counts: transformers' class with the config of Jamba 1.5. Published: 52B with 12B active, 398B with 94B active."""

import pytest

from architectures.reading import GIB, billions, cache_bytes, model, ops
from tonnage.ops import Mamba, MoE, StateCache

MINI = "ai21labs/AI21-Jamba-1.5-Mini"
LARGE = "ai21labs/AI21-Jamba-1.5-Large"


@pytest.mark.parametrize(("name", "count", "active"), [(MINI, 51_570_323_328, 12), (LARGE, 398_555_145_696, 94)])
def test_jamba_has_the_published_parameters(name: str, count: int, active: int):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters()) == active


def test_one_layer_of_eight_is_of_attention_and_every_second_is_a_mixture():
    layers = [block.name for block in (model(MINI).decoder.blocks[i] for i in model(MINI).decoder.layers)]
    assert [i for i, name in enumerate(layers) if name.startswith("attention")] == [4, 12, 20, 28]
    assert [i for i, name in enumerate(layers) if name.endswith("mixture")] == list(range(1, 32, 2))


def test_mini_keeps_4_gib_of_256_thousand_tokens():
    """AI21's table of the Jamba paper (arXiv:2403.19887) has 4 GB for 256K tokens in 16 bits."""
    assert cache_bytes(model(MINI), 2**18) == 4 * GIB


@pytest.mark.parametrize(("kind", "width"), [("float32", 4), (None, 2)])
def test_mini_keeps_28_states_whatever_the_length(kind: str | None, width: int):
    state = cache_bytes(model(MINI, mamba_ssm_cache_dtype=kind), 1, StateCache)
    assert state == 28 * 8192 * (16 * width + 3 * 2)


def test_one_expert_makes_all_layers_dense():
    made = model(MINI, num_experts=1)
    assert not [op for op, _ in ops(made) if isinstance(op, MoE)]
    assert made.num_parameters() == made.num_active_parameters()


def test_the_step_has_a_sixteenth_of_the_width_where_the_config_says_auto():
    assert model(MINI, mamba_dt_rank="auto").num_parameters() == model(MINI).num_parameters()


def test_step_b_and_c_have_norms_with_weights():
    mixer = next(op for op, _ in ops(model(MINI)) if isinstance(op, Mamba))
    norms = {weight.name: weight.num_parameters for weight in mixer.weights() if weight.part == "norm"}
    assert norms == {"mamba.dt_layernorm.weight": 256, "mamba.b_layernorm.weight": 16, "mamba.c_layernorm.weight": 16}
