"""Error bands of memory: how far published measurements lie from estimates of runs of the same kind.

The figures are in `measured.py`, which `scripts/fit_bands.py` writes from the measurements in validation/; a band is a
pair of factors of the estimate. A band is of rows of the same runtime, method and objective (training), or of the same
engine and hardware family (serving). What is served by another engine or on another family has the band of all others,
which is as wide as families left out ask for. Training of other kinds has none: runtimes differ by more than a verdict
can use, so `band_of_others` is said beside it.
"""

from math import ceil

from tonnage.estimate.bands.forms import Band as Band
from tonnage.estimate.bands.forms import Table as Table
from tonnage.spec import Accelerator, Cluster, TrainingPlan


def method_of(plan: TrainingPlan) -> str:
    """The method that measurements are told apart by: LoRA on a 4-bit base is QLoRA."""
    return (
        "qlora"
        if plan.tuning.method == "lora" and plan.tuning.base_weights.startswith(("nf4", "fp4"))
        else plan.tuning.method
    )


def kind_of(plan: TrainingPlan) -> str:
    """The method, with the objective where that is another than sft, whose memory is that of pre-training: DPO holds
    a reference model too, PPO a critic, and GRPO generates.
    """
    return (
        method_of(plan)
        if plan.post_training.objective == "sft"
        else f"{method_of(plan)} {plan.post_training.objective}"
    )


def training_band(plan: TrainingPlan, cluster: Cluster) -> Band | None:
    """The band of a training run's memory: of its runtime, method and objective, or None."""
    from tonnage.estimate.bands import measured

    return measured.TRAIN_MEMORY.find(plan.runtime, kind_of(plan), cluster.accelerator.vendor)


def band_of_others(plan: TrainingPlan, cluster: Cluster) -> Band | None:
    """How far runs of other runtimes and methods lie, where those of the plan's have no band; None where they do."""
    from tonnage.estimate.bands import measured

    return None if training_band(plan, cluster) else measured.TRAIN_MEMORY.others


def family_of(accelerator: Accelerator) -> str:
    """The hardware family: the first word of the generation, such as Hopper or Ada."""
    return accelerator.generation.partition(" ")[0]


def serving_band(engine: str, accelerator: Accelerator) -> Band | None:
    """The band of what a served model takes: of its engine and the accelerator's family, or of all others."""
    from tonnage.estimate.bands import measured

    table = measured.SERVE_MEMORY
    return table.find(engine, family_of(accelerator), accelerator.vendor) or table.others


def highest(plan: TrainingPlan, cluster: Cluster, needed: float) -> int:
    """The bytes that must be usable for the run to fit for sure: the band's high end, or what is needed where there
    is none.
    """
    band = training_band(plan, cluster)
    return band.around(needed)[1] if band else ceil(needed)


def lowest(plan: TrainingPlan, cluster: Cluster, needed: float) -> int:
    """The bytes without which the run does not fit for sure: the band's low end, or what is needed where there is
    none.
    """
    band = training_band(plan, cluster)
    return band.around(needed)[0] if band else ceil(needed)


def most_needed(plan: TrainingPlan, cluster: Cluster, usable: int) -> int:
    """The most bytes that a run may need to fit for sure: its `highest` is at most `usable`."""
    band = training_band(plan, cluster)
    return band.below(usable) if band else usable


def serving_highest(engine: str, accelerator: Accelerator, needed: float) -> int:
    """The same for a model that is served."""
    band = serving_band(engine, accelerator)
    return band.around(needed)[1] if band else ceil(needed)


def serving_lowest(engine: str, accelerator: Accelerator, needed: float) -> int:
    """The bytes without which a model that is served does not fit for sure."""
    band = serving_band(engine, accelerator)
    return band.around(needed)[0] if band else ceil(needed)


def safe_bytes(engine: str, accelerator: Accelerator, usable: float) -> float:
    """The largest estimate with which a served model still fits at the band's high end."""
    band = serving_band(engine, accelerator)
    return usable / band.high if band else usable
