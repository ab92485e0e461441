"""DeepSpeed ZeRO 0 to 3: 16-bit weights and gradients, fp32 master and moments. Its buffers, buckets and what it moves
to the host follow
its settings: estimate.frameworks.deepspeed."""

from tonnage.ops import Kernels
from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import PEFT_METHODS, PLACES, TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.spec import DeepSpeedSettings

TRAINING_RUNTIMES.add(
    "deepspeed",
    TrainingRuntime(
        name="deepspeed",
        export="deepspeed",
        version="DeepSpeed 0.19",
        source="DeepSpeed, deepspeed/runtime/zero/config.py: reduce_bucket_size 5e8, overlap_comm only in stage 3; "
        "DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py, setup_buckets; DeepSpeed, "
        "deepspeed/runtime/zero/stage3.py",
        weights=(State("weights", "compute", 3),),
        gradients=(State("gradients", "compute", 2),),
        masters=(State("master weights", "master", 1),),
        optimizer_sharded_from=1,
        default_zero_stage=2,
        zero_stages=(0, 1, 2, 3),
        kernels=Kernels(attention="sdpa", fused_norm=False, fused_activation=False, upcast_softmax=True),
        gradients_persist=True,
        framework="deepspeed",
        listed=5,
        options=(*DeepSpeedSettings.__struct_fields__, "context_parallel_method"),
        takes_objectives=True,
        # openrlhf 0.11.2, openrlhf/models/actor.py: forward
        untiled_losses={"full": "wide log-probabilities"},
        liger=training_runtime("transformers").liger,  # the Trainer's use_liger_kernel
        # stands for the stages below 2, which are said: there is no file of 0, and zero1 has one micro-batch a step,
        # which no other number can stand beside
        trl_config="zero2",
        trl_words={"offload_optimizer": ("cpu",), "offload_parameters": ("cpu",)},
        # offload_optimizer and offload_param; saved_tensors_hooks of PyTorch
        offload_optimizer=PLACES,
        offload_parameters=PLACES,
        offload_activations=PLACES,
        gradients_offloaded_from=2,
        offload_fraction_from=3,
        saves_twice_below=3,  # mp_rank_*_model_states.pt and zero_pp_rank_*_optim_states.pt
        logits_split=False,
        trains=PEFT_METHODS,
        pipeline=False,
    ),
)
