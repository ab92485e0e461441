"""Counts with draft layers: safetensors totals of the Hub as llmfit 1.1.17 records them; without them, and for
GLM-5.3-Flash (the Hub's total, 321,323,031,390, is that of the whole model), the classes of transformers 5.23.
"""

import pytest

from architectures.reading import billions, cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, KimiDeltaAttention, LatentAttention, StateCache, TokenCache


@pytest.mark.parametrize(
    ("name", "count", "drafts", "active"),
    [
        ("zai-org/glm-4-9b-chat-hf", 9_399_951_360, 9_399_951_360, 9),
        ("zai-org/GLM-4-9B-0414", 9_400_279_040, 9_400_279_040, 9),
        ("zai-org/GLM-4-32B-0414", 32_566_081_536, 32_566_081_536, 33),
        ("zai-org/GLM-4.5-Air", 106_852_251_264, 110_468_824_832, 13),
        ("zai-org/GLM-4.5", 352_797_829_024, 358_337_791_296, 34),
        ("zai-org/GLM-4.7-Flash", 29_943_393_920, 31_221_488_576, 4),
        ("zai-org/GLM-5", 743_911_218_432, 753_864_139_008, 42),
        ("zai-org/GLM-5.2", 743_377_019_904, 753_329_940_480, 41),
        ("zai-org/GLM-5.3-Flash text", 313_326_811_966, 313_326_811_966, 17),
    ],
)
def test_glm_has_the_published_parameters(name: str, count: int, drafts: int, active: int):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)
    assert billions(made.num_active_parameters()) == active


def test_glm_4_5_uses_32_billion_parameters_a_token_outside_its_tables():
    made = model("zai-org/GLM-4.5")
    assert billions(made.num_active_parameters() - made.num_embedding_parameters()) == 32


def test_glm_4_has_norms_behind_its_sublayers_too():
    names = {weight.name for op, _ in ops(model("zai-org/GLM-4-9B-0414")) for weight in op.weights()}
    assert {"post_self_attn_layernorm.weight", "post_mlp_layernorm.weight"} <= names


def test_only_the_larger_glm_4_5_normalises_queries_and_keys():
    def norms(name: str) -> set[str]:
        return {op.qk_norm for op, _ in ops(model(name)) if isinstance(op, Attention)}

    assert norms("zai-org/GLM-4.5") == {"head"}
    assert norms("zai-org/GLM-4.5-Air") == {""}


def indexers(**changes: object) -> int:
    return sum(
        count for op, count in ops(model("zai-org/GLM-5", **changes)) if isinstance(op, LatentAttention) and op.indexer
    )


def test_every_layer_of_glm_5_has_an_indexer_and_21_of_78_of_glm_5_2():
    assert indexers() == 78
    assert (
        sum(count for op, count in ops(model("zai-org/GLM-5.2")) if isinstance(op, LatentAttention) and op.indexer)
        == 21
    )


def test_a_frequency_or_letters_say_the_same_as_a_list_of_indexers():
    assert indexers(index_topk_freq=4, index_skip_topk_offset=3) == 21
    assert indexers(index_topk_pattern="F" * 3 + "S" * 75) == 3
    assert indexers(index_topk_pattern=["full"] * 5 + ["shared"] * 73) == 5


def test_letters_that_mean_nothing_are_refused():
    with pytest.raises(InvalidInput, match="index_topk_pattern"):
        indexers(index_topk_pattern="X" * 78)


def test_a_layer_that_shares_its_indexer_computes_no_scores_of_its_own():
    mixers = [op for op, _ in ops(model("zai-org/GLM-5.2")) if isinstance(op, LatentAttention)]
    assert {op.indexer: len(op.core()) for op in mixers} == {True: 2, False: 1}
    assert {core.window for op in mixers for core in op.core() if "attention" in core.name} == {2048}


def test_an_indexer_of_pools_keeps_a_key_for_each_complete_pool_and_the_rest_in_fp32():
    made = model("zai-org/GLM-5.3-Flash text")
    assert cache_bytes(made, 1003, TokenCache, "indexer") == 11 * 132 * (1003 // 4)
    assert cache_bytes(made, 1003, StateCache, "pool") == 11 * 2 * 4 * 128 * 4
    assert cache_bytes(made, 1003, TokenCache, "latent") == 11 * 512 * 2 * 1003
    assert sum(count for op, count in ops(made) if isinstance(op, KimiDeltaAttention)) == 34
    scores = [
        core.flops
        for op, _ in ops(made)
        if isinstance(op, LatentAttention)
        for core in op.core()
        if "indexer" in core.name
    ]
    assert set(scores) == {2 * 32 * 128 / 4}
