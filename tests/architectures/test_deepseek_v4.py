"""Counts with the draft layer: safetensors totals of the Hub; caches: inference/model.py of DeepSeek-V4-Flash."""

import pytest

from architectures.reading import billions, cache_bytes, model, ops, without_table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import CompressedAttention, HyperConnection, Kernels, StateCache, TokenCache

FLASH, PRO = "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro"


@pytest.mark.parametrize(
    ("name", "count", "drafts", "active"),
    [(FLASH, 284_334_567_511, 290_944_616_402, 13), (PRO, 1_572_999_528_803, 1_598_839_674_782, 49)],
)
def test_deepseek_v4_has_the_published_parameters(name: str, count: int, drafts: int, active: int):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)
    assert billions(without_table(made)) == active


def mixers(name: str) -> dict[int, tuple[CompressedAttention, int]]:
    found: dict[int, tuple[CompressedAttention, int]] = {}
    for op, count in ops(model(name)):
        if isinstance(op, CompressedAttention):
            found[op.ratio] = (op, count + found.get(op.ratio, (op, 0))[1])
    return found


def test_pro_has_30_sparse_and_31_heavy_layers_and_flash_two_that_only_slide():
    assert {ratio: count for ratio, (_, count) in mixers(PRO).items()} == {128: 31, 4: 30}
    assert {ratio: count for ratio, (_, count) in mixers(FLASH).items()} == {0: 2, 4: 21, 128: 20}


def test_an_entry_is_written_once_its_tokens_are_there():
    made = model(PRO)
    short, longer = (cache_bytes(made, tokens, TokenCache, "compressed") for tokens in (127, 128))
    assert short == 30 * (127 // 4) * 512 * 2
    assert longer == (30 * 32 + 31 * 1) * 512 * 2


def test_only_sparse_layers_have_an_indexer():
    op, _ = mixers(PRO)[4]
    assert [cache.name for cache in op.caches()] == [
        "window's keys",
        "compressed keys",
        "compressor state",
        "indexer keys",
        "compressor state",
    ]
    assert [cache.name for cache in mixers(PRO)[128][0].caches()] == [
        "window's keys",
        "compressed keys",
        "compressor state",
    ]
    assert [cache.name for cache in mixers(FLASH)[0][0].caches()] == ["window's keys"]


def test_incomplete_groups_are_kept_in_fp32():
    sparse = [cache for cache in mixers(PRO)[4][0].caches() if isinstance(cache, StateCache)]
    heavy = [cache for cache in mixers(PRO)[128][0].caches() if isinstance(cache, StateCache)]
    assert [cache.elements for cache in sparse] == [2 * 8 * 2 * 512, 2 * 8 * 2 * 128]
    assert [cache.elements for cache in heavy] == [2 * 128 * 512]
    assert {cache.bytes_per_element for cache in sparse + heavy} == {4}


def test_a_query_attends_to_the_window_and_to_the_entries_that_the_indexer_picked():
    op, _ = mixers(PRO)[4]
    per_key = 4 * 128 * 512
    assert [(core.flops, core.window) for core in op.core()] == [
        (per_key, 128),
        (per_key / 4, 4 * 1024),
        (2 * 64 * 128 / 4, None),
    ]
    assert len(mixers(FLASH)[0][0].core()) == 1


def test_four_residual_streams_are_kept_for_backward():
    made = model(PRO)
    streams = [(op, count) for op, count in ops(made) if isinstance(op, HyperConnection)]
    assert sum(count for _, count in streams) == 2 * 61
    assert streams[0][0].saved(Kernels())[0].elements == 4 * 7168


def test_attention_keeps_its_queries_and_what_it_compresses():
    names = {saved.name for saved in mixers(PRO)[4][0].saved(Kernels())}
    assert {"queries", "compressed keys", "output latent", "attention output"} <= names


def test_the_first_three_layers_choose_experts_by_a_table_of_tokens():
    names = [(weight.name, count) for weight, count in model(FLASH).decoder.weighted() if "tid2eid" in weight.name]
    assert sum(count for _, count in names) == 3
    biases = sum(count for weight, count in model(FLASH).decoder.weighted() if weight.name == "ffn.gate.bias")
    assert biases == 40


def test_layer_types_name_the_ratios_as_transformers_saves_them():
    kinds = (
        ["heavily_compressed_attention"] * 2
        + ["compressed_sparse_attention", "heavily_compressed_attention"] * 29
        + ["compressed_sparse_attention"]
    )
    made = model(PRO, compress_ratios=None, layer_types=kinds)
    assert made.num_parameters() == model(PRO).num_parameters()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compress_ratios": None}, "compress_ratios"),
        ({"compress_ratios": [4] * 10}, "0, 4 or 128"),
        ({"compress_ratios": [3] * 62}, "0, 4 or 128"),
        ({"compress_ratios": None, "layer_types": ["full_attention"] * 61}, "layer_types may hold"),
    ],
)
def test_ratios_that_nobody_knows_are_refused(changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(PRO, **changes)
