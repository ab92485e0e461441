"""Counts: transformers' class with the configs of RecurrentGemma 2B (2.68B in its paper) and 9B (8.58B)."""

import pytest

from architectures.reading import cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import StateCache

TWO = "google/recurrentgemma-2b"


@pytest.mark.parametrize(("name", "count"), [(TWO, 2_682_862_080), ("google/recurrentgemma-9b", 8_579_977_216)])
def test_recurrent_gemma_has_the_published_parameters(name: str, count: int):
    assert model(name).num_parameters() == count


def test_keys_and_values_stop_growing_at_the_window():
    made = model(TWO)
    assert cache_bytes(made, 1000) == 8 * 2 * 256 * 2 * 1000
    assert cache_bytes(made, 8192) == cache_bytes(made, 2048) == 8 * 2 * 256 * 2 * 2048


def test_eighteen_layers_keep_a_state_in_fp32_and_three_columns():
    assert cache_bytes(model(TWO), 8192, StateCache) == 18 * 2560 * (4 + 3 * 2)


def test_the_gates_are_cut_into_blocks():
    gate = next(w for op, _ in ops(model(TWO)) for w in op.weights() if w.name.endswith("rg_lru.input_gate_weight"))
    assert gate.num_parameters == 10 * 256 * 256


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_types": ["recurrent", "mamba"]}, "block_types may hold recurrent, attention. Got 'mamba'"),
        ({"block_types": []}, "block_types must name at least one"),
        ({"lru_width": 2570, "num_attention_heads": 20}, r"num_attention_heads \(20\) must divide lru_width \(2570\)"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(TWO, **changes)
