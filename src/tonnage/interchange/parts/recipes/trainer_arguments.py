"""Arguments of transformers' Trainer, as tools have them that are built on it.

transformers 5.24, training_args.py and training_args_seq2seq.py.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.hugging_face import accelerate_settings as accelerate
from tonnage.interchange.parts.hugging_face import training_arguments
from tonnage.interchange.parts.hugging_face.fsdp_arguments import has_fsdp, read_fsdp_arguments
from tonnage.interchange.parts.hugging_face.fsdp_settings import HARMLESS as FSDP_HARMLESS
from tonnage.interchange.parts.hugging_face.fsdp_settings import KEYS as FSDP_KEYS
from tonnage.interchange.parts.hugging_face.keys import NOT_ESTIMATED
from tonnage.interchange.parts.hugging_face.machines import expands_segments
from tonnage.interchange.parts.hugging_face.trainer_names import put_optimizer
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer as ZeroTrainer
from tonnage.interchange.parts.recipes.shipped_deepspeed import read_deepspeed
from tonnage.interchange.parts.recipes.trainer_options import (
    ADAPTERS,
    DEEPSPEED,
    FSDP,
    PLAIN,
    ignore_names,
    put_liger,
)
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading

IGNORED = (
    *training_arguments.HARMLESS,
    *names(
        """
        num_train_epochs tf32 eval_strategy evaluation_strategy group_by_length predict_with_generate sortish_sampler
        generation_max_length generation_num_beams generation_config use_legacy_prediction_loop
        """
    ),
)
OTHERS: Mapping[str, tuple[tuple[object, ...], str]] = {
    "torch_compile": ((), "torch.compile is estimated for torchtitan's layers alone"),
    "liger_kernel_config": ((), "only parts of Liger are on: all of it is estimated"),
    "optim_args": ((), NOT_ESTIMATED),
    "optim_target_modules": ((), "the optimizer projects some layers alone"),
    "accelerator_config": (({"dispatch_batches": False},), NOT_ESTIMATED),
    "parallelism_config": ((), NOT_ESTIMATED),
}
READ = training_arguments.DECIDING
OF_FSDP = (*FSDP_KEYS, *FSDP_HARMLESS)
FSDP2_PRESET = {"reshard_after_forward": True, "activation_checkpointing": True, "version": 2}


class Trainer(Struct, frozen=True, kw_only=True):
    """What a tool sets otherwise than transformers does: its own defaults, and the files that it ships. `checkpoints`:
    None where a switch of its own decides.
    """

    batch: int = 8
    checkpoints: bool | None = False
    optimizer: str = "adamw_torch_fused"
    deepspeed: Mapping[str, Mapping[str, Any]] = {}
    presets: Mapping[str, Mapping[str, Any]] = {}


def read_sharding(r: Reading, tool: Trainer, kind: str, zero: ZeroTrainer) -> str:
    """The runtime by `deepspeed`, `fsdp` and `fsdp_config`, else by accelerate's `kind`. Returns DEEPSPEED, FSDP or
    PLAIN. `zero`: what fills in what a config of DeepSpeed leaves "auto".
    """
    if r.has("deepspeed"):
        read_deepspeed(r, tool.deepspeed, zero)
        r.ignore(["fsdp", "fsdp_config."], why="DeepSpeed is stronger")
    elif has_fsdp(r):
        preset = r.get("fsdp")
        if isinstance(preset, str) and preset in tool.presets:
            r.values.update({f"fsdp_config.{name}": value for name, value in tool.presets[preset].items()})
            r.put("runtime", FSDP, "fsdp")
            r.values["fsdp"] = True
        read_fsdp_arguments(r, training_arguments.VERSION)
    else:
        accelerate.read_distribution(r, kind)
        if kind == "DEEPSPEED":
            accelerate.read_deepspeed(r, zero)
        r.ignore(["fsdp"])
        r.ignore(["fsdp_config."], why="fsdp is not on")
    return sharding_of(r)


def sharding_of(r: Reading) -> str:
    """DEEPSPEED or FSDP; PLAIN where nothing shards."""
    runtime = str(r.question["runtime"])
    return runtime if runtime in (DEEPSPEED, FSDP) else PLAIN


def read_trainer(r: Reading, tool: Trainer, sharded: str) -> None:
    """Batches, checkpointing, the optimizer and the rest, once the runtime and the method are known."""
    batch = "per_device_train_batch_size"
    r.assume(batch, tool.batch, "micro_batch_size")
    if r.has(batch):
        r.put("micro_batch_size", r.positive(batch), batch)
    steps = "gradient_accumulation_steps"
    if r.has(steps):
        r.put("num_microbatches", r.positive(steps), steps)
    if r.has("max_steps"):
        most = r.integer("max_steps", -1)
        r.put("max_steps", most if most > 0 else None, "max_steps")
    if r.has("dataloader_num_workers"):
        r.put("data_loader_workers", r.integer("dataloader_num_workers"), "dataloader_num_workers")
    if r.has("per_device_eval_batch_size"):
        micro = int(r.question.get("micro_batch_size", 1))
        if r.positive("per_device_eval_batch_size") > 4 * micro:
            r.unsure("per_device_eval_batch_size", "evaluation with many more sequences than training is not estimated")
        r.ignore(["per_device_eval_batch_size"])
    _checkpoints(r, tool)
    put_optimizer(r, "optim", tool.optimizer)
    if r.flag("use_liger_kernel"):
        put_liger(r, ["use_liger_kernel"], all_kernels=True)
    r.ignore(["use_liger_kernel"])
    expands = expands_segments(r)
    if expands is not None and sharded != DEEPSPEED:
        r.put("expandable_segments", expands)
    for key, (harmless, why) in OTHERS.items():
        r.needs_default(key, *harmless, why=why)
    training_arguments.read_others(r)
    ignore_names(r, IGNORED)


def _checkpoints(r: Reading, tool: Trainer) -> None:
    r.rename({"activation_checkpointing": "gradient_checkpointing"})
    wrapped, own = "fsdp_config.activation_checkpointing", "gradient_checkpointing"
    if tool.checkpoints is None:
        r.ignore([own, wrapped], why="a switch of its own decides")
        return
    r.assume(own, tool.checkpoints, "")
    saves = r.flag(own, tool.checkpoints) or r.flag(wrapped)
    r.put("recompute", "full" if saves else "none", own, wrapped)


def autocast_of(r: Reading) -> str:
    """bf16, fp16 or ""."""
    kind = "bf16" if r.flag("bf16") else "fp16" if r.flag("fp16") else ""
    if kind == "bf16" and r.flag("fp16"):
        raise r.wrong("fp16", "false with bf16")
    return kind


def put_types(r: Reading, *, narrow: bool, keys: tuple[str, ...]) -> None:
    """The precision where weights that train are in fp32 under autocast; `narrow`: they are in 16 bit themselves."""
    kind = autocast_of(r)
    if sharding_of(r) == DEEPSPEED:  # its config is stronger, and was read with these
        recipe = r.question["precision"]
    elif narrow:
        recipe = kind or "bf16"
    elif kind or r.question.get("method") in ADAPTERS:
        recipe = f"{kind or 'bf16'}-mixed"
    else:
        recipe = "fp32"
    r.put("precision", recipe, *keys)
