"""What holds for every runtime and method whatever its bytes: less trains, less is needed; more work never needs
less.
"""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import TrainingMemory, training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.runtimes import training_runtime, training_runtimes

MODELS = ("llama-3.1-8b", "qwen3-0.6b", "gemma-3-1b-pt", "mixtral-8x7b", "gpt2-xl")
ADAPTED = tuple(name for name in training_runtimes() if "lora" in training_runtime(name).trains)
WORK = st.fixed_dictionaries(
    {
        "sequence_length": st.sampled_from([512, 1024]),
        "micro_batch_size": st.integers(1, 4),
        "num_microbatches": st.integers(1, 3),
        "recompute": st.sampled_from(["none", "full"]),
        "optimizer": st.sampled_from(["adamw", "adamw-8bit", "sgd-momentum"]),
    }
)


def estimated(name: str, runtime: str, **said: object) -> TrainingMemory | None:
    """The estimate on one machine; None for what the runtime refuses."""
    model = read(name)
    machine = cluster("H100-SXM-80GB" if runtime in ("transformers", "unsloth", "litgpt") else "4xH100-SXM-80GB")
    try:
        plan = training_plan(model, machine, TrainingOptions(runtime=runtime, **said), Question())
    except InvalidPlan:
        return None
    return training_memory(model, plan, machine)


def needed(name: str, runtime: str, **said: object) -> float | None:
    """Bytes of the fullest rank."""
    made = estimated(name, runtime, **said)
    return None if made is None else made.memory.value


def states(name: str, runtime: str, **said: object) -> float | None:
    """Bytes of weights, gradients and optimizer of the fullest rank, as the step has them that needs most of them."""
    made = estimated(name, runtime, **said)
    if made is None:
        return None
    parts = ("weights", "gradients", "optimizer")
    return max(sum(phase.child(part).value for part in parts) for rank in made.ranks for phase in rank.phases)


@given(st.sampled_from(MODELS), st.sampled_from(ADAPTED), WORK)
def test_adapters_hold_no_more_states_than_all_weights(name, runtime, work):
    full, lora = (states(name, runtime, method=method, **work) for method in ("full", "lora"))
    assert full is None or lora is None or lora <= full


@given(st.sampled_from(["transformers", "ddp", "litgpt"]), WORK)
def test_adapters_need_no_more_than_all_weights_where_states_are_whole(runtime, work):
    """Of a small or sharded model with much text they may: an adapter keeps its input once more, in its own type."""
    full, lora = (needed("llama-3.1-8b", runtime, method=method, **work) for method in ("full", "lora"))
    assert full is None or lora is None or lora <= full


@given(st.sampled_from(ADAPTED), WORK)
def test_a_base_of_four_bits_needs_no_more_where_layers_are_most_of_the_model(runtime, work):
    """Of a small model with a large vocabulary it may: the head's copy in 16 bits is made while its own are kept. A
    base that peft prepares has fp32 activations, which may outweigh the weights.
    """
    plain = {"upcast_base": False} if runtime in ("transformers", "ddp") else {}
    lora, qlora = (
        needed("llama-3.1-8b", runtime, method=method, **prepared, **work)
        for method, prepared in (("lora", {}), ("qlora", plain))
    )
    assert lora is None or qlora is None or qlora <= lora


@given(st.sampled_from(MODELS), st.sampled_from(ADAPTED), WORK, st.sampled_from([4, 16, 64]))
def test_larger_adapters_and_more_work_never_need_less(name, runtime, work, rank):
    now = needed(name, runtime, method="lora", lora_rank=rank, **work)
    if now is None:
        return
    assert needed(name, runtime, method="lora", lora_rank=2 * rank, **work) >= now
    if runtime == "unsloth" and work["recompute"] == "full":
        return  # its checkpoints move to host memory from a size on: a longer sequence may need less
    for size in ("sequence_length", "micro_batch_size"):
        longer = needed(name, runtime, method="lora", lora_rank=rank, **{**work, size: 2 * work[size]})
        assert longer is None or longer >= now, size


@given(st.sampled_from(MODELS), st.sampled_from(["transformers", "ddp", "deepspeed", "fsdp2"]), WORK, st.integers(1, 8))
def test_each_layer_that_trains_as_well_never_needs_less(name, runtime, work, layers):
    found = [
        needed(name, runtime, method="freeze", trainable_layers=each, model_code="transformers", **work)
        for each in (layers, layers + 1)
    ]
    if None not in found:
        assert found[0] <= found[1]


@given(st.sampled_from(MODELS), st.sampled_from(training_runtimes()), WORK)
def test_running_layers_again_never_needs_more_in_any_runtime(name, runtime, work):
    """But for what a layer that is run again holds besides: its input once more, positions and masks."""
    found = [needed(name, runtime, **{**work, "recompute": policy}) for policy in ("full", "selective", "none")]
    known = [each for each in found if each is not None]
    input_bytes = 4 * work["sequence_length"] * work["micro_batch_size"] * read(name).hidden_size
    assert all(less <= more + input_bytes for less, more in itertools.pairwise(known))


@pytest.mark.parametrize("runtime", ADAPTED)
def test_the_runtimes_of_adapters_are_asked_at_all(runtime):
    assert needed("llama-3.1-8b", runtime, method="lora") is not None


@pytest.mark.parametrize(
    "runtime", ["transformers", "ddp", "fsdp2", "megatron", "deepspeed", "torchtune", "litgpt", "unsloth"]
)
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_number_that_a_search_takes_is_the_value_of_the_tree(runtime, recompute):
    machine = cluster("4xH100-SXM-80GB" if runtime not in ("transformers", "unsloth") else "H100-SXM-80GB")
    model = tonnage.read("llama-3.1-8b")
    for count in (1, 4):
        try:
            plan = training_plan(
                model,
                machine,
                TrainingOptions(runtime=runtime, recompute=recompute, num_microbatches=count),
                Question(),
            )
        except InvalidPlan:
            continue
        made = training_memory(model, plan, machine)
        assert made.needed == pytest.approx(made.memory.value, rel=1e-9)
