"""SGLang's pools of a model that keeps compressed keys beside a window: DeepSeek-V4-Flash has 43 layers with windows of
128 tokens and 512 numbers a token, 21 of them compress 4 tokens to one and 20 compress 128.

Source: SGLang 0.5.23, sglang/srt/model_executor/pool_configurator.py: DSV4PoolConfigurator.
"""

import pytest

import tonnage

FLASH = {"model": "deepseek-v4-flash", "on": "8xH200", "engine": "sglang", "as_is": True, "concurrency": 1}
WINDOW, PAGE, WIDTH, INDEX = 128, 256, 512, 128
SET_ASIDE = WINDOW + 128 + 2 * PAGE + 4 * (WINDOW + PAGE)


def cache_of(tokens: int) -> float:
    answer = tonnage.serve(**FLASH, input_tokens=tokens - 64, output_tokens=64)
    return next(part.value for part in answer.memory.children if part.name == "kv cache")


def test_a_request_keeps_its_compressed_keys_and_what_is_set_aside_for_its_window():
    windows = SET_ASIDE * 43 * WIDTH * 2
    rings = SET_ASIDE / PAGE * 21 * 8 * 4 * (WIDTH + INDEX) * 4  # 8 slots of keys and gates of both series, fp32
    states = 20 * 128 * 2 * WIDTH * 4
    token = 21 * (WIDTH * 2 + INDEX + 4) / 4 + 20 * WIDTH * 2 / 128
    assert cache_of(9216) == pytest.approx(windows + rings + states + 9216 * token, rel=1e-12)


def test_the_window_takes_no_more_for_a_longer_request():
    assert cache_of(20480) - cache_of(10240) == pytest.approx(cache_of(30720) - cache_of(20480), rel=1e-12)
    assert cache_of(1_000_000) < 100 * cache_of(9216)
