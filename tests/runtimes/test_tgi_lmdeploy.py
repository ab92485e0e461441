"""Text Generation Inference 3 and LMDeploy's TurboMind: how they split the memory, how they are started, and that no
published runs of theirs are fitted.
"""

import pytest

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.units import GIB
from tonnage.runtimes import serving_runtime
from tonnage.spec import ServingPlan

H100 = "H100-SXM-80GB"
TOKEN = 32 * 2 * 8 * 128  # numbers of a token's keys and values in Llama 3.1 8B


def answered(engine, **options):
    return tonnage.serve("llama-3.1-8b", on="h100", engine=engine, **{"context": 8192, **options}).to_dict()


def tokens_of(document):
    return document["serving"]["kv_capacity_tokens"]["value"]


def part(document, name):
    return next(child for child in document["memory"]["children"] if child["name"] == name)["value"]


def test_turbominds_cache_is_eight_tenths_of_what_is_free_once_the_weights_are_loaded():
    """LMDeploy, docs/en/inference/turbomind_config.md: (80 - 26) * 0.8 = 43.2G beside a 13b model."""
    document = answered("lmdeploy")
    usable = document["verdict"]["usable_bytes"]
    free = usable - part(document, "weights") - round(0.51 * GIB)
    assert tokens_of(document) == pytest.approx(0.8 * free / (TOKEN * 2), rel=0.001)
    assert answered("lmdeploy", gpu_memory_utilization=0.5)["serving"]["kv_capacity_tokens"]["value"] == pytest.approx(
        0.5 * free / (TOKEN * 2), rel=0.001
    )


@pytest.mark.parametrize(("word", "bits", "policy"), [("int8", 8.25, 8), ("int4", 4.25, 4)])
def test_turbominds_quantised_cache_has_a_scale_and_an_offset_for_each_head_and_token(word, bits, policy):
    """LMDeploy, src/turbomind/kernels/attention/block.h: token_param_size."""
    document = answered("lmdeploy", kv_cache=word)
    assert part(document, "kv cache") == 8192 * TOKEN * bits / 8
    assert document["serving"]["launch"].endswith(f"--quant-policy {policy}")


def test_turbominds_blocks_have_64_tokens_and_windows_keep_every_token():
    plan = {"engine": "lmdeploy", "context": 8193}
    found = serving_memory(read("gemma-3-4b-pt"), ServingPlan.of_fields(**plan), accelerator(H100))
    assert found.memory.child("kv cache").value == 129 * 64 * 34 * 2 * 4 * 256 * 2


@pytest.mark.parametrize(
    ("version", "machine", "requests"),
    [("", "H100-SXM-80GB", 1024), ("", "A100-SXM-80GB", 512), ("0.9", "A100-SXM-80GB", 384), ("0.7", H100, 512)],
)
def test_lmdeploys_batch_follows_the_accelerators_name_and_the_version(version, machine, requests):
    """LMDeploy, lmdeploy/utils.py: get_max_batch_size."""
    engine = serving_runtime("lmdeploy", version)
    named = next(limit for limit in engine.limits if limit.named in machine.lower())
    assert named.requests == requests


def test_tgi_warms_up_with_a_whole_prompt_and_leaves_a_tenth_of_what_is_free():
    document = answered("tgi")
    usable, held = document["verdict"]["usable_bytes"], part(document, "weights") + part(document, "activations")
    free = usable - held - round(0.51 * GIB)
    assert tokens_of(document) == pytest.approx(0.9 * free / (TOKEN * 2), rel=0.001)
    longer = answered("tgi", context=65536)
    assert part(longer, "activations") > 4 * part(document, "activations")


def test_tgis_command_says_the_lengths_that_the_answer_is_of():
    assert answered("tgi", gpu_memory_utilization=0.8, kv_cache="fp8_e5m2")["serving"]["launch"] == (
        "TGI_WIGGLE_ROOM=0.8 text-generation-launcher --model-id meta-llama/Llama-3.1-8B --max-total-tokens 8192 "
        "--max-input-tokens 8191 --max-batch-prefill-tokens 8242 --kv-cache-dtype fp8_e5m2"
    )
    assert (
        "lmdeploy serve api_server meta-llama/Llama-3.1-8B --backend turbomind --session-len 8192"
        in (answered("lmdeploy")["serving"]["launch"])
    )


@pytest.mark.parametrize("engine", ["tgi", "lmdeploy"])
def test_times_are_said_to_be_those_of_other_engines(engine):
    assert any("no published runs of" in warning for warning in answered(engine)["warnings"])
    assert not any("no published runs of" in warning for warning in answered("sglang")["warnings"])


def test_only_keys_and_values_are_held_in_what_turbomind_makes_of_them():
    with pytest.raises(InvalidInput, match="holds keys and values only"):
        tonnage.serve("llama-3.1-8b", on="h100", weights="head-int8")
