"""What a reader found -> TrainingOptions. The one place that knows which options and runtimes the estimator has."""

from collections.abc import Mapping
from typing import Any

from tonnage.estimate.options import plans
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import MissingDatum
from tonnage.runtimes import training_runtime, training_runtimes

# What is the case without the option, so that leaving it out changes nothing.
PLAIN: Mapping[str, Any] = {
    "pipeline_schedule": "1f1b",
    "compile": False,
    "float8": "none",
    "method": "full",
    "objective": "sft",
    "offload_optimizer": "none",
    "offload_parameters": "none",
    "offload_activations": "none",
    "replicate_size": 1,
    "liger": False,
    "async_tensor_parallel": False,
    "main_gradients": "fp32",
    "optimizer_in_backward": False,
}
# Options without which the estimate would be of another run.
DECISIVE = ("method", "offload_optimizer", "offload_parameters", "objective", "trainable_layers")
# Options that only say more about another one.
BELONG_TO_METHOD = ("lora_rank", "lora_targets")
# Values that the estimator may not have yet, and what is nearest to them.
NEAREST: Mapping[str, Mapping[str, str]] = {
    "recompute": {"selective-op": "selective", "memory-budget": "selective"},
    "loss": {"liger": "chunked"},
}
# Options of some runtimes, and what says whether one has it.
ABILITIES: Mapping[str, str] = {
    "compile": "compiles",
    "optimizer_in_backward": "steps_in_backward",
    "replicate_size": "replicates",
}
CHOICES: Mapping[str, str] = {
    "recompute": "RECOMPUTE",
    "loss": "LOSS",
    "attention": "ATTENTION",
}  # where plans lists the values it takes


def training_options(found: Mapping[str, Any]) -> tuple[TrainingOptions, list[str]]:
    """The options, and a note for each thing said that this estimator leaves out; MissingDatum where it would then
    be another run.
    """
    wanted, notes = dict(found), []
    runtime = wanted["runtime"]
    if runtime not in training_runtimes():
        raise MissingDatum(f"runtime {runtime} is not built yet")
    able = training_runtime(runtime)
    if wanted.get("pipeline_parallel_size", 1) == 1:
        wanted.pop("pipeline_schedule", None)  # of the other rows of its table
    lacks = {name for name, ability in ABILITIES.items() if not getattr(able, ability)}
    lacks |= {"float8", "async_tensor_parallel", "float8_all_gather"} if len(able.float8) == 1 else set()
    known = set(TrainingOptions.__struct_fields__) - lacks
    if "float8" not in known and wanted.get("float8") not in (None, "none") and wanted.get("precision") == "bf16-mixed":
        wanted["precision"] = "fp8-torchao"
        del wanted["float8"]
    for name in [name for name in wanted if name not in known]:
        value = wanted.pop(name)
        if value == PLAIN.get(name) or name in BELONG_TO_METHOD:
            continue
        if name in DECISIVE:
            raise MissingDatum(f"{name} {value} is not estimated yet")
        notes.append(f"{name} {value} is left out")
    for name in CHOICES:
        choices = getattr(plans, CHOICES[name], None)
        if choices is not None and (value := wanted.get(name)) is not None and value not in choices:
            wanted[name] = NEAREST.get(name, {}).get(value)
            notes.append(f"{name} {value} is taken as {wanted[name]}")
    return TrainingOptions(**wanted), notes
