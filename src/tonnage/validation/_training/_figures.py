"""Which figure of an estimate a row's metric is, and in what unit it is written."""

import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from tonnage.estimate.memory import RankMemory, TrainingMemory
from tonnage.kernel.errors import MissingDatum, shown
from tonnage.kernel.term import Term
from tonnage.kernel.units import GB, GIB, KIB, MB, MIB
from tonnage.validation._rows import Measured

# allocated: tensors, as max_memory_allocated counts them; reserved: with what the allocator keeps beside them; process: all that
# nvidia-smi shows; beyond-states: the peak less the states; forward: what it leaves for backward, the logits too; bound and needs-more: what a card must, or does not, hold.
Kind = Literal[
    "allocated",
    "reserved",
    "process",
    "activations",
    "states",
    "beyond-states",
    "forward",
    "ratio",
    "bound",
    "needs-more",
]
WHOLE = ("allocated", "reserved", "process")  # figures of a whole rank: an error band is about these
OVERHEAD = "runtime overhead"
UNITS = {"gib": GIB, "mib": MIB, "kib": KIB, "bytes": 1, "byte": 1, "b": 1, "%": 1}
BINARY = {"gb": GIB, "mb": MIB}  # as tools write them that divide by 1024
DECIMAL = {"gb": GB, "mb": MB}


class Figure(Struct, frozen=True, kw_only=True):
    """One metric as a figure of the estimate. `rank` counts accelerators, `stage` pipeline stages (-1 the last); neither: the fullest."""

    kind: Kind
    unit: float
    rank: int | None = None
    stage: int | None = None


def figure_of(measured: Measured, default: Kind, gigabyte: int, activations: Kind = "activations") -> Figure:
    """The figure that a metric names. `default` is what this source's "peak memory" is, `activations` what its activations are, and
    `gigabyte` what its GB is."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    rank = re.search(r"rank (\d+)", f"{metric} {unit}") or (
        re.search(r"\[(\d+)\]", metric) if "by rank" in metric else None
    )
    stage = re.search(r"\[(\d+)\]", metric) if "stage" in metric else None
    at = 0 if "first stage" in metric else -1 if "last stage" in metric else int(stage[1]) if stage else None
    kind = _kind(metric, unit, default)
    kind = activations if kind == "activations" else kind
    return Figure(kind=kind, unit=_unit(unit, gigabyte), rank=int(rank[1]) if rank else None, stage=at)


def value_of(figure: Figure, made: TrainingMemory, ranks_a_stage: float) -> float:
    """The figure in bytes."""
    if figure.rank is not None or figure.stage is not None:
        stage = figure.stage if figure.stage is not None else int((figure.rank or 0) // ranks_a_stage)
        return READ[figure.kind](made.ranks[min(stage, len(made.ranks) - 1)])
    return max(READ[figure.kind](rank) for rank in made.ranks)


def _kind(metric: str, unit: str, default: Kind) -> Kind:
    if unit == "%":
        if "activation" in metric and "relative" in metric:
            return "ratio"
        raise MissingDatum(f"{shown(metric)} is not predicted")
    if re.search(r"needs more than", metric):
        return "needs-more"
    if re.search(r"fits in|minimum (v?ram|gpu memory)", metric):
        return "bound"
    if (
        re.search(r"\b(tokens?|seconds?|time|samples?|flops|throughput|parameters$|trainable|step)\b", metric)
        or not unit
    ):
        raise MissingDatum(f"{shown(metric)} is no figure of memory, or has no unit")
    if re.search(r"model states|parameters ?(\+|and) ?optimizer|states per", metric):
        return "states"
    if "activation" in metric:
        return "activations"
    if "not stated" in metric:
        return default
    if "reserved" in metric:
        return "reserved"
    if "allocated" in metric:
        return "allocated"
    if re.search(r"nvidia-smi|nvml|process", metric):
        return "process"
    if re.search(r"memory|vram|peak", metric):
        return default
    raise MissingDatum(f"{shown(metric)} is not predicted")


def _unit(unit: str, gigabyte: int) -> float:
    word = (re.findall(r"[a-z%]+", unit) or [""])[0]
    if word in UNITS:
        return UNITS[word]
    sizes = DECIMAL if "1e9" in unit or gigabyte == GB else BINARY
    if word in sizes:
        return sizes[word]
    raise MissingDatum(f"unit {shown(unit)} is not one of memory")


def _overhead(phase: Term, *words: str) -> float:
    """Bytes of what a process holds beyond its tensors, of those parts whose names have one of the words."""
    leaves = [term for child in phase.children if child.name == OVERHEAD for term in child.children]
    return sum(float(term.value) for term in leaves if any(word in term.name for word in words))


def _tensors(phase: Term) -> float:
    """What max_memory_allocated counts: the tensors, and workspaces, which PyTorch's allocator hands out too."""
    outside = sum(float(child.value) for child in phase.children if child.name == OVERHEAD)
    return float(phase.value) - outside + _overhead(phase, "workspace")


def _over_phases(read: Callable[[Term], float]) -> Callable[[RankMemory], float]:
    return lambda rank: max(read(phase) for phase in rank.phases)


def _states(rank: RankMemory) -> float:
    """Weights, gradients and optimizer, when all of them are there."""
    return max(
        sum(float(child.value) for child in phase.children if child.name in ("weights", "gradients", "optimizer"))
        for phase in rank.phases
    )


def _activations(rank: RankMemory) -> float:
    """What the layers keep for backward, for every micro-batch in flight: neither the logits nor what recomputing brings back."""
    kept = [float(term.value) for phase in rank.phases for _, term in phase.walk() if term.name == "layers"]
    return max(kept, default=0.0)


READ: dict[Kind, Callable[[RankMemory], float]] = {
    "allocated": _over_phases(_tensors),
    "reserved": _over_phases(lambda phase: _tensors(phase) + _overhead(phase, "reserve")),
    "process": _over_phases(lambda phase: float(phase.value)),
    "bound": _over_phases(lambda phase: float(phase.value)),
    "needs-more": _over_phases(lambda phase: float(phase.value)),
    "activations": _activations,
    "ratio": _activations,
    "states": _states,
    "forward": lambda rank: max(
        (float(child.value) for child in rank.phases[0].children if child.name == "activations"), default=0.0
    ),
    "beyond-states": lambda rank: _over_phases(_tensors)(rank) - _states(rank),
}
