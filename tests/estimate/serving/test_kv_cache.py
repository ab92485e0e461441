"""What --kv-cache may say to each engine."""

import pytest
from msgspec.structs import replace

from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.weights.request import asked_for
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.references import cited
from tonnage.numerics.precisions import PRECISIONS
from tonnage.runtimes import serving_runtime, serving_runtimes

H100 = cluster("H100-SXM-80GB")
LLAMA = "llama-3.1-8b"


def cache(word, engine="vllm", dtype="bfloat16", context=8192):
    options = ServingOptions(kv_cache=word, engine=engine, context=context)
    return serve(replace(read(LLAMA), dtype=dtype), H100, options)


@pytest.mark.parametrize(
    ("word", "name", "bits"),
    [
        ("fp8", "fp8-e4m3", 8),
        ("FP8_E4M3", "fp8-e4m3", 8),
        ("fp8_e5m2", "fp8-e5m2", 8),
        ("fp8-e5m2", "fp8-e5m2", 8),
        ("bfloat16", "bf16", 16),
        ("torch.float16", "fp16", 16),
        ("half", "fp16", 16),
        ("auto", "bf16", 16),
        (None, "bf16", 16),
    ],
)
def test_vllm_holds_keys_and_values_in_the_types_that_its_option_lists(word, name, bits):
    answer = cache(word)
    assert answer.question["kv_cache"].value == name
    # 2 x 32 layers x 8 heads x 128 for each of 8192 tokens
    assert answer.memory.child("kv cache").value == 2 * 32 * 8 * 128 * 8192 * bits / 8


def test_vllm_holds_keys_and_values_in_nvfp4_where_it_has_kernels_that_read_them():
    answer = serve(read(LLAMA), cluster("B200"), ServingOptions(context=8192, kv_cache="nvfp4"))
    assert answer.memory.child("kv cache").value == 2 * 32 * 8 * 128 * 8192 * 4.5 / 8


@pytest.mark.parametrize(("word", "bits"), [("int8", 8.5), ("int4", 4.5), ("int2", 2.5), ("auto", 16)])
def test_transformers_has_a_quantised_cache_in_groups_of_64(word, bits):
    answer = cache(word, "transformers")
    assert answer.memory.child("kv cache").value == 2 * 32 * 8 * 128 * 8192 * bits / 8
    assert any("last 128 tokens" in warning for warning in answer.warnings) == (bits < 16)


@pytest.mark.parametrize(
    ("word", "engine"),
    [
        ("nf4", "vllm"),
        ("int8", "vllm"),
        ("q4_0", "vllm"),
        ("fp32", "vllm"),
        ("awq", "vllm"),
        ("", "vllm"),
        ("fp8", "transformers"),
    ],
)
def test_what_an_engine_cannot_hold_is_refused_with_its_choices(word, engine):
    with pytest.raises(
        InvalidInput, match=rf"kv_cache: {engine} can hold keys and values in auto, .*bf16.*\. Got '{word}'\."
    ):
        cache(word, engine)


def test_activations_in_fp32_have_a_cache_in_fp32():
    assert cache("fp32", dtype="float32").question["kv_cache"].value == "fp32"
    assert cache(None, dtype="float32").question["kv_cache"].value == "fp32"


@pytest.mark.parametrize("name", serving_runtimes())
def test_every_engines_table_names_precisions_and_its_source(name):
    engine = serving_runtime(name)
    assert set(engine.kv_cache.values()) <= set(PRECISIONS)
    assert cited(engine.kv_cache_source)


def test_a_type_of_the_cache_is_none_of_weights():
    with pytest.raises(InvalidInput, match="kv-int4 holds keys and values only"):
        asked_for("kv-int4")
