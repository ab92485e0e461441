"""LoRA adapters of a served model: slots on the GPU, products in each pass, adapters that come from host memory."""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan, TonnageError

# Of Llama-3.1-8B what all matrices of its layers take and give: 41,943,040 parameters at rank 16.
NUMBERS = 41_943_040 // 16
QUESTION = {"on": "h100", "input_tokens": 1000, "output_tokens": 300, "concurrency": 16, "advice": False}


def served(**more: object) -> tonnage.Answer:
    return tonnage.serve("llama-3.1-8b", **{**QUESTION, "lora_adapters": 8, "lora_rank": 64, **more})


def decode(answer: tonnage.Answer, part: str) -> float:
    """Seconds of a part of a decode step."""
    return next(term.value for _, term in answer.serving.tpot_seconds.walk() if str(term.name) == part)


def test_a_pass_reads_the_adapters_in_use_and_starts_two_kernels_for_four_products_of_a_layer():
    """vllm/lora/ops/triton_ops: shrink and expand, of qkv, o, gate_up and down."""
    one, eight = (decode(served(lora_active=number), "LoRA adapters") for number in (1, 8))
    rate = 7 * 64 * NUMBERS * 2 / (eight - one)
    assert 0.6 * 3.35e12 < rate < 3.35e12, "at the bandwidth at which weights are read"
    kernels = one - 64 * NUMBERS * 2 / rate
    assert kernels / (2 * 4 * 32) == pytest.approx(4.5e-6, rel=0.3), "kernels as short as others that multiply"
    assert decode(served(concurrency=2), "LoRA adapters") < decode(served(), "LoRA adapters"), "of two requests two"


def test_without_adapters_no_pass_has_them():
    plain = served(lora_adapters=None, lora_rank=None)
    assert plain.serving.tpot_seconds.value < served().serving.tpot_seconds.value
    assert all("LoRA" not in str(term.name) for _, term in plain.serving.tpot_seconds.walk())


def test_an_adapter_that_is_not_on_the_gpu_comes_over_the_host_link():
    """H100: 63 GB/s, of which a copy reaches 0.8769. Of 80 adapters 72 are not in the 8 slots."""
    cold, warm = served(lora_on_host=80).serving, served().serving
    loaded = next(term.value for _, term in cold.ttft_seconds.walk() if str(term.name) == "LoRA adapters loaded")
    assert loaded == pytest.approx(0.9 * 64 * NUMBERS * 2 / (63e9 * 0.8769), rel=0.01)
    assert cold.tpot_seconds.value > warm.tpot_seconds.value, "passes wait for the copy"
    assert "--max-loras 8 --max-lora-rank 64 --max-cpu-loras 80" in cold.launch
    assert "--max-loaded-loras 80" in served(engine="sglang", lora_on_host=80).serving.launch


def test_slots_of_a_mixture_have_room_for_adapters_of_its_experts():
    """vllm/lora/layers/fused_moe.py: of 128 experts in 48 layers 3 pairs of 2,048 and 768 numbers; none until 0.11."""
    memory = {
        version: tonnage.serve(
            "qwen3-30b-a3b", on="h200", lora_adapters=1, lora_rank=16, engine_version=version, advice=False
        ).memory.child("weights")
        for version in ("0.33", "0.11")
    }
    adapters = {version: weights.child("adapters").value for version, weights in memory.items()}
    assert adapters["0.33"] - adapters["0.11"] == 48 * 128 * 3 * (2048 + 768) * 16 * 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"lora_active": 9}, "at most the 8"),
        ({"lora_on_host": 4}, "at least the 8"),
        ({"lora_adapters": None, "lora_active": 2}, "lora_adapters"),
        ({"lora_adapters": None, "lora_on_host": 20}, "lora_adapters"),
    ],
)
def test_numbers_of_adapters_that_contradict_each_other_are_refused(more, words):
    with pytest.raises(TonnageError, match=words):
        served(**{**({"lora_rank": None} if "lora_adapters" in more else {}), **more})


def test_adapters_in_host_memory_count_on_every_rank_that_holds_a_copy():
    """vllm/lora/layers/base_linear.py, set_lora: whole adapters are in the memory of each worker."""
    one, two = (
        served(lora_on_host=100, tensor_parallel_size=ranks, on="dgx-h100").serving.host_memory.value
        for ranks in (1, 2)
    )
    assert one == pytest.approx(100 * 64 * NUMBERS * 2) and two == 2 * one


def test_adapters_that_host_memory_does_not_hold_do_not_fit():
    """Of rank 64 each takes 336 MB: 10,000 take 3.05 TiB, and a DGX H100 has 2 TB."""
    full = served(lora_on_host=10_000, on="dgx-h100", tensor_parallel_size=1)
    assert full.fits is False and any("host memory does not suffice: 3.05 TiB" in note for note in full.warnings)
    assert served(lora_on_host=1000, on="dgx-h100", tensor_parallel_size=1).fits
    assert not served(lora_on_host=10_000, on="dgx-h100", tensor_parallel_size=1, advice=True).advice


def test_where_host_memory_is_not_known_the_adapters_are_said():
    answer = served(lora_on_host=10_000, on="rtx-4090", weights="int4", lora_rank=16)
    assert any("10,000 adapters take 781" in note and "--host-memory" in note for note in answer.warnings)


def test_vllm_has_slots_for_a_few_ranks():
    """vllm/config/lora.py: MaxLoRARanks."""
    with pytest.raises(InvalidPlan, match=r"one of 1, 8, 16, 32, 64, 128, 256, 320, 512 .*Got 500. Nearest: 512"):
        served(lora_rank=500)
    assert served(lora_rank=500, engine="sglang").fits
