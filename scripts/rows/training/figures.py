"""Which figure of an estimate a row's metric is, and in what unit it is written."""

import re
from typing import Literal

from msgspec import Struct

from rows.source import Measured
from tonnage.kernel.errors import MissingDatum, shown
from tonnage.kernel.units import GB, GIB, KIB, MB, MIB

# allocated: tensors, as max_memory_allocated counts them; reserved: with what the allocator keeps beside them; process:
# all that
# nvidia-smi shows; beyond-states: the peak less the states; forward: what it leaves for backward, the logits too; bound
# and needs-more: what a card must, or does not, hold.
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
UNITS = {"gib": GIB, "mib": MIB, "kib": KIB, "bytes": 1, "byte": 1, "b": 1, "%": 1}
BINARY = {"gb": GIB, "mb": MIB}  # as tools write them that divide by 1024
DECIMAL = {"gb": GB, "mb": MB}


class Figure(Struct, frozen=True, kw_only=True):
    """One metric as a figure of the estimate. `rank` counts accelerators, `stage` pipeline stages (-1 the last);
    neither: the fullest.
    """

    kind: Kind
    unit: float
    rank: int | None = None
    stage: int | None = None


def figure_of(measured: Measured, default: Kind, gigabyte: int, activations: Kind = "activations") -> Figure:
    """The figure that a metric names. `default` is what this source's "peak memory" is, `activations` what its
    activations are, and `gigabyte` what its GB is.
    """
    metric, unit = measured.metric.lower(), measured.unit.lower()
    rank = re.search(r"rank (\d+)", f"{metric} {unit}") or (
        re.search(r"\[(\d+)\]", metric) if "by rank" in metric else None
    )
    stage = re.search(r"\[(\d+)\]", metric) if "stage" in metric else None
    at = 0 if "first stage" in metric else -1 if "last stage" in metric else int(stage[1]) if stage else None
    kind = _kind(metric, unit, default)
    kind = activations if kind == "activations" else kind
    return Figure(kind=kind, unit=_unit(unit, gigabyte), rank=int(rank[1]) if rank else None, stage=at)


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
