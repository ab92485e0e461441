"""Counts: safetensors totals of the Hub; active ones: OpenAI's model card (5.13 B and 3.61 B with the head,
without the table).
"""

import pytest

from architectures.reading import billions, model, ops, without_table
from tonnage.ops import Attention


@pytest.mark.parametrize(
    ("name", "count", "active"),
    [("openai/gpt-oss-20b", 20_914_757_184, 3.61), ("openai/gpt-oss-120b", 116_829_156_672, 5.13)],
)
def test_gpt_oss_has_the_published_parameters(name: str, count: int, active: float):
    made = model(name)
    assert made.num_parameters() == count
    assert billions(without_table(made), 2) == active


def test_every_other_layer_sees_128_tokens_and_every_head_has_a_sink():
    mixers = [
        (op.window, count, op.sinks) for op, count in ops(model("openai/gpt-oss-120b")) if isinstance(op, Attention)
    ]
    assert mixers == [(128, 18, True), (None, 18, True)]


def test_experts_have_biases_and_their_gate_and_up_are_one_tensor():
    weights = [
        weight for op, _ in ops(model("openai/gpt-oss-20b")) for weight in op.weights() if weight.part == "experts"
    ]
    assert {weight.name for weight in weights} == {
        "mlp.experts.gate_up_proj.weight",
        "mlp.experts.gate_up_proj.bias",
        "mlp.experts.down_proj.weight",
        "mlp.experts.down_proj.bias",
    }
    assert {weight.copies for weight in weights} == {32}
