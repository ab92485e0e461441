"""ms-swift: `swift sft`, `swift pt` and `swift rlhf`, and the YAML or JSON that they take."""

from math import ceil
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face.trainer_names import put_attention, put_targets
from tonnage.interchange.parts.hugging_face.zero_batches import Trainer as ZeroTrainer
from tonnage.interchange.parts.launching.training import TrainingLaunch, training_launch
from tonnage.interchange.parts.recipes import ms_swift_keys as keys
from tonnage.interchange.parts.recipes.accelerate_sections import accelerate_values, read_accelerate
from tonnage.interchange.parts.recipes.shipped_deepspeed import MS_SWIFT
from tonnage.interchange.parts.recipes.trainer_arguments import (
    FSDP2_PRESET,
    Trainer,
    autocast_of,
    put_types,
    read_sharding,
    read_trainer,
)
from tonnage.interchange.parts.recipes.trainer_launches import (
    command_signs,
    launch_values,
    read_launch,
)
from tonnage.interchange.parts.recipes.trainer_options import (
    DEEPSPEED,
    PLAIN,
    ignore_empty,
    ignore_names,
    keep_base_narrow,
    put_parallel,
)
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading, flattened, options_of_command
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.runtimes.parts.tools import MS_SWIFT as TOOL

NAME = "ms-swift"
VERBS = ("sft", "pt", "rlhf")
TRAINER = Trainer(
    batch=TOOL.micro_batch_size, checkpoints=TOOL.checkpoints, deepspeed=MS_SWIFT, presets={"fsdp2": FSDP2_PRESET}
)
SIGNS = names("tuner_type train_type rlhf_type attn_impl split_dataset_ratio freeze_vit torch_dtype quant_method")
UNFLATTENED = frozenset(
    names("deepspeed optim_args accelerator_config liger_kernel_config vllm_engine_kwargs rope_scaling")
)
# Names until 3.x -> those of 4.6.
OLDER = {
    "train_type": "tuner_type",
    "sft_type": "tuner_type",
    "model_id_or_path": "model",
    "quantization_bit": "quant_bits",
    "lora_target_modules": "target_modules",
    "lora_dropout_p": "lora_dropout",
    "use_flash_attn": "attn_impl",
    "batch_size": "per_device_train_batch_size",
    "eval_batch_size": "per_device_eval_batch_size",
}
METHODS = {"lora": "lora", "full": "full"}
OTHER_METHODS = names("longlora adalora llamapro adapter vera boft fourierft reft bone")
OBJECTIVES = {"dpo": "dpo", "grpo": "grpo"}
OTHER_OBJECTIVES = ("kto", "orpo", "cpo", "simpo", "rm", "ppo", "gkd")
SEVERAL = frozenset(
    names(
        """
        dataset val-dataset target-modules modules-to-save adapters external-plugins custom-register-path
        freeze-parameters trainable-parameters report-to stop-words reward-funcs reward-weights new-special-tokens
        cached-dataset cached-val-dataset custom-dataset-info callbacks eval-dataset ref-adapters reward-model
        reward-adapters reward-template vllm-server-host vllm-server-port vllm-server-base-url model-name model-author
        interleave-prob loss-type loss-weights include-for-metrics label-names
        """
    )
)
VARIABLES = ("SWIFT_USE_SWIFT_LORA", "MAX_PIXELS", "VIDEO_MAX_PIXELS", "FPS_MAX_FRAMES", "OMP_NUM_THREADS")
TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
FOUR = 4  # bits of qlora
BATCH = TOOL.step_sequences  # where nobody says how often gradients accumulate


# ---- What a source is.


def recognises(source: Source) -> int:
    if source.kind in ("command", "text"):
        launches = [parts for command in source.commands if (parts := _command(command)) is not None]
        return max((command_signs(parts[0]) for parts in launches), default=0)
    tree = source.tree
    if "model" not in tree or not ({"tuner_type", "train_type", "rlhf_type", "sft_type"} & set(tree)):
        return 0
    return 2 * sum(name in tree for name in SIGNS)


def _command(command: Command) -> tuple[TrainingLaunch, str, tuple[str, ...]] | None:
    """The launcher, the verb, and its words; None of another command."""
    launch = training_launch(command.words)
    if launch.program == "swift" and launch.words[1:2] and launch.words[1] in VERBS:
        return launch, launch.words[1], launch.words[2:]
    for verb in VERBS:
        if launch.words and launch.words[0] in (f"swift.cli.{verb}", f"swift/cli/{verb}.py"):
            return launch, verb, launch.words[1:]
    return None


def values(source: Source) -> dict[str, Any]:
    if source.kind not in ("command", "text"):
        tree = dict(source.tree)
        environment = tree.pop("ENV", None)
        return {**flattened(tree, UNFLATTENED), **_environment(environment)}
    for command in source.commands:
        if (parts := _command(command)) is not None:
            return _of_command(source, command, *parts)
    raise InvalidInput("{file} has no command of ms-swift, such as swift sft --model ...", file=source.name)


def _of_command(
    source: Source, command: Command, launch: TrainingLaunch, verb: str, words: tuple[str, ...]
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if words and words[0].endswith((".yaml", ".yml", ".json")):
        config = values(source.sibling(words[0]))
        words = words[1:]
    options, _ = options_of_command(words, several=SEVERAL)
    arguments = {name.replace("-", "_"): value for name, value in options.items()}
    started = launch_values(command, launch, VARIABLES)
    return {"launcher.verb": verb, **accelerate_values(source, started), **config, **arguments, **started}


def _environment(environment: Any) -> dict[str, Any]:
    if not isinstance(environment, dict):
        return {} if environment is None else {"ENV": environment}
    return {str(name): value for name, value in environment.items()}


# ---- What its keys mean.


def read(r: Reading) -> None:
    r.verb = "train"
    if any(name in r.values for name in ("train_type", "sft_type")):
        r.version = r.asker.version or "3"
    r.rename(OLDER)
    kind = read_accelerate(r)
    read_launch(r)
    r.ignore(["launcher.verb", "OMP_NUM_THREADS", "SWIFT_USE_SWIFT_LORA"])
    several = r.has("CUDA_VISIBLE_DEVICES") and not r.has("NPROC_PER_NODE") and r.machines.per_node > 1
    if several and not any(key.startswith("launcher.n") for key in r.values):
        r.unsure("CUDA_VISIBLE_DEVICES", "one process over several accelerators (device_map) is estimated as DDP")
    r.same({"model": "model"})
    _method(r)
    _default_types(r)
    zero = ZeroTrainer(
        micro_batch_size=r.integer("per_device_train_batch_size", TRAINER.batch),
        accumulation=_accumulation(r),
        precision=autocast_of(r),
    )
    sharded = read_sharding(r, TRAINER, kind, zero)
    keep_base_narrow(r)
    if r.has("zero_hpz_partition_size") and sharded == DEEPSPEED:
        r.put("zero_hpz_partition_size", r.integer("zero_hpz_partition_size"), "zero_hpz_partition_size")
    _precision(r, sharded)
    read_trainer(r, TRAINER, sharded)
    _batch(r)
    _kernels(r)
    _objective(r)
    for key, (harmless, why) in keys.OTHERS.items():
        r.needs_default(key, *harmless, why=why)
    ignore_names(r, keys.IGNORED)
    ignore_empty(r, keys.known())


def _method(r: Reading) -> None:
    name = r.text("tuner_type", "lora")
    if name in OTHER_METHODS:
        r.unsure("tuner_type", "this way of tuning is not estimated: LoRA is")
        name = "lora"
    elif name not in METHODS:
        raise r.wrong("tuner_type", Message("one of {names}", names=listed((*METHODS, *OTHER_METHODS))))
    r.assume("tuner_type", "lora", "method")
    if name == "full":
        r.put("method", "full", "tuner_type")
        r.ignore(names("lora_rank lora_dropout target_modules target_regex use_dora quant_method quant_bits"))
        r.ignore(names("bnb_4bit_quant_type bnb_4bit_use_double_quant bnb_4bit_compute_dtype bnb_4bit_quant_storage"))
        return
    dora = r.flag("use_dora")
    is_narrow = r.integer("quant_bits") == FOUR and r.text("quant_method", "bnb") == "bnb"
    r.put("method", "dora" if dora else "qlora" if is_narrow else "lora", "tuner_type", "use_dora")
    _base(r)
    r.assume("lora_rank", TOOL.lora_rank, "lora_rank")
    r.assume("lora_dropout", 0.05, "lora_dropout")
    if r.has("lora_rank"):
        r.put("lora_rank", r.integer("lora_rank"), "lora_rank")
    r.question.pop("lora_dropout", None)
    r.put("lora_dropout", True if r.number("lora_dropout", 0.05) else None, "lora_dropout")
    if r.has("target_regex"):
        r.unsure("target_regex", "a pattern of names: adapters beside all linear layers are estimated")
    elif r.has("target_modules"):
        put_targets(r, "target_modules", ("all-linear", "ALL", "DEFAULT", "AUTO"))


def _base(r: Reading) -> None:
    bits, way = r.integer("quant_bits"), r.text("quant_method", "bnb")
    if bits and way != "bnb":
        r.unsure("quant_method", "bases that bitsandbytes does not quantise are not estimated")
        r.ignore(["quant_bits"])
        bits = 0
    if bits == 8:
        r.put("base_weights", "int8", "quant_bits", "quant_method")
    elif bits == FOUR:
        kind = r.choice("bnb_4bit_quant_type", {"nf4": "nf4", "fp4": "fp4"}, "nf4")
        twice = r.flag("bnb_4bit_use_double_quant", True)
        r.put("base_weights", f"{kind}-double" if twice else kind, "quant_bits", "quant_method")
        r.put("base_weights", None, "bnb_4bit_quant_type", "bnb_4bit_use_double_quant")
    elif bits:
        r.unsure("quant_bits", "bases of other than 4 and 8 bits are not estimated")
    r.ignore(names("quant_method bnb_4bit_quant_type bnb_4bit_use_double_quant bnb_4bit_compute_dtype"))
    r.ignore(["bnb_4bit_quant_storage"])


def _default_types(r: Reading) -> None:
    """arguments/base_args/model_args.py: autocast follows the type of the weights."""
    if not (r.has("bf16") or r.has("fp16")):
        r.values["fp16" if r.choice("torch_dtype", TYPES, "bf16") in ("fp16", "fp32") else "bf16"] = True


def _precision(r: Reading, sharded: str) -> None:
    """DDP trains in the type of the weights; FSDP under accelerate and DeepSpeed keep fp32 copies."""
    kind = r.choice("torch_dtype", TYPES, "bf16")
    of_deepspeed = r.question.get("precision")
    r.assume("torch_dtype", "bfloat16", "precision", why="the type of the checkpoint, as most have it")
    r.put("precision", of_deepspeed)
    if kind == "fp32" and not (r.flag("bf16") or r.flag("fp16")):
        r.put("precision", "fp32", "torch_dtype", "bf16", "fp16")
        return
    narrow = kind != "fp32" and sharded == PLAIN and r.question.get("method") == "full"
    put_types(r, narrow=narrow, keys=("torch_dtype", "bf16", "fp16"))


def _accumulation(r: Reading) -> int:
    """Micro-batches of a step, as ms-swift sets them where nobody does."""
    if r.has("gradient_accumulation_steps"):
        return r.integer("gradient_accumulation_steps")
    if r.text("rlhf_type") == "grpo":
        return 1
    micro = max(r.integer("per_device_train_batch_size", TRAINER.batch), 1)
    return max(1, ceil(BATCH / micro / r.num_accelerators))


def _batch(r: Reading) -> None:
    r.assume("gradient_accumulation_steps", _accumulation(r), "num_microbatches")
    if not r.has("dataloader_num_workers"):
        r.assume("dataloader_num_workers", TOOL.data_loader_workers, "data_loader_workers")
    length = next((key for key in ("packing_length", "max_length") if r.has(key)), "")
    if length and (length == "max_length" or r.flag("packing")):
        r.put("sequence_length", r.integer(length), length)
    if not r.has("max_length"):
        r.notes.append("max_length is not said: texts may be as long as the model's context.")
    r.ignore(["packing_length", "max_length"])
    if r.flag("packing") and r.integer("sequence_parallel_size", 1) > 1:
        r.unsure("packing", "packed sequences that context ranks share are estimated as one long sequence")
    elif r.flag("packing"):
        r.put("packing", True, "packing")
    elif r.flag("padding_free"):
        r.unsure("padding_free", "batches without padding are not estimated apart")
    r.ignore(["packing", "padding_free"])


def _kernels(r: Reading) -> None:
    if r.get("attn_impl") in (True, "true"):  # `use_flash_attn true`
        r.values["attn_impl"] = "flash_attn"
    elif r.get("attn_impl") in (False, "false"):
        r.values["attn_impl"] = "sdpa"
    put_attention(r, "attn_impl", "sdpa")
    why = "sequences that ranks share are estimated under FSDP alone"
    put_parallel(r, {"sequence_parallel_size": "context_parallel_size"}, why)
    if r.has("deepspeed_autotp_size"):
        put_parallel(r, {"deepspeed_autotp_size": "tensor_parallel_size"}, why)


def _objective(r: Reading) -> None:
    kind = r.text("rlhf_type")
    if not kind and r.text("launcher.verb") == "rlhf":
        kind = "dpo"
        r.assume("rlhf_type", "dpo", "objective")
    if kind in OBJECTIVES:
        r.put("objective", OBJECTIVES[kind], "rlhf_type")
    elif kind in OTHER_OBJECTIVES:
        r.unsure("rlhf_type", "this objective is not estimated: next-token training is")
    elif kind:
        raise r.wrong("rlhf_type", Message("one of {names}", names=listed((*OBJECTIVES, *OTHER_OBJECTIVES))))
    if kind != "grpo":
        return
    if "sequence_length" in r.question:  # max_length is of prompts there
        answers = r.integer("max_completion_length", 512)
        r.assume("max_completion_length", 512, "")
        r.put("sequence_length", r.question["sequence_length"] + answers, "max_length", "max_completion_length")
    if r.flag("use_vllm") and r.text("vllm_mode", "server") == "colocate":
        share = r.number("vllm_gpu_memory_utilization", 0.9)
        r.put("engine_memory_share", share, "vllm_gpu_memory_utilization", "use_vllm", "vllm_mode")
        if r.integer("sleep_level"):
            r.unsure("sleep_level", "an engine that gives its memory back while training")
    if r.has("beta") and r.number("beta") and r.question.get("method") == "full":
        r.unsure("beta", "a reference model beside GRPO is not estimated")


FORMATS.add(
    NAME,
    Format(
        name=NAME,
        tool=TOOL.title,
        version=TOOL.version,
        source=TOOL.source,
        recognises=recognises,
        values=values,
        read=read,
        known=keys.known,
        verbs=("train",),
    ),
)
