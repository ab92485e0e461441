"""axolotl: its YAML, and the commands that train from one."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face.trainer_names import put_optimizer
from tonnage.interchange.parts.launching.training import TrainingLaunch, training_launch
from tonnage.interchange.parts.recipes import axolotl_keys as keys
from tonnage.interchange.parts.recipes.accelerate_sections import accelerate_values, read_accelerate
from tonnage.interchange.parts.recipes.axolotl_sharding import read_ranks, read_sharding
from tonnage.interchange.parts.recipes.axolotl_training import (
    batches_of,
    read_activations,
    read_batch,
    read_kernels,
    read_method,
    read_precision,
)
from tonnage.interchange.parts.recipes.trainer_files import axolotl_yaml
from tonnage.interchange.parts.recipes.trainer_launches import (
    command_signs,
    launch_values,
    read_launch,
)
from tonnage.interchange.parts.recipes.trainer_options import (
    completed,
    ignore_empty,
    ignore_names,
    is_quantised,
    keep_base_narrow,
)
from tonnage.interchange.parts.words import names
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading, flattened, options_of_command
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.runtimes.parts.tools import AXOLOTL

NAME = "axolotl"
MODULE = "axolotl.cli.train"
SIGNS = names(
    """
    base_model datasets sequence_len micro_batch_size sample_packing lora_target_linear pad_to_sequence_len
    dataset_prepared_path val_set_size num_epochs
    """
)
# Mappings that are read as one value.
UNFLATTENED = frozenset(
    names(
        """
        deepspeed gradient_checkpointing_kwargs optim_args max_memory selective_checkpointing accelerator_config
        lora_rank_pattern peft_trainable_token_indices model_kwargs overrides_of_model_kwargs
        """
    )
)
# The newest canonical name of a boolean that chose the attention (enums.py: LEGACY_ATTN_FLAG_TO_IMPL), in its order.
FLAGS = {
    "xformers_attention": "xformers",
    "sage_attention": "sage",
    "flex_attention": "flex_attention",
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
OBJECTIVES = {"dpo": "dpo", "ipo": "dpo", "grpo": "grpo"}
OTHER_OBJECTIVES = ("gdpo", "orpo", "kto", "simpo", "ebft")
SAYS = frozenset(
    names(
        """
        model sequence_length micro_batch_size num_microbatches global_batch_size method lora_rank lora_targets
        lora_dropout base_weights upcast_base optimizer optimizer_implementation precision recompute attention
        packing liger loss runtime model_code zero_stage offload_optimizer offload_parameters offload_activations
        optimizer_offload_fraction tensor_parallel_size context_parallel_size expert_parallel_size replicate_size
        sequence_parallel objective engine_memory_share max_steps data_loader_workers reduce_bucket_size
        allgather_bucket_size overlap_comm contiguous_gradients sub_group_size stage3_prefetch_bucket_size
        stage3_max_live_parameters stage3_max_reuse_distance stage3_param_persistence_threshold
        stage3_gather_16bit_weights_on_model_save zero_hpz_partition_size zero_quantized_weights
        zero_quantized_nontrainable_weights zero_quantized_gradients
        """
    )
)


# ---- What a source is.


def recognises(source: Source) -> int:
    if source.kind in ("command", "text"):
        launches = [parts for command in source.commands if (parts := _command(command)) is not None]
        return max((command_signs(parts[0]) for parts in launches), default=0)
    if "base_model" not in source.tree:
        return 0
    return sum(name in source.tree for name in SIGNS)


def _command(command: Command) -> tuple[TrainingLaunch, tuple[str, ...]] | None:
    """The launcher, and the words behind `train`; None of another command."""
    launch = training_launch(command.words)
    if launch.program == NAME and launch.words[1:2] == ("train",):
        return launch, launch.words[2:]
    if launch.words[:1] in ((MODULE,), ("axolotl.cli",)) or launch.program == "axolotl.cli.train.py":
        return launch, launch.words[1:]
    return None


def values(source: Source) -> dict[str, Any]:
    if source.kind not in ("command", "text"):
        return flattened(source.tree, UNFLATTENED)
    for command in source.commands:
        if (parts := _command(command)) is not None:
            return _of_command(source, command, *parts)
    raise InvalidInput("{file} has no command of axolotl, such as axolotl train config.yml.", file=source.name)


def _of_command(source: Source, command: Command, launch: TrainingLaunch, words: tuple[str, ...]) -> dict[str, Any]:
    """The keys of the config that the command names, with what it says itself."""
    own, behind = words, words[:0]
    if "--" in words:  # what stands behind it is the launcher's
        own, behind = words[: words.index("--")], words[words.index("--") + 1 :]
    options, alone = options_of_command(own, frozenset({"sweep"}))
    paths = [word for word in alone if word.endswith((".yml", ".yaml", ".json"))]
    if len(paths) != 1:
        raise InvalidInput("axolotl train takes one config. Got {count}.", count=len(paths))
    inner = source.sibling(paths[0])
    config = flattened(inner.tree, UNFLATTENED)
    values = launch_values(command, launch)
    for name, value in options_of_command(behind)[0].items():
        values[f"launcher.{name}"] = value
    for name, value in options.items():
        if name in ("num-processes", "num-machines", "launcher"):
            values[f"launcher.{name}"] = value
        else:
            config[name.replace("-", "_")] = value
    return {**accelerate_values(source, values), **config, **values}


# ---- What its keys mean.


def read(r: Reading) -> None:
    r.verb = "train"
    kind = read_accelerate(r)
    _old_names(r, kind)
    read_launch(r)
    r.ignore(["launcher.launcher"])
    r.same({"base_model": "model"})
    read_method(r)
    sharded = read_sharding(r, kind, batches_of(r))
    keep_base_narrow(r)
    read_precision(r, sharded)
    read_batch(r)
    read_activations(r)
    read_kernels(r, sharded)
    put_optimizer(r, "optimizer", "adamw_torch_fused")
    read_ranks(r)
    _objective(r)
    _rest(r)


def _old_names(r: Reading, kind: str) -> None:
    """Names until 0.20, and those that FSDP's settings had with a prefix, which accelerate's own file has too."""
    if r.has("fsdp") or (r.under("fsdp_config.fsdp_") and kind != "FSDP"):
        r.version = r.asker.version or "0.19"
    r.rename({key: key.replace("fsdp_config.fsdp_", "fsdp_config.") for key in r.under("fsdp_config.fsdp_")})
    r.rename({"fsdp_config.version": "fsdp_version", "fsdp_config.fsdp_version": "fsdp_version"})
    r.rename({"sequence_parallel_degree": "context_parallel_size", "liger_swiglu": "liger_glu_activation"})
    for key, name in FLAGS.items():
        if not r.has(key):
            continue
        if r.flag(key) and not r.has("attn_implementation"):
            r.values["attn_implementation"] = name
            r.put("attention", None, key)
        else:
            r.ignore([key])


def _objective(r: Reading) -> None:
    kind = r.text("rl")
    if kind in OBJECTIVES:
        r.put("objective", OBJECTIVES[kind], "rl")
    elif kind in OTHER_OBJECTIVES:
        r.unsure("rl", "this objective is not estimated: next-token training is")
    elif kind:
        raise r.wrong("rl", Message("one of {names}", names=listed((*OBJECTIVES, *OTHER_OBJECTIVES))))
    if kind == "grpo":
        if r.number("trl.beta"):
            r.unsure("trl.beta", "a reference model beside GRPO is not estimated")
        colocated = r.text("trl.vllm_mode") == "colocate" and r.flag("trl.use_vllm")
        share = r.number("vllm.gpu_memory_utilization", 0.3)
        r.put("engine_memory_share", share if colocated else None, "vllm.gpu_memory_utilization", "trl.vllm_mode")
        r.put("engine_memory_share", None, "trl.use_vllm")
        if r.has("trl.max_completion_length"):
            r.put("sequence_length", None, "trl.max_completion_length")
    r.ignore(["vllm.gpu_memory_utilization", "trl.vllm_mode", "trl.use_vllm", "trl.max_completion_length"])
    ignore_names(r, keys.IGNORED_RL)


def _rest(r: Reading) -> None:
    for key, (harmless, why) in keys.OTHERS.items():
        r.needs_default(key, *harmless, why=why)
    ignore_names(r, keys.IGNORED)
    ignore_empty(r, keys.known())
    r.ignore(["fsdp", "fsdp_version", "dp_shard_size", "dp_replicate_size"])
    for section in keys.SECTIONS:
        for key in [key for key in r.values if key == section or key.startswith((f"{section}.", section))]:
            r.needs_default(key, why="this section changes memory or time and is not read")


# ---- Export.


def fills(verb: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    return completed(question, _own)


def _own(runtime: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """What axolotl sets where nobody says it: bf16 weights without a copy, and a quantised base that stays narrow."""
    return AXOLOTL.settings(
        runtime,
        question.get("method"),
        is_quantised=is_quantised(question),
        tensor=question.get("tensor_parallel_size"),
    )


def write(w: PlannedRun) -> str:
    return axolotl_yaml(w)


FORMATS.add(
    NAME,
    Format(
        name=NAME,
        tool=AXOLOTL.title,
        version=AXOLOTL.version,
        source=AXOLOTL.source,
        recognises=recognises,
        values=values,
        read=read,
        known=keys.known,
        verbs=("train",),
        fills=fills,
        write=write,
        ending=".yml",
        says=SAYS,
    ),
)
