"""DeepSpeed's buckets, as stage_1_and_2.py and stage3.py of 0.19.8 allocate them."""

import pytest

from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import train
from tonnage.estimate.memory import training_memory
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.spec import TrainingPlan

BUCKET = 2 * 500_000_000
MOMENTS = ("loss", "first layer of backward", "last layer of backward", "optimizer step")


def buckets(model, stage, **sizes):
    """Bytes of the reduce bucket, and of the copy that is reduced, at each moment of a step."""
    plan = TrainingPlan.of_fields(sequence_length=1024, runtime="deepspeed", zero_stage=stage, **sizes)
    found = []
    phases = {phase.name: phase for phase in training_memory(read(model), plan).ranks[0].phases}
    for phase in (phases[moment] for moment in MOMENTS):
        by_name = {term.name: term.value for term in phase.child("communication buffers").children}
        found.append((by_name.get("reduce bucket", 0), by_name.get("gradients flattened to be reduced", 0)))
    return found


@pytest.mark.parametrize(
    ("stage", "bucket", "copied"),
    [
        (0, (0, 0, 0, 0), (0, 0, 1, 0)),
        (1, (0, 1, 1, 0), (0, 0, 1, 0)),
        (2, (0, 1, 1, 0), (0, 1, 1, 0)),
        (3, (1, 1, 1, 1), (0, 1, 1, 0)),
    ],
)
@pytest.mark.parametrize("name", ["gpt2", "llama-3.1-8b"])
def test_the_bucket_is_whole_however_small_the_model_and_the_copy_is_what_it_carries(name, stage, bucket, copied):
    carried = 2 * min(read(name).num_parameters(), 500_000_000)
    assert buckets(name, stage, data_parallel_size=8) == [
        (BUCKET * held, carried * there) for held, there in zip(bucket, copied, strict=True)
    ]


def test_the_step_of_zero_2_holds_the_18_bytes_of_a_partition_that_deepspeed_documents_and_its_flat_copy():
    """estimate_zero2_model_states_mem_needs: 2 N + 18 N / n, of which 2 are the gradients; flattening makes 2 more
    for a moment.
    """
    model = read("llama-3.1-8b")
    plan = TrainingPlan(sequence_length=1024, runtime="deepspeed", zero_stage=2, data_parallel_size=8)
    step = training_memory(model, plan).ranks[0].phases[-1]
    n = model.num_parameters()
    states = sum(step.child(name).value for name in ("weights", "gradients", "optimizer", "temporary"))
    assert states == 2 * n + (18 + 2) * n / 8


def test_the_step_of_zero_3_casts_one_sub_group_at_a_time():
    plan = TrainingPlan(sequence_length=1024, runtime="deepspeed", zero_stage=3, data_parallel_size=2)
    step = training_memory(read("llama-3.1-8b"), plan).ranks[0].phases[-1]
    assert step.child("temporary").value == (2 + 4) * 10**9


def communication(stage, moment="first layer of backward", model="llama-3.1-8b", **said):
    """Buffers of a moment by name, of eight ranks."""
    plan = TrainingPlan.of_fields(
        **{"sequence_length": 1024, "runtime": "deepspeed", "zero_stage": stage, "data_parallel_size": 8, **said}
    )
    phases = {phase.name: phase for phase in training_memory(read(model), plan).ranks[0].phases}
    return {term.name: term.value for term in phases[moment].child("communication buffers").children}


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_the_bucket_is_as_large_as_the_user_says(stage):
    assert communication(stage, reduce_bucket_size=10**8)["reduce bucket"] == 2 * 10**8


def test_overlap_gives_zero_2_a_second_bucket_and_zero_3_none():
    assert "second reduce bucket" not in communication(2)
    assert communication(2, overlap_comm=True)["second reduce bucket"] == BUCKET
    assert "second reduce bucket" not in communication(3)


def test_without_overlap_gradients_go_to_the_bucket_one_parameter_at_a_time():
    assert communication(3)["gradients of one unit"] == 2 * (128256 * 4096 + 4096)  # the head with its norm
    assert communication(3, overlap_comm=False)["gradient of one parameter"] == 2 * 128256 * 4096


@pytest.mark.parametrize("stage", [2, 3])
def test_without_contiguous_gradients_there_is_no_bucket_and_gradients_wait_themselves(stage):
    found = communication(stage, model="gpt2", contiguous_gradients=False)
    assert "reduce bucket" not in found
    assert found["gradients that wait to be reduced"] == 2 * read("gpt2").num_parameters()


def test_zero_3_gathers_ahead_until_as_many_parameters_live_as_may():
    """partitioned_param_coordinator.py: every module fetches ahead, until max_live_parameters are there."""
    found = communication(3, overlap_comm=False)
    assert found["all-gather buffer (current module)"] + found["prefetch buffer"] == 2 * 10**9
    assert found["all-gather buffer (flat tensor)"] == 2 * 50_000_000
    more = communication(3, stage3_max_live_parameters=2 * 10**9, stage3_prefetch_bucket_size=10**8)
    assert more["all-gather buffer (current module)"] + more["prefetch buffer"] == 4 * 10**9
    assert more["all-gather buffer (flat tensor)"] == 2 * 10**8


def test_without_prefetching_only_what_is_used_again_soon_stays_gathered():
    """Forward and backward of the last parameters are max_reuse_distance apart."""
    found = communication(3, stage3_prefetch_bucket_size=0)
    assert found["all-gather buffer (current module)"] + found["prefetch buffer"] == 2 * 10**9 / 2
    last = communication(3, "last layer of backward", stage3_prefetch_bucket_size=0)
    assert last["prefetch buffer"] == last["all-gather buffer (flat tensor)"] == 0


def test_a_model_of_which_all_may_live_is_gathered_whole():
    found = communication(3, "loss", model="gpt2")
    assert found["all-gather buffer (current module)"] + found["prefetch buffer"] == 2 * read("gpt2").num_parameters()


def test_parameters_below_the_threshold_stay_whole():
    """The norms of Llama: 65 of 4096 numbers."""

    def small(**said):
        plan = TrainingPlan.of_fields(
            sequence_length=1024, runtime="deepspeed", zero_stage=3, data_parallel_size=8, **said
        )
        weights = training_memory(read("llama-3.1-8b"), plan).ranks[0].phases[0].child("weights")
        return weights.child("parameters too small to be released").value

    assert small() == 2 * 65 * 4096
    assert small(stage3_param_persistence_threshold=4095) == 0


def test_a_rank_alone_has_nothing_to_gather():
    assert not any(name.startswith("all-gather") for name in communication(3, data_parallel_size=1))
    offloaded = communication(3, data_parallel_size=1, offload_parameters="cpu")
    assert any(name.startswith("all-gather") for name in offloaded)


def weights(**said):
    plan = TrainingPlan.of_fields(
        **{"sequence_length": 1024, "runtime": "deepspeed", "zero_stage": 3, "data_parallel_size": 16, **said}
    )
    return training_memory(read("llama-3.1-8b"), plan).ranks[0].phases[0].child("weights")


def test_zero_plus_plus_keeps_a_second_shard_and_gathers_in_8_bits():
    n = read("llama-3.1-8b").num_parameters()
    assert weights(zero_hpz_partition_size=8).child("second shard of ZeRO++").value == 2 * n / 8
    wide, narrow = communication(3), communication(3, zero_quantized_weights=True)
    assert narrow["prefetch buffer"] == wide["prefetch buffer"] / 2
    assert narrow["all-gather buffer (current module)"] == wide["all-gather buffer (current module)"]
    # on arrival the 8 bits and their 16-bit copy are there
    assert narrow["all-gather buffer (flat tensor)"] == wide["all-gather buffer (flat tensor)"] * 1.5
    four = communication(3, zero_quantized_gradients=True)
    assert four["gradients quantised to be reduced"] < wide["gradients flattened to be reduced"]


def test_weights_that_do_not_train_are_stored_in_8_bits_when_asked_to():
    lora = {"method": "lora", "lora_rank": 16}
    whole, half = (
        weights(**lora, zero_quantized_nontrainable_weights=on).child("base weights").value for on in (False, True)
    )
    assert half == whole / 2


def test_the_step_of_zero_3_is_as_large_as_a_sub_group():
    plan = TrainingPlan.of_fields(
        sequence_length=1024, runtime="deepspeed", zero_stage=3, data_parallel_size=2, sub_group_size=10**8
    )
    step = training_memory(read("llama-3.1-8b"), plan).ranks[0].phases[-1]
    assert step.child("temporary").value == (2 + 4) * 10**8


def test_only_gradients_that_train_fill_the_buckets():
    found = communication(3, method="lora", lora_rank=8)
    assert 0 < found["gradients flattened to be reduced"] < 2 * 10**8


def asked(**said):
    return train(
        read("llama-3.1-8b"),
        cluster("8xH100-SXM-80GB"),
        TrainingOptions(**{"runtime": "deepspeed", "zero_stage": 3, **said}),
    )


def test_auto_is_what_the_trainer_fills_in():
    answer = asked(
        reduce_bucket_size="auto", stage3_prefetch_bucket_size="auto", stage3_param_persistence_threshold="auto"
    )
    values = {
        name: answer.question[name].value
        for name in ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
    }
    assert list(values.values()) == [4096**2, int(0.9 * 4096**2), 40960]
    assert answer.needed_bytes < asked().needed_bytes


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"runtime": "fsdp2", "reduce_bucket_size": 10**6}, "is a setting of deepspeed"),
        ({"runtime": "megatron", "zero_stage": 1, "overlap_comm": False}, "is a setting of deepspeed"),
        ({"zero_stage": 2, "stage3_max_live_parameters": 10**6}, "counts in ZeRO stage 3"),
        ({"zero_stage": 0, "reduce_bucket_size": 10**6}, "counts in ZeRO stage 1, 2, 3"),
        ({"zero_hpz_partition_size": 3}, "must divide the 8 ranks"),
        ({"reduce_bucket_size": 0}, "must be from 1"),
        ({"stage3_max_live_parameters": "auto"}, "has no auto"),
        ({"zero_quantized_nontrainable_weights": True}, "lora"),
        ({"zero_stage": 2, "contiguous_gradients": False, "offload_optimizer": "cpu"}, "turns it on itself"),
    ],
)
def test_settings_are_refused_where_they_mean_nothing(said, why):
    with pytest.raises(InvalidPlan, match=why):
        asked(**said)


def test_a_setting_that_changes_no_memory_says_so():
    answer = asked(zero_stage=2, allgather_bucket_size=10**6)
    assert any(warning.startswith("allgather_bucket_size changes no memory") for warning in answer.warnings)
