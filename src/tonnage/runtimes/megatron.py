"""Megatron-LM with its distributed optimizer: 16-bit weights, fp32 main gradients, fp32 master and moments sharded."""

from tonnage.ops import Kernels
from tonnage.runtimes.parts.base import NEVER, PLACES, TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.runtimes.parts.megatron.layers import MegatronLayers
from tonnage.spec import MegatronSettings
from tonnage.tape import CODES

CODES["megatron"] = MegatronLayers
TRAINING_RUNTIMES.add(
    "megatron",
    TrainingRuntime(
        name="megatron",
        export="megatron",
        version="megatron-core 0.19",
        source="Megatron-LM, docs/source/api-guide/dist_optimizer.md: 18 bytes a parameter, 6 + 12/d with the "
        "distributed "
        "optimizer; Megatron-LM, megatron/core/tensor_parallel/cross_entropy.py; "
        "Megatron-LM, megatron/core/fusions/fused_softmax.py",
        weights=(State("weights", "compute", NEVER),),
        gradients=(State("main gradients", "gradient", NEVER),),
        microbatch_rules={"interleaved-1f1b": "multiple of stages"},
        masters=(State("master weights", "master", 1),),
        optimizer_sharded_from=1,
        default_zero_stage=1,
        zero_stages=(0, 1),
        # eager: ScaledUpperTriangMaskedSoftmax takes and gives 16 bit, and keeps its output alone
        kernels=Kernels(attention="flash", fused_norm=True, fused_activation=True, upcast_softmax=False),
        gradients_persist=True,
        framework="megatron",
        listed=2,
        options=(
            *MegatronSettings.__struct_fields__,
            "pipeline_layout",
            "account_for_embedding_in_pipeline_split",
            "account_for_loss_in_pipeline_split",
            "expert_imbalance",
            "offload_modules",
        ),
        makes_on_accelerator=True,
        # optimizer_cpu_offload and fine-grained activation offload of Megatron-core
        offload_optimizer=PLACES[:2],
        offload_activations=PLACES[:2],
        offload_fraction_from=0,
        launch_program="options of Megatron-LM's pretrain_gpt.py, which torchrun starts on each node.",
        launch_words={"precision": ("fp16-mixed", "fp8-te"), "offload_optimizer": ("cpu",)},
        saves_shards=True,
        saves_twice_below=NEVER,  # dist_checkpointing of the model and of the distributed optimizer
        newest_attention=True,  # Transformer Engine's
        takes_objectives=True,  # as NeMo RL, veRL and slime train with it
        packs_completions=True,
        trains=("full", "lora"),  # peft of Megatron-Bridge and ms-swift; experts have adapters as under ms-swift
        multiplies_narrow=True,  # its te.Linear, under fp8_autocast
        scatters_stages=True,
        code="megatron",
        model_codes=("megatron",),
        loss="vocabulary-parallel",
        losses=("full", "fused"),
        logits_split=True,
    ),
)
