"""LitGPT: Lightning Fabric, adapters and moments in the type of the weights, on one accelerator nothing run again; on
several FSDP, all units beside the blocks in the root, and every block run again.
"""

from tonnage.ops import Kernels
from tonnage.runtimes.parts.base import TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.runtimes.parts.litgpt import CODE

TRAINING_RUNTIMES.add(
    "litgpt",
    TrainingRuntime(
        name="litgpt",
        version="litgpt 0.5.13",
        source="LitGPT, litgpt/finetune/lora.py: lm_head_chunk_size=128; LitGPT, litgpt/utils.py: "
        "chunked_cross_entropy; "
        "Lightning, fabric/plugins/precision/half.py: convert_output; LitGPT, litgpt/finetune/full.py and "
        "litgpt/pretrain.py: FSDPStrategy; LitGPT, litgpt/finetune/lora.py: parallelize_fn",
        weights=(State("weights", "master", 3),),
        gradients=(State("gradients", "gradient", 3),),
        optimizer_sharded_from=3,
        default_zero_stage=3,
        zero_stages=(0, 3),
        shards_on_several=True,
        recompute_on_several="full",  # activation_checkpointing_policy={Block}; pretrain has none
        reduces_once=True,  # fabric.no_backward_sync
        root_unit=True,
        replicates=True,  # litgpt/pretrain.py: HYBRID_SHARD
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
        launch_program="a command of LitGPT, which starts on each node.",
        launch_words={
            "precision": ("fp16-mixed", "bf16", "fp16", "fp32"),
            "method": ("lora",),
            "base_weights": ("nf4", "nf4-double", "fp4", "fp4-double"),
        },
        tensor_parallel=False,
        pipeline=False,
        context_parallel=False,
        expert_parallel=False,
        sequence_parallel=False,
    ),
)
