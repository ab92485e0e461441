"""What one request of 131,072 tokens keeps with bf16 keys and values, against sizes computed by hand from the
configs.
"""

import pytest

from architectures.reading import GIB, cache_bytes, model
from tonnage.architectures import build
from tonnage.ops import StateCache, TokenCache

CONTEXT = 131_072
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
}  # fmt: skip


def gib(name: str, part: str = "", context: int = CONTEXT) -> float:
    return cache_bytes(model(name), context, TokenCache, part) / GIB


def test_llama_3_1_8b_keeps_16_gib():
    assert cache_bytes(build(LLAMA, "llama"), CONTEXT) == 16 * GIB


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("deepseek-ai/DeepSeek-V3", 61 * 576 * 2 * CONTEXT),
        ("moonshotai/Kimi-K2-Instruct", 61 * 576 * 2 * CONTEXT),
        ("zai-org/GLM-5", 78 * (576 * 2 + 132) * CONTEXT),
        ("openai/gpt-oss-120b", 18 * 2 * 8 * 64 * 2 * (CONTEXT + 128)),
        ("google/gemma-4-26B-A4B text", 2 * 2 * (5 * 2 * 512 * CONTEXT + 25 * 8 * 256 * 1024)),
        ("Qwen/Qwen3.5-27B", 16 * 2 * 4 * 256 * 2 * CONTEXT),
        ("XiaomiMiMo/MiMo-V2-Flash", 2 * (192 + 128) * (9 * 4 * CONTEXT + 39 * 8 * 128)),
        ("meta-llama/Llama-4-Scout text", 2 * 2 * 8 * 128 * (12 * CONTEXT + 36 * 8192)),
    ],
)
def test_a_request_keeps_what_its_layers_add_up_to(name: str, expected: int):
    assert cache_bytes(model(name), CONTEXT) == expected


@pytest.mark.parametrize(
    ("name", "expected", "within"),
    [
        ("deepseek-ai/DeepSeek-V3", 8.58, 0.005),
        ("moonshotai/Kimi-K2-Instruct", 8.58, 0.005),
        ("openai/gpt-oss-120b", 4.50, 0.01),
        ("google/gemma-4-26B-A4B text", 2.70, 0.005),
        ("Qwen/Qwen3.5-27B", 8.0, 0.005),
        ("XiaomiMiMo/MiMo-V2-Flash", 2.81, 0.05),
        ("meta-llama/Llama-4-Scout text", 7.1, 0.05),
    ],
)
def test_a_request_keeps_what_was_read_off_the_configs_by_others(name: str, expected: float, within: float):
    assert gib(name) == pytest.approx(expected, abs=within)


def test_glm_5_keeps_latents_and_beside_them_132_bytes_a_token_and_indexer():
    assert gib("zai-org/GLM-5", "latent") == pytest.approx(10.97, abs=0.005)
    assert gib("zai-org/GLM-5", "indexer") * GIB == 78 * 132 * CONTEXT


def test_glm_5_2_keeps_indexer_keys_in_the_layers_that_have_an_indexer():
    assert gib("zai-org/GLM-5.2", "indexer") * GIB == 21 * 132 * CONTEXT
    assert gib("zai-org/GLM-5.2", "latent") == gib("zai-org/GLM-5", "latent")


def test_qwen3_5_keeps_a_recurrent_state_of_0_14_gib_whatever_the_length():
    state = cache_bytes(model("Qwen/Qwen3.5-27B"), CONTEXT, StateCache)
    assert state == 48 * (48 * 128 * 128 * 4 + (2 * 16 + 48) * 128 * 3 * 2)
    assert state / GIB == pytest.approx(0.14, abs=0.005)


def test_deepseek_v4_keeps_9_62_gib_of_a_million_tokens_where_indexer_keys_were_bf16():
    """The figure of vLLM's announcement (April 2026): compressed keys of 512 and indexer keys of 128 numbers in
    bf16.
    """
    million = 2**20
    indexer_keys = 30 * 128 * 2 * million // 4
    compressed = gib("deepseek-ai/DeepSeek-V4-Pro", "compressed", million)
    assert compressed + indexer_keys / GIB == pytest.approx(9.62, abs=0.005)


def test_layers_that_read_another_layers_cache_keep_nothing():
    e4b = cache_bytes(model("google/gemma-3n-E4B text"), CONTEXT)
    assert e4b == 2 * 2 * 2 * 256 * (4 * CONTEXT + 16 * 512)  # of 35 layers, 20 have keys: 4 full and 16 sliding
