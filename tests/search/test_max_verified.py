"""Every answer of max is what serve and train say at it and just beyond it."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.estimate.bands import serving_highest
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.question.subjects.maximum import what_of

SERVING = [
    ("context", "llama-3.1-8b", "rtx-4090", {}),
    ("context", "llama-3.1-8b", "rtx-4090", {"concurrency": 4, "kv_cache": "fp8"}),
    ("context", "llama-3.1-8b", "rtx-4090", {"engine": "sglang"}),
    ("context", "llama-3.1-8b", "rtx-4090", {"engine": "llama.cpp", "weights": "q8_0"}),
    ("context", "llama-3.1-8b", "h100", {"engine": "tensorrt-llm", "concurrency": 16}),
    ("context", "llama-3.1-8b", "rtx-4090", {"engine": "transformers"}),
    ("context", "gemma-3-27b-pt", "h100", {"concurrency": 8}),
    ("context", "gpt-oss-20b", "rtx-4090", {"concurrency": 32}),
    ("context", "deepseek-v3", "8xh200", {"concurrency": 64}),
    ("context", "jamba-v0.1", "4xh100", {"concurrency": 4}),
    ("context", "mixtral-8x7b", "2xh100", {"weights": "fp8", "concurrency": 20}),
    ("context", "qwen3-next-80b-a3b-instruct", "4xh100", {"concurrency": 32}),
    ("context", "llama-3.1-8b", "apple-m4-16gb", {"weights": "q4_k_m"}),
    ("context", "gpt2", "rtx-4090", {}),
    ("context", "mistral-7b-v0.1", "rtx-4090", {"pipeline_parallel_size": 1}),
    ("context", "llama-3.1-70b", "2x8xh100", {"pipeline_parallel_size": 2, "concurrency": 100}),
    ("context", "llama-3.1-70b", "rtx-4090", {}),
    ("users", "llama-3.1-8b", "rtx-4090", {"context": 4096}),
    ("users", "llama-3.1-8b", "8xh100", {"context": 32768}),
    ("users", "llama-3.1-8b", "8xh100", {"context": 500}),
    ("users", "deepseek-v3", "8xh200", {"context": 8192}),
    ("users", "llama-3.1-8b", "rtx-4090", {"context": 4096, "engine": "llama.cpp", "weights": "q4_k_m"}),
    ("users", "gemma-3-27b-pt", "2xh100", {"context": 16384}),
    ("users", "mamba-2.8b", "rtx-4090", {"context": 4096}),
    ("users", "llama-3.1-8b", "8xh100", {"context": 8192, "tensor_parallel_size": 2, "max_num_seqs": 20}),
    (
        "users",
        "deepseek-v3",
        "8xh200",
        {"context": 8192, "attention_data_parallel_size": 4, "tensor_parallel_size": 2, "expert_parallel_size": 8},
    ),
    ("input", "llama-3.1-8b", "rtx-4090", {"output_tokens": 500}),
    ("input", "llama-3.1-8b", "h100", {"context": 8192, "output_tokens": 100}),
    ("layers", "llama-3.1-70b", "rtx-4090", {"weights": "q4_k_m", "context": 8192}),
    ("layers", "llama-3.1-70b", "2xrtx-4090", {"weights": "q4_k_m", "context": 8192}),
    ("layers", "llama-3.1-8b", "rtx-4090", {"weights": "q4_k_m", "context": 8192}),
    ("expert-layers", "qwen3-30b-a3b", "rtx-4090", {"weights": "q8_0", "context": 8192}),
    ("expert-layers", "mixtral-8x7b", "rtx-4090", {"weights": "q4_k_m", "context": 8192}),
    ("adapters", "llama-3.1-8b", "rtx-4090", {"context": 8192, "lora_rank": 64}),
]
TRAINING = [
    ("sequence", "llama-3.1-8b", "8xh100", {}),
    ("sequence", "llama-3.1-8b", "8xh100", {"context_parallel_size": 4, "loss": "chunked"}),
    ("sequence", "llama-3.1-8b", "8xh100", {"runtime": "megatron", "tensor_parallel_size": 4}),
    ("sequence", "llama-3.1-8b", "8xh100", {"runtime": "deepspeed", "zero_stage": 3, "recompute": "full"}),
    (
        "sequence",
        "mixtral-8x7b",
        "4x8xh100",
        {"runtime": "megatron", "expert_parallel_size": 8, "pipeline_parallel_size": 4},
    ),
    (
        "sequence",
        "deepseek-v3",
        "32x8xh800",
        {"runtime": "megatron", "pipeline_parallel_size": 16, "expert_parallel_size": 16, "recompute": "full"},
    ),
    ("sequence", "gpt2", "rtx-4090", {"micro_batch_size": 4}),
    ("sequence", "llama-3.1-8b", "rtx-4090", {"method": "qlora", "recompute": "full"}),
    ("sequence", "llama-3.1-8b", "h100", {"runtime": "unsloth", "method": "lora"}),
    ("sequence", "gemma-2-9b", "8xh100", {"runtime": "deepspeed"}),
    ("sequence", "llama-3.1-8b", "8xh100", {"objective": "dpo", "recompute": "full"}),
    ("sequence", "mamba-2.8b", "8xh100", {}),
    ("sequence", "llama-3.1-8b", "rtx-4090", {}),
    ("micro-batch", "llama-3.1-8b", "8xh100", {"recompute": "full"}),
    ("micro-batch", "llama-3.1-8b", "8xh100", {"recompute": "full", "global_batch_size": 96}),
    ("micro-batch", "gpt2", "rtx-4090", {"sequence_length": 256}),
    (
        "micro-batch",
        "llama-3.1-70b",
        "8x8xh100",
        {"runtime": "megatron", "tensor_parallel_size": 8, "pipeline_parallel_size": 4, "recompute": "full"},
    ),
    ("micro-batch", "llama-3.1-8b", "8xh100", {"runtime": "deepspeed", "offload_optimizer": "cpu"}),
    ("lora-rank", "llama-3.1-8b", "rtx-4090", {"recompute": "full", "sequence_length": 1024}),
    ("lora-rank", "gpt2", "rtx-4090", {}),
    ("layers", "llama-3.1-8b", "h100", {"sequence_length": 1024}),
    ("layers", "gpt2", "rtx-4090", {}),
]
ASK = {"serve": partial(tonnage.serve, as_is=True), "train": partial(tonnage.train, as_is=True)}


def _checked(verb, what, model, machine, options):
    """The document, after the estimator's own verdict at the answer and beyond it."""
    found = tonnage.maximum(what, model, on=machine, verb=verb, advice=False, **options)
    document = found.to_dict()
    ask = ASK[verb]

    def at(value):
        said = _said(what_of(what, verb), found, value)
        return ask(model, on=machine, **{**options, **{name: each for name, each in said.items() if each is not None}})

    if document["value"] is None:
        assert found.status in (2, 3) and at(document["beyond"]["value"]).fits is not True
        return document
    answer = at(document["value"])
    assert (
        answer.fits is True
        and answer.needed_bytes == document["at"]["needed_bytes"]
        and answer.usable_bytes == document["at"]["usable_bytes"]
    )
    beyond = document["beyond"]
    if document["limit"]["by"] == "memory":
        refused = at(beyond["value"])
        assert refused.fits is not True and refused.needed_bytes == beyond["needed_bytes"]
        assert (refused.fits is None) == (beyond["fits"] is None)
    if document["tight_value"] is not None:
        assert document["tight_value"] > document["value"] and at(document["tight_value"]).fits is None
    return document


def _said(what, found, value):
    if what.option == "expert_layers_on_host":
        return {
            "engine": "llama.cpp",
            what.option: tonnage.read(found.answer.question["model"].value).num_layers - value or None,
        }
    return {**{name: each for name, each in found.options.items() if name != what.option}, what.option: value}


@pytest.mark.parametrize(("what", "model", "machine", "options"), SERVING, ids=str)
def test_serving_fits_at_the_answer_and_not_beyond_it(what, model, machine, options):
    _checked("serve", what, model, machine, options)


@pytest.mark.parametrize(("what", "model", "machine", "options"), TRAINING, ids=str)
def test_training_fits_at_the_answer_and_not_beyond_it(what, model, machine, options):
    _checked("train", what, model, machine, options)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)
@given(
    st.sampled_from(
        [
            "llama-3.1-8b",
            "qwen3-8b",
            "gemma-2-9b",
            "mistral-7b-v0.1",
            "deepseek-v2-lite",
            "gpt-oss-20b",
            "mamba-2.8b",
            "phi-3-mini-4k-instruct",
        ]
    ),
    st.sampled_from(["rtx-4090", "h100", "2xrtx-4090", "a100-sxm-40gb", "l4"]),
    st.sampled_from(["vllm", "sglang", "llama.cpp", "transformers"]),
    st.sampled_from([1, 3, 17]),
    st.integers(0, 4 * 2**30),
)
def test_the_context_of_any_model_on_any_machine_is_verified(model, machine, engine, concurrency, reserve):
    options = {"engine": engine, "concurrency": concurrency, "reserve_bytes": reserve}
    try:
        tonnage.serve(model, on=machine, context=512, **options)
    except tonnage.TonnageError:
        return  # no plan at all: an engine that does not load this format
    _checked("serve", "context", model, machine, options)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=10)
@given(
    st.sampled_from(["sequence", "micro-batch"]),
    st.sampled_from(["gpt2", "llama-3.2-1b", "qwen3-0.6b", "pythia-410m"]),
    st.sampled_from(["fsdp2", "deepspeed", "megatron", "ddp"]),
    st.integers(0, 30 * 2**30),
)
def test_the_most_of_any_training_run_is_verified(what, model, runtime, reserve):
    _checked("train", what, model, "2xa100-sxm-40gb", {"runtime": runtime, "reserve_bytes": reserve})


@pytest.mark.parametrize(
    ("model", "engine"), [("gpt2", "vllm"), ("llama-3.2-1b", "transformers"), ("gemma-2-2b", "llama.cpp")]
)
def test_a_context_is_what_a_scan_of_every_length_finds(model, engine):
    """With so much reserved that some hundred tokens fit with the high end of the error band; memory alone, where the
    model was made for fewer.
    """
    about, machine = tonnage.read(model), tonnage.cluster("rtx-4090")

    def needed(length):
        try:
            options = ServingOptions(context=length, engine=engine, reserve_bytes=reserve)
            plan = serving_plan(about, machine, options, Question())
            memory = serving_memory(about, plan, machine.accelerator).memory.value
            return serving_highest(plan.engine, machine.accelerator, memory)
        except tonnage.TonnageError:
            return float("inf")

    usable, reserve = machine.accelerator.memory.usable_bytes, 0
    reserve = 0 if model == "gpt2" else usable - needed(300)
    found = tonnage.maximum("context", model, on=machine, engine=engine, reserve_bytes=reserve, advice=False).to_dict()
    fits = [length for length in range(2, 1100) if needed(length) <= usable - reserve]
    assert fits == list(range(2, (found["memory_value"] or found["value"]) + 1)) and len(fits) >= 299


def test_micro_batches_are_what_a_scan_finds_among_those_that_divide():
    found = tonnage.maximum(
        "micro-batch", "llama-3.1-8b", on="8xh100", recompute="full", global_batch_size=96, advice=False
    ).to_dict()
    fits = []
    for size in range(1, 13):
        try:
            options = {"recompute": "full", "global_batch_size": 96, "micro_batch_size": size, "as_is": True}
            if tonnage.train("llama-3.1-8b", on="8xh100", **options).fits:
                fits.append(size)
        except tonnage.TonnageError:
            assert 12 % size
    assert found["value"] == max(fits) and 12 % found["value"] == 0 and found["beyond"]["value"] in (6, 12)


def test_sequences_are_multiples_of_what_cuts_them():
    document = _checked("train", "sequence", "llama-3.1-8b", "8xh100", {"context_parallel_size": 4, "loss": "chunked"})
    assert document["value"] % 32 == 0 and document["beyond"]["value"] == document["value"] + 32


@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({"runtime": "megatron", "tensor_parallel_size": 4}, 4),
        ({"runtime": "megatron", "tensor_parallel_size": 4, "sequence_parallel": False}, 1),
        ({"context_parallel_size": 4}, 8),
        ({"runtime": "megatron", "tensor_parallel_size": 2, "context_parallel_size": 2}, 8),
        ({"loss": "chunked"}, 8),
        ({}, 1),
    ],
)
def test_a_sequence_divides_among_those_who_share_it(options, step):
    found = tonnage.maximum(
        "sequence", "llama-3.1-8b", on="8xh100", recompute="full", advice=False, **options
    ).to_dict()
    assert found["value"] % step == 0 and found["beyond"]["value"] == found["value"] + step
