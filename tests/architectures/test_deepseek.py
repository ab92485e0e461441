"""Counts with draft layers: safetensors totals of the Hub (DeepSeek-R1 in bf16 for V3); without: the classes of
transformers.
"""

import pytest

from architectures.reading import billions, cache_bytes, model, ops, without_table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, LatentAttention, MoE


@pytest.mark.parametrize(
    ("name", "count", "drafts", "active"),
    [
        ("deepseek-ai/DeepSeek-V2-Lite", 15_706_484_224, 15_706_484_224, 2.5),
        ("deepseek-ai/DeepSeek-V2", 235_741_434_880, 235_741_434_880, 20.9),
        ("deepseek-ai/DeepSeek-V3", 671_026_419_200, 684_489_845_504, 36.6),
        ("deepseek-ai/DeepSeek-V3.2", 671_877_944_064, 685_355_329_792, 37.5),
        ("moonshotai/Kimi-K2-Instruct", 1_026_408_232_448, 1_026_408_232_448, 31.7),
    ],
)
def test_deepseek_has_the_published_parameters(name: str, count: int, drafts: int, active: float):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)
    assert billions(without_table(made), 1) == active


def test_v2_lite_projects_queries_without_a_latent():
    mixer = next(op for op, _ in ops(model("deepseek-ai/DeepSeek-V2-Lite")) if isinstance(op, LatentAttention))
    assert "self_attn.q_proj.weight" in {weight.name for weight in mixer.weights()}


def test_v3_corrects_its_router_and_v2_does_not():
    def corrected(name: str) -> bool:
        return any(op.correction_bias for op, _ in ops(model(name)) if isinstance(op, MoE))

    assert corrected("deepseek-ai/DeepSeek-V3") and corrected("moonshotai/Kimi-K2-Instruct")
    assert not corrected("deepseek-ai/DeepSeek-V2")


def test_the_first_layers_are_dense():
    feeds = [(type(op), count) for op, count in ops(model("deepseek-ai/DeepSeek-V3")) if isinstance(op, MLP | MoE)]
    assert feeds == [(MLP, 3), (MoE, 58)]


def test_the_indexer_of_v3_2_adds_132_bytes_a_token_and_layer():
    made = model("deepseek-ai/DeepSeek-V3.2")
    assert cache_bytes(made, 1, name="indexer") == 61 * 132
    assert cache_bytes(made, 1, name="latent") == 61 * 576 * 2


def test_the_draft_layer_holds_copies_of_the_table_and_the_head():
    draft = model("deepseek-ai/DeepSeek-V3").branch("multi-token prediction")
    assert draft is not None
    names = {weight.name for weight, _ in draft.weighted()}
    assert {
        "embed_tokens.weight",
        "eh_proj.weight",
        "shared_head.head.weight",
        "mlp.gate.e_score_correction_bias",
    } <= names


def test_mistral_large_3_is_read_as_deepseek_v3():
    made = model("deepseek-ai/DeepSeek-V3", architectures=["MistralLarge3ForCausalLM"])
    assert made.family == "deepseek"


def test_a_kind_of_feed_forward_that_nobody_knows_is_refused():
    with pytest.raises(InvalidInput, match="dense, sparse"):
        model("deepseek-ai/DeepSeek-V3", mlp_layer_types=["wide"] * 61)
