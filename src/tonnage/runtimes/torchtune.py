"""torchtune: everything in 16 bit, AdamW's moments too, and no master copy; the logits in eight parts, or layers and
loss compiled.

On several accelerators its recipes shard with FSDP2, table and head in the root. Recipes of full fine-tuning on one
step the optimizer as gradients come, with states that bitsandbytes pages to the host.
"""

from tonnage.ops import Kernels
from tonnage.runtimes.fsdp2 import CUDNN_FIRST
from tonnage.runtimes.parts.base import METHODS, PLACES, TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.tape import Titan

TRAINING_RUNTIMES.add(
    "torchtune",
    TrainingRuntime(
        name="torchtune",
        version="torchtune 0.6",
        source="torchtune, recipes/configs/llama3_1/8B_full_single_device.yaml; torchtune, "
        "recipes/full_finetune_distributed.py; "
        "torchtune, torchtune/modules/loss/ce_chunked_output_loss.py; torchtune, "
        "torchtune/modules/transformer.py: chunked_output; torchtune, torchtune/modules/attention.py",
        weights=(State("weights", "compute", 3),),
        gradients=(State("gradients", "gradient", 3),),
        optimizer_sharded_from=3,
        default_zero_stage=3,
        zero_stages=(0, 3),
        shards_on_several=True,
        default_precision="bf16",
        kernels=Kernels(attention="flash", fused_norm=True, fused_activation=False, upcast_softmax=True),
        gradients_persist=False,
        framework="torchtune",
        listed=7,
        code="torchtitan",
        makes_on_accelerator=True,
        packs=("torchtune",),
        attention_by_generation=CUDNN_FIRST,
        offload_optimizer=PLACES[:2],
        offload_parameters=PLACES[:2],
        offload_activations=PLACES,
        offloads_together=True,
        gradients_offloaded_from=0,
        model_codes=("torchtune",),
        own=Titan(fuses_projections=False, repeats_heads=True, decomposes_norm=True),
        loss="output chunks",
        losses=("chunked", "full"),
        loss_chunks=8,
        equal_chunks=False,  # hidden states and labels by torch.chunk: all as long as the first, but for the last
        logits_split=False,
        root_unit=True,
        trains=METHODS,
        compiles=True,
        steps_in_backward=True,
        tensor_parallel=False,
        pipeline=False,
        context_parallel=False,
        expert_parallel=False,
        sequence_parallel=False,
    ),
)
