"""MLC LLM: bytes of its quantizations, its share of the memory, its command, and the band of an engine that nobody
measured.
"""

import pytest

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import InvalidPlan
from tonnage.spec import ServingPlan


def bytes_of(part, **plan):
    chosen = ServingPlan.of_fields(engine="mlc", **{"context": 2048, "weights": "q4f16_1", **plan})
    return serving_memory(read("llama-3.1-8b"), chosen, accelerator("rtx-4090")).memory.child(part).value


def served(on="rtx-4090", **options):
    return tonnage.serve("llama-3.1-8b", on=on, **{"engine": "mlc", "weights": "q4f16_1", **options}).to_dict()


# Llama 3.1 8B: 32 layers, hidden 4096, 32 and 8 heads of 128, intermediate 14336; table and head of 128,256 rows
LAYER = [(4096, 4096)] * 2 + [(1024, 4096)] * 2 + [(14336, 4096)] * 2 + [(4096, 14336)]
TABLES = [(128_256, 4096)] * 2
NORMS = 65 * 4096 * 2


def in_groups(shapes, group):
    """Four words and a scale of 16 bits, the last group of a row as large as the others."""
    return sum(rows * -(-columns // group) * (4 * 4 + 2) for rows, columns in shapes)


@pytest.mark.parametrize(("weights", "group"), [("q4f16_1", 32), ("q4f16_0", 32), ("q4bf16_1", 32), ("q3f16_1", 40)])
def test_words_of_32_bits_and_a_scale_for_each_group_hold_matrices_tables_and_head(weights, group):
    """mlc-llm, quantization.py: groups of 32 at 4 bits, of 40 at 3, in uint32; scales in float16."""
    by_hand = 32 * in_groups(LAYER, group) + in_groups(TABLES, group) + NORMS
    assert bytes_of("weights", weights=weights) == by_hand


def test_layout_2_leaves_tables_and_head_in_16_bits():
    by_hand = 32 * in_groups(LAYER, 32) + 2 * 2 * 128_256 * 4096 + NORMS
    assert bytes_of("weights", weights="q4f16_2") == by_hand


def test_a_page_has_16_tokens_of_keys_and_values_in_16_bits():
    assert bytes_of("kv cache", context=17) == 32 * 32 * 2 * 8 * 128 * 2


def test_mode_server_takes_85_percent_of_the_memory():
    """mlc-llm, python/mlc_llm/serve/config.py: gpu_memory_utilization."""
    question = served()["question"]
    assert question["gpu_memory_utilization"]["value"] == 0.85
    assert (question["max_num_seqs"]["value"], question["max_num_batched_tokens"]["value"]) == (128, 8192)


@pytest.mark.parametrize(
    ("options", "overrides"),
    [
        ({"context": 4096}, "max_single_sequence_length=4096"),
        (
            {"context": 4096, "max_num_seqs": 8, "gpu_memory_utilization": 0.9},
            "'max_single_sequence_length=4096;gpu_memory_utilization=0.9;max_num_sequence=8'",
        ),
    ],
)
def test_the_command_overrides_what_the_plan_says(options, overrides):
    launch = " ".join(served(**options)["serving"]["launch"].replace("\\\n", "").split())
    assert launch.startswith(
        f"mlc_llm serve HF://mlc-ai/Llama-3.1-8B-q4f16_1-MLC --mode server --overrides {overrides}"
    )


def test_nobody_published_its_times_and_the_band_is_as_wide_twice_over():
    load = {"input_tokens": 1024, "output_tokens": 128, "concurrency": 4, "weights": "bf16"}
    mlc = served(on="h100", **load)
    other = tonnage.serve("llama-3.1-8b", on="h100", engine="lmdeploy", **load).to_dict()["serving"]
    value, (low, high) = mlc["serving"]["tpot_seconds"]["value"], mlc["serving"]["tpot_band"]
    once = [each / other["tpot_seconds"]["value"] for each in other["tpot_band"]]
    assert [low / value, high / value] == pytest.approx([each**2 for each in once])
    assert any("no published runs of mlc give its TTFT, TPOT" in warning for warning in mlc["warnings"])


def test_its_files_are_its_own_on_the_vendors_that_tvm_compiles_for():
    answer = tonnage.serve("llama-3.1-8b", on="m4-max-64gb", weights="q4f16_1").to_dict()
    assert answer["question"]["engine"]["value"] == "mlc"
    with pytest.raises(InvalidPlan, match=r"only mlc loads files in q4f16_1\. Got engine llama.cpp"):
        served(engine="llama.cpp")
    with pytest.raises(InvalidPlan, match="runs on accelerators of NVIDIA, AMD, Apple, Intel"):
        served(on="ascend-910b-64gb")
