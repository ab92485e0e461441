"""Tools of pretraining and fine-tuning by their names."""

from tonnage.kernel.message import Message
from tonnage.runtimes.parts.tool import OF_FSDP1, Tool

_GRADIENTS = Message(
    "it is estimated as Megatron-core, whose gradients are one fp32 copy; here they are as wide as the weights until a "
    "rank casts its shard, so that up to 2 bytes a parameter less are needed"
)
_XLA = Message(
    "XLA plans what lives at the same time when it compiles, which is not known here: weights, gradients and moments "
    "are its shards in fp32, and what layers keep is that of compiled layers"
)
_MUON = Message(
    "matrices train with Muon, whose states are sharded over the ranks: {--optimizer} muon; tables and the head train "
    "with AdamW"
)
_SPEEDRUN = Message(
    "its model, batch and kernels change with each record: it is estimated as DDP with compiled layers of the model "
    "that is named. {--optimizer} muon is its optimizer of matrices"
)
_32_TRUE = Message("its default precision is 32-true: say {--precision} fp32 for it")
_NO_MIXED = Message("its default is training in the checkpoint's own precision: say {--precision} bf16 for it")
_COLOSSAL = Message(
    "it is estimated as DeepSpeed at a ZeRO stage, as its LowLevelZeroPlugin shards; its Gemini and hybrid-parallel "
    "plugins are not modelled: {--runtime} megatron is nearest to the latter"
)
_KT = Message(
    "Its experts stand in host memory and are computed by the CPUs (AMX or AVX-512), whose speed in backward nobody "
    "published"
)
_BY_DEEPSPEED = Message(
    "it is estimated as Megatron-core; its states are sharded by DeepSpeed's ZeRO-1, which keeps gradients as wide as "
    "the weights, or in fp32 where bf16 weights meet a pipeline"
)
#: Tools that are FSDP2 or FSDP1 in PyTorch, DDP, or Megatron; and frameworks on JAX.
PRETRAINING_TOOLS = (
    Tool(
        name="internevo",
        title="InternEvo",
        source="InternLM/InternEvo, configs/7B_sft.py: seq_len 2048, micro_bsz 2, checkpoint False, zero1 over all "
        "data-parallel ranks; internlm/solver/optimizer/hybrid_zero_optim.py",
        aliases=("internlmtrain", "internlmtraining"),
        runtime="megatron",
        sequence_length=2048,
        micro_batch_size=2,
        checkpoints=False,
        differs=_GRADIENTS,
    ),
    Tool(
        name="gpt-neox",
        title="GPT-NeoX",
        source="EleutherAI/gpt-neox, configs/20B.yml: zero_optimization.stage 1, checkpoint-activations true, "
        "seq-length 2048, train_micro_batch_size_per_gpu 4",
        aliases=("neox",),
        runtime="megatron",
        sequence_length=2048,
        micro_batch_size=4,
        checkpoints=True,
        differs=_BY_DEEPSPEED,
    ),
    Tool(
        name="megatron-deepspeed",
        title="Megatron-DeepSpeed",
        source="deepspeedai/Megatron-DeepSpeed, megatron/training.py: deepspeed.initialize around Megatron's model",
        aliases=("deepspeedmegatron", "megds"),
        runtime="megatron",
        differs=_BY_DEEPSPEED,
    ),
    Tool(
        name="primus",
        title="Primus",
        source="AMD-AGI/Primus, README: backends Megatron-LM (the usual one), torchtitan and others on ROCm",
        aliases=("primuslm", "amdprimus"),
        runtime="megatron",
    ),
    Tool(
        name="fms-fsdp",
        title="fms-fsdp",
        source="foundation-model-stack/fms-fsdp, fms_fsdp/config/training.py: seq_length 4096, batch_size 2, "
        "use_torch_compile True, fsdp_activation_checkpointing False, mixed_precision True",
        aliases=("foundationmodelstack", "fms"),
        runtime="fsdp2",
        compiles=True,
        checkpoints=False,
        sequence_length=4096,
        micro_batch_size=2,
        differs=OF_FSDP1,
    ),
    Tool(
        name="olmo-core",
        title="OLMo-core",
        version="3.0",
        source="ai2-olmo-core 3.0.0, olmo_core/internal/cookbook.py: compile_model True, HSDP, param_dtype "
        "bfloat16, reduce_dtype float32",
        aliases=("olmocore", "olmotrainer"),
        runtime="fsdp2",
        compiles=True,
    ),
    Tool(
        name="lingua",
        title="Meta Lingua",
        source="facebookresearch/lingua, README: fsdp_type full_shard, compile true, "
        "selective_activation_checkpointing false",
        aliases=("metalingua",),
        runtime="fsdp2",
        compiles=True,
        checkpoints=False,
    ),
    Tool(
        name="llm-foundry",
        title="LLM Foundry",
        source="mosaicml/llm-foundry, scripts/train/yamls/pretrain/mpt-7b.yaml: FULL_SHARD, mixed_precision PURE, "
        "activation_checkpointing true, max_seq_len 2048, device_train_microbatch_size 8",
        aliases=("composer", "mosaicml", "mosaicmlcomposer"),
        runtime="fsdp2",
        checkpoints=True,
        sequence_length=2048,
        micro_batch_size=8,
        differs=OF_FSDP1,
    ),
    Tool(
        name="xtuner",
        title="XTuner",
        version="1",
        source="InternLM/xtuner, xtuner/v1/config/fsdp.py: recompute_ratio 1.0, param_dtype and reduce_dtype "
        "bfloat16, torch_compile False",
        runtime="fsdp2",
        checkpoints=True,
    ),
    Tool(
        name="nanogpt",
        replicates=True,
        title="nanoGPT",
        source="karpathy/nanoGPT, train.py: batch_size 12, block_size 1024, compile True, autocast of fp32 weights",
        runtime="fsdp2",
        compiles=True,
        checkpoints=False,
        sequence_length=1024,
        micro_batch_size=12,
        step_sequences=480,  # gradient_accumulation_steps 5 * 8
    ),
    Tool(
        name="nanochat",
        replicates=True,
        title="nanochat",
        source="karpathy/nanochat, scripts/base_train.py: device-batch-size 32, max-seq-len 2048, torch.compile",
        runtime="fsdp2",
        compiles=True,
        checkpoints=False,
        sequence_length=2048,
        micro_batch_size=32,
        expands_on=("fsdp2",),
        differs=_MUON,
    ),
    Tool(
        name="modded-nanogpt",
        replicates=True,
        title="modded-nanogpt",
        source="KellerJordan/modded-nanogpt, train_gpt.py: DDP ranks, torch.compile, Muon and Adam",
        aliases=("nanogptspeedrun",),
        runtime="fsdp2",
        compiles=True,
        checkpoints=False,
        differs=_SPEEDRUN,
    ),
    Tool(
        name="lightning",
        title="Lightning",
        version="2.6",
        source="lightning-fabric 2.6.6, lightning_fabric/connector.py: strategy auto, precision 32-true",
        aliases=("pytorchlightning", "lightningfabric", "fabric"),
        model_code="transformers",
        differs=_32_TRUE,
    ),
    Tool(
        name="ray-train",
        title="Ray Train",
        source="Ray, ray/train/torch: TorchTrainer starts PyTorch's ranks; prepare_model wraps in DDP or FSDP",
        aliases=("raytorch", "torchtrainer"),
        model_code="transformers",
    ),
    Tool(
        name="oumi",
        title="Oumi",
        version="0.9",
        source="oumi 0.9, oumi/core/configs/params/training_params.py: per_device_train_batch_size 8, "
        "enable_gradient_checkpointing False, mixed_precision_dtype NONE",
        model_code="transformers",
        micro_batch_size=8,
        checkpoints=False,
        differs=_NO_MIXED,
    ),
    Tool(
        name="autotrain",
        title="AutoTrain Advanced",
        version="0.8",
        source="autotrain-advanced 0.8.36, autotrain/trainers/clm/params.py: batch_size 2, model_max_length 2048, "
        "lora_r 16, lora_dropout 0.05, disable_gradient_checkpointing False",
        aliases=("autotrainadvanced",),
        model_code="transformers",
        sequence_length=2048,
        micro_batch_size=2,
        checkpoints=True,
        lora_rank=16,
        lora_dropout=True,
    ),
    Tool(
        name="h2o-llmstudio",
        title="H2O LLM Studio",
        source="h2oai/h2o-llmstudio, llm_studio/python_configs/text_causal_language_modeling_config.py: batch_size "
        "2, max_length 512, lora_r 4, lora_dropout 0.05, gradient_checkpointing True, number_of_workers 4",
        aliases=("llmstudio", "h2ollm"),
        model_code="transformers",
        sequence_length=512,
        micro_batch_size=2,
        checkpoints=True,
        lora_rank=4,
        lora_dropout=True,
        data_loader_workers=4,
    ),
    Tool(
        name="colossalai",
        title="Colossal-AI",
        version="0.5",
        source="colossalai 0.5.0, colossalai/booster/plugin/low_level_zero_plugin.py: stage 1",
        aliases=("colossal",),
        runtime="deepspeed",
        differs=_COLOSSAL,
    ),
    Tool(
        name="levanter",
        title="Levanter",
        version="1.1",
        source="levanter 1.1, levanter/models/llama.py: gradient_checkpointing True; levanter/trainer.py: a jmp "
        "policy of fp32 weights",
        runtime="fsdp2",
        compiles=True,
        checkpoints=True,
        differs=_XLA,
    ),
    Tool(
        name="easydel",
        title="EasyDeL",
        version="0.3",
        source="easydel 0.3.0, easydel/trainers/training_configurations.py: total_batch_size 32",
        runtime="fsdp2",
        compiles=True,
        differs=_XLA,
    ),
    Tool(
        name="paxml",
        title="Pax",
        source="google/paxml, paxml/tasks/lm/params/lm_cloud.py: SPMD shards of fp32 weights, bf16 products",
        aliases=("pax", "praxis"),
        runtime="fsdp2",
        compiles=True,
        differs=_XLA,
    ),
    Tool(
        name="kt-sft",
        title="KTransformers SFT",
        source="kvcache-ai/ktransformers, doc/en/KTransformers-Fine-Tuning_User-Guide.md",
        aliases=("ktransformerssft", "ktsft"),
        refusal=_KT,
        nearest=("deepspeed", "unsloth"),
    ),
)
