"""MLX on Apple's GPUs: weights by bits and group, a cache in steps of 256 tokens, prompts that are evaluated up to
their caches, and what mlx-lm's own benchmarks measured.
"""

import pytest

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import InvalidPlan
from tonnage.spec import ServingPlan

MAX = "m4-max-64gb"
SHORT = {"input_tokens": 2048, "output_tokens": 128}


def bytes_of(model, part, **plan):
    chosen = ServingPlan.of_fields(engine="mlx", **{"context": 2176, "weights": "mlx-4bit", **plan})
    return serving_memory(read(model), chosen, accelerator("apple-m4-max-64gb")).memory.child(part).value


@pytest.mark.parametrize(
    ("weights", "bits"), [("mlx-4bit", 4.5), ("mlx-4bit-32g", 5), ("mlx-5bit-32g", 6), ("mlx-8bit", 8.5)]
)
def test_a_scale_and_an_offset_of_16_bits_for_each_group_are_counted_for_matrices_and_tables(weights, bits):
    found = bytes_of("qwen3-4b-instruct-2507", "weights", weights=weights)
    assert found == pytest.approx(4_022_468_096 * bits / 8, rel=0.002)  # norms alone stay in 16 bits


@pytest.mark.parametrize(("tokens", "held"), [(1, 256), (256, 256), (257, 512), (2176, 2304)])
def test_a_cache_grows_in_steps_of_256_tokens(tokens, held):
    """mlx-lm, mlx_lm/models/cache.py: KVCache.step."""
    assert bytes_of("qwen3-4b-instruct-2507", "kv cache", context=tokens) == held * 36 * 2 * 8 * 128 * 2


def test_a_window_holds_itself_and_one_step_of_a_prompt():
    """mlx-lm, mlx_lm/models/cache.py: RotatingKVCache, at most max_size and the tokens of a step."""
    window, full = bytes_of("gemma-3-4b-pt", "kv cache", context=32768), 34 * 32768 * 4096
    assert window == (5 * 32768 + 29 * (1024 + 2048)) * 4096 < full


@pytest.mark.parametrize(
    ("model", "weights", "gb"),
    [
        ("qwen3-4b-instruct-2507", "bf16", 9.02),
        ("qwen3-4b-instruct-2507", "mlx-8bit", 5.254),
        ("qwen3-30b-a3b-instruct-2507", "mlx-6bit", 25.82),
        ("qwen3-30b-a3b-instruct-2507", "mlx-4bit", 18.20),
    ],
)
def test_the_peak_of_mlx_lms_own_benchmark_is_met_within_a_tenth(model, weights, gb):
    """mlx-lm, mlx_lm/BENCHMARKS.md: 64GB M4 Max, prompts of 2048 tokens."""
    answer = tonnage.serve(model, on=MAX, engine="mlx", weights=weights, **SHORT).to_dict()
    assert answer["memory"]["value"] / 1e9 == pytest.approx(gb, rel=0.1)


def test_a_decoded_token_takes_what_mlx_lms_own_benchmark_measured():
    answer = tonnage.serve("qwen3-30b-a3b-instruct-2507", on=MAX, engine="mlx", weights="mlx-4bit", **SHORT)
    assert 1 / answer.to_dict()["serving"]["tpot_seconds"]["value"] == pytest.approx(113.33, rel=0.1)


def test_layers_that_read_anothers_keys_are_computed_for_the_last_token_of_a_prompt_alone():
    """mlx-lm, mlx_lm/generate.py: generate_step evaluates the caches; 20 of Gemma 4 E2B's 35 layers keep none."""
    asked = {"on": "m3-max-64gb", "input_tokens": 31834, "output_tokens": 512}
    mlx = tonnage.serve("gemma-4-e2b-it", engine="mlx", weights="mlx-4bit", **asked).to_dict()["serving"]
    every = tonnage.serve("gemma-4-e2b-it", engine="llama.cpp", weights="q4_0", **asked).to_dict()["serving"]
    assert mlx["ttft_seconds"]["value"] < every["ttft_seconds"]["value"] / 2


def test_its_files_are_its_own_and_a_mac_is_its_machine():
    on_mac = tonnage.serve("mlx-community/Qwen3-8B-4bit", on="m3-max-64gb").to_dict()
    assert on_mac["question"]["engine"]["value"] == "mlx"
    assert tonnage.serve("mlx-community/Qwen3-8B-4bit", on="h100").to_dict()["question"]["engine"]["value"] != "mlx"
    with pytest.raises(InvalidPlan, match=r"mlx-lm .* runs on accelerators of Apple"):
        tonnage.serve("qwen3-8b", on="h100", engine="mlx")
    with pytest.raises(InvalidPlan, match="loads bf16"):
        tonnage.serve("qwen3-8b", on=MAX, engine="mlx", weights="q4_k_m")


def test_its_command_says_what_differs_from_its_defaults():
    answer = tonnage.serve(
        "mlx-community/Qwen3-8B-4bit", on=MAX, context=4096, concurrency=40, max_num_batched_tokens=512
    ).to_dict()
    assert answer["serving"]["launch"].splitlines()[0] == (
        "mlx_lm.server --model mlx-community/Qwen3-8B-4bit --prefill-step-size 512 --decode-concurrency 40"
    )
