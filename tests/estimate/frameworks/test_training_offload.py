"""What leaves the accelerator, what appears in host memory, and what a node's host memory must hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import train
from tonnage.estimate.host.memory import host_memory
from tonnage.estimate.memory import training_memory
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import TonnageError
from tonnage.spec import TrainingPlan

H100 = "8xH100-SXM-80GB"
ALL = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}
KINDS = st.sampled_from(
    [
        ("deepspeed", 1, ("offload_optimizer",)),
        ("deepspeed", 2, ("offload_optimizer",)),
        ("deepspeed", 3, ("offload_optimizer",)),
        ("deepspeed", 3, tuple(ALL)),
        ("fsdp2", 3, tuple(ALL)),
        ("fsdp2", 2, tuple(ALL)),
        ("megatron", 1, ("offload_optimizer",)),
        ("transformers", 0, ("offload_activations",)),
        ("fsdp2", 3, ("offload_activations",)),
        ("megatron", 1, ("offload_activations",)),
    ]
)


def plan(**said):
    return TrainingPlan.of_fields(
        **{"sequence_length": 2048, "runtime": "deepspeed", "zero_stage": 3, "data_parallel_size": 8, **said}
    )


def last(model="llama-3.1-8b", **said):
    return training_memory(read(model), plan(**said)).ranks[0].phases


def phase(name, **said):
    return next(each for each in last(**said) if each.name == name)


def host(model="llama-3.1-8b", on=H100, **said):
    asked = plan(**said)
    return host_memory(read(model), asked, cluster(on), training_memory(read(model), asked))


def parts(term):
    """What is offloaded on one rank, by name."""
    (found,) = (
        node
        for _, node in term.memory.child("while training").walk()
        if node.name == "offloaded states" and node.combine == "sum"
    )
    return {child.name: child.value for child in found.children}


def test_zero_offload_leaves_16_bit_weights_and_the_buffers_on_the_accelerator():
    step = phase("optimizer step", zero_stage=2, offload_optimizer="cpu")
    assert step.child("weights").value == 2 * read("llama-3.1-8b").num_parameters()
    assert step.child("gradients").value == step.child("optimizer").value == 0
    assert [child.name for child in step.child("temporary").children] == ["gradient on its way to the host"]


def test_zero_offload_puts_eighteen_bytes_of_a_parameter_into_host_memory_and_pinned_blocks_are_powers_of_two():
    """stage_1_and_2.py: masters and moments, gradients in fp32, the updated weights in 16 bit; master weights are
    not rounded up here.
    """
    shard = read("llama-3.1-8b").num_parameters() / 8
    found = parts(host(zero_stage=2, offload_optimizer="cpu"))
    assert (
        found["optimizer"] + found["gradients in the master's type"] + found["updated weights in 16 bit"] == 18 * shard
    )
    rounding = found["gradients in the master's type: rounding of pinned memory"]
    assert found["gradients in the master's type"] + rounding == 2**32


def test_accumulated_gradients_wait_in_host_memory():
    assert "gradients that are accumulated" not in parts(host(zero_stage=2, offload_optimizer="cpu"))
    assert "gradients that are accumulated" in parts(host(zero_stage=2, offload_optimizer="cpu", num_microbatches=4))


def test_zero_3_offload_leaves_only_what_is_gathered_and_what_is_too_small_to_release():
    step = phase("optimizer step", **ALL)
    assert [child.name for child in step.child("weights").children] == ["parameters too small to be released"]
    assert step.child("gradients").value == step.child("optimizer").value == step.child("temporary").value == 0


def test_a_fraction_of_the_optimizer_leaves_that_fraction():
    whole = phase("optimizer step", runtime="megatron", zero_stage=1).child("optimizer").value
    part = phase(
        "optimizer step", runtime="megatron", zero_stage=1, offload_optimizer="cpu", optimizer_offload_fraction=0.75
    )
    assert part.child("optimizer").value == pytest.approx(0.25 * whole)
    assert (
        parts(host(runtime="megatron", zero_stage=1, offload_optimizer="cpu", optimizer_offload_fraction=0.75))[
            "offloaded optimizer"
        ]
        == 0.75 * whole
    )


def test_fsdp_2_moves_weights_gradients_and_optimizer_together():
    step = phase("optimizer step", runtime="fsdp2", **ALL)
    assert step.child("weights").value == step.child("gradients").value == step.child("optimizer").value == 0
    found = parts(host(runtime="fsdp2", **ALL))
    assert found["weights"] + found["gradients"] + found["optimizer"] == 16 * read("llama-3.1-8b").num_parameters() / 8
    asked = train(read("llama-3.1-8b"), cluster(H100), TrainingOptions(runtime="fsdp2", offload_parameters="cpu"))
    assert asked.question["offload_optimizer"].value == "cpu"


def test_nvme_takes_what_the_host_would_hold_and_leaves_buffers():
    near, far = host(**ALL), host(offload_optimizer="nvme", offload_parameters="nvme")
    assert near.storage is None
    shard = read("llama-3.1-8b").num_parameters() / 8
    assert far.storage.value == 8 * 16 * shard + 8 * 2 * (shard - 10**9 if shard > 10**9 else 0)
    found = parts(far)
    assert found["buffers of weights"] == 5 * 10**8 * 2
    assert found["buffers of optimizer states"] == 4 * min(shard, 10**9) * 4


def test_offloaded_activations_leave_two_layers_behind():
    """The last layer is at work or just done, the one before is on its way."""
    before = phase("loss", runtime="transformers", zero_stage=0).child("activations")
    after = phase("loss", runtime="transformers", zero_stage=0, offload_activations="cpu").child("activations")
    layers = before.child("layers").value
    assert after.child("layers").value == 0
    assert after.child("offloaded tensors on their way").value == pytest.approx(2 * layers / 32)
    ranks = host(runtime="transformers", zero_stage=0, offload_activations="cpu").memory.child("while training")
    assert ranks.child("offloaded activations").value >= 8 * layers


def test_what_recomputation_keeps_is_what_is_offloaded():
    kept = (
        phase("loss", runtime="transformers", zero_stage=0, recompute="full").child("activations").child("layers").value
    )
    held = host(runtime="transformers", zero_stage=0, recompute="full", offload_activations="cpu").memory.child(
        "while training"
    )
    assert held.child("offloaded activations").value == 8 * kept  # 2048 tokens of 4096 numbers: a power of two


@settings(max_examples=60)
@given(
    KINDS,
    st.sampled_from(["llama-3.1-8b", "gpt2-xl", "mixtral-8x7b", "gemma-3-1b-pt"]),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([256, 4096]),
    st.sampled_from(["none", "full"]),
    st.integers(1, 4),
)
def test_offloading_never_needs_more_on_the_accelerator_and_never_less_on_the_host(
    kind, model, ranks, length, recompute, count
):
    runtime, stage, names = kind
    ranks = 1 if runtime == "transformers" else ranks
    base = plan(
        runtime=runtime,
        zero_stage=stage,
        data_parallel_size=ranks,
        sequence_length=length,
        recompute=recompute,
        num_microbatches=count,
    )
    modules = {"offload_modules": "core_attn,attn_proj"} if runtime == "megatron" else {}
    there = base.with_fields(**dict.fromkeys(names, "cpu"), **modules)
    now, then = (training_memory(read(model), each) for each in (base, there))
    assert then.memory.value <= now.memory.value * (1 + 1e-12)
    hosts = [host_memory(read(model), each, cluster(H100), made).memory for each, made in ((base, now), (there, then))]
    for name in ("while loading", "while training", "while saving"):
        assert hosts[1].child(name).value >= hosts[0].child(name).value


@settings(max_examples=40)
@given(
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["llama-3.1-8b", "gpt2-xl", "mixtral-8x7b"]),
    st.booleans(),
    st.sampled_from(
        [
            "reduce_bucket_size",
            "stage3_prefetch_bucket_size",
            "stage3_max_live_parameters",
            "stage3_max_reuse_distance",
            "stage3_param_persistence_threshold",
            "sub_group_size",
            "allgather_bucket_size",
        ]
    ),
    st.lists(st.integers(1, 10**10), min_size=2, max_size=2),
)
def test_larger_buckets_never_cost_less(stage, model, contiguous, name, sizes):
    made = [
        training_memory(
            read(model), plan(zero_stage=stage, contiguous_gradients=contiguous, **{name: size})
        ).memory.value
        for size in sorted(sizes)
    ]
    assert made[0] <= made[1] * (1 + 1e-12)


def test_settings_as_arrays_need_what_each_one_needs():
    model, sizes = read("llama-3.1-8b"), np.array([10**6, 10**8, 10**10])
    for name in (
        "reduce_bucket_size",
        "stage3_prefetch_bucket_size",
        "stage3_max_live_parameters",
        "stage3_param_persistence_threshold",
        "sub_group_size",
    ):
        together = training_memory(model, plan(**{name: sizes})).needed
        assert list(together) == [training_memory(model, plan(**{name: int(size)})).needed for size in sizes], name


def test_loading_keeps_a_whole_model_on_every_rank_or_on_one():
    n = 2 * read("llama-3.1-8b").num_parameters()
    names = {zero: host(zero_stage=zero).memory.child("while loading").children[0] for zero in (2, 3)}
    assert names[2].value == 8 * n and names[3].value == n


def test_saving_gathers_16_bit_weights_on_rank_0_when_it_is_asked_to():
    n = 2 * read("llama-3.1-8b").num_parameters()
    for asked, more in ((False, 0), (True, n)):
        found = host(stage3_gather_16bit_weights_on_model_save=asked).memory
        assert found.child("while saving").value - found.child("while training").value == more
    assert [each.name for each in last(stage3_gather_16bit_weights_on_model_save=True)][-1] == "save"


def test_data_loaders_add_processes_and_the_batches_they_hold_ready():
    none, four = (
        host(data_loader_workers=count).memory.child("while training").child("data loaders").value for count in (0, 4)
    )
    assert none == 8 * 3 * 8 * 2048
    assert four - none == 8 * (4 * 322_040 * 1024 + 8 * 3 * 8 * 2048)


def test_a_node_that_is_too_small_is_a_warning_and_not_a_verdict():
    small = train(
        read("llama-3.1-70b"), cluster("dgx-a100-40gb"), TrainingOptions(runtime="deepspeed", zero_stage=3, **ALL)
    )
    assert small.host.capacity and small.host.memory.value > small.host.capacity
    assert any(warning.startswith("host memory does not suffice") for warning in small.warnings)
    assert small.fits or small.needed_bytes > small.usable_bytes


def test_the_answer_shows_host_memory_on_one_line_and_in_the_document():
    from tonnage.render.text import answer_lines

    answer = train(
        read("llama-3.1-8b"),
        cluster("dgx-h100"),
        TrainingOptions(runtime="deepspeed", zero_stage=3, offload_optimizer="nvme"),
    )
    document = answer.to_dict()
    assert document["host"]["capacity_bytes"] == 2 * 2**40
    lines = [line for line in answer_lines(document, answer.memory) if "host memory of a node" in line]
    assert len(lines) == 1 and "of 2.00 TiB and" in lines[0] and lines[0].endswith("on NVMe")


REFUSED = [
    (
        {"runtime": "transformers", "offload_optimizer": "cpu"},
        "h100",
        "Runtimes that have it: fsdp2, megatron, deepspeed, torchtune",
    ),
    ({"runtime": "ddp", "offload_parameters": "cpu"}, H100, "Runtimes that have it: fsdp2, deepspeed, torchtune"),
    ({"runtime": "fsdp2", "offload_optimizer": "nvme"}, H100, "must be none or cpu"),
    ({"runtime": "fsdp2", "offload_optimizer": "cpu", "offload_parameters": "none"}, H100, "together"),
    ({"runtime": "deepspeed", "zero_stage": 2, "offload_parameters": "cpu"}, H100, "zero_stage must be 3"),
    ({"runtime": "deepspeed", "zero_stage": 2, "offload_optimizer": "nvme"}, H100, "zero_stage must be 3"),
    ({"runtime": "deepspeed", "zero_stage": 0, "offload_optimizer": "cpu"}, H100, "zero_stage must be 1, 2 or 3"),
    (
        {"runtime": "deepspeed", "zero_stage": 2, "offload_optimizer": "cpu", "optimizer_offload_fraction": 0.5},
        H100,
        "ZeRO stage 3",
    ),
    ({"runtime": "megatron", "offload_optimizer": "cpu", "optimizer_offload_fraction": 1.5}, H100, "from 0 to 1"),
    ({"runtime": "fsdp2", "offload_activations": "cpu", "offload_modules": "core_attn"}, H100, "megatron"),
    ({"offload_activations": "disk"}, H100, "offload_activations"),
    ({"data_loader_workers": -1}, H100, "from 0"),
]


@pytest.mark.parametrize(("said", "on", "why"), REFUSED)
def test_what_a_runtime_cannot_move_is_refused_with_what_can(said, on, why):
    with pytest.raises(TonnageError, match=why):
        train(read("llama-3.2-1b"), cluster(on), TrainingOptions(**said))
