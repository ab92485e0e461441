"""Orders that hold whatever the numbers are, over the models, machines, runtimes and engines of the catalogue."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brute import catalogue
from brute.metamorphic import (
    PARTS,
    maximum_holds,
    model_of,
    more_bandwidth_is_no_slower,
    more_needs_no_less,
    needs,
    plans_are_the_same_asked_again,
    quantised_needs_no_more,
    serve,
    train,
)
from tonnage.catalogue import cluster

MODELS = st.one_of(st.sampled_from(catalogue.kinds()), st.sampled_from(catalogue.models()))
MACHINES = st.one_of(
    st.sampled_from(catalogue.PAIR),
    st.sampled_from(["8xA100-SXM-80GB", "2x8xH200", "8xMI300X"]),
    st.sampled_from(catalogue.machines()),
)
QUANTISED = tuple(
    name for name in catalogue.WEIGHTS if name not in ("fp64", "fp32", "tf32", "bf16", "fp16", "i16", "i32", "i64")
)
TRAINING = st.fixed_dictionaries(
    {"runtime": st.sampled_from(catalogue.RUNTIMES)},
    optional={
        "sequence_length": st.sampled_from([512, 4096, 8191]),
        "micro_batch_size": st.integers(1, 3),
        "num_microbatches": st.integers(1, 4),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "method": st.sampled_from(["full", "lora", "qlora"]),
        "tensor_parallel_size": st.sampled_from([1, 2, 8]),
        "pipeline_parallel_size": st.sampled_from([1, 2]),
        "zero_stage": st.integers(0, 3),
        "optimizer": st.sampled_from(["adamw", "adafactor", "muon", "adamw-8bit"]),
        "offload_optimizer": st.sampled_from(["none", "cpu"]),
    },
)
SERVING = st.fixed_dictionaries(
    {"engine": st.sampled_from(catalogue.ENGINES)},
    optional={
        "context": st.sampled_from([512, 8192, 32768]),
        "concurrency": st.sampled_from([1, 4, 64]),
        "weights": st.sampled_from(["fp8", "awq", "q4_k_m", "int8", "bf16"]),
        "kv_cache": st.sampled_from(["fp8", "auto"]),
        "tensor_parallel_size": st.sampled_from([1, 2, 8]),
        "max_num_seqs": st.sampled_from([4, 64]),
        "input_tokens": st.sampled_from([128, 2000]),
        "output_tokens": st.sampled_from([64, 1000]),
        "weights_on_host": st.sampled_from([2**30]),
    },
)
# What is raised, and what it is where nobody says it.
WORK = st.sampled_from([("sequence_length", 4096), ("micro_batch_size", 1), ("lora_rank", 16)])
LOAD = st.sampled_from([("context", 4096), ("concurrency", 2), ("input_tokens", 512), ("output_tokens", 128)])
BY = st.sampled_from([lambda value: value + 1, lambda value: 2 * value, lambda value: 3 * value + 7])
often = settings(max_examples=max(60, settings().max_examples), suppress_health_check=[HealthCheck.too_slow])
seldom = settings(max_examples=max(8, settings().max_examples // 100), suppress_health_check=[HealthCheck.too_slow])


def cut_into_more_parts(name, options, field):
    """Mechanisms by which more work is done in more and smaller parts, and needs less at a time.

    - Unsloth takes the loss in parts whose number grows with the tokens, and moves its checkpoints to host memory from
      a size on.
    """
    return options["runtime"] == "unsloth"


@often
@given(MODELS, MACHINES, TRAINING, WORK, BY)
def test_a_longer_sequence_a_larger_batch_or_rank_never_needs_less(name, on, options, work, by):
    field, default = work
    value = options.get(field, default)
    asked = {**options, field: value, **({"method": "lora"} if field == "lora_rank" else {})}
    if not cut_into_more_parts(name, asked, field):
        assert not list(more_needs_no_less(train, name, on, asked, field, by(value)))


@often
@given(MODELS, MACHINES, SERVING, LOAD, BY)
def test_more_tokens_users_or_context_never_need_less(name, on, options, load, by):
    field, default = load
    value = options.get(field, default)
    assert not list(more_needs_no_less(serve, name, on, {**options, field: value}, field, by(value)))


@often
@given(MODELS, MACHINES, TRAINING, st.sampled_from(PARTS))
def test_a_step_takes_no_longer_with_twice_the_bandwidth(name, on, options, part):
    assert not list(more_bandwidth_is_no_slower(train, name, on, options, part))


@often
@given(MODELS, MACHINES, SERVING, st.sampled_from(PARTS))
def test_no_token_takes_longer_with_twice_the_bandwidth(name, on, options, part):
    assert not list(more_bandwidth_is_no_slower(serve, name, on, options, part))


@often
@given(MODELS, MACHINES, SERVING, st.sampled_from(QUANTISED))
def test_quantised_weights_never_need_more_than_16_bits(name, on, options, weights):
    assert not list(quantised_needs_no_more(name, on, options, weights))


@seldom
@given(MODELS, MACHINES, SERVING, st.sampled_from(["context", "users", "input"]))
def test_what_max_says_of_serving_holds_and_the_next_does_not(name, on, options, what):
    own = {
        "context": ("context", "input_tokens", "output_tokens"),
        "users": ("concurrency",),
        "input": ("input_tokens", "context"),
    }
    asked = {key: value for key, value in options.items() if key not in own[what]}
    assert not list(maximum_holds(what, "serve", name, on, asked))


@seldom
@given(MODELS, MACHINES, TRAINING, st.sampled_from(["sequence", "micro-batch", "lora-rank"]))
def test_what_max_says_of_training_holds_and_the_next_does_not(name, on, options, what):
    own = {"sequence": "sequence_length", "micro-batch": "micro_batch_size", "lora-rank": "method"}
    asked = {key: value for key, value in options.items() if key != own[what]}
    assert not list(maximum_holds(what, "train", name, on, asked))


@settings(max_examples=max(2, settings().max_examples // 200), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["llama-3.2-1b", "qwen3-0.6b", "gemma-3-1b-pt", "gpt2-xl"]),
    st.sampled_from(["rtx-4090", "4xH100-SXM-80GB", "2xA100-SXM-80GB"]),
    st.sampled_from(["8", "16"]),
)
def test_the_plans_of_a_training_run_are_the_same_asked_again(name, on, batch):
    assert not list(plans_are_the_same_asked_again(("plan", "--train", name, "--on", on, "--global-batch-size", batch)))


@settings(max_examples=max(2, settings().max_examples // 200), suppress_health_check=[HealthCheck.too_slow])
@given(
    MODELS,
    st.sampled_from(["rtx-4090", "4xH100-SXM-80GB", "8xMI300X", "apple-m4-max-64gb"]),
    st.sampled_from(["1", "16", "100"]),
)
def test_the_best_plan_of_serving_is_the_same_asked_again(name, on, users):
    assert not list(plans_are_the_same_asked_again(("plan", "--serve", name, "--on", on, "--users", users)))


@pytest.mark.parametrize("runtime", ["fsdp2", "deepspeed", "torchtune", "transformers", "ddp"])
@pytest.mark.parametrize("length", [1024, 8191])
def test_adapters_of_a_large_model_need_no_more_than_full_training(runtime, length):
    """Adapters keep no input in fp32 where the framework multiplies them in 16 bits, so that little is kept besides
    what full training keeps.
    """
    options = {"runtime": runtime, "sequence_length": length}
    full, lora = (
        train("codellama-7b-hf", cluster("8xH100-SXM-80GB"), {**options, "method": method})
        for method in ("full", "lora")
    )
    assert needs(lora) < needs(full)


def test_the_catalogue_of_the_properties_is_that_of_the_package():
    assert all(model_of(name).family for name in catalogue.kinds())
    assert len(catalogue.kinds()) == len(catalogue.KINDS)
