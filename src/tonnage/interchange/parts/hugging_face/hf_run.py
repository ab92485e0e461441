"""A run of the Hugging Face family: a launcher, training arguments, and the configs that they name, read together.

Keys of all of them stand side by side: those of accelerate's config and of TrainingArguments are different names. A
file that a key names has its keys below that key.
"""

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

from tonnage.interchange.parts.hugging_face import accelerate_settings as accelerate
from tonnage.interchange.parts.hugging_face import (
    hf_model,
    script_arguments,
    training_arguments,
    trl_settings,
)
from tonnage.interchange.parts.hugging_face.fsdp_arguments import has_fsdp, read_fsdp_arguments
from tonnage.interchange.parts.hugging_face.keys import UNREADABLE, put_file, put_mapping, tree_of
from tonnage.interchange.parts.hugging_face.machines import ENVIRONMENT, count_machines, expands_segments
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer
from tonnage.interchange.parts.hugging_face.zero_settings import read_zero
from tonnage.interchange.parts.launching.training import ACCELERATE, PYTHON, TRL, training_launch
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput

SCRIPT, PROGRAM = "script", "program"  # pseudo keys: what is started, and by which launcher
# Said by no file: that the config was read, and that the script has a DeepSpeed config and no Trainer.
READ, PLAIN = "config is read", "program with DeepSpeed alone"
UNKNOWN_DTYPE = "which type weights are loaded in is not said: fp32, as mixed precision has it"
UNKNOWN_BASE_DTYPE = "which type weights are loaded in is not said: 16 bits, as is usual below adapters"
# trl/accelerate_configs of TRL 1.16, by name.
PREDEFINED: Mapping[str, Mapping[str, Any]] = {
    "single_gpu": {"distributed_type": "NO", "num_processes": 1},
    "multi_gpu": {"distributed_type": "MULTI_GPU"},
    "zero1": {
        "distributed_type": "DEEPSPEED",
        "deepspeed_config.zero_stage": 1,
        "deepspeed_config.gradient_accumulation_steps": 1,
    },
    "zero2": {"distributed_type": "DEEPSPEED", "deepspeed_config.zero_stage": 2},
    "zero3": {
        "distributed_type": "DEEPSPEED",
        "deepspeed_config.zero_stage": 3,
        "deepspeed_config.zero3_save_16bit_model": True,
    },
    "fsdp1": {
        "distributed_type": "FSDP",
        "fsdp_config.fsdp_version": 1,
        "fsdp_config.fsdp_reshard_after_forward": "FULL_SHARD",
    },
    "fsdp2": {
        "distributed_type": "FSDP",
        "fsdp_config.fsdp_version": 2,
        "fsdp_config.fsdp_reshard_after_forward": True,
    },
}


# Words in the script or its options that make a command another tool's, whoever starts it.
FOREIGN = names("axolotl llamafactory llama_factory swift pretrain_ megatron torchtitan nemo nanotron litgpt unsloth")
FOREIGN_OPTIONS = frozenset(names("finetuning_type cutoff_len base_model train_type tensor_model_parallel_size stage"))


def signs_of_command(command: Command) -> int:
    """10 for a command of a launcher, fewer where its script is another tool's."""
    launch = training_launch(command.words)
    options = script_arguments.arguments_of(launch.words[1:])
    is_foreign = any(word in launch.script.lower() for word in FOREIGN) or bool(FOREIGN_OPTIONS & set(options))
    return 5 if is_foreign else 10


# ---- Values.


def values_of_command(command: Command, source: Source) -> dict[str, Any]:
    """The keys and values of a command and of all files that it names."""
    launch = training_launch(command.words)
    values: dict[str, Any] = {}
    if launch.launcher == ACCELERATE:
        values |= _accelerate_values(launch.settings, source)
    else:
        values |= launch.settings
    values |= {name: command.environment[name] for name in ENVIRONMENT if name in command.environment}
    own = script_arguments.arguments_of(launch.words[1:])
    if isinstance(own.get("deepspeed_config"), str):  # as deepspeed.add_config_arguments has it
        own |= {"deepspeed": own.pop("deepspeed_config"), PLAIN: True}
    if launch.launcher == TRL:
        values["trainer"] = launch.script
        values |= _trl_values(own, source)
    else:
        values[SCRIPT] = launch.script
        values |= _named_config(own, source) | own
    values[PROGRAM] = launch.launcher
    return {name: value for name, value in put_files(values, source).items() if value != ""}


def values_of_tree(source: Source) -> dict[str, Any]:
    """The keys and values of a file of training arguments, or of accelerate."""
    return put_files(flattened(tree_of(source), unflattened=frozenset({"datasets"})), source)


def put_files(values: dict[str, Any], source: Source) -> dict[str, Any]:
    """The values with those of the files that they name."""
    for key in ("deepspeed", "fsdp_config", "accelerator_config"):
        put_file(values, key, source)
    accelerate.put_deepspeed_file(values, source)
    return values


def _accelerate_values(options: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Accelerate's options, as keys of its file, above those of the file that they name."""
    values = {accelerate.key_of(name) or name: value for name, value in options.items()}
    if isinstance(path := values.get("config_file"), str):
        try:
            file = source.sibling(path)
        except InvalidInput:
            return values
        values = {**put_files(flattened(tree_of(file)), file), **values}
    return values


def _trl_values(own: dict[str, Any], source: Source) -> dict[str, Any]:
    """TRL's own arguments, above those of its config; options of accelerate stand among them."""
    values = {**_named_config(own, source), **own}
    named = values.get("accelerate_config")
    launch = {name: value for name, value in values.items() if _is_accelerate(name)}
    values = {name: value for name, value in values.items() if name not in launch}
    base: dict[str, Any] = {}
    if isinstance(named, str) and named in PREDEFINED:
        base = {"num_processes": 8, "mixed_precision": "bf16", **PREDEFINED[named]}
    elif isinstance(named, str):
        base = _accelerate_values({"config_file": named}, source)
        base.pop("config_file", None)
    return {**base, **{accelerate.key_of(name): value for name, value in launch.items()}, **values}


def _is_accelerate(name: str) -> bool:
    """Whether an option is accelerate's and not one that TRL's configs have too."""
    shared = (*training_arguments.DECIDING, *training_arguments.HARMLESS, "fsdp_config", "debug")
    return bool(accelerate.key_of(name)) and name not in shared


def _named_config(own: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The file that `--config` names, or the script's first word where it ends in .json or .yaml (HfArgumentParser)."""
    path = own.get("config")
    alone = own.get("argument 1")
    if not isinstance(path, str) and isinstance(alone, str) and PurePath(alone).suffix in (".json", ".yaml", ".yml"):
        path = alone
    if not isinstance(path, str):
        return {}
    try:
        file = source.sibling(path)
    except InvalidInput:
        return {}
    values = flattened(tree_of(file), unflattened=frozenset({"datasets"}))
    for name in script_arguments.MAPPINGS:
        put_mapping(values, name)
    return put_files(values, file) | {"config": path, READ: True}


# ---- Reading.


def is_trl_command(script: str, options: Collection[str]) -> bool:
    """Whether TRL's defaults count: a script of its own, or options that its configs alone have."""
    path = PurePath(script)
    if script_arguments.is_example(script):
        return False
    if "trl" in path.parts or path.stem in trl_settings.TRAINERS or path.stem.startswith(("trl.", "sft_", "dpo_")):
        return True
    own = {name for name, trainers in trl_settings.SIGNS.items() if trainers}
    return bool(own & set(options))


def is_trl(r: Reading) -> bool:
    """Whether TRL's defaults count."""
    return r.tool == "TRL" or r.has("trainer") or is_trl_command(r.text(SCRIPT), r.values)


def has_arguments(r: Reading) -> bool:
    """Whether there are training arguments, and not a launcher or its config alone."""
    there = {*training_arguments.DECIDING, *training_arguments.RENAMED, *trl_settings.KEYS, "model_name_or_path"}
    there -= {"fsdp_config", "parallelism_config", *accelerate.TOP}
    return bool(there & set(r.values)) or r.has("trainer") or bool(r.under("deepspeed."))


def read_run(r: Reading) -> None:
    """All of a run."""
    r.verb = "train"
    trl = is_trl(r)
    _files(r)
    if r.text(PROGRAM) in (ACCELERATE, TRL) or r.has("distributed_type"):
        accelerate.count_machines(r)
    count_machines(r)
    hf_model.rename(r)
    version = training_arguments.rename(r)
    if r.tool == "Transformers":
        r.version = version
    r.rename({f"env.{name}": name for name in ENVIRONMENT})  # TRL's configs may have a section of them
    kind = accelerate.distribution(r)
    mixed = accelerate.mixed_precision(r)
    hf_model.read_model(r)
    if r.has(PLAIN):
        _read_plain(r)
    elif not has_arguments(r):
        _read_launch(r, kind, mixed)
    else:
        hf_model.read_adapters(r, is_trl=trl)
        _read_training(r, kind, mixed, version, trl)
    accelerate.read_rest(r, kind)
    _environment(r)
    r.ignore([SCRIPT, PROGRAM, "config", "config_file", "accelerate_config", *script_arguments.DATA])
    r.ignore(["env.", *(f"{name}." for name in script_arguments.DATA)])
    if r.has(READ):
        r.ignore(["argument 1"])
    for pseudo in (READ, PLAIN):
        r.values.pop(pseudo, None)
    own = {*hf_model.KEYS, *trl_settings.KEYS, *training_arguments.DECIDING, *script_arguments.LENGTHS}
    r.ignore([key for key, value in r.values.items() if value is None and key in own])


def _files(r: Reading) -> None:
    """Files that are named and could not be read."""
    if r.has("config") and not r.has(READ):
        r.unsure("config", UNREADABLE)
    if r.has("config_file") and not r.has("distributed_type"):
        r.unsure("config_file", UNREADABLE)
    if isinstance(r.get("accelerate_config"), str) and not r.has("distributed_type"):
        r.unsure("accelerate_config", UNREADABLE)


def _read_launch(r: Reading, kind: str, mixed: str) -> None:
    """A launcher whose script's arguments are not known, or its config alone."""
    accelerate.read_distribution(r, kind)
    if kind == "DEEPSPEED":
        accelerate.read_deepspeed(r, Trainer(precision="bf16" if mixed == "fp8" else mixed))
    if mixed == "fp8":
        accelerate.read_fp8(r)
    elif r.has("mixed_precision") or kind == "DEEPSPEED":
        if kind != "DEEPSPEED" or mixed:
            r.put("precision", f"{mixed}-mixed" if mixed else "fp32", "mixed_precision")
        r.ignore(["mixed_precision"])
    elif kind:
        r.assume("mixed_precision", "no", "precision", why="default of accelerate 1.15")
        r.question["precision"] = "fp32"


def _read_plain(r: Reading) -> None:
    """A script with a DeepSpeed config and without a Trainer."""
    if r.under("deepspeed."):
        r.put("runtime", "deepspeed", "deepspeed")
        read_zero(r, "deepspeed.")
    else:
        r.put("runtime", "deepspeed")
        r.unsure("deepspeed", UNREADABLE)
    script_arguments.read_length(r)
    r.ignore(training_arguments.HARMLESS)


def _read_training(r: Reading, kind: str, mixed: str, version: str, trl: bool) -> None:
    flag = training_arguments.precision_of(r)
    if trl and not flag and not ("bf16" in r.values and r.get("bf16") is not None):
        flag = "bf16"  # trl/trainer/base_config.py: where fp16 is not set
        r.assume("bf16", True, why="default of TRL 1.16")
    micro, steps = training_arguments.read_batches(r, version)
    at = "deepspeed." if r.under("deepspeed.") or r.has("deepspeed") else ""
    trainer = Trainer(
        micro_batch_size=micro, accumulation=steps, precision=flag or (mixed if mixed != "fp8" else "bf16")
    )
    if at and not r.under(at):
        r.unsure("deepspeed", UNREADABLE)
        r.put("runtime", "deepspeed")
    elif at:
        r.put("runtime", "deepspeed", "deepspeed")
        read_zero(r, at, trainer)
    elif has_fsdp(r):
        read_fsdp_arguments(r, version)
    else:
        accelerate.read_distribution(r, kind)
        if kind == "DEEPSPEED":
            accelerate.read_deepspeed(r, trainer)
    _parallel_processes(r)
    if mixed == "fp8" and not flag:
        accelerate.read_fp8(r)
        r.ignore(["bf16", "fp16"])
    else:
        _precision(r, flag, mixed, version, trl)
    if trl:
        trl_settings.read_trainer(r, trl_settings.trainer_of(r.values, r.text("trainer", PurePath(_hint(r)).name)))
    else:
        _length(r, version)
    training_arguments.read_arguments(r, version, recomputes=trl)
    r.ignore(["fsdp", "fsdp_config", "deepspeed", "mixed_precision"])


def _precision(r: Reading, flag: str, mixed: str, version: str, trl: bool) -> None:
    loads, why = "float32", UNKNOWN_DTYPE
    if trl:
        why = "default of TRL 1.16"
    elif script_arguments.is_example(r.text(SCRIPT)):
        loads, why = ("auto", "default of transformers 5.24: the checkpoint's own, 16 bits")
        if version.startswith("4"):
            loads, why = "float32", "default of transformers 4.57"
    elif r.question.get("method", "full") != "full":
        loads, why = "bfloat16", UNKNOWN_BASE_DTYPE
    if r.question["runtime"] == "deepspeed" and "precision" in r.question:
        r.ignore(["dtype"], why="DeepSpeed casts the weights")
        keys = [key for key in ("bf16", "fp16", "mixed_precision") if r.has(key)]
        r.put("precision", r.question["precision"], *keys)
        hf_model.read_base(r, loads, why, is_trl=trl)
        return
    hf_model.read_precision(r, flag, mixed if not flag else "", loads, why)
    hf_model.read_base(r, loads, why, is_trl=trl)


def _hint(r: Reading) -> str:
    """What may name the trainer: the script, or the file."""
    return r.text(SCRIPT) or r.source.name


def _length(r: Reading, version: str) -> None:
    if not script_arguments.read_length(r) and script_arguments.is_example(r.text(SCRIPT)):
        r.assume("block_size", 1024, "sequence_length", why="default of run_clm.py")
    if r.has("packing"):
        r.put("packing", r.flag("packing"), "packing")


def _parallel_processes(r: Reading) -> None:
    """python starts one process, whatever accelerators there are."""
    alone = r.text(PROGRAM) == PYTHON and r.question["runtime"] == "ddp"
    if alone:
        r.unsure(PROGRAM, "python alone starts one process: torchrun's, one an accelerator, are estimated")


def _environment(r: Reading) -> None:
    expands = expands_segments(r)
    if expands is not None and r.question.get("runtime") in ("fsdp2", "transformers", "ddp"):
        r.put("expandable_segments", expands)
