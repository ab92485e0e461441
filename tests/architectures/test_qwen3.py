"""Counts: safetensors totals of the Hub, for tied models less the stored copy of the table, and the class of
transformers.
"""

import pytest

from architectures.modern_a_configs import CONFIGS
from architectures.reading import billions, model, ops
from tonnage.architectures import build
from tonnage.ops import Attention


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [
        ("Qwen/Qwen3-0.6B", 596_049_920, 0.6),
        ("Qwen/Qwen3-4B", 4_022_468_096, 4.0),
        ("Qwen/Qwen3-32B", 32_762_123_264, 32.8),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624, 3.4),
        ("Qwen/Qwen3-235B-A22B", 235_093_634_560, 22.2),
    ],
)
def test_qwen3_has_the_published_parameters(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(made.num_active_parameters(), 1) == active


def test_thirty_billion_a3b_uses_3_3_billion_without_half_of_its_tables():
    """The model card counts 3.3 B activated and 29.9 B of 30.5 B outside the tables."""
    made = model("Qwen/Qwen3-30B-A3B")
    assert billions(made.num_parameters() - made.num_embedding_parameters(), 1) == 29.9
    assert 3.3e9 < made.num_active_parameters() < 3.36e9


def test_each_heads_query_and_key_is_normalised_with_one_vector():
    mixer = next(op for op, _ in ops(model("Qwen/Qwen3-4B")) if isinstance(op, Attention))
    assert {weight.name: weight.rows for weight in mixer.weights() if "norm" in weight.name} == {
        "self_attn.q_norm.weight": 128,
        "self_attn.k_norm.weight": 128,
    }


def test_heads_may_be_wider_than_the_hidden_size_divided_by_their_number():
    mixer = next(op for op, _ in ops(model("Qwen/Qwen3-0.6B")) if isinstance(op, Attention))
    assert (mixer.head_dim, mixer.hidden_size // mixer.heads) == (128, 64)


@pytest.mark.parametrize(
    ("name", "model_type"), [("Qwen/Qwen3-4B", "qwen3_vl_text"), ("Qwen/Qwen3-30B-A3B", "qwen3_vl_moe_text")]
)
def test_the_language_models_of_qwen3_vl_are_read_by_their_type(name: str, model_type: str):
    fields = {key: value for key, value in CONFIGS[name].items() if key != "architectures"} | {"model_type": model_type}
    assert build(fields, name).num_parameters() == model(name).num_parameters()


def test_all_layers_of_a_sliding_mixture_slide():
    made = model("Qwen/Qwen3-30B-A3B", use_sliding_window=True, sliding_window=4096)
    assert [(op.window, count) for op, count in ops(made) if isinstance(op, Attention)] == [(4096, 48)]
