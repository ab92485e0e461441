"""LitGPT on one accelerator: Lightning Fabric, adapters and moments in the type of the weights, nothing run again."""

from tonnage.ops import Kernels
from tonnage.runtimes.parts.base import NEVER, TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.runtimes.parts.litgpt import CODE

TRAINING_RUNTIMES.add(
    "litgpt",
    TrainingRuntime(
        name="litgpt",
        version="litgpt 0.5.13",
        source="LitGPT, litgpt/finetune/lora.py: lm_head_chunk_size=128; LitGPT, litgpt/utils.py: "
        "chunked_cross_entropy; "
        "Lightning, fabric/plugins/precision/half.py: convert_output",
        weights=(State("weights", "master", NEVER),),
        gradients=(State("gradients", "gradient", NEVER),),
        optimizer_sharded_from=NEVER,
        default_zero_stage=0,
        zero_stages=(0,),
        kernels=Kernels(attention="flash", fused_norm=False, fused_activation=False, upcast_softmax=True),
        gradients_persist=False,
        framework="litgpt",
        listed=9,
        code=CODE,
        model_codes=("litgpt",),
        loss="litgpt",
        logits_split=False,
        casts=True,
        trains=("full", "lora", "qlora"),
        # Lightning, fabric/plugins/precision/amp.py: MixedPrecision makes modules in torch's default type, fp32, and
        # casts products alone,
        # where half.py (HalfPrecision, "bf16-true") makes them in 16 bit; what a checkpoint holds is copied into either
        wide_base=True,
        plain_base="bf16",  # finetune/lora.py: "Quantization and mixed precision is not supported."
        quantises_head=True,  # BitsandbytesPrecision ignores no module
        one_accelerator=True,
        tensor_parallel=False,
        pipeline=False,
        context_parallel=False,
        expert_parallel=False,
        sequence_parallel=False,
    ),
)
