"""Where tools define their options: packages, files and the forms of definition that scripts/record_arguments.py reads.

Each entry: the tool's name here, the distribution, and its sections. A section has a name and a reader: `fields` of a
class, `parser` calls of argparse, `yaml` of a config, `pairs` of constants, or `cpp` of llama.cpp.
"""

from typing import NamedTuple


class Section(NamedTuple):
    """name: of the section in the record; reader: how it is defined; files: where, relative to the package's root;
    classes: of `fields`, the classes whose fields count, with those of their bases that stand in the files.
    """

    name: str
    reader: str
    files: tuple[str, ...]
    classes: tuple[str, ...] = ()


class Package(NamedTuple):
    """tool: file name of the record; distribution: name on PyPI; sections: what is read."""

    tool: str
    distribution: str
    sections: tuple[Section, ...]


# Of deepspeed/runtime/constants.py, the keys that stand at the top of a config.
DEEPSPEED_TOP = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "sparse_gradients",
    "communication_data_type",
    "seq_parallel_communication_data_type",
    "prescale_gradients",
    "gradient_predivide_factor",
    "disable_allgather",
    "dump_state",
    "steps_per_print",
    "wall_clock_breakdown",
    "memory_breakdown",
    "gradient_clipping",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "graph_harvesting",
    "use_data_before_expert_parallelism",
    "dataloader_drop_last",
)


def _trl() -> tuple[Section, ...]:
    base = "trl/trainer/base_config.py"
    trainers = {"sft": "SFT", "dpo": "DPO", "grpo": "GRPO", "kto": "KTO", "rloo": "RLOO", "reward": "Reward"}
    trainers["distillation"] = "Distillation"
    sections = [
        Section(f"{name}Config", "fields", (base, f"trl/trainer/{file}_config.py"), (f"{name}Config",))
        for file, name in trainers.items()
    ]
    experimental = {"gkd": "GKD", "cpo": "CPO", "orpo": "ORPO", "online_dpo": "OnlineDPO"}
    sections += [
        Section(f"{name}Config", "fields", (base, f"trl/experimental/{file}/{file}_config.py"), (f"{name}Config",))
        for file, name in experimental.items()
    ]
    return (
        *sections,
        Section("ModelConfig", "fields", ("trl/trainer/model_config.py",), ("ModelConfig",)),
        Section("ScriptArguments", "fields", ("trl/scripts/utils.py",), ("ScriptArguments",)),
    )


_VLLM_CONFIGS = [
    "attention",
    "aux_output",
    "cache",
    "compilation",
    "device",
    "ec_transfer",
    "fault_tolerance",
    "ir_op",
    "kernel",
    "kv_events",
    "kv_transfer",
    "load",
    "lora",
    "mamba",
    "model",
    "multimodal",
    "numa",
    "observability",
    "offload",
    "parallel",
    "pooler",
    "profiler",
    "reasoning",
    "scheduler",
    "speculative",
    "structured_outputs",
    "vllm",
    "weight_transfer",
]
_AXOLOTL = (
    "config datasets deprecated dynamic_checkpoint enums fp8 fsdp integrations model multimodal peft quantization"
)
_SWIFT = "base_args/model_args base_args/data_args base_args/template_args base_args/generation_args"
_MEGATRON_CONFIGS = (
    "training/config/common_config training/config/training_config training/config/resilience_config "
    "training/config/instrumentation_config training/arguments core/transformer/transformer_config "
    "core/model_parallel_config core/distributed/distributed_data_parallel_config core/optimizer/optimizer_config"
)


def _under(folder: str, names: str, ending: str = ".py") -> tuple[str, ...]:
    return tuple(f"{folder}/{name}{ending}" for name in names.split())


PACKAGES = (
    Package("trl", "trl", _trl()),
    Package(
        "transformers",
        "transformers",
        (
            Section("TrainingArguments", "fields", ("transformers/training_args.py",), ("TrainingArguments",)),
            Section("OptimizerNames", "members", ("transformers/training_args.py",), ("OptimizerNames",)),
        ),
    ),
    Package(
        "accelerate",
        "accelerate",
        (
            Section("ClusterConfig", "fields", ("accelerate/commands/config/config_args.py",), ("ClusterConfig",)),
            *(
                Section(name, "fields", ("accelerate/utils/dataclasses.py",), (name,))
                for name in ("FullyShardedDataParallelPlugin", "DeepSpeedPlugin", "MegatronLMPlugin")
            ),
            Section("ParallelismConfig", "fields", ("accelerate/parallelism_config.py",), ("ParallelismConfig",)),
            Section("launch", "parser", ("accelerate/commands/launch.py",)),
        ),
    ),
    Package(
        "peft",
        "peft",
        (
            Section("LoraConfig", "fields", ("peft/tuners/lora/config.py",), ("LoraConfig",)),
            Section(
                "targets",
                "mapping",
                ("peft/utils/constants.py",),
                ("TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING",),
            ),
        ),
    ),
    Package(
        "vllm",
        "vllm",
        (
            Section(
                "EngineArgs",
                "fields",
                ("vllm/engine/arg_utils.py", *_under("vllm/config", " ".join(_VLLM_CONFIGS))),
                ("EngineArgs",),
            ),
            Section(
                "FrontendArgs",
                "fields",
                ("vllm/entrypoints/openai/cli_args.py", "vllm/entrypoints/common/cli_args.py"),
                ("FrontendArgs",),
            ),
        ),
    ),
    Package(
        "sglang",
        "sglang",
        (
            Section(
                "ServerArgs",
                "fields",
                _under(
                    "sglang/srt/arg_groups/fields",
                    "device disagg exec_ lora memory mm model observability parallel schedule serving spec",
                ),
                ("*",),
            ),
        ),
    ),
    Package(
        "axolotl",
        "axolotl",
        (
            Section(
                "AxolotlInputConfig",
                "fields",
                _under("axolotl/utils/schemas", f"{_AXOLOTL} training trl utils validation vllm"),
                ("AxolotlInputConfig",),
            ),
        ),
    ),
    Package(
        "llama-factory",
        "llamafactory",
        tuple(
            Section(name, "fields", (f"llamafactory/hparams/{file}.py",), (name,))
            for file, name in (
                ("model_args", "ModelArguments"),
                ("data_args", "DataArguments"),
                ("finetuning_args", "FinetuningArguments"),
                ("training_args", "TrainingArguments"),
            )
        ),
    ),
    Package(
        "ms-swift",
        "ms_swift",
        (
            Section(
                "SftArguments",
                "fields",
                (
                    *_under(
                        "swift/arguments",
                        f"sft_args tuner_args rlhf_args base_args/base_args base_args/quant_args {_SWIFT}",
                    ),
                    "swift/trainers/arguments.py",
                    "swift/ray_utils/arguments.py",
                ),
                ("SftArguments",),
            ),
            Section(
                "RLHFArguments",
                "fields",
                (
                    *_under("swift/arguments", "rlhf_args"),
                    "swift/rlhf_trainers/arguments.py",
                    "swift/rlhf_trainers/args_mixin.py",
                ),
                ("RLHFArguments",),
            ),
        ),
    ),
    Package(
        "verl",
        "verl",
        (
            Section("ppo_trainer", "yaml", ("verl/trainer/config/_generated_ppo_trainer.yaml",)),
            Section("ppo_megatron_trainer", "yaml", ("verl/trainer/config/_generated_ppo_megatron_trainer.yaml",)),
            Section("sft_trainer_engine", "yaml", ("verl/trainer/config/sft_trainer_engine.yaml",)),
        ),
    ),
    Package(
        "openrlhf",
        "openrlhf",
        tuple(
            Section(f"train_{name}", "parser", (f"openrlhf/cli/train_{name}.py",))
            for name in ("sft", "dpo", "rm", "ppo_ray")
        ),
    ),
    Package(
        "torchtitan",
        "torchtitan",
        tuple(
            Section(section, "fields", (file,), (name,))
            for section, file, name in (
                ("training", "torchtitan/config/configs.py", "TrainingConfig"),
                ("parallelism", "torchtitan/config/configs.py", "ParallelismConfig"),
                ("compile", "torchtitan/config/configs.py", "CompileConfig"),
                ("activation_checkpoint", "torchtitan/config/configs.py", "ActivationCheckpointConfig"),
                ("comm", "torchtitan/config/configs.py", "CommConfig"),
                ("debug", "torchtitan/config/configs.py", "DebugConfig"),
            )
        ),
    ),
    Package(
        "megatron",
        "megatron_core",
        (
            Section("arguments", "parser", ("megatron/training/arguments.py",)),
            *(
                Section(name, "factory", _under("megatron", _MEGATRON_CONFIGS), (name,))
                for name in ("TransformerConfig", "TrainingConfig")
            ),
        ),
    ),
    Package(
        "deepspeed",
        "deepspeed",
        (
            Section("constants", "pairs", ("deepspeed/runtime/constants.py",), DEEPSPEED_TOP),
            Section("zero_optimization", "fields", ("deepspeed/runtime/zero/config.py",), ("DeepSpeedZeroConfig",)),
            Section(
                "offload_param",
                "fields",
                ("deepspeed/runtime/zero/offload_config.py",),
                ("DeepSpeedZeroOffloadParamConfig",),
            ),
            Section(
                "offload_optimizer",
                "fields",
                ("deepspeed/runtime/zero/offload_config.py",),
                ("DeepSpeedZeroOffloadOptimizerConfig",),
            ),
        ),
    ),
    Package("mlx", "mlx_lm", (Section("server", "parser", ("mlx_lm/server.py",)),)),
    Package(
        "llama-cpp",
        "llama_cpp_python",
        (Section("arguments", "cpp", ("vendor/llama.cpp/common/arg.cpp", "vendor/llama.cpp/common/common.h")),),
    ),
)
