"""LitGPT on several accelerators: what Fabric shards, what FSDP1 sums whole, and the rows that LitGPT published.

Sources: the wheels litgpt 0.5.10, 0.5.11 and 0.5.13 (litgpt/finetune/lora.py, full.py, litgpt/pretrain.py), lightning
2.6.6 (fabric/plugins/precision/fsdp.py, fabric/connector.py); FSDP1 of torch 2.13 run on two processes.
"""

import numpy as np
import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.documents.document import builtins
from tonnage.estimate.frameworks.litgpt import is_flat
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan_columns import bytes_and_seconds
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read
from tonnage.search.training.launch.settings import launch_lacks, launch_settings

NAME, NODE = "llama-3.2-1b", "8xH100-SXM-80GB"
MODEL = read(NAME)
N = MODEL.num_parameters()
ROOT = MODEL.vocab_size * MODEL.hidden_size + MODEL.hidden_size  # the tied table and the last norm


def answer(on=NODE, **said):
    return tonnage.train(NAME, on=on, runtime="litgpt", sequence_length=1024, as_is=True, **said)


def planned(on=NODE, **said):
    where = cluster(on)
    options = TrainingOptions(runtime="litgpt", sequence_length=1024, **said)
    return training_plan(MODEL, where, options, Question()), where


def gradients(**said):
    """Bytes of gradients while the first layer of backward runs."""
    plan, where = planned(**said)
    rank = training_memory(MODEL, plan, where).fullest
    phase = next(phase for phase in rank.phases if phase.name == "first layer of backward")
    return phase.child("gradients").value


def test_scripts_recompute_every_block_on_several_accelerators_and_none_on_one():
    assert answer().question["recompute"].value == answer(method="lora").question["recompute"].value == "full"
    assert answer("H100-SXM-80GB").question["recompute"].value == "none"


def test_states_are_shards_of_all_ranks_and_of_a_node_with_replicas():
    """FULL_SHARD, and HYBRID_SHARD of pretrain."""
    memory = answer().memory
    assert memory.child("weights").value == pytest.approx(4 * N / 8)
    assert memory.child("optimizer").value == pytest.approx(8 * N / 8)
    two = f"2x{NODE}"
    assert answer(two).memory.child("weights").value == pytest.approx(4 * N / 16)
    assert answer(two, recompute="none", replicate_size=2).memory.child("weights").value == pytest.approx(4 * N / 8)


@pytest.mark.parametrize(("precision", "width"), [("bf16-mixed", 2), ("bf16", 2), ("fp32", 4)])
def test_gradients_of_several_micro_batches_are_summed_whole_on_every_rank(precision, width):
    """fabric.no_backward_sync: FSDP1's flat gradients, in the type of the precision."""
    assert gradients(num_microbatches=2, precision=precision) == pytest.approx(width * N)
    assert gradients(num_microbatches=1, precision=precision) < width * N / 2


@pytest.mark.parametrize(
    ("version", "flat"),
    [("litgpt 0.4, bitsandbytes 0.42", True), ("litgpt 0.5.10", True), ("litgpt 0.5.11", False), ("0.5.13", False)],
)
def test_lora_is_wrapped_in_fsdp1_until_0_5_10(version, flat):
    assert is_flat("lora", version) == flat
    assert is_flat("full", version)


def test_a_flat_parameter_has_the_gradient_of_its_frozen_weights():
    """Of a block whose adapters train; the root, which has none, gets no gradient."""
    adapters = gradients(method="lora", num_microbatches=2, precision="bf16")
    whole = gradients(method="lora", num_microbatches=2, precision="bf16", runtime_version="litgpt 0.5.10")
    assert whole == pytest.approx(2 * (N - ROOT) + 2 * adapters / 2, rel=0.02)
    assert adapters < whole / 20


def test_units_of_fsdp2_travel_as_they_are_and_those_of_fsdp1_in_the_type_of_the_precision():
    """parallelize_fn gives fully_shard no policy; FSDPPrecision has param_dtype bfloat16."""
    of = {
        version: answer(method="lora", runtime_version=version).memory.child("communication buffers").value
        for version in ("litgpt 0.5.10", "litgpt 0.5.13")
    }
    assert of["litgpt 0.5.13"] > 1.5 * of["litgpt 0.5.10"]


def test_what_litgpt_measured_on_several_accelerators_is_met():
    """litgpt, tutorials/resource-tables.md: max_memory_allocated of finetune_lora on 2 and 4 A100, which no fit has
    seen. Batches are as long as their longest sequence, and only the longest of all is published: estimates of several
    sequences are too high.
    """
    from tonnage.validation import read as rows_of
    from tonnage.validation import validate

    rows = [
        row
        for row in rows_of(["validation/train_memory.yaml"])
        if row.id.startswith("litgpt-lora") and row.id.endswith(("-g2-mem", "-g4-mem"))
    ]
    errors = {line["id"]: line["relative_error"] for line in builtins(validate(rows))["rows"] if line["main"]}
    assert len(errors) == 7
    assert all(-0.01 < error < 0.1 for error in errors.values())
    assert max(abs(error) for name, error in errors.items() if "mb1" in name) < 0.03


def test_plans_in_arrays_are_those_of_each_plan():
    counts = np.array([1.0, 2.0, 8.0])
    for said in ({"method": "full"}, {"method": "lora"}):
        plans = [planned(num_microbatches=int(count), **said)[0] for count in counts]
        where = cluster(NODE)
        names = {
            "runtime": "litgpt",
            "recompute": "full",
            "zero_stage": 3,
            "precision": "bf16-mixed",
            "optimizer": "adamw",
            "tuning": plans[0].tuning,
        }
        columns = {"num_microbatches": counts, "data_parallel_size": 8.0, "sequence_length": 1024.0}
        needed, seconds = bytes_and_seconds(MODEL, columns, where, **names)
        assert needed == pytest.approx([training_memory(MODEL, plan, where).needed for plan in plans])
        assert seconds == pytest.approx([Timing(MODEL, plan, where).seconds for plan in plans])


def test_gradients_travel_once_a_step():
    one, many = (answer(num_microbatches=count).step_time.value for count in (1, 8))
    assert many < 8 * one


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"method": "qlora"}, "on one accelerator alone"),
        ({"method": "lora", "base_weights": "int8"}, "on one accelerator alone"),
        ({"zero_stage": 0}, "must be 3"),
        ({"method": "lora", "precision": "fp16-mixed"}, "has no precision fp16-mixed"),
        ({"on": "H100-SXM-80GB", "zero_stage": 3}, "must be 0"),
    ],
)
def test_what_its_scripts_cannot_do_is_refused(said, words):
    with pytest.raises(InvalidPlan, match=words):
        answer(**said)
    assert answer(method="lora", precision="fp16-mixed", runtime_version="litgpt 0.5.10").memory.value


@pytest.mark.parametrize(
    ("on", "said", "words"),
    [
        (f"2x{NODE}", {"method": "lora", "lora_rank": 8, "lora_targets": "q_proj,v_proj"}, "litgpt finetune_lora"),
        (NODE, {}, "litgpt finetune_full"),
        (f"2x{NODE}", {"recompute": "none", "replicate_size": 2}, "litgpt pretrain"),
    ],
)
def test_a_plan_is_started_by_the_script_that_runs_it_so(on, said, words):
    plan, where = planned(on, global_batch_size=64, **said)
    command = launch_settings(MODEL, plan, where)
    assert command[0].startswith(words)
    assert {"--precision bf16-mixed", "--devices 8", "--train.global_batch_size 64"} <= set(command)
    assert ("--num_nodes 2" in command) == (where.num_nodes == 2)
    if "lora" in words:
        assert {"--lora_r 8", "--lora_query true", "--lora_key false", "--lora_mlp false"} <= set(command)
    assert bool(launch_lacks(MODEL, plan)) == ("pretrain" in words)
