"""The keys of accelerate's config, and the options of `accelerate launch` by the same names.

Source: accelerate 1.15, accelerate/commands/{launch.py,config/config_args.py,config/cluster.py}, accelerate/
parallelism_config.py, accelerate/utils/dataclasses.py: MegatronLMPlugin.
"""

from typing import Any

from tonnage.interchange.parts.hugging_face.fsdp_settings import HARMLESS as FSDP_HARMLESS
from tonnage.interchange.parts.hugging_face.fsdp_settings import KEYS as FSDP_KEYS
from tonnage.interchange.parts.hugging_face.fsdp_settings import read_fsdp
from tonnage.interchange.parts.hugging_face.keys import default_of, expect, put_file
from tonnage.interchange.parts.hugging_face.machines import put_machines
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer
from tonnage.interchange.parts.hugging_face.zero_settings import read_zero
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import FROM_ONE, Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.runtimes.parts.tools import ACCELERATE

VERSION = ACCELERATE.version
TOOL = ("accelerate", VERSION)
FSDP, DEEPSPEED, PARALLEL, MEGATRON = "fsdp_config", "deepspeed_config", "parallelism_config", "megatron_lm_config"
# Options of the command that belong to a section of the file, by how they begin.
PREFIXES = {"fsdp_": FSDP, "parallelism_config_": PARALLEL, "megatron_lm_": MEGATRON, "fp8_": "fp8_config"}
ZERO = names(
    "zero_stage offload_optimizer_device offload_param_device offload_optimizer_nvme_path offload_param_nvme_path "
    "gradient_accumulation_steps gradient_clipping zero3_init_flag zero3_save_16bit_model deepspeed_hostfile "
    "deepspeed_exclusion_filter deepspeed_inclusion_filter deepspeed_multinode_launcher deepspeed_config_file "
    "deepspeed_moe_layer_cls_names"
)
TOP = names(
    "config_file compute_environment distributed_type mixed_precision num_processes num_machines machine_rank gpu_ids "
    "main_process_ip main_process_port rdzv_backend rdzv_conf same_network main_training_function "
    "enable_cpu_affinity downcast_bf16 use_cpu debug tpu_name tpu_zone tpu_use_cluster tpu_use_sudo tpu_env tpu_vm "
    "command_file commands cpu multi_gpu tpu use_deepspeed use_fsdp use_parallelism_config use_megatron_lm quiet q "
    "num_cpu_threads_per_process tee log_dir role max_restarts monitor_interval module m no_python vm env "
    "aws_access_key_id aws_secret_access_key mpirun_hostfile dynamo_backend dynamo_mode dynamo_use_fullgraph "
    "dynamo_use_dynamic dynamo_use_regional_compilation tpu_cluster no_tpu_cluster fp16 machine_rank"
)
HARMLESS = names(
    "compute_environment machine_rank main_process_ip main_process_port rdzv_backend rdzv_conf same_network "
    "main_training_function enable_cpu_affinity downcast_bf16 debug tpu_env tpu_use_cluster tpu_use_sudo quiet q "
    "num_cpu_threads_per_process tee log_dir role max_restarts monitor_interval module m no_python env "
    "aws_access_key_id aws_secret_access_key mpirun_hostfile dynamo_mode dynamo_use_fullgraph dynamo_use_dynamic "
    "commands command_file tpu_name tpu_zone tpu_vm vm multi_gpu use_deepspeed use_fsdp use_parallelism_config "
    "use_megatron_lm dynamo_use_regional_compilation no_tpu_cluster dynamo_config.dynamo_mode "
    "dynamo_config.dynamo_use_fullgraph dynamo_config.dynamo_use_dynamic fsdp_config deepspeed_config "
    "parallelism_config megatron_lm_config fp8_config dynamo_config mpirun_config "
    "dynamo_config.dynamo_use_regional_compilation"
)
MEGATRON_SAME = {
    "tp_degree": "tensor_parallel_size",
    "pp_degree": "pipeline_parallel_size",
    "num_micro_batches": "num_microbatches",
    "context_parallel_size": "context_parallel_size",
    "expert_model_parallel_size": "expert_parallel_size",
    "expert_tensor_parallel_size": "expert_tensor_parallel_size",
    "decoder_last_pipeline_num_layers": "last_stage_layers",
}
MEGATRON_HARMLESS = names(
    "gradient_clipping no_load_optim no_save_optim eod_mask_loss calculate_per_token_loss attention_softmax_in_fp32 "
    "use_rotary_position_embeddings"
)
MEGATRON_UNSURE = names("use_custom_fsdp overlap_cpu_optimizer_d2h_h2d use_precision_aware_optimizer attention_backend")
MEGATRON_KEYS = (
    *MEGATRON_SAME,
    *MEGATRON_HARMLESS,
    *MEGATRON_UNSURE,
    *names(
        "sequence_parallelism recompute_activations recompute_granularity recompute_method recompute_num_layers "
        "use_distributed_optimizer optimizer_cpu_offload attention_dropout hidden_dropout"
    ),
)
PARALLEL_SAME = {
    "dp_replicate_size": "replicate_size",
    "tp_size": "tensor_parallel_size",
    "cp_size": "context_parallel_size",
}
PARALLEL_HARMLESS = names(
    "sp_backend cp_backend cp_comm_strategy sp_seq_length sp_seq_length_is_variable sp_attn_implementation"
)
PARALLEL_KEYS = (*PARALLEL_SAME, "dp_shard_size", "sp_size", *PARALLEL_HARMLESS)
FP8_KEYS = names(
    "backend use_autocast_during_eval margin interval fp8_format format amax_history_length amax_history_len "
    "amax_compute_algorithm amax_compute_algo override_linear_precision optimization_level opt_level "
    "enable_fsdp_float8_all_gather pad_inner_dim"
)


def known() -> list[str]:
    """Every key of the file."""
    return [
        *TOP,
        *(f"{FSDP}.fsdp_{name}" for name in (*FSDP_KEYS, *FSDP_HARMLESS)),
        *(f"{DEEPSPEED}.{name}" for name in ZERO),
        *(f"{PARALLEL}.parallelism_config_{name}" for name in PARALLEL_KEYS),
        *(f"{MEGATRON}.megatron_lm_{name}" for name in MEGATRON_KEYS),
        *(f"fp8_config.{name}" for name in FP8_KEYS),
        "dynamo_config.dynamo_backend",
    ]


def key_of(option: str) -> str:
    """The key of the file for an option of the command; "" where it is no option of accelerate's."""
    if option in ZERO:
        return f"{DEEPSPEED}.{option}"
    for prefix, section in PREFIXES.items():
        if option.startswith(prefix):
            return f"{section}.{option.removeprefix('fp8_') if section == 'fp8_config' else option}"
    return option if option in TOP else ""


def put_deepspeed_file(values: dict[str, Any], source: Source) -> None:
    put_file(values, f"{DEEPSPEED}.deepspeed_config_file", source)


def count_machines(r: Reading) -> None:
    """num_processes is that of all machines together."""
    nodes, total = (r.integer(key) if r.has(key) else 0 for key in ("num_machines", "num_processes"))
    for key, number in (("num_machines", nodes), ("num_processes", total)):
        if r.has(key) and number < 1 and (key, number) != ("num_processes", -1):
            raise r.wrong(key, FROM_ONE)
    nodes, total = max(nodes, 1), max(total, 0)
    if total % nodes:
        raise InvalidInput(
            "{file}: num_processes must be a multiple of num_machines. Got {total} and {nodes}.",
            file=r.source.name,
            total=total,
            nodes=nodes,
        )
    ids = r.text("gpu_ids", "all")
    per_node = total // nodes or (len(ids.split(",")) if ids not in ("all", "") else 0)
    r.put("on", None, "num_machines", "num_processes", "gpu_ids")
    put_machines(r, nodes if nodes > 1 or per_node else 0, per_node)


def mixed_precision(r: Reading) -> str:
    """bf16, fp16, fp8 or ""."""
    if (
        r.has("fp16") and "mixed_precision" not in r.values and r.has("distributed_type")
    ):  # as accelerate of 2021 had it
        r.values["fp16"] = "fp16" if r.flag("fp16") else "no"
        r.rename({"fp16": "mixed_precision"})
    if isinstance(r.get("mixed_precision"), bool):  # YAML reads no as false
        if r.get("mixed_precision"):
            raise r.wrong("mixed_precision", "no, fp16, bf16 or fp8")
        return ""
    return str(r.choice("mixed_precision", {"no": "", "fp16": "fp16", "bf16": "bf16", "fp8": "fp8"}, ""))


def distribution(r: Reading) -> str:
    """How processes work together: DEEPSPEED, FSDP, MEGATRON_LM, MULTI_GPU, or NO."""
    for key, kind in (("use_deepspeed", "DEEPSPEED"), ("use_fsdp", "FSDP"), ("use_megatron_lm", "MEGATRON_LM")):
        if r.has(key) and r.flag(key):
            r.put("runtime", None, key)
            return kind
    kind = r.get("distributed_type", "")
    kind = "NO" if kind is False else str(kind).upper()
    if kind in ("DEEPSPEED", "FSDP", "MEGATRON_LM", "MULTI_GPU", "NO"):
        r.put("runtime", None, "distributed_type")
        return kind
    if kind:
        if kind not in OTHERS:
            raise r.wrong("distributed_type", "NO, MULTI_GPU, FSDP, DEEPSPEED or MEGATRON_LM")
        r.unsure("distributed_type", "this kind is not estimated: one process an accelerator with all weights is")
    return ""


KIND_KEYS = ("distributed_type", "use_deepspeed", "use_fsdp", "use_megatron_lm")
OTHERS = names("MULTI_CPU MULTI_NPU MULTI_XPU MULTI_MLU MULTI_SDAA MULTI_MUSA MULTI_HPU XLA TPU MULTI_NEURON TP")


def read_distribution(r: Reading, kind: str) -> None:
    """The runtime, and the section of its settings, where those do not stand in the training arguments."""
    if kind == "DEEPSPEED":
        r.put("runtime", "deepspeed", *KIND_KEYS)
    elif kind == "FSDP":
        prefix = f"{FSDP}.fsdp_"
        read_fsdp(r, prefix, TOOL, 1, {})
        r.put("runtime", r.question["runtime"], *KIND_KEYS)
    elif kind == "MEGATRON_LM":
        r.put("runtime", "megatron", *KIND_KEYS)
        _megatron(r)
    else:
        several = r.num_accelerators > 1
        r.put("runtime", "ddp" if several else "transformers", *(["distributed_type"] if kind else []))
    _parallelism(r)


def read_deepspeed(r: Reading, trainer: Trainer) -> None:
    """Accelerate's own few settings of DeepSpeed, or the file that they name."""
    section = f"{DEEPSPEED}."
    file = f"{section}deepspeed_config_file"
    inner = f"{file}."
    harmless = [name for name in ZERO if name.startswith("deepspeed_") and not name.endswith("_file")]
    r.ignore([f"{section}{name}" for name in (*harmless, "zero3_init_flag", "gradient_clipping")])
    if r.has(file) and not r.under(inner):
        r.unsure(file, "the file cannot be read here: what it says is not known")
        r.put("runtime", "deepspeed")
        r.ignore([f"{section}{name}" for name in ZERO])
        return
    if not r.under(inner):
        _from_flags(r, section, inner)
    elif r.has(file):
        expect(r, [f"{section}{name}" for name in ZERO[:6]], why="accelerate refuses it beside deepspeed_config_file")
        r.ignore([f"{section}{name}" for name in ZERO[6:] if name != "deepspeed_config_file"])
    r.put("runtime", "deepspeed", *KIND_KEYS, file)
    read_zero(r, inner, trainer)


FROM_FLAGS = {
    "zero_stage": "zero_optimization.stage",
    "offload_optimizer_device": "zero_optimization.offload_optimizer.device",
    "offload_param_device": "zero_optimization.offload_param.device",
    "zero3_save_16bit_model": "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}


def _from_flags(r: Reading, section: str, inner: str) -> None:
    """The DeepSpeed config that accelerate makes of its own settings, with its defaults (DeepSpeedPlugin)."""
    for name, path in FROM_FLAGS.items():
        if r.has(f"{section}{name}"):
            r.rename({f"{section}{name}": f"{inner}{path}"})
    stage = f"{inner}zero_optimization.stage"
    if not r.has(stage):
        r.assume(f"{section}zero_stage", 2, why=default_of(*TOOL))
        r.values[stage] = 2
        r.put("zero_stage", 2, stage)
    r.ignore([f"{section}{name}" for name in ZERO])


def _parallelism(r: Reading) -> None:
    """Sizes of accelerate's device mesh."""
    prefix = f"{PARALLEL}.parallelism_config_"
    if not r.under(prefix):
        return
    sizes = {}
    for name in ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size"):
        key = f"{prefix}{name}"
        sizes[name] = r.positive(key)
        if name in PARALLEL_SAME and r.has(key):
            r.put(PARALLEL_SAME[name], sizes[name], key)
    total = 1
    for size in sizes.values():
        total *= size
    if total not in (1, r.num_accelerators):  # 1: nothing is said
        raise InvalidInput(
            "{file}: the sizes of {section} must give the {ranks} processes. Got {sizes} = {total}.",
            file=r.source.name,
            section=PARALLEL,
            ranks=r.num_accelerators,
            sizes=" x ".join(map(str, sizes.values())),
            total=total,
        )
    if sizes["dp_shard_size"] == 1 and sizes["dp_replicate_size"] > 1 and r.question.get("runtime") == "fsdp2":
        r.unsure(f"{prefix}dp_replicate_size", "replicas without shards are not estimated with FSDP2")
    r.put("data_parallel_size", None, f"{prefix}dp_shard_size")
    if sizes["tp_size"] > 1:
        r.put("sequence_parallel", False, f"{prefix}tp_size")
    expect(r, [f"{prefix}sp_size"], 1, why="ranks that share a sequence (Ulysses) are not estimated")
    r.ignore([key for key in r.under(prefix) if key.removeprefix(prefix) in PARALLEL_HARMLESS])


def _megatron(r: Reading) -> None:
    prefix = f"{MEGATRON}.megatron_lm_"
    for name, option in MEGATRON_SAME.items():
        if r.has(f"{prefix}{name}"):
            r.put(option, r.integer(f"{prefix}{name}"), f"{prefix}{name}")
    key = f"{prefix}sequence_parallelism"
    if r.has(key):
        r.put("sequence_parallel", r.flag(key), key)
    else:
        r.assume(key, False, "sequence_parallel", why=default_of(*TOOL))
    key = f"{prefix}use_distributed_optimizer"
    r.put("zero_stage", int(r.has(key) and r.flag(key)), key)
    if not r.has(key):
        r.assume(key, False, why=default_of(*TOOL))
    granularity = r.choice(f"{prefix}recompute_granularity", {"full": "full", "selective": "selective"})
    if granularity is None and r.has(f"{prefix}recompute_activations") and r.flag(f"{prefix}recompute_activations"):
        granularity = "selective"
    r.put("recompute", granularity, f"{prefix}recompute_granularity", f"{prefix}recompute_activations")
    why = "several layers recomputed as one block are not estimated"
    expect(r, [f"{prefix}recompute_method"], "uniform", why=why)
    expect(r, [f"{prefix}recompute_num_layers"], 1, why=why)
    if r.has(f"{prefix}optimizer_cpu_offload") and r.flag(f"{prefix}optimizer_cpu_offload"):
        r.put("offload_optimizer", "cpu", f"{prefix}optimizer_cpu_offload")
    dropouts = [f"{prefix}{name}_dropout" for name in ("attention", "hidden")]
    if there := [key for key in dropouts if r.has(key)]:
        r.put("dropout", any(r.number(key) for key in there), *there)
    expect(r, [f"{prefix}{name}" for name in MEGATRON_UNSURE], False, why="what it changes is not estimated")
    r.ignore([f"{prefix}{name}" for name in (*MEGATRON_HARMLESS, "optimizer_cpu_offload")])


def read_rest(r: Reading, kind: str) -> None:
    """What the kind of distribution does not decide."""
    expect(r, ["dynamo_backend", "dynamo_config.dynamo_backend"], "no", "NO", why="torch.compile is not estimated")
    expect(r, ["use_cpu", "cpu", "tpu", "tpu_cluster"], False, why="training on other devices is not estimated")
    sections = {"FSDP": f"{FSDP}.", "DEEPSPEED": f"{DEEPSPEED}.", "MEGATRON_LM": f"{MEGATRON}."}
    for one, section in sections.items():
        if one != kind:
            r.ignore([section], why="the config uses another kind of distribution")
    r.ignore(["mpirun_config.", "fp8_config.", *HARMLESS])


def read_fp8(r: Reading) -> str:
    """The recipe of mixed_precision fp8."""
    key = "fp8_config.backend"
    backend = r.text(key, "AO").upper()
    level = r.text("fp8_config.optimization_level", r.text("fp8_config.opt_level", "O2")).lower()
    recipes = {"TE": "fp8-te", "AO": "fp8-torchao", "MSAMP": f"msamp-{level}"}
    if backend not in recipes or (backend == "MSAMP" and level not in ("o1", "o2", "o3")):
        raise r.wrong(key, "TE, AO or MSAMP")
    expect(r, ["fp8_config.override_linear_precision"], [False, False, False], why="it is not estimated")
    r.put("precision", recipes[backend], "mixed_precision", key)
    r.ignore(["fp8_config."])
    return recipes[backend]
