"""Suggestions name only formats that can be had and that the engine loads: walked over models x engines, and the
pairs that were wrong.
"""

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.serving.weights.formats import narrower_weights
from tonnage.estimate.serving.weights.storage import stored_bytes
from tonnage.kernel.errors import InvalidPlan, TonnageError
from tonnage.models.catalogued import every
from tonnage.runtimes import serving_runtime, serving_runtimes

CHOICES = ("fp8", "awq", "int4", "nvfp4", "q8_0", "q4_k_m")
FOUR_BIT = ("gpt-oss-20b", "gpt-oss-120b", "kimi-k2-thinking")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", "transformers", "tensorrt-llm"])
@pytest.mark.parametrize("model", FOUR_BIT)
def test_a_checkpoint_of_four_bits_has_no_narrower_format(model, engine):
    chip = cluster("B200-SXM-180GB").accelerator
    assert narrower_weights(tonnage.read(model), None, serving_runtime(engine), chip, CHOICES) == ()


def test_every_format_is_loaded_by_its_engine_and_saves_bytes():
    """Each model of the catalogue, under each engine: what is offered is accepted by `serve`'s own check and is
    smaller.
    """
    from tonnage.estimate.serving.engine_checks import check_format

    chip, offered = cluster("H100-SXM-80GB").accelerator, 0
    for number, (name, model) in enumerate(
        (model.name, model) for entry in every() for model in entry if hasattr(model, "branches")
    ):
        for at, engine_name in enumerate(serving_runtimes()):
            if (number + at) % 4:  # a quarter of the pairs, another for each model
                continue
            engine = serving_runtime(engine_name)
            for weights in narrower_weights(model, None, engine, chip, CHOICES):
                offered += 1
                check_format(model, weights, engine, chip)
                assert stored_bytes(model, weights) < stored_bytes(model, None), (name, engine_name, weights)
                assert engine.gguf or not weights.startswith("q"), (name, engine_name, weights)
    assert offered > 500


@pytest.mark.parametrize(
    ("model", "on", "more"),
    [
        ("gpt-oss-20b", "rtx-4090", {}),
        ("gpt-oss-120b", "H100-SXM-80GB", {"concurrency": 32, "context": 131072}),
        ("gpt-oss-120b", "2xH100-SXM-80GB", {"engine": "sglang", "concurrency": 64}),
        ("gpt-oss-20b", "Apple-M3-Max-64GB", {"context": 131072, "concurrency": 64}),
    ],
)
def test_no_answer_suggests_other_weights_of_a_four_bit_checkpoint(model, on, more):
    answer = tonnage.serve(model, on=on, **more)
    assert not [move.text for move in answer.advice if "weights" in move.change]


def test_neither_plans_nor_the_frontier_have_them():
    found = tonnage.plan_serving("gpt-oss-20b", on="H100-SXM-80GB", concurrency=8, top=20).to_dict()
    assert found["plans"] and not any(plan["changes_weights"] for plan in found["plans"])
    assert {curve.weights for curve in tonnage.frontier("gpt-oss-20b", on="H100-SXM-80GB", points=2).curves} == {
        "mxfp4"
    }


def test_a_quantised_base_is_cut_by_no_tensor_ranks_and_nothing_suggests_it():
    with pytest.raises(InvalidPlan, match="tensor_parallel_size must be 1 with a base in nf4-double"):
        tonnage.train("llama-3.1-70b", on="4xA100-SXM-80GB", method="qlora", tensor_parallel_size=4)
    for on in ("2xRTX-4090", "4xA100-SXM-80GB"):
        answer = tonnage.train("llama-3.1-70b", on=on, method="qlora", as_is=True)
        assert answer.advice and not any(move.change.get("tensor_parallel_size", 1) > 1 for move in answer.advice)
    plans = tonnage.plan_training(
        "llama-3.1-70b", on="4xA100-SXM-80GB", runtime="fsdp2", method="qlora", sequence_length=2048, top=20
    )
    for plan in plans.to_dict()["plans"]:
        assert plan["options"].get("tensor_parallel_size", 1) == 1


def test_an_nvfp4_cache_needs_kernels_that_read_it():
    for on in ("H100-SXM-80GB", "H200-SXM-141GB", "RTX-5090"):
        with pytest.raises(TonnageError, match="cannot hold nvfp4 there"):
            tonnage.serve("llama-3.1-8b", on=on, engine="vllm", kv_cache="nvfp4")
    assert tonnage.serve("llama-3.1-8b", on="B200-SXM-180GB", engine="vllm", kv_cache="nvfp4").fits


@pytest.mark.parametrize(
    ("engine", "on", "model", "weights"),
    [
        ("exllamav3", "2xRTX-3090", "llama-3.3-70b", "exl3-4.0"),
        ("exllamav2", "2xRTX-3090", "llama-3.3-70b", "exl2-4.0"),
        ("mlx", "Apple-M4-Pro-24GB", "qwen3-14b", "mlx-4bit"),
        ("openvino", "Arc-B580", "llama-3.1-8b", "ov-int8"),
    ],
)
def test_weights_that_are_suggested_are_in_formats_of_the_engine(engine, on, model, weights):
    found = tonnage.serve(model, on, engine=engine, context=4096)
    assert weights in {move.change.get("weights") for move in found.advice}
