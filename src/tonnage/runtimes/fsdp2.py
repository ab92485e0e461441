"""PyTorch FSDP2 as torchtitan uses it: sharded fp32 weights are the master, gathered in the compute type unit by unit.

torchtitan's recipes take their loss in chunks (`--loss chunked`); a plain training loop on FSDP2 does not, which is the default here.
"""

from tonnage.ops import Kernels
from tonnage.runtimes._base import TRAINING_RUNTIMES, State, TrainingRuntime, Transient

TRAINING_RUNTIMES.add(
    "fsdp2",
    TrainingRuntime(
        name="fsdp2",
        version="torchtitan 0.3.0",
        source="torchtitan, torchtitan/config/configs.py: dtype float32, mixed_precision_param bfloat16, "
        "mixed_precision_reduce float32; torchtitan, torchtitan/components/loss.py: ChunkedLossWrapper",
        weights=(State("sharded weights", "master", 2),),
        gradients=(State("sharded gradients", "gradient", 2),),
        optimizer_sharded_from=1,
        default_zero_stage=3,
        zero_stages=(2, 3),  # reshard_after_forward false or true
        kernels=Kernels(attention="flash", fused_norm=True, fused_activation=False, upcast_softmax=True),
        gradients_persist=False,
        code="native",
        model_codes=("torchtitan", "transformers"),
        logits_split=True,
        losses=("full", "chunked"),
        loss_chunks=8,  # ChunkedLossWrapper.Config.num_chunks, along the sequence
        gathers=2,
        stays_gathered=True,
        reduces=(Transient("gradients of one unit", 2), Transient("reduce-scatter input in fp32", 4)),
    ),
)
