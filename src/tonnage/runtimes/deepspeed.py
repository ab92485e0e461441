"""DeepSpeed ZeRO 0 to 3: 16-bit weights and gradients, fp32 master and moments. Its buffers, buckets and what it moves to the host follow
its settings: estimate.frameworks.deepspeed."""

from tonnage.ops import Kernels
from tonnage.runtimes._base import METHODS, TRAINING_RUNTIMES, State, TrainingRuntime

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
        trains=METHODS,
        pipeline=False,
        context_parallel=False,
    ),
)
