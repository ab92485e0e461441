"""The decoder from neutral dimensions, against published counts of models of every kind that it can express.

Dimensions are those of the sources beside the counts, mostly Lightning-AI/litgpt litgpt/config.py (commit 26857050),
which links each model's config.json.
"""

from typing import Any

import pytest

from tonnage.architectures import Model, build
from tonnage.kernel.errors import InvalidInput

KERAS = "keras-team/keras-hub presets, metadata.params (commit 71453d08f)"
HUB = "Hugging Face Hub API, safetensors.total"
CALFLOPS = "MrYxJ/calculate-flops.pytorch README, Params(Total)"
FOUNDRY = "mosaicml/llm-foundry scripts/train/benchmarking/README.md, NumParams at 2,048 tokens"
PYTHIA = "Biderman2023, table 1, with both tables"


def sizes(
    hidden: int, layers: int, heads: int, inner: int, vocabulary: int, groups: int | None = None, **more: Any
) -> dict[str, Any]:
    fields = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
        "vocab_size": vocabulary,
        **more,
    }
    return fields if groups is None else fields | {"num_key_value_heads": groups}


PLAIN: dict[str, Any] = {
    "norm": "layer",
    "mlp": "plain",
    "mlp_bias": True,
    "attention_bias": True,
    "attention_out_bias": True,
}
TIED = {"tie_word_embeddings": True}
LEARNED: dict[str, Any] = PLAIN | TIED | {"position_embeddings": "learned"}
SANDWICH = {"post_norms": True, "qk_norm": "head", "head_dim": 256} | TIED
AFTER = {"pre_norms": False, "post_norms": True, "qk_norm": "full"}
LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
STATE = {"state_size": 16, "conv_kernel": 4, "expand": 2} | TIED

ROWS: dict[str, tuple[dict[str, Any], int, str]] = {
    "llama-2-13b": (sizes(5120, 40, 40, 13824, 32000, 40), 13_015_864_320, "public list of model.num_parameters()"),
    "llama-3.1-70b": (sizes(8192, 80, 64, 28672, 128256, 8), 70_553_706_496, HUB),
    "llama-3.2-1b": (sizes(2048, 16, 32, 8192, 128256, 8, **TIED), 1_235_814_400, HUB),
    "mistral-7b-v0.1": (sizes(4096, 32, 32, 14336, 32000, 8, sliding_window=4096), 7_241_732_096, KERAS),
    "mixtral-8x7b": (
        sizes(4096, 32, 32, 14336, 32000, 8, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=14336),
        46_702_792_704,
        KERAS,
    ),
    "gemma-7b": (sizes(3072, 28, 16, 24576, 256000, 16, head_dim=256, **TIED), 8_537_680_896, KERAS),
    "gemma-3-1b": (
        sizes(1152, 26, 4, 6912, 262144, 1, sliding_window=512, sliding_layers=22, **SANDWICH),
        999_885_952,
        KERAS,
    ),
    "phi-4-mini": (sizes(3072, 32, 24, 8192, 200064, 8, **TIED), 3_836_021_760, HUB),
    "qwen2.5-7b": (sizes(3584, 28, 28, 18944, 152064, 4, attention_bias=True), 7_615_616_512, HUB),
    "qwen3-30b-a3b": (
        sizes(
            2048,
            48,
            32,
            6144,
            151936,
            4,
            head_dim=128,
            qk_norm="head",
            num_experts=128,
            num_experts_per_tok=8,
            moe_intermediate_size=768,
        ),
        30_532_122_624,
        KERAS,
    ),
    "olmo-2-13b": (sizes(5120, 40, 40, 13824, 100352, 40, **AFTER), 13_716_198_400, HUB),
    "olmo-2-32b": (sizes(5120, 64, 40, 27648, 100352, 8, **AFTER), 32_234_279_936, "public list"),
    "pythia-160m": (sizes(768, 12, 12, 3072, 50304, **PLAIN), 162_322_944, "public list of Hub counts"),
    "pythia-6.9b": (sizes(4096, 32, 32, 16384, 50432, **PLAIN), 6_857_302_016, PYTHIA),
    "falcon-180b": (sizes(14848, 80, 232, 59392, 65024, 8, norm="layer", mlp="plain"), 179_522_565_120, HUB),
    "gpt2-xl": (sizes(1600, 48, 25, 6400, 50257, max_position_embeddings=1024, **LEARNED), 1_557_611_200, KERAS),
    "opt-1.3b": (sizes(2048, 24, 32, 8192, 50272, max_position_embeddings=2048, **LEARNED), 1_315_753_984, KERAS),
    "bloom-3b": (
        sizes(2560, 30, 32, 10240, 250880, position_embeddings="alibi", embedding_norm=True, **PLAIN, **TIED),
        3_002_557_440,
        KERAS,
    ),
    "chatglm-6b": (sizes(4096, 28, 32, 16384, 130528, **PLAIN, **TIED), 6_173_286_400, CALFLOPS),
    "baichuan-7b": (sizes(4096, 32, 32, 11008, 64000), 7_000_559_616, CALFLOPS),
    "mpt-30b": (sizes(7168, 48, 56, 28672, 50368, max_position_embeddings=2048, **LEARNED), 29_975_214_080, FOUNDRY),
    "mamba-130m": (
        {"hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280, "time_step_rank": 48, **STATE},
        129_135_360,
        "public list of Hub counts",
    ),
    "mamba-790m": (
        {"hidden_size": 1536, "num_hidden_layers": 48, "vocab_size": 50280, **STATE},
        793_204_224,
        "public list of Hub counts",
    ),
    "deepseek-v2": (
        sizes(
            5120,
            60,
            128,
            12288,
            102400,
            q_lora_rank=1536,
            num_experts=160,
            num_experts_per_tok=6,
            moe_intermediate_size=1536,
            n_shared_experts=2,
            first_k_dense_replace=1,
            **LATENT,
        ),
        235_741_434_880,
        HUB,
    ),
    "deepseek-v2-lite": (
        sizes(
            2048,
            27,
            16,
            10944,
            102400,
            num_experts=64,
            num_experts_per_tok=6,
            moe_intermediate_size=1408,
            n_shared_experts=2,
            first_k_dense_replace=1,
            **LATENT,
        ),
        15_706_484_224,
        HUB,
    ),
    "minimax-m2": (
        sizes(
            3072,
            62,
            48,
            1536,
            200064,
            8,
            head_dim=128,
            qk_norm="full",
            num_experts=256,
            num_experts_per_tok=8,
            moe_intermediate_size=1536,
            router_correction_bias=True,
        ),
        228_689_764_864,
        HUB,
    ),
    "granite-4.0-micro": (sizes(2560, 40, 40, 8192, 100352, 8, head_dim=64, **TIED), 3_402_836_480, HUB),
    "smollm3-3b": (sizes(2048, 36, 16, 11008, 128256, 4, head_dim=128, **TIED), 3_075_098_624, HUB),
    "ministral-8b-2410": (sizes(4096, 36, 32, 12288, 131072, 8, head_dim=128), 8_019_808_256, HUB),
}


def generic(**fields: Any) -> Model:
    return build({"architectures": ["GenericDecoder"], **fields}, "generic")


@pytest.mark.parametrize("name", ROWS)
def test_a_published_model_is_expressed_by_its_dimensions(name: str):
    fields, parameters, _ = ROWS[name]
    assert generic(**fields).num_parameters() == parameters


def test_opt_keeps_two_more_rows_for_positions():
    fields, parameters, _ = ROWS["opt-1.3b"]
    assert generic(**fields, position_offset=2).num_parameters() == parameters + 2 * 2048


def test_the_model_type_says_the_same_as_the_class_name():
    fields, parameters, _ = ROWS["llama-2-13b"]
    assert build({"model_type": "generic", **fields}, "generic").num_parameters() == parameters


@pytest.mark.parametrize(("hidden", "inner"), [(4096, 11008), (5120, 13824), (6656, 17920), (8192, 22016)])
def test_an_absent_intermediate_size_is_that_of_llama_1_and_is_remembered(hidden: int, inner: int):
    # Touvron2023: 7B, 13B, 33B and 65B
    made = generic(hidden_size=hidden, num_hidden_layers=1, num_attention_heads=hidden // 128, vocab_size=32000)
    assert made.assumed["intermediate_size"] == inner
    assert next(weight.rows for weight, _ in made.weighted() if weight.name == "mlp.up_proj.weight") == inner


def test_a_plain_feed_forward_is_four_times_as_wide():
    made = generic(hidden_size=768, num_hidden_layers=1, num_attention_heads=12, vocab_size=100, mlp="plain")
    assert made.assumed["intermediate_size"] == 3072


def test_layers_that_see_everything_are_spread_among_the_windowed_ones():
    made = generic(**ROWS["gemma-3-1b"][0])
    windows = [made.decoder.blocks[layer].ops[1].window for layer in made.decoder.layers]
    assert windows.count(512) == 22
    assert [i for i, window in enumerate(windows) if window is None] == [6, 12, 19, 25]


def test_a_window_without_a_number_of_layers_is_for_all():
    made = generic(**ROWS["mistral-7b-v0.1"][0])
    assert [cache.window for op in made.decoder.blocks[0].ops for cache in op.caches()] == [4096]


def test_the_first_layers_of_a_mixture_may_be_dense():
    made = generic(**ROWS["deepseek-v2"][0])
    assert [block.name for block in made.decoder.blocks] == ["dense layer", "mixture layer"]
    assert made.decoder.layers == (0,) + (1,) * 59


def test_one_norm_serves_attention_and_feed_forward_side_by_side():
    fields = ROWS["falcon-180b"][0]
    saved = generic(**fields).num_parameters() - generic(**fields, shared_attention_norm=True).num_parameters()
    assert saved == 80 * 2 * 14848


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"num_kv_heads": 8},
            "no field of a generic decoder is called 'num_kv_heads'. Did you mean 'num_key_value_heads'",
        ),
        ({"norm": "batch"}, "norm must be one of rms, layer. Got 'batch'"),
        ({"mlp": "mixture"}, "mlp must be one of gated, plain. Got 'mixture'"),
        ({"qk_norm": "yes"}, "qk_norm must be one of none, head, full, layer-head, layer-full. Got 'yes'"),
        ({"position_embeddings": "relative"}, "position_embeddings must be one of rotary, learned, alibi, none"),
        ({"position_embeddings": "learned"}, "lacks max_position_embeddings"),
        (
            {"sliding_layers": 3},
            r"sliding_layers must be at most num_hidden_layers \(32\), beside a sliding_window. Got 3",
        ),
        ({"sliding_window": 8, "sliding_layers": 33}, r"sliding_layers must be at most num_hidden_layers \(32\)"),
        ({"num_experts": 4, "num_experts_per_tok": 5}, r"num_experts_per_tok \(5\) exceeds num_experts \(4\)"),
        ({"num_key_value_heads": 5}, r"num_key_value_heads \(5\) must divide num_attention_heads \(32\)"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be a whole number from 1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: dict[str, Any], message: str):
    fields = sizes(4096, 32, 32, 14336, 32000)
    with pytest.raises(InvalidInput, match=message):
        generic(**fields | change)
