"""The same training on one device at the edge: whether it fits there, and how long it takes."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.estimate.bands import highest
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.formulas.run import steps_for_tokens
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.units import human

# What is trained, and how; how it was spread over the cluster means nothing on one device.
KEPT = (
    "sequence_length",
    "micro_batch_size",
    "recompute",
    "attention",
    "dropout",
    "precision",
    "optimizer",
    "objective",
    "method",
    "lora_rank",
    "lora_targets",
    "lora_dropout",
    "base_weights",
    "upcast_base",
    "keep_outputs",
    "trainable_layers",
    "offload_activations",
)


def edge_seconds(model: Model, device: str, options: TrainingOptions, tokens: Number) -> tuple[float | None, str]:
    """Seconds of so many tokens on one such device that never fails; None, and why, where they do not fit or nobody
    knows.
    """
    one = cluster(device)
    try:
        plan = training_plan(model, one, _alone(options), Question())
        memory = training_memory(model, plan, one)
        needed, usable = highest(plan, one, memory.memory.value), one.accelerator.memory.usable_bytes
        if needed > usable:
            return None, Message(
                "does not fit: needs {needed} of {usable}", needed=human(needed, "bytes"), usable=human(usable, "bytes")
            )
        step = Timing(model, plan, one, memory.step).term
    except (InvalidPlan, MissingDatum) as error:
        return None, str(error)
    steps = steps_for_tokens(D=tokens, s=plan.sequence_length, b=plan.micro_batch_size, m=plan.num_microbatches, d=1)
    return float(steps * step.value), ""


def _alone(options: TrainingOptions) -> TrainingOptions:
    return replace(TrainingOptions(), **{name: getattr(options, name) for name in KEPT})
