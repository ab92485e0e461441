"""What a source's dialect is: how its rows say what was run, and what its figures are."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from rows.training import words
from rows.training.config import Config
from rows.training.figures import Kind
from tonnage.kernel.units import GIB

TENSOR = ("tp", "tensor_parallel_size", "tensor_parallel", "tensor", "model_parallel")
PIPELINE = ("pp", "pipeline_parallel_size", "pipeline_parallel", "pipeline")
CONTEXT = ("cp", "context_parallel_size", "context_parallel")
REPLICATE = ("dp_replicate", "hsdp", "replicate", "replicate_size", "data_parallel_replicate_degree")
SHARD = ("fsdp", "fsdp2", "dp_shard", "dp", "data_parallel_size", "data_parallel", "ddp")
MICRO = (
    "micro_batch",
    "micro_batch_size",
    "mbs",
    "local_batch",
    "local_batch_size",
    "per_device_train_batch_size",
    "per_device_batch",
    "per_device_batch_size",
    "device_batch",
    "batch_size",
    "batch",
)
MICRO_BATCHES = (
    "num_microbatches",
    "grad_accum",
    "gradient_accumulation_steps",
    "grad_accum_steps",
    "accumulate",
    "mbc",
)
GLOBAL = ("global_batch", "global_batch_size", "gbs", "train_batch_size")
LENGTH = (
    "seq_len",
    "sequence_length",
    "max_seq_len",
    "max_seq_length",
    "cutoff_len",
    "max_length",
    "longest_seq",
    "seq",
)
RECOMPUTE = (
    "recompute",
    "activation_checkpointing",
    "gradient_checkpointing",
    "recompute_granularity",
    "remat_policy",
    "remat",
    "ac_mode",
    "activation_checkpoint",
)
PRECISION = ("param_dtype", "precision", "dtype", "mixed_precision", "torch_dtype", "weights_dtype")
METHOD = ("method", "finetuning_type", "finetuning", "peft", "task", "quant", "quantize", "quantization")

Options = dict[str, Any]


def _nothing(config: Config) -> Options:
    return {}


class Reader(Struct, frozen=True, kw_only=True):
    """One dialect.

    `frameworks`: words that its rows have under `framework`; `sources`: words of the source of rows that name no
    framework.
    `figure`: what a "peak memory" is, `activations` what "activations" are; `gigabyte`: what its GB is. `options`: what
    it says beyond, or other than, the common names; `hparams`: what its models have that its rows do not say;
    `baseline`: the run that a ratio is relative to.
    `plain_16_bit`: what a bare "bf16" means, "mixed" or "true". `is_harness`: its rows name the framework that it
    drives, so their source tells it.
    """

    name: str
    runtime: str
    frameworks: str
    sources: str = ""
    figure: Kind = "allocated"
    activations: Kind = "activations"
    gigabyte: int = GIB
    plain_16_bit: str = "mixed"
    is_harness: bool = False
    options: Callable[[Config], Options] = _nothing
    hparams: Callable[[Config], Mapping[str, Any]] = _nothing
    baseline: Mapping[str, Any] = {}

    @property
    def file(self) -> str:
        """The file that describes it."""
        return self.options.__module__.rpartition(".")[2]

    def matches(self, framework: str, source: str) -> bool:
        if self.sources and re.search(self.sources, source):
            return True
        return bool(self.frameworks and re.search(self.frameworks, framework))

    def read(self, config: Config) -> Options:
        """All options by the names of TrainingOptions; None is left out."""
        made = common(config, self.plain_16_bit) | {"runtime": self.runtime} | self.options(config)
        return {name: value for name, value in made.items() if value is not None}


def common(c: Config, plain_16_bit: str) -> Options:
    """What rows of any source say in the names that most of them use."""
    return _sizes(c) | _work(c) | _policies(c, plain_16_bit) | _what_trains(c)


def parallel_sizes(c: Config) -> int:
    """The product of the parallel sizes that a row names."""
    product = 1
    for names in (TENSOR, PIPELINE, CONTEXT, REPLICATE, SHARD):
        product *= sizes_or_one(c, names)
    return product


def sizes_or_one(c: Config, names: tuple[str, ...]) -> int:
    """A parallel size; 1 where it is not said, is no number (-1: whatever is left), or only names the strategy."""
    name, value = c.find(*names)
    if not name or isinstance(value, bool) or str(value).strip() in ("0", "-1") or not str(value).strip()[:1].isdigit():
        return 1
    return c.size(name) or 1


def _sizes(c: Config) -> Options:
    replicas, shards = sizes_or_one(c, REPLICATE), sizes_or_one(c, SHARD)
    said = c.has(*SHARD) and shards > 1
    return {
        "tensor_parallel_size": sizes_or_one(c, TENSOR),
        "pipeline_parallel_size": sizes_or_one(c, PIPELINE),
        "virtual_pipeline_size": sizes_or_one(
            c, ("vpp", "vp", "virtual_pipeline_size", "virtual_pipeline", "interleave")
        ),
        "context_parallel_size": sizes_or_one(c, CONTEXT),
        "expert_parallel_size": sizes_or_one(c, ("ep", "expert_parallel_size", "expert_parallel", "expert")),
        "expert_tensor_parallel_size": sizes_or_one(c, ("etp", "expert_tensor_parallel_size"))
        if c.has("etp", "expert_tensor_parallel_size")
        else None,
        "data_parallel_size": shards * replicas if said else None,
        "replicate_size": replicas if replicas > 1 else None,
        "first_stage_layers": c.size(
            "first_stage_layers", "num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"
        ),
        "last_stage_layers": c.size(
            "last_stage_layers", "num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"
        ),
        "sequence_parallel": _sequence_parallel(c),
    }


def _sequence_parallel(c: Config) -> bool | None:
    mode = c.text("tp_mode", "tensor_parallel_mode")
    if mode:
        return "reduce_scatter" in mode or "sequence parallel" in mode
    return c.flag("sequence_parallel", "sp", "tp_sp")


def _work(c: Config) -> Options:
    micro, count, total = c.size(*MICRO), c.size(*MICRO_BATCHES), c.size(*GLOBAL)
    if micro and count:  # the three must agree, and rounding in a source must not stop an estimate
        total = None
    return {
        "sequence_length": c.length(*LENGTH),
        "micro_batch_size": micro,
        "num_microbatches": count,
        "global_batch_size": total,
    }


def _policies(c: Config, plain_16_bit: str) -> Options:
    said, optimizer = c.text(*RECOMPUTE), c.text("optimizer", "optim")
    low = c.text("float8", "fp8")
    precision = c.text(*PRECISION)
    return {
        "recompute": words.recompute(said) if said else None,
        "recompute_modules": c.find("recompute_modules")[1],
        "recompute_method": c.find("recompute_method")[1],
        "recompute_num_layers": c.size("recompute_num_layers"),
        "attention": words.attention(c.text("attention", "attn_implementation", "attn_impl", "attn", "flash_attn")),
        "precision": words.precision(precision, plain_16_bit),
        "float8": words.eight_bit(low)
        if low
        else words.eight_bit(precision)
        if words.EIGHT.search(precision)
        else None,
        "optimizer": words.optimizer(optimizer),
        "optimizer_implementation": words.optimizer_implementation(optimizer),
        "zero_stage": words.sharding(
            c.text("zero", "zero_stage", "sharding", "distributed_optimizer", "sharding_strategy")
        ),
        "main_gradients": _main_gradients(
            c.text("grad_accum_dtype", "main_grads_dtype", "accumulate_allreduce_grads_in_fp32")
        ),
        "compile": c.flag("compile", "torch_compile"),
        "async_tensor_parallel": c.flag("async_tp"),
        "pipeline_schedule": words.schedule(c.text("pp_schedule", "pipeline_schedule", "schedule")),
        "loss": "fused" if c.flag("cross_entropy_fusion", "fused_cross_entropy", "cross_entropy_loss_fusion") else None,
        "liger": c.flag("liger", "use_liger_kernel", "enable_liger_kernel"),
        "dropout": c.flag("dropout"),
        "reduce_bucket_size": c.size("reduce_bucket_size"),
        "offload_optimizer": words.offload(c.text("offload_optimizer", "optimizer_offload")),
        "offload_parameters": words.offload(c.text("offload_parameters", "offload_param", "cpu_offload")),
        "offload_activations": words.offload(
            c.text("offload_activations", "activation_cpu_offload", "activation_offloading")
        ),
    }


def _main_gradients(text: str) -> str | None:
    if not text:
        return None
    return "bf16" if text in ("bf16", "bfloat16", "false") else "fp32"


def _what_trains(c: Config) -> Options:
    text = " ".join(c.text(name) for name in METHOD)
    method = words.method(text)
    if method in ("lora", None) and is_4_bit(text) and (method or c.has("lora_rank", "lora_r")):
        method = "qlora"
    rank = c.size("lora_rank", "lora_r")
    return {
        "method": method or ("lora" if rank else None),
        "lora_rank": rank,
        "base_weights": _base_weights(c, method) if method in ("qlora", "lora", "dora") else None,
        "lora_targets": words.lora_targets(
            c.text("lora_targets", "lora_target", "target_modules", "lora_target_modules")
        ),
        "objective": words.objective(c.text("objective", "stage", "task")),
    }


def _base_weights(c: Config, method: str) -> str | None:
    """How bitsandbytes stores the base, as far as the row says: the type, and whether its scales are quantised too."""
    kind = words.base_weights(c.text("base_weights", "bnb_4bit_quant_type"))
    twice = c.flag("double_quant", "bnb_4bit_use_double_quant", "use_nested_quant")
    if kind is None and method == "qlora" and twice is not None:
        kind = "nf4"  # QLoRA's own
    return f"{kind}-double" if twice and kind in ("nf4", "fp4") else kind


def is_4_bit(text: str) -> bool:
    """Whether a text says that the base model is stored in four bits."""
    return bool(re.search(r"4.?bit|nf4|\bint4|fp4\b", text))
