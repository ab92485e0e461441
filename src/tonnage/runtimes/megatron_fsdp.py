"""Megatron-FSDP: Megatron-core's layers; weights, gradients and states are sharded, and gathered layer by layer."""

from msgspec.structs import replace

from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import TRAINING_RUNTIMES, State, Transient

_MEGATRON = training_runtime("megatron")
TRAINING_RUNTIMES.add(
    "megatron-fsdp",
    replace(
        _MEGATRON,
        name="megatron-fsdp",
        export="",
        source="Megatron-LM, docs/user-guide/features/custom_fsdp.md; Megatron-LM, "
        "megatron/core/distributed/fsdp/src/README.md: --data-parallel-sharding-strategy optim, optim_grads or "
        "optim_grads_params, fsdp_double_buffer",
        weights=(State("sharded weights", "compute", 3),),
        gradients=(State("sharded main gradients", "gradient", 2),),
        masters=(State("sharded master weights", "master", 1),),
        default_zero_stage=3,
        zero_stages=(1, 2, 3),
        gathers=2,  # two buffers: the layer that runs, and the next one
        reduces=(Transient("gradients of a layer", 2), Transient("input of the reduce-scatter", 4)),
        gradients_persist=False,
        pipeline=False,
        listed=9,
        offload_optimizer=("none",),
        offload_fraction_from=0,
        takes_objectives=False,
        packs_completions=False,
    ),
)
