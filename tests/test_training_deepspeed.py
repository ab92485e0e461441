"""DeepSpeed's buckets, as stage_1_and_2.py and stage3.py of 0.19.8 allocate them."""

import pytest

from tonnage import read
from tonnage.estimate.training import training_memory
from tonnage.spec import TrainingPlan

BUCKET = 2 * 500_000_000
MOMENTS = ("loss", "first layer of backward", "last layer of backward", "optimizer step")


def buckets(model, stage, **sizes):
    """Bytes of the reduce bucket, and of the copy that is reduced, at each moment of a step."""
    plan = TrainingPlan(sequence_length=1024, runtime="deepspeed", zero_stage=stage, **sizes)
    found = []
    phases = {phase.name: phase for phase in training_memory(read(model), plan).ranks[0].phases}
    for phase in (phases[moment] for moment in MOMENTS):
        by_name = {term.name: term.value for term in phase.child("communication buffers").children}
        found.append((by_name.get("reduce bucket", 0), by_name.get("gradients flattened to be reduced", 0)))
    return found


@pytest.mark.parametrize(
    ("stage", "bucket", "copied"),
    [(0, (0, 0, 0, 0), (0, 0, 1, 0)), (1, (0, 1, 1, 0), (0, 0, 1, 0)), (2, (0, 1, 1, 0), (0, 1, 1, 0)), (3, (1, 1, 1, 1), (0, 1, 1, 0))],
)  # fmt: skip
@pytest.mark.parametrize("name", ["gpt2", "llama-3.1-8b"])
def test_the_bucket_is_whole_however_small_the_model_and_the_copy_is_what_it_carries(name, stage, bucket, copied):
    carried = 2 * min(read(name).num_parameters(), 500_000_000)
    assert buckets(name, stage, data_parallel_size=8) == [
        (BUCKET * held, carried * there) for held, there in zip(bucket, copied, strict=True)
    ]


def test_the_step_of_zero_2_holds_the_18_bytes_of_a_partition_that_deepspeed_documents_and_its_flat_copy():
    """estimate_zero2_model_states_mem_needs: 2 N + 18 N / n, of which 2 are the gradients; flattening makes 2 more for a moment."""
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
