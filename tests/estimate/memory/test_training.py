"""Training memory: invariants of the walk, and agreement with the papers' closed forms."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import train
from tonnage.estimate.inputs import Unread
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import needed_bytes
from tonnage.estimate.step.rank import layer_bounds, stages
from tonnage.formulas import memory as f
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan

MODELS = ("llama-3.1-8b", "gpt2-xl", "mixtral-8x7b", "deepseek-v3", "qwen3-0.6b", "gemma-3-1b-pt")
CHILDREN = [
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "temporary",
    "communication buffers",
    "runtime overhead",
]
POWERS = st.sampled_from([1, 2, 4, 8])


def plan(**sizes):
    return TrainingPlan.of_fields(**{"sequence_length": 4096, "runtime": "megatron", "zero_stage": 1, **sizes})


def needed(model, **sizes):
    return training_memory(read(model), plan(**sizes)).memory.value


def kept(model, **sizes):
    """Bytes that the layers of the first stage keep, of everything in flight."""
    return training_memory(read(model), plan(**sizes)).ranks[0].phases[0].child("activations").child("layers").value


@pytest.mark.parametrize("recompute", ["none", "selective"])
@pytest.mark.parametrize("t", [1, 2, 8])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_a_gpt_layer_keeps_what_korthikanti_counts(recompute, t, sequence_parallel):
    """Op by op, with 16 bit, dropout and eager attention, a GPT layer keeps the paper's closed form, and the
    statistics of norms beside.
    """
    made = (
        kept(
            "gpt3-175b",
            sequence_length=2048,
            attention="eager",
            dropout=True,
            attention_dropout=True,
            recompute=recompute,
            tensor_parallel_size=t,
            sequence_parallel=sequence_parallel,
        )
        / 96
    )
    letters = {"L": 1, "s": 2048, "b": 1, "h": 12288}
    scores = 0 if recompute == "selective" else 5 * 96 * 2048**2 / t
    split = sequence_parallel and t > 1
    statistics = 16 * 2048 / (t if split else 1)
    if split:
        assert made == f.gpt_selective_activation_bytes(**letters, t=t) + scores + statistics
    else:
        assert made == letters["s"] * letters["h"] * (10 + 24 / t) + scores + statistics


def test_full_recomputation_keeps_the_inputs_of_layers():
    made = kept("gpt3-175b", sequence_length=2048, recompute="full")
    assert made == f.full_recompute_activation_bytes(L=96, s=2048, b=1, h=12288)


@pytest.mark.parametrize("name", MODELS)
def test_memory_is_the_sum_of_the_seven_parts_that_the_contract_names(name):
    answer = train(read(name), cluster("8xH100-SXM-80GB"))
    assert [child.name for child in answer.memory.children] == CHILDREN
    assert answer.memory.value == sum(child.value for child in answer.memory.children)
    assert answer.memory.value == max(phase.value for phase in answer.phases)


@pytest.mark.parametrize("name", MODELS)
def test_the_states_of_all_ranks_sum_to_the_whole_model(name):
    """Weights over all tensor and pipeline ranks are the model's parameters, whatever is copied counted as copied."""
    model = read(name)
    one = {"runtime": "fsdp2", "zero_stage": 2}  # Megatron pads the vocabulary
    whole = training_memory(model, plan(**one)).ranks[0].phases[0].child("weights").value
    assert whole == 4 * model.num_parameters()
    staged = training_memory(model, plan(pipeline_parallel_size=4, **one)).ranks
    table = model.vocab_size * model.hidden_size
    assert sum(rank.phases[0].child("weights").value for rank in staged) == whole + (4 * table if model.tied else 0)


@pytest.mark.parametrize("name", MODELS)
def test_pipeline_stages_hold_every_layer_once(name):
    model = read(name)
    for count in (1, 2, 3, 5):
        held = sum(
            layers for stage in stages(model, count) for block, layers in stage.layers if block in model.decoder.blocks
        )
        assert held == model.num_layers


@given(st.integers(1, 200), st.integers(1, 64))
def test_stages_differ_by_at_most_one_layer(layers, count):
    count = min(layers, count)
    bounds = layer_bounds(layers, count)
    sizes = [after - before for before, after in itertools.pairwise(bounds)]
    assert sum(sizes) == layers and max(sizes) - min(sizes) <= 1 and len(sizes) == count


SIZES = st.fixed_dictionaries(
    {
        "sequence_length": st.sampled_from([512, 4096, 32768]),
        "micro_batch_size": st.integers(1, 8),
        "num_microbatches": st.integers(1, 16),
        "tensor_parallel_size": POWERS,
        "pipeline_parallel_size": POWERS,
        "context_parallel_size": POWERS,
        "data_parallel_size": POWERS,
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "attention": st.sampled_from(["flash", "sdpa", "eager"]),
        "optimizer": st.sampled_from(["adamw", "sgd-momentum", "adamw-8bit", "adafactor", "muon"]),
    }
)
RUNTIMES = st.sampled_from(
    [("megatron", 0), ("megatron", 1), ("fsdp2", 2), ("fsdp2", 3), ("deepspeed", 2), ("deepspeed", 3)]
)


@given(st.sampled_from(MODELS), SIZES, RUNTIMES)
def test_more_of_anything_that_shards_never_costs_more(name, sizes, runtime):
    base = {**sizes, "runtime": runtime[0], "zero_stage": runtime[1]}
    now = needed(name, **base)
    for size in ("tensor_parallel_size", "context_parallel_size", "data_parallel_size"):
        assert needed(name, **{**base, size: base[size] * 2}) <= now * (1 + 1e-12) + _communicators(base), size


def _communicators(sizes):
    """The first second rank brings communicators, which is the one thing that parallelism adds."""
    alone = (
        sizes["tensor_parallel_size"]
        * sizes["pipeline_parallel_size"]
        * sizes["context_parallel_size"]
        * sizes["data_parallel_size"]
        == 1
    )
    return 1.02 * 2**30 + 1 if alone else 0


@given(st.sampled_from(MODELS), SIZES, RUNTIMES)
def test_longer_sequences_and_larger_batches_never_cost_less(name, sizes, runtime):
    base = {**sizes, "runtime": runtime[0], "zero_stage": runtime[1]}
    now = needed(name, **base)
    for size in ("sequence_length", "micro_batch_size", "num_microbatches"):
        assert needed(name, **{**base, size: base[size] * 2}) >= now, size


@given(st.sampled_from(MODELS), SIZES)
def test_full_recomputation_needs_no_more_than_selective_and_that_no_more_than_none(name, sizes):
    by_policy = [needed(name, **{**sizes, "recompute": policy}) for policy in ("full", "selective", "none")]
    assert by_policy == sorted(by_policy)


@given(st.sampled_from(MODELS), SIZES)
def test_more_zero_never_costs_more_of_what_it_shards(name, sizes):
    deepspeed = [{**sizes, "runtime": "deepspeed", "zero_stage": stage} for stage in (0, 1, 2, 3)]
    ranks = [training_memory(read(name), plan(**each)).ranks[0].phases[-1] for each in deepspeed]
    for part in ("weights", "gradients", "optimizer"):
        values = [rank.child(part).value for rank in ranks]
        assert values == sorted(values, reverse=True)


@settings(max_examples=25)
@given(st.sampled_from(["llama-3.1-8b", "deepseek-v3"]), st.lists(SIZES, min_size=1, max_size=8), RUNTIMES)
def test_plans_as_arrays_need_what_each_plan_needs(name, listed, runtime):
    names = {
        "runtime": runtime[0],
        "zero_stage": runtime[1],
        "recompute": listed[0]["recompute"],
        "attention": listed[0]["attention"],
        "optimizer": listed[0]["optimizer"],
    }
    columns = {key: np.array([each[key] for each in listed]) for key in listed[0] if key not in names}
    together = needed_bytes(read(name), columns, **names)
    assert list(together) == pytest.approx([needed(name, **{**each, **names}) for each in listed], rel=1e-12)


def test_the_phases_of_arrays_hold_the_tree_of_each_plan():
    """Of arrays every moment is given, of one plan the moment of each phase that needs most."""
    lengths = np.array([2048.0, 8192.0])
    phases = training_memory(read("llama-3.1-8b"), plan(sequence_length=lengths)).ranks[0].phases
    many = [_values(phase.at(1)) for phase in phases]
    for phase in training_memory(read("llama-3.1-8b"), plan(sequence_length=8192)).ranks[0].phases:
        assert _values(phase) in many


def _values(term: Term):
    return [(depth, node.name, node.value) for depth, node in term.walk()]


def test_stage_by_stage_activations_fall_as_fewer_micro_batches_are_in_flight():
    ranks = training_memory(read("llama-3.1-70b"), plan(pipeline_parallel_size=8, num_microbatches=64)).ranks
    layers = [rank.phases[0].child("activations").child("layers").value for rank in ranks]
    assert layers == sorted(layers, reverse=True)
    assert layers[0] == 8 * layers[-1]


def test_interleaving_costs_the_first_stage_what_korthikanti_says():
    """1 + (p - 1) / (p v) times the activations of 1F1B, up to the one chunk that 1F1B's own count starts from."""
    one = training_memory(read("llama-3.1-70b"), plan(pipeline_parallel_size=8, num_microbatches=64))
    two = training_memory(
        read("llama-3.1-70b"), plan(pipeline_parallel_size=8, num_microbatches=64, virtual_pipeline_size=5)
    )
    before = one.ranks[0].phases[0].child("activations").child("layers").value
    after = two.ranks[0].phases[0].child("activations").child("layers").value
    assert after == pytest.approx(f.interleaved_memory_factor(M=before, p=8, v=5), rel=0.01)


def test_slopes_are_what_one_more_sequence_and_one_more_token_add():
    answer = train(read("llama-3.1-8b"), cluster("8xH100-SXM-80GB"))
    more = train(read("llama-3.1-8b"), cluster("8xH100-SXM-80GB"), TrainingOptions(micro_batch_size=2))
    assert answer.slopes.bytes_per_sequence == more.memory.value - answer.memory.value > 0
    assert 0 < answer.slopes.bytes_per_token < answer.slopes.bytes_per_sequence / 1000


def test_every_leaf_opens_to_a_formula_and_a_source():
    for answer in (
        train(read("deepseek-v3"), cluster("32x8xH800-SXM-80GB")),
        train(read("llama-3.1-8b"), cluster("rtx-4090")),
    ):
        for term in (*answer.ranks, *answer.phases, answer.flops, answer.checkpoint):
            for _, node in term.walk():
                assert node.children or node.combine == "sum" or (node.formula and node.source), node.name
                assert node.value == node.value and abs(node.value) < 1e40


def test_a_plan_that_does_not_fit_is_answered_with_moves_that_were_estimated_again():
    answer = train(read("llama-3.1-8b"), cluster("8xH100-SXM-80GB"), TrainingOptions(sequence_length=16384))
    assert not answer.fits and answer.status == 3
    assert answer.advice
    for move in answer.advice:
        change = TrainingOptions(**{"sequence_length": 16384, **move.change})
        again = train(read("llama-3.1-8b"), cluster("8xH100-SXM-80GB"), change)
        assert move.needed_bytes == pytest.approx(again.memory.value, abs=1)
        assert move.fits == again.fits


def test_other_hardware_is_given_other_advice():
    small = train(read("llama-3.1-8b"), cluster("rtx-4090"))
    large = train(read("llama-3.1-8b"), cluster("8xH100-SXM-80GB"), TrainingOptions(sequence_length=16384))
    assert [move.change for move in small.advice] != [move.change for move in large.advice]


def test_optimizers_are_ordered_by_what_they_keep():
    by_name = {
        name: needed("llama-3.1-8b", optimizer=name) for name in ("sgd", "adafactor", "adamw-8bit", "lion", "adamw")
    }
    assert by_name["sgd"] < by_name["adafactor"] < by_name["adamw-8bit"] < by_name["lion"] < by_name["adamw"]


def test_a_copy_of_the_plan_is_a_new_answer():
    base = plan()
    assert (
        training_memory(read("gpt2-xl"), replace(base, micro_batch_size=4)).memory.value
        > training_memory(read("gpt2-xl"), base).memory.value
    )


def test_the_trainer_on_several_accelerators_is_ddp():
    several = train(
        read("llama-3.2-1b"), cluster("4xA100-SXM-80GB"), TrainingOptions(runtime="transformers", sequence_length=2048)
    )
    assert several.question["runtime"].value == "ddp" and any("DDP" in warning for warning in several.warnings)
    assert (
        several.needed_bytes
        == train(
            read("llama-3.2-1b"), cluster("4xA100-SXM-80GB"), TrainingOptions(runtime="ddp", sequence_length=2048)
        ).needed_bytes
    )


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3"])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_the_peak_of_a_stage_is_the_largest_of_its_phases_tree_for_tree(name, recompute):
    """The peak is built alone where the other phases are not shown."""
    options = TrainingOptions(
        runtime="megatron", pipeline_parallel_size=4, num_microbatches=8, recompute=recompute, sequence_length=2048
    )
    machine = cluster("4x8xH100-SXM-80GB")
    plan = training_plan(read(name), machine, options, Unread())
    for rank in training_memory(read(name), plan, machine).ranks:
        alone = rank.peak
        largest = max(rank.phases, key=lambda phase: phase.value)
        assert alone.value == largest.value == pytest.approx(rank.needed)
        assert (alone.name, [child.value for child in alone.children]) == (
            largest.name,
            [child.value for child in largest.children],
        )
