"""OpenVINO on Intel's GPUs: bytes of its exports, a cache in 8 bits that grows in blocks of 16 tokens, its command, and
what Intel published.
"""

from importlib import import_module
from pathlib import Path

import pytest

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import InvalidInput, InvalidPlan, UnknownName
from tonnage.kernel.units import MIB
from tonnage.spec import ServingPlan

PANTHER = "core ultra x7 358h"
SHORT = {"input_tokens": 1024, "output_tokens": 128, "max_num_batched_tokens": 1024}
# Qwen3-8B: 36 layers, hidden 4096, 32 and 8 heads of 128, intermediate 12288; table and head apart, 151,936 rows
LAYER = [(4096, 4096), (1024, 4096), (1024, 4096), (4096, 4096), (12288, 4096), (12288, 4096), (4096, 12288)]
TABLES = [(151_936, 4096)] * 2
NORMS = (36 * (2 * 4096 + 2 * 128) + 4096) * 2


def bytes_of(part, model="qwen3-8b", **plan):
    chosen = ServingPlan.of_fields(engine="openvino", **{"context": 1152, "weights": "ov-int4", **plan})
    return serving_memory(read(model), chosen, accelerator(PANTHER)).memory.child(part).value


def served(model="qwen3-8b", on=PANTHER, **options):
    return tonnage.serve(model, on=on, **{"engine": "openvino", **SHORT, **options}).to_dict()


def in_eight_bits(shapes):
    return sum(rows * columns + 3 * rows for rows, columns in shapes)


def in_four_bits(shapes, bits, group):
    return sum(rows * columns // 2 + rows * columns // group * bits // 8 for rows, columns in shapes)


@pytest.mark.parametrize(
    ("weights", "bits", "group"),
    [("ov-int4", 20, 128), ("ov-int4-sym", 16, 128), ("ov-int4-sym-64g", 16, 64), ("OV_INT4_asym_32g", 20, 32)],
)
def test_four_bits_have_a_scale_and_a_zero_point_for_each_group_and_tables_are_in_eight_bits(weights, bits, group):
    by_hand = 36 * in_four_bits(LAYER, bits, group) + in_eight_bits(TABLES) + NORMS
    assert bytes_of("weights", weights=weights) == pytest.approx(by_hand, rel=1e-6)


def test_eight_bits_have_a_scale_and_a_zero_point_for_each_row():
    by_hand = 36 * in_eight_bits(LAYER) + in_eight_bits(TABLES) + NORMS
    assert bytes_of("weights", weights="ov-int8") == pytest.approx(by_hand, rel=1e-6)


def test_a_ratio_leaves_the_other_matrices_in_eight_bits():
    four, mixed, eight = (bytes_of("weights", weights=f"ov-int{each}") for each in ("4", "4-r80", "8"))
    assert mixed == pytest.approx(0.8 * four + 0.2 * eight, rel=2e-3)


@pytest.mark.parametrize(("tokens", "held"), [(1, 16), (16, 16), (17, 32), (1152, 1152)])
def test_keys_have_scales_by_channel_of_a_block_of_16_tokens_and_values_by_token(tokens, held):
    """Of each head of 128: 16 x 128 keys, with 4 bytes for each channel; values of a token with 4 bytes."""
    a_block = 8 * ((16 * 128 + 4 * 128) + 16 * (128 + 4))
    assert bytes_of("kv cache", context=tokens, kv_cache="block-int8") == 36 * a_block * held // 16


def test_the_words_of_optimum_intel_mean_its_formats_and_a_cache_in_16_bits_is_asked_for():
    four = served(weights="int4")
    assert four["memory"] == served(weights="ov-int4")["memory"]
    assert four["question"]["kv_cache"]["value"] == "block-int8"
    assert served(weights="int8")["memory"] == served(weights="ov-int8")["memory"]
    wide = served(weights="int4", kv_cache="fp16")
    assert wide["memory"]["value"] > four["memory"]["value"]
    assert '"KV_CACHE_PRECISION": "f16"' in wide["serving"]["launch"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "--weight-format fp16 --max_num_batched_tokens 1024"),
        ({"weights": "int4"}, "--target_device GPU --weight-format int4 --max_num_batched_tokens 1024"),
        ({"weights": "int8", "max_num_seqs": 8}, "--weight-format int8 --max_num_batched_tokens 1024 --max_num_seqs 8"),
        ({"weights": "ov-int4-sym-64g-r80"}, "--extra_quantization_params '--sym --group-size 64 --ratio 0.80'"),
        ({"weights": "ov-int4-cw"}, "--extra_quantization_params '--group-size -1'"),
    ],
)
def test_the_command_exports_the_model_as_the_plan_stores_it(options, words):
    launch = served(**options)["serving"]["launch"].replace("\\\n", "")
    assert launch.startswith("ovms --rest_port 8000 --source_model Qwen/Qwen3-8B --model_repository_path models")
    assert words in " ".join(launch.split())


def test_a_pass_takes_256_tokens_and_256_requests_unless_told_otherwise():
    """openvino.genai, scheduler_config.hpp."""
    question = tonnage.serve("qwen3-8b", on=PANTHER, engine="openvino").to_dict()["question"]
    assert (question["max_num_batched_tokens"]["value"], question["max_num_seqs"]["value"]) == (256, 256)


def test_what_intel_published_is_met_and_its_machines_are_no_strangers():
    """llm_models_7-358H.csv, rows that no fit has read: Qwen3-4B and Qwen3-30B-A3B, INT4-MIXED, 1,024 tokens."""
    for model, tpot in (("qwen3-4b", 0.0244), ("qwen3-30b-a3b", 0.0224)):
        answer = served(model, weights="int4")
        assert answer["serving"]["tpot_seconds"]["value"] == pytest.approx(tpot, rel=0.2)
    assert not any("no published runs" in warning for warning in answer["warnings"])
    other = served("qwen3-4b", on="arc-b580", weights="int4")
    assert any("no published runs on Arc-B580" in warning for warning in other["warnings"])


def test_products_of_quantised_weights_are_those_of_the_units_for_8_bits():
    """A prompt in 4 bits is faster than in 16, though both read their weights in far less time."""
    long = {"input_tokens": 8192, "max_num_batched_tokens": 8192}
    four, wide = (served("qwen3-4b", weights=each, **long)["serving"] for each in ("int4", "fp16"))
    assert four["ttft_seconds"]["value"] < 0.85 * wide["ttft_seconds"]["value"]


def test_the_process_holds_beside_tensors_what_the_script_finds(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    import_module("openvino_process").main()
    assert bytes_of("runtime overhead") == 747 * MIB
    assert capsys.readouterr().out == "747 MiB, 205 to 1864 in 13 runs\n"


def test_its_files_are_its_own():
    answer = tonnage.serve("qwen3-8b", on=PANTHER, weights="ov-int4").to_dict()
    assert answer["question"]["engine"]["value"] == "openvino"
    with pytest.raises(InvalidPlan, match=r"only openvino loads files in ov-int4-asym-128g\. Got engine vllm"):
        tonnage.serve("qwen3-8b", on="h100", engine="vllm", weights="ov-int4")
    with pytest.raises(InvalidPlan, match="only openvino loads"):
        tonnage.serve("qwen3-8b", on="h100", engine="transformers", weights="ov-int8")
    with pytest.raises(InvalidPlan, match=r"OpenVINO Model Server runs on accelerators of Intel. Got H100"):
        tonnage.serve("qwen3-8b", on="h100", engine="ovms")
    with pytest.raises(InvalidPlan, match="loads bf16, fp16, fp32, ov-int4, ov-int8"):
        served(weights="q4_k_m")
    with pytest.raises(InvalidInput, match="can hold keys and values in auto, block-int8, u8"):
        served(kv_cache="fp8")
    with pytest.raises(UnknownName, match="ov-int4"):
        served(weights="ov-int5")


@pytest.mark.parametrize(
    ("name", "usable", "bandwidth", "tops"),
    [
        ("258v", 29.64, 136.5, 64),
        ("285h", 29.64, 134.4, 77),
        ("285h 64gb", 59.72, 134.4, 77),
        ("intel arc b390", 29.64, 153.6, 122.9),
        ("panther lake", 29.64, 153.6, 122.9),
    ],
)
def test_integrated_gpus_have_what_the_driver_on_linux_gives_them(name, usable, bandwidth, tops):
    """compute-runtime: 94 % of the memory, and 450 MiB less."""
    chip = accelerator(name)
    assert chip.memory.usable_bytes / 2**30 == pytest.approx(usable, abs=0.01)
    assert chip.memory.bytes_per_second == bandwidth * 1e9
    assert chip.dense_flops["int8"] == tops * 1e12
    assert chip.dense_flops["fp16"] == pytest.approx(tops * 1e12 / 2, rel=2e-3)


def test_a_machine_whose_published_runs_are_slower_than_estimated_says_so_first():
    answer = tonnage.serve("qwen3-8b", on="core-ultra-9-285h-32gb", engine="openvino", weights="int4")
    assert "1.6 to 4.6 times as long" in answer.warnings[0]
    other = tonnage.serve("qwen3-8b", on="core-ultra-7-258v-32gb", engine="openvino", weights="int4")
    assert not any("issue 36270" in warning for warning in other.warnings)
