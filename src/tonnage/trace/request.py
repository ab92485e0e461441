"""Options of a traced model, checked before torch is imported."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.registry import unknown
from tonnage.trace.distributed import Distributed, Kind

Mode = Literal["train", "generate"]
RUNTIMES = ("single", "fsdp2", "ddp")
PRECISIONS = ("bf16", "fp16", "fp32", "bf16-mixed", "fp16-mixed")
ATTENTION = ("sdpa", "eager")
IMPLEMENTATIONS = ("default", "foreach", "fused", "loop")
LARGEST = 2**31


class TraceOptions(Struct, frozen=True, kw_only=True):
    """Options; None: not set. `precision`: of weights and arithmetic; -mixed keeps fp32 weights under autocast, or
    FSDP2's policy.

    `lora_rank` trains adapters only, on a base quantised to `base`, which peft's prepare_model_for_kbit_training has
    prepared (`upcast_base`). `generate` serves: `prompt` tokens of `micro_batch_size` sequences, then `new_tokens`
    more. `fold`: trace few layers and repeat their events.
    """

    mode: Mode = "train"
    sequence_length: int | None = None
    micro_batch_size: int = 1
    num_microbatches: int = 1
    precision: str = "bf16"
    optimizer: str = "adamw"
    optimizer_implementation: str = "default"
    recompute: str = "none"
    attention: str | None = None
    clip_grad_norm: float | None = None
    num_layers: int | None = None
    lora_rank: int | None = None
    base: str | None = None
    upcast_base: bool | None = None
    runtime: str | None = None
    world_size: int | None = None
    rank: int = 0
    tensor_parallel_size: int = 1
    new_tokens: int = 32
    cache: str = "dynamic"
    fold: bool = False
    steps: int = 2


def checked(model: Model, options: TraceOptions) -> TraceOptions:
    """The options with their defaults. Raises InvalidInput, InvalidPlan, UnknownName."""
    for name in (
        "sequence_length",
        "micro_batch_size",
        "num_microbatches",
        "num_layers",
        "lora_rank",
        "world_size",
        "tensor_parallel_size",
        "new_tokens",
        "steps",
    ):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= LARGEST:
            raise InvalidPlan(
                "{what} must be from 1 to {most:,}. Got {text}.", what=option_name(name), most=LARGEST, text=value
            )
    for what, value, known in (
        ("precision", options.precision, PRECISIONS),
        ("attention", options.attention or "sdpa", ATTENTION),
        ("recompute policy", options.recompute, ("none", "full")),
        ("implementation", options.optimizer_implementation, IMPLEMENTATIONS),
        ("kind of cache", options.cache, ("dynamic", "static")),
        ("runtime", options.runtime or "single", RUNTIMES),
        ("mode", options.mode, ("train", "generate")),
    ):
        if value not in known:
            raise unknown(Message("{what} of a trace", what=what), value, known)
    if options.num_layers is not None and options.num_layers > model.num_layers:
        raise InvalidPlan(
            "num_layers must be from 1 to the {num_layers} of {model}. Got {num_layers2}.",
            num_layers=model.num_layers,
            model=model.name,
            num_layers2=options.num_layers,
        )
    if options.clip_grad_norm is not None and options.clip_grad_norm <= 0:
        raise InvalidInput(
            "clip_grad_norm must be above 0. Got {clip_grad_norm:g}.", clip_grad_norm=options.clip_grad_norm
        )
    if not model.config:
        raise InvalidInput(
            "{model} has no config that transformers could build it from. A program FILE.py:callable can be traced.",
            model=model.name,
        )
    if options.base is not None and options.lora_rank is None:
        raise InvalidInput(Message("base: a quantised base is frozen; say {--lora-rank} too."))
    if options.base is None and options.upcast_base is not None:
        raise InvalidInput(Message("{@upcast_base}: it is about a quantised base; say --base too."))
    length = options.sequence_length or min(model.context or 4096, 4096)
    upcast = options.base is not None and options.upcast_base is not False
    return replace(options, sequence_length=length, runtime=_runtime(options), upcast_base=upcast)


def _runtime(options: TraceOptions) -> str:
    several = (options.world_size or 1) > 1 or options.tensor_parallel_size > 1
    runtime = options.runtime or ("fsdp2" if several else "single")
    if runtime == "single" and several:
        raise InvalidPlan(
            "runtime single is one accelerator. Got world_size {world_size}.",
            world_size=options.world_size or options.tensor_parallel_size,
        )
    if runtime != "single" and (options.world_size or options.tensor_parallel_size) == 1:
        raise InvalidPlan("runtime {runtime} needs several ranks: say --world-size.", runtime=runtime)
    if runtime == "single" and options.rank:
        raise InvalidPlan("rank must be 0 on one accelerator. Got {rank}.", rank=options.rank)
    if runtime != "single" and (options.lora_rank or options.mode == "generate" or options.fold):
        what = "LoRA" if options.lora_rank else "generation" if options.mode == "generate" else "folding"
        raise InvalidPlan("{what} is traced on one accelerator. Got runtime {runtime}.", what=what, runtime=runtime)
    return runtime


def distributed_plan(options: TraceOptions) -> Distributed:
    """The distributed program of checked options."""
    world = options.world_size or options.tensor_parallel_size
    tensor = options.tensor_parallel_size
    mixed = options.precision.endswith("-mixed")
    compute = options.precision.removesuffix("-mixed")
    kind: Kind
    if options.runtime == "ddp":
        kind = "ddp"
    elif tensor > 1:
        kind = "tp" if tensor == world else "tp+fsdp2"
    else:
        kind = "fsdp2"
    return Distributed(
        kind=kind,
        world_size=world,
        rank=options.rank,
        tensor_parallel_size=tensor,
        sequence_length=options.sequence_length or 4096,
        micro_batch_size=options.micro_batch_size,
        num_microbatches=options.num_microbatches,
        recompute="full" if options.recompute == "full" else "none",
        dtype="fp32" if mixed else compute,
        param_dtype=compute,
        reduce_dtype="fp32" if mixed else compute,
        clip_grad_norm=options.clip_grad_norm,
        attention=options.attention,
        num_layers=options.num_layers,
        steps=options.steps,
    )
