"""Tools of reinforcement learning by their names: what trains, what generates and where, and what each sets itself.

Read 2026-11-29: the arguments and configs that `source` names, at the commits in brackets. Tools whose arguments leave
a value to each config have that of their own example; `differs` says so.
"""

from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.runtimes.parts.tool import UNDER_FSDP, UNDER_ZERO, Tool

MEGATRON = "megatron"
# Sizes that cut the model itself.
CUTS = ("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")
_NEMO_RL = Message("it is estimated on its DTensor policy, its default; its Megatron policy is {--runtime} megatron")
_BY_SCRIPT = Message("recomputation and packing by tokens are those of its scripts: its arguments leave both off")
_BY_EXAMPLE = Message("its config must say all of this, and has no defaults: the values are those of its own example")
_OPEN_INSTRUCT = Message("recomputation and ZeRO stage are those of its scripts: its arguments leave both off")
_PRIME_RL = Message("its own code of a model, where it has one, is estimated as that of transformers")
_SKYRL = Message("it takes the logits of 1,024 tokens at a time to log-probabilities, so that it holds less than this")
_ROLL = Message("its config must say the strategy: with deepspeed_train it is {--runtime} deepspeed")
_ON_VERL = Message("it trains and generates with veRL, whose values it takes")
_OPEN_R1 = Message("it is started with an accelerate config: here its zero3.yaml; zero2.yaml is {--zero-stage} 2")

TRL = Tool(
    name="trl",
    title="TRL",
    version="1.16",
    source="TRL, trl/trainer/base_config.py; TRL, trl/trainer/model_config.py; TRL, trl/trainer/sft_config.py",
    model_code="transformers",
    sequence_length=1024,
    micro_batch_size=8,
    checkpoints=True,
    lora_rank=16,
    lora_dropout=True,
    peft_targets=True,
    wide_base=True,
    qlora_base="nf4",
    rollout_ranks=1,
    rollout_source="TRL, trl/trainer/grpo_config.py: vllm_tensor_parallel_size 1",
    rollout_options=(("sequence_packing", False),),  # trl/trainer/grpo_trainer.py pads to the longest
)
VERL = Tool(
    name="verl",
    title="veRL",
    export="verl",
    version="0.9.1",
    source="verl 0.9.1, verl/trainer/config: actor.strategy fsdp; verl/trainer/config/model/hf_model.yaml: "
    "enable_gradient_checkpointing True, use_remove_padding True",
    runtime=UNDER_FSDP,
    model_code="transformers",
    checkpoints=True,
    rollout_loss="full",  # verl/trainer/config/model/hf_model.yaml: use_fused_kernels False
    rollout_ranks=2,
    rollout_source="veRL, verl/trainer/config/rollout/rollout.yaml: tensor_model_parallel_size 2",
    rollout_options=(("sequence_packing", True),),
    lacks=CUTS,
    lacks_source="veRL, verl/trainer/config/engine/fsdp.yaml: fsdp_size, ulysses_sequence_parallel_size",
    lacks_nearest=MEGATRON,
)
SLIME = Tool(
    name="slime",
    title="slime",
    source="slime, slime/utils/arguments.py (002fa9d): colocate False, rollout_num_gpus_per_engine 1; scripts/"
    "run-glm4-9B.sh (0651230): 4 GPUs train and 4 generate, recompute-granularity full, use-dynamic-batch-size",
    runtime=MEGATRON,
    checkpoints=True,
    generates_apart=True,
    rollout_ranks=1,
    rollout_source="slime, slime/utils/arguments.py: rollout_num_gpus_per_engine 1",
    # with --colocate the actor leaves for the host while the engine generates
    rollout_options=(("rollout_engine", "sglang"), ("sequence_packing", True), ("rollout_offload", True)),
    differs=_BY_SCRIPT,
)
RL_TOOLS = (
    TRL,
    VERL,
    Tool(
        name="nemo-rl",
        title="NeMo-RL",
        source="NeMo-RL, examples/configs/grpo_math_1B.yaml (00294d9): policy.dtensor_cfg.enabled true, "
        "activation_checkpointing false, sequence_packing.enabled True, reference_policy_kl_penalty 0.01",
        runtime=UNDER_FSDP,
        model_code="transformers",
        checkpoints=False,
        rollout_ranks=1,
        rollout_source="NeMo-RL, examples/configs/grpo_math_1B.yaml: vllm_cfg.tensor_parallel_size 1",
        rollout_options=(
            ("rollout_engine", "vllm"),
            ("rollout_memory_share", 0.6),
            ("rollout_offload", True),
            ("sequence_packing", True),
            ("beta", 0.01),
        ),
        differs=_NEMO_RL,
    ),
    Tool(
        name="openrlhf",
        title="OpenRLHF",
        export="openrlhf",
        version="0.11.2",
        source="openrlhf 0.11.2, openrlhf/cli: ds.zero-stage 2",
        runtime=UNDER_ZERO,
        rollout_loss="full",  # openrlhf/models/actor.py: logits in fp32
        rollout_ranks=1,
        rollout_source="OpenRLHF, openrlhf/cli/train_ppo_ray.py: vllm.tensor_parallel_size 1",
    ),
    SLIME,
    replace(
        SLIME,
        name="miles",
        title="Miles",
        source="Miles, miles/utils/arguments.py (00e365d): colocate False, rollout_num_gpus_per_engine 1; a fork of "
        "slime, whose scripts it has",
        rollout_source="Miles, miles/utils/arguments.py: rollout_num_gpus_per_engine 1",
    ),
    Tool(
        name="areal",
        title="AReaL",
        source="AReaL, examples/math/gsm8k_grpo.yaml (00d07c0): allocation_mode sglang:d4p1t1+d4p1t1, "
        "max_head_offpolicyness 2, gradient_checkpointing true, max_tokens_per_mb 10240; areal/api/cli_args.py "
        "(0073c33)",
        runtime=UNDER_FSDP,
        model_code="transformers",
        checkpoints=True,
        generates_apart=True,
        rollout_loss="full",
        rollout_ranks=1,
        rollout_source="AReaL, examples/math/gsm8k_grpo.yaml: allocation_mode sglang:d4p1t1+d4p1t1",
        rollout_options=(("rollout_engine", "sglang"), ("async_steps", 2), ("sequence_packing", True)),
        differs=_BY_EXAMPLE,
    ),
    Tool(
        name="prime-rl",
        title="prime-rl",
        source="prime-rl, src/prime_rl/configs/trainer.py (0081765): max_async_level 1, ac None, "
        "fused_lm_head_chunk_size disabled; src/prime_rl/configs/rl.py: num_train_gpus 1, num_infer_gpus 1",
        aliases=("prime",),
        runtime=UNDER_FSDP,
        model_code="transformers",
        checkpoints=False,
        generates_apart=True,
        rollout_loss="full",
        rollout_ranks=1,
        rollout_source="prime-rl, src/prime_rl/configs/inference.py: parallel.tp 1",
        rollout_options=(("rollout_engine", "vllm"), ("async_steps", 1), ("sequence_packing", True)),
        differs=_PRIME_RL,
    ),
    Tool(
        name="skyrl",
        title="SkyRL",
        source="SkyRL, skyrl/train/config/config.py (0012761): strategy fsdp, gradient_checkpointing True, "
        "remove_microbatch_padding True, use_kl_loss True, kl_loss_coef 0.001, gpu_memory_utilization 0.8",
        aliases=("skyrltrain",),
        runtime=UNDER_FSDP,
        model_code="transformers",
        checkpoints=True,
        rollout_loss="full",
        rollout_ranks=1,
        rollout_source="SkyRL, skyrl/train/config/config.py: inference_engine.tensor_parallel_size 1",
        rollout_options=(
            ("rollout_engine", "vllm"),
            ("rollout_memory_share", 0.8),
            ("rollout_offload", True),
            ("sequence_packing", True),
            ("beta", 0.001),
        ),
        differs=_SKYRL,
        lacks=CUTS,
        lacks_source="SkyRL, skyrl/train/config/config.py: fsdp_config.fsdp_size, sequence_parallel_size",
        lacks_nearest=MEGATRON,
    ),
    Tool(
        name="roll",
        title="ROLL",
        source="ROLL, examples/qwen2.5-vl-7B-math/rlvr_math_megatron.yaml (044104d): megatron_train, vllm on the same "
        "GPUs, disable_gradient_checkpointing false; roll/configs/worker_config.py (044104d)",
        aliases=("alibabaroll",),
        runtime=MEGATRON,
        checkpoints=True,
        rollout_ranks=1,
        rollout_source="ROLL, roll/configs/worker_config.py: tensor_parallel_size 1 of strategy vllm",
        # roll/configs/worker_config.py: use_sequence_packing False
        rollout_options=(("rollout_engine", "vllm"), ("sequence_packing", False), ("beta", 0.01)),
        differs=_ROLL,
    ),
    Tool(
        name="open-instruct",
        title="open-instruct",
        source="open-instruct, open_instruct/grpo_utils.py (0063d12): beta 0.05, load_ref_policy True; open_instruct/"
        "data_loader.py: async_steps 1, pack_length; scripts/train/tulu3/grpo_fast_8b_single_node.sh (27a42b6): "
        "deepspeed_stage 2, gradient_checkpointing",
        aliases=("grpofast", "tulu"),
        runtime=UNDER_ZERO,
        checkpoints=True,
        generates_apart=True,
        rollout_loss="full",
        rollout_ranks=1,
        rollout_source="open-instruct, open_instruct/data_loader.py: vllm_tensor_parallel_size 1",
        rollout_options=(
            ("rollout_engine", "vllm"),
            ("async_steps", 1),
            ("sequence_packing", True),
            ("beta", 0.05),
        ),
        differs=_OPEN_INSTRUCT,
    ),
    replace(
        TRL,
        name="open-r1",
        title="open-r1",
        version="",
        source="open-r1, recipes/DeepSeek-R1-Distill-Qwen-1.5B/grpo/config_demo.yaml (1b6fcac): max_prompt_length 512, "
        "max_completion_length 1024, per_device_train_batch_size 16, gradient_checkpointing true; slurm/train.slurm",
        runtime=UNDER_ZERO,
        sequence_length=1536,
        micro_batch_size=16,
        rollout_options=(("rollout_engine", "vllm"), ("zero_stage", 3), ("sequence_packing", False)),
        differs=_OPEN_R1,
    ),
    replace(
        VERL,
        name="rllm",
        title="rLLM",
        export="",
        version="",
        source=f"rLLM, rllm/trainer/config/agent_ppo_trainer.yaml (1e0e19a), over ppo_trainer of verl; {VERL.source}",
        aliases=("deepscaler", "deepswe"),
        differs=_ON_VERL,
    ),
    replace(
        VERL,
        name="agent-r1",
        title="Agent-R1",
        export="",
        version="",
        source=f"Agent-R1, agent_r1/config/agent_ppo_trainer.yaml (21499c2), over ppo_trainer of verl; {VERL.source}",
        differs=_ON_VERL,
    ),
    Tool(
        name="easyr1",
        title="EasyR1",
        source="EasyR1, examples/config.yaml (0243608): padding_free, enable_gradient_checkpointing, "
        "micro_batch_size_per_device_for_update 4, offload_params and offload_optimizer, kl_coef 0.01, "
        "gpu_memory_utilization 0.6; verl/workers/*/config.py",
        runtime=UNDER_FSDP,
        model_code="transformers",
        checkpoints=True,
        micro_batch_size=4,
        image_pixels=4_194_304,  # examples/config.yaml: max_pixels
        rollout_loss="full",
        rollout_ranks=2,
        rollout_source="EasyR1, examples/config.yaml: rollout.tensor_parallel_size 2",
        rollout_options=(
            ("rollout_engine", "vllm"),
            ("rollout_memory_share", 0.6),
            ("rollout_offload", True),
            ("sequence_packing", True),
            ("beta", 0.01),
        ),
        lacks=CUTS,
        lacks_source="EasyR1, verl/workers/actor/config.py: fsdp.fsdp_size, ulysses_size",
        lacks_nearest=MEGATRON,
    ),
    Tool(
        name="rlinf",
        title="RLinf",
        source="RLinf, examples/reasoning/config/math/qwen2.5-1.5b-grpo-megatron.yaml (1b4bd69): actor, rollout and "
        "reward on all GPUs, sglang, gpu_memory_utilization 0.55, offload_weight, recompute_granularity full",
        runtime=MEGATRON,
        checkpoints=True,
        rollout_ranks=1,
        rollout_source="RLinf, examples/reasoning/config/math/qwen2.5-1.5b-grpo-megatron.yaml: rollout."
        "tensor_parallel_size 1",
        rollout_options=(
            ("rollout_engine", "sglang"),
            ("rollout_memory_share", 0.55),
            ("rollout_offload", True),
            ("sequence_packing", False),  # enable_dynamic_batch_size False
        ),
        differs=_BY_EXAMPLE,
    ),
    Tool(
        name="torchforge",
        title="torchforge",
        source="torchforge, apps/grpo/qwen3_8b.yaml (001a6b6): off_by_n 1, 2 GPUs train and 2 generate, "
        "activation_checkpoint selective, op; a reference model",
        aliases=("forge",),
        runtime=UNDER_FSDP,
        generates_apart=True,
        rollout_ranks=2,
        rollout_source="torchforge, apps/grpo/qwen3_8b.yaml: policy.engine_config.tensor_parallel_size 2",
        rollout_options=(
            ("rollout_engine", "vllm"),
            ("async_steps", 1),
            ("model_code", "torchtitan"),
            ("recompute", "selective-op"),
            ("sequence_packing", False),
        ),
        differs=_BY_EXAMPLE,
    ),
)
