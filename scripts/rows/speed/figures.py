"""Which quantity a metric of speed is, and what it needs to be read: each unit and FLOP convention has one way to be
reached.
"""

import re
from typing import Any

from msgspec import Struct

from rows.source import Measured
from tonnage.kernel.errors import MissingDatum, shown

SECONDS = {"s": "s", "ms": "ms", "min": "min", "minutes": "min", "seconds": "s"}
SCALES = {"thousand": 1e3, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
# Which words of a metric say how its FLOP are counted; else it is as the source counts.
SAID = (
    (r"96bslh", "narayanan hardware"),
    (r"72bslh", "narayanan"),
    (r"3\*\(2n\*?t", "mosaicml"),
    (r"6n\s*\+\s*12lhs", "torchtitan"),
    (r"6\*params incl", "palm"),
    (r"palm", "palm"),
)


class Told(Struct, frozen=True, kw_only=True):
    """What the row and its source say of all figures: tokens of the whole run, how FLOP are counted, what an
    iteration is.
    """

    tokens: float | None
    convention: str
    in_micro_batches: bool = False


def figure_of(measured: Measured, told: Told) -> dict[str, Any]:
    """The quantity that a metric is; MissingDatum for what is none."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    both = f"{metric} {unit}"
    if re.search(r"time to train|to target|loss", metric):
        raise MissingDatum(f"{shown(measured.metric)} depends on when a quality is reached")
    if re.search(r"training flops", metric):
        if told.tokens is None:
            raise MissingDatum(f"{shown(measured.metric)}: the row does not say how many tokens")
        return {"quantity": "run_flops", "unit": "FLOP", "counting": told.convention or "kaplan", "tokens": told.tokens}
    if re.match(r"[tp]flop", unit):  # "TFLOP/s/GPU (44% of peak)" is the former
        return _flops(measured, told)
    if re.search(r"\b(hfu|mfu|% of|utili[sz]ation)\b", both) or "% of" in both:
        return _utilization(measured, told)
    if re.search(r"flop", both):
        return _flops(measured, told)
    if re.search(r"tokens/s|tokens per second|tgs", both):
        return {"quantity": "tokens_per_second", "unit": "tokens/s" if _is_total(measured) else "tokens/s/GPU"}
    if re.search(r"(samples|sequences)/s|samples per second", both):
        return {"quantity": "samples_per_second", "unit": "samples/s/GPU" if "gpu" in both else "samples/s"}
    if re.search(r"hours|days", both) and not re.search(r"^days? per", metric):
        return _whole_run(measured, told)
    if re.search(r"iterations", metric) and unit in SECONDS:
        count = re.search(r"(\d+)\s*(k?)\s*iterations", metric)
        number = float(count[1]) * SCALES.get(count[2], 1) if count else 1.0
        return {
            "quantity": "micro_batch_time" if told.in_micro_batches else "step_time",
            "unit": SECONDS[unit],
            "times": number,
        }
    if re.search(r"\b(iteration|step) time\b|time per (iteration|step)", metric) and unit in SECONDS:
        return {"quantity": "step_time", "unit": SECONDS[unit]}
    raise MissingDatum(f"{shown(measured.metric)} in {shown(measured.unit)} is no figure of speed that is predicted")


def _is_total(measured: Measured) -> bool:
    """Of all accelerators together. torchtune's README gives the rate "as published", which on eight A100 is five times
    the peak of
    one: it is the total."""
    both = f"{measured.metric} {measured.unit}".lower()
    return not re.search(r"gpu|chip|accelerator|device|tgs", both)


def _counting(measured: Measured, told: Told) -> str:
    both = f"{measured.metric} {measured.unit}".lower()
    found = next((name for pattern, name in SAID if re.search(pattern, both)), told.convention)
    if not found:
        raise MissingDatum(f"{shown(measured.metric)}: how its source counts FLOP is not known")
    return found


def _flops(measured: Measured, told: Told) -> dict[str, Any]:
    both = f"{measured.metric} {measured.unit}".lower()
    if "without cp" in both:
        raise MissingDatum(f"{shown(measured.metric)} is of another run")
    scale = "PFLOP/s" if "pflop" in both or "peta" in both else "TFLOP/s"
    unit = scale if "aggregate" in both else f"{scale}/GPU"
    return {"quantity": "flops_per_second", "unit": unit, "counting": _counting(measured, told)}


def _utilization(measured: Measured, told: Told) -> dict[str, Any]:
    """Of the peak that the metric names, else of the 16-bit peak."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    named = re.search(r"(\d+(?:\.\d+)?)\s*(?:peak|tflops)|% of (\d+(?:\.\d+)?) peak", f"{metric} {unit}")
    peak = {"peak_tflops": float(named[1] or named[2])} if named else {}
    share = "%" if "%" in f"{unit} {metric}" else "fraction"
    return {
        "quantity": "hfu" if "hfu" in metric else "mfu",
        "unit": share,
        "counting": _counting(measured, told),
        **peak,
    }


def _whole_run(measured: Measured, told: Told) -> dict[str, Any]:
    """Hours of all accelerators together, or days: as many steps as the run's tokens take, and nothing between them."""
    both = f"{measured.metric} {measured.unit}".lower()
    found = re.search(r"for (\d+(?:\.\d+)?)\s*([mbt])\w* tokens", both)
    tokens = float(found[1]) * SCALES[found[2]] if found else told.tokens
    if not tokens:
        raise MissingDatum(f"{shown(measured.metric)}: the row does not say how many tokens")
    if "days" in both and "hours" not in both:
        return {"quantity": "run_days", "unit": "days", "tokens": tokens}
    return {"quantity": "run_hours", "unit": "GPU-hours", "tokens": tokens}
