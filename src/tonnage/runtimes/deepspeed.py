"""DeepSpeed ZeRO 0 to 3: 16-bit weights and gradients, fp32 master and moments, flat buckets.

With contiguous_gradients, its default, ZeRO allocates the reduce bucket at its full size however small the model is: stages 1
and 2 for each backward pass (setup_buckets, _release_ipg_buffers), stage 3 for good. What the bucket carries is copied once more
for the collective: flattened by allreduce_bucket, interleaved by reduce_scatter_coalesced. Stages 0 and 1 reduce after backward.
The step of
stages 2 and 3 flattens a rank's 16-bit gradients and casts them to the master's type (step, _prepare_fp32_grad_for_sub_group).
Only stage 3 overlaps communication by default, and it has one bucket even then.
"""

from msgspec.structs import replace

from tonnage.ops import Kernels
from tonnage.runtimes._base import (
    ALWAYS,
    BACKWARD,
    LAST,
    METHODS,
    STEP_ALONE,
    TRAINING_RUNTIMES,
    Bucket,
    State,
    TrainingRuntime,
    Transient,
)

REDUCE_BUCKET = 500_000_000  # reduce_bucket_size, and MEMORY_OPT_ALLREDUCE_SIZE of stage 0
BUCKET = Bucket(
    name="reduce bucket", copy="compute", stages=(1, 2), moments=BACKWARD, elements=REDUCE_BUCKET, whole=True
)
SUB_GROUP = 1_000_000_000  # sub_group_size: stage 3 updates so many parameters at once
STEP = Bucket(name="gradients flattened for the step", copy="compute", stages=(2,), moments=STEP_ALONE)
FLATTENED = Bucket(
    name="gradients flattened to be reduced", copy="compute", stages=(0, 1), moments=LAST, elements=REDUCE_BUCKET
)

TRAINING_RUNTIMES.add(
    "deepspeed",
    TrainingRuntime(
        name="deepspeed",
        version="DeepSpeed 0.19",
        source="DeepSpeed, deepspeed/runtime/zero/config.py: reduce_bucket_size 5e8, overlap_comm only in stage 3; "
        "DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py, setup_buckets; DeepSpeed, deepspeed/runtime/zero/stage3.py",
        weights=(State("weights", "compute", 3),),
        gradients=(State("gradients", "compute", 2),),
        masters=(State("master weights", "master", 1),),
        optimizer_sharded_from=1,
        default_zero_stage=2,
        zero_stages=(0, 1, 2, 3),
        kernels=Kernels(attention="sdpa", fused_norm=False, fused_activation=False, upcast_softmax=True),
        gradients_persist=True,
        logits_split=False,
        gathers=2,
        trains=METHODS,
        reduces=(Transient("gradients of one unit", 2),),
        buckets=(
            BUCKET,
            replace(BUCKET, stages=(3,), moments=ALWAYS),
            FLATTENED,
            replace(FLATTENED, stages=(2, 3), moments=BACKWARD),
        ),
        step=(
            STEP,
            replace(STEP, name="gradients cast for the step", copy="master"),
            replace(STEP, stages=(3,), elements=SUB_GROUP),
            replace(STEP, name="gradients cast for the step", copy="master", stages=(3,), elements=SUB_GROUP),
        ),
        pipeline=False,
        context_parallel=False,
    ),
)
