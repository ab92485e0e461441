"""DeepSpeed's settings by its own names: which stage each belongs to, its defaults, and what Hugging Face fills in
for "auto".
"""

from collections.abc import Mapping
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.checks import LARGEST
from tonnage.estimate.plan.nearest import near_divisors
from tonnage.estimate.plan.rule import Facts, Rule, Sizes, check
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable, OutOfRange
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.units import parse_count

# deepspeed/runtime/zero/config.py: name -> (stages in which it counts, default, least)
SIZES: dict[str, tuple[tuple[int, ...], int, int]] = {
    "reduce_bucket_size": ((1, 2, 3), 500_000_000, 1), "allgather_bucket_size": ((1, 2, 3), 500_000_000, 1),
    "sub_group_size": ((3,), 1_000_000_000, 1), "stage3_prefetch_bucket_size": ((3,), 50_000_000, 0),
    "stage3_max_live_parameters": ((3,), 1_000_000_000, 0), "stage3_max_reuse_distance": ((3,), 1_000_000_000, 0),
    "stage3_param_persistence_threshold": ((3,), 100_000, 0), "zero_hpz_partition_size": ((3,), 1, 1),
}  # fmt: skip
SWITCHES: dict[str, tuple[tuple[int, ...], bool]] = {
    "contiguous_gradients": ((1, 2, 3), True),
    "stage3_gather_16bit_weights_on_model_save": ((3,), False),
    "zero_quantized_weights": ((3,), False),
    "zero_quantized_nontrainable_weights": ((3,), False),
    "zero_quantized_gradients": ((3,), False),
}
SOURCE = "DeepSpeed's own"
FILLED = "transformers, integrations/deepspeed.py: trainer_config_finalize"


def _partition(facts: Facts) -> int | None:
    """Ranks of a group that has a copy of the weights; None where it is not given, or is none: _size says why."""
    said = facts.said("zero_hpz_partition_size")
    try:
        count = parse_count(said, "zero_hpz_partition_size") if isinstance(said, str) else said
    except InvalidInput:
        return None
    return count if count and count > 0 else None


def _sharing(sizes: Sizes) -> Number:
    """Ranks that share the weights."""
    return sizes["data_parallel_size"] * sizes["context_parallel_size"]


PARTITION = Rule(
    lambda facts: "zero_hpz_partition_size divides the ranks that share the weights",
    lambda facts, sizes: _sharing(sizes) % _partition(facts) == 0,
    lambda facts, sizes: InvalidPlan(
        "{@zero_hpz_partition_size} must divide the {sharing} ranks that share the weights. Got "
        "{partition}. Nearest: {near_divisors}.",
        sharing=_sharing(sizes),
        partition=_partition(facts),
        near_divisors=near_divisors(_sharing(sizes), _partition(facts) or 1),
    ),
    lambda facts, sizes: facts.said("zero_stage") == 3 and _partition(facts) is not None,
)


def zero_options(
    model: Model, stage: int, sizes: Mapping[str, Any], offload: Mapping[str, Any], o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The fields of a plan that DeepSpeed's zero_optimization decides."""
    made: dict[str, Any] = {}
    for name, (stages, default, least) in SIZES.items():
        if _counts(name, stages, stage, o):
            made[name] = _size(name, default, least, model, o, q)
    for name, (stages, on) in SWITCHES.items():
        if _counts(name, stages, stage, o):
            made[name] = q.take(name, getattr(o, name), on, "runtime", SOURCE)
    if _counts("overlap_comm", (1, 2, 3), stage, o):
        made["overlap_comm"] = q.take(
            "overlap_comm", o.overlap_comm, stage == 3, "runtime", "DeepSpeed's own: in stage 3 alone"
        )
    said = {"zero_stage": stage, "zero_hpz_partition_size": made.get("zero_hpz_partition_size")}
    check(Facts(model, said), sizes, PARTITION)
    _check(made, stage, offload, o, q)
    return made


def _counts(name: str, stages: tuple[int, ...], stage: int, o: TrainingOptions) -> bool:
    if stage in stages:
        return True
    if getattr(o, name) is not None:
        known = listed(map(str, stages))
        raise NotApplicable(
            (
                Message(
                    "{name} counts in ZeRO stage {known}: leave it out, or take another {@zero_stage}. Got "
                    "it with stage {stage}.",
                    name=option_name(name),
                    known=known,
                    stage=stage,
                )
            ),
            name,
            ("zero_stage",),
        )
    return False


def _size(name: str, default: int, least: int, model: Model, o: TrainingOptions, q: Question) -> int:
    said = getattr(o, name)
    if said == "auto":
        filled = filled_in(name, model.hidden_size)
        if filled is None:
            raise InvalidPlan(
                "{name} has no auto in the Trainer of transformers: give it a number of elements.",
                name=option_name(name),
            )
        return int(q.put(name, filled, "runtime", FILLED))
    try:
        given = parse_count(said, name) if isinstance(said, str) else said
    except OutOfRange:
        raise InvalidPlan(
            "{name} must be from {least} to {largest:,}. Got {said}.",
            name=option_name(name),
            least=least,
            largest=LARGEST,
            said=said,
        ) from None
    if given is not None and not least <= given <= LARGEST:
        raise InvalidPlan(
            "{name} must be from {least} to {largest:,}. Got {given:,}.",
            name=option_name(name),
            least=least,
            largest=LARGEST,
            given=given,
        )
    return int(q.take(name, given, default, "runtime", SOURCE))


def filled_in(name: str, hidden_size: int) -> int | None:
    """What the Trainer writes in the place of "auto"; None: nothing."""
    square = hidden_size * hidden_size
    return {
        "reduce_bucket_size": square,
        "stage3_prefetch_bucket_size": int(0.9 * square),
        "stage3_param_persistence_threshold": 10 * hidden_size,
    }.get(name)


def _check(
    made: dict[str, Any],
    stage: int,
    offload: Mapping[str, Any],
    o: TrainingOptions,
    q: Question,
) -> None:
    if made.get("contiguous_gradients") is False and offload["offload_optimizer"] != "none" and stage < 3:
        raise InvalidPlan(
            Message(
                "{@contiguous_gradients} must be on with {@offload_optimizer} in ZeRO stages 1 and 2: "
                "DeepSpeed turns it on itself."
            )
        )
    if made.get("zero_quantized_nontrainable_weights") and o.method in (None, "full"):
        raise NotApplicable(
            Message(
                "{@zero_quantized_nontrainable_weights} needs weights that do not train: method must be "
                "lora, dora or freeze."
            ),
            "zero_quantized_nontrainable_weights",
            ("method",),
        )
    if o.allgather_bucket_size is not None:
        q.warn(
            "allgather_bucket_size changes no memory: torch gathers into the weights themselves "
            "(all_gather_into_tensor)."
        )
