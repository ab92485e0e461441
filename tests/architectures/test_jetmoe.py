"""Count: transformers' class with the config of JetMoE-8B (published: 8B with 2.2B active, the table counted once)."""

from architectures.reading import cache_bytes, model, ops
from tonnage.ops import RoutedAttention

NAME = "jetmoe/jetmoe-8b"


def test_jetmoe_has_the_published_parameters():
    made = model(NAME)
    assert made.num_parameters() == 8_522_237_952
    assert made.num_active_parameters() == 2_331_445_248


def test_a_token_makes_the_queries_of_two_experts_and_one_set_of_keys():
    attention = next(op for op, _ in ops(model(NAME)) if isinstance(op, RoutedAttention))
    shapes = {
        weight.name: (weight.rows, weight.columns, weight.copies, weight.active) for weight in attention.weights()
    }
    assert shapes["self_attention.experts.input_linear.weight"] == (2048, 2048, 8, 2)
    assert shapes["self_attention.kv_proj.weight"] == (4096, 2048, 1, None)
    assert cache_bytes(model(NAME), 4096) == 24 * 2 * 16 * 128 * 2 * 4096
