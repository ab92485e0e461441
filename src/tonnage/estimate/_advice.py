"""The next best moves: changes of the plan, each estimated again, never canned."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.estimate._question import Question
from tonnage.estimate.plans import TrainingOptions, training_plan
from tonnage.estimate.training import training_memory
from tonnage.spec import Cluster, TrainingPlan

MOST = 5
Estimate = Callable[[dict[str, Any]], float | None]


def training_advice(
    model: Model, cluster: Cluster, options: TrainingOptions, plan: TrainingPlan, needed: float, usable: float
) -> list[dict[str, Any]]:
    """If it does not fit: the changes that free most, and their combination if that fits. If it fits: what more would."""

    def estimate(change: dict[str, Any]) -> float | None:
        try:
            changed = training_plan(model, cluster, replace(options, **change), Question())
            return training_memory(model, changed, cluster).memory.value
        except TonnageError:
            return None

    if needed <= usable:
        return list(_larger(plan, estimate, needed, usable))
    found = [
        _move(change, value, needed, usable) for change in _smaller(model, cluster, plan) if (value := estimate(change))
    ]
    found = sorted((move for move in found if move["freed_bytes"] > 0), key=lambda move: -move["freed_bytes"])[:MOST]
    return found + list(_combined(found, estimate, needed, usable))


def _smaller(model: Model, cluster: Cluster, plan: TrainingPlan) -> Iterator[dict[str, Any]]:
    """Changes that can free memory."""
    if plan.attention == "eager":
        yield {"attention": "flash"}
    if plan.recompute != "full":
        yield {"recompute": "full"}
    if plan.micro_batch_size > 1:
        yield {"micro_batch_size": 1, "global_batch_size": plan.global_batch_size, "num_microbatches": None}
    if cluster.size > 1 and plan.runtime in ("ddp", "transformers"):
        yield {"runtime": "fsdp2", "zero_stage": None, "attention": None}
    if plan.runtime == "deepspeed" and plan.zero_stage < 3:
        yield {"zero_stage": 3}
    t = 2 * plan.tensor_parallel_size
    while t <= cluster.accelerators_per_node:
        yield {"tensor_parallel_size": t, "data_parallel_size": None, "expert_tensor_parallel_size": None}
        t *= 2
    e = 2 * plan.expert_parallel_size
    while e <= cluster.size and any(weight.split == "expert" for weight, _ in model.weighted()):
        yield {"expert_parallel_size": e, "expert_tensor_parallel_size": 1}
        e *= 2
    if plan.optimizer == "adamw":
        yield {"optimizer": "adamw-8bit"}
    if plan.precision == "bf16-mixed":
        yield {"precision": "bf16"}
    yield {"sequence_length": max(plan.sequence_length // 2, 1)}


def _larger(plan: TrainingPlan, estimate: Estimate, needed: float, usable: float) -> Iterator[dict[str, Any]]:
    """What the room that is left would carry."""
    best: dict[str, Any] | None = None
    for factor in (2, 4, 8, 16):
        change = {"micro_batch_size": plan.micro_batch_size * factor, "global_batch_size": None}
        value = estimate(change)
        if value is None or value > usable:
            break
        best = _move(change, value, needed, usable)
    if best:
        yield best


def _combined(
    found: list[dict[str, Any]], estimate: Estimate, needed: float, usable: float
) -> Iterator[dict[str, Any]]:
    """Moves together, strongest first, until they fit."""
    if any(move["fits"] for move in found):
        return
    change: dict[str, Any] = {}
    for move in found:
        if not any(key in change for key in move["change"]):
            change |= move["change"]
            value = estimate(change)
            if value is not None and value <= usable:
                yield _move(change, value, needed, usable)
                return


def _move(change: dict[str, Any], value: float, needed: float, usable: float) -> dict[str, Any]:
    said = {key: setting for key, setting in change.items() if setting is not None}
    flags = " ".join(f"--{key.replace('_', '-')} {setting}" for key, setting in said.items())
    return {
        "change": said,
        "text": flags,
        "needed_bytes": round(value),
        "freed_bytes": round(needed - value),
        "fits": value <= usable,
    }
