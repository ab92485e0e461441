"""A metric of speed as seconds of a step, and back: each unit and FLOP convention has one way to be reached from them."""

import re

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.step_time.conventions import CONVENTIONS, flops_per_token
from tonnage.kernel.errors import MissingDatum, shown
from tonnage.spec import Cluster, TrainingPlan
from tonnage.validation._rows import Measured

HOUR, DAY, TERA, PETA = 3600.0, 86400.0, 1e12, 1e15
SECONDS = {"s": 1.0, "ms": 1e-3, "min": 60.0, "minutes": 60.0, "seconds": 1.0}
SCALES = {"thousand": 1e3, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
# Which words of a metric say how its FLOP are counted; else it is as the source counts.
SAID = (
    (r"96bslh", "narayanan hardware"), (r"72bslh", "narayanan"), (r"3\*\(2n\*?t", "mosaicml"), (r"6n\s*\+\s*12lhs", "torchtitan"),
    (r"6\*params incl", "palm"), (r"palm", "palm"),
)  # fmt: skip


class Step(Struct, frozen=True, kw_only=True):
    """What a figure needs of a step: its model, plan and machine, tokens of the whole run, and how its source counts FLOP."""

    model: Model
    plan: TrainingPlan
    cluster: Cluster
    tokens: float | None
    convention: str
    iterations: float = 1

    @property
    def tokens_a_step(self) -> float:
        return float(self.plan.tokens_per_step)


class Figure(Struct, frozen=True, kw_only=True):
    """A metric's value is `scale` x seconds of a step, or, where it is a `rate`, `scale` / seconds; a `constant` needs no time."""

    scale: float
    rate: bool
    constant: bool = False

    def value(self, seconds: float) -> float:
        """The metric of a step of so many seconds."""
        if self.constant:
            return self.scale
        return self.scale / seconds if self.rate else self.scale * seconds

    def seconds(self, value: float) -> float:
        """Of a step whose metric is `value`."""
        if self.constant:
            raise MissingDatum("the figure does not depend on the time of a step")
        return self.scale / value if self.rate else value / self.scale


def figure_of(measured: Measured, step: Step) -> Figure:
    """How a metric follows from seconds of a step; MissingDatum for what does not."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    both = f"{metric} {unit}"
    if re.search(r"time to train|to target|loss", metric):
        raise MissingDatum(f"{shown(measured.metric)} depends on when a quality is reached")
    if re.search(r"training flops", metric):
        return _whole_flops(measured, step)
    if re.match(r"[tp]flop", unit):  # "TFLOP/s/GPU (44% of peak)" is the former
        return _flops(measured, step)
    if re.search(r"\b(hfu|mfu|% of|utili[sz]ation)\b", both) or "% of" in both:
        return _utilisation(measured, step)
    if re.search(r"flop", both):
        return _flops(measured, step)
    if re.search(r"tokens/s|tokens per second|tgs", both):
        return Figure(scale=step.tokens_a_step / (1 if _is_total(measured, step) else step.cluster.size), rate=True)
    if re.search(r"(samples|sequences)/s|samples per second", both):
        return Figure(scale=float(step.plan.global_batch_size) / (step.cluster.size if "gpu" in both else 1), rate=True)
    if re.search(r"hours|days", both) and not re.search(r"^days? per", metric):
        return _whole_run(measured, step)
    if re.search(r"iterations", metric) and unit in SECONDS:
        count = re.search(r"(\d+)\s*(k?)\s*iterations", metric)
        number = float(count[1]) * SCALES.get(count[2], 1) if count else 1
        return Figure(scale=number / step.iterations / SECONDS[unit], rate=False)
    if re.search(r"\b(iteration|step) time\b|time per (iteration|step)", metric) and unit in SECONDS:
        return Figure(scale=1 / SECONDS[unit], rate=False)
    raise MissingDatum(f"{shown(measured.metric)} in {shown(measured.unit)} is no figure of speed that is predicted")


def _is_total(measured: Measured, step: Step) -> bool:
    """Of all accelerators together. torchtune's README gives the rate "as published", which on eight A100 is five times the peak of
    one: it is the total."""
    both = f"{measured.metric} {measured.unit}".lower()
    return not re.search(r"gpu|chip|accelerator|device|tgs", both)


def _convention(measured: Measured, step: Step) -> str:
    both = f"{measured.metric} {measured.unit}".lower()
    found = next((name for pattern, name in SAID if re.search(pattern, both)), step.convention)
    if not found:
        raise MissingDatum(f"{shown(measured.metric)}: how its source counts FLOP is not known")
    return found


def _counted(measured: Measured, step: Step) -> float:
    """FLOP of a step of one accelerator."""
    name = _convention(measured, step)
    length = int(step.plan.sequence_length)
    one = flops_per_token(step.model, length, name)
    if step.plan.method in ("lora", "dora") and not CONVENTIONS[name].recomputes:
        one *= 2 / 3  # gradients of a frozen weight are not made
    return one * step.tokens_a_step / step.cluster.size


def _flops(measured: Measured, step: Step) -> Figure:
    both = f"{measured.metric} {measured.unit}".lower()
    if "without cp" in both:
        raise MissingDatum(f"{shown(measured.metric)} is of another run")
    scale = PETA if "pflop" in both or "peta" in both else TERA
    whole = step.cluster.size if "aggregate" in both else 1
    return Figure(scale=whole * _counted(measured, step) / scale, rate=True)


def _utilisation(measured: Measured, step: Step) -> Figure:
    """Of the peak that the metric names, else of the 16-bit peak."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    chip = step.cluster.accelerator
    named = re.search(r"(\d+(?:\.\d+)?)\s*(?:peak|tflops)|% of (\d+(?:\.\d+)?) peak", f"{metric} {unit}")
    wide = next((name for name in ("bf16", "fp16") if name in chip.dense_flops), "bf16")
    peak = float(named[1] or named[2]) * TERA if named else chip.peak(wide)
    flops = _counted(measured, step)
    if "hfu" in metric:
        flops *= _hardware(measured, step)
    return Figure(scale=flops / peak * (100 if "%" in f"{unit} {metric}" else 1), rate=True)


def _hardware(measured: Measured, step: Step) -> float:
    """FLOP with recomputation over those without: a second forward pass of everything, or none."""
    if step.plan.recompute == "full":
        return 4 / 3
    if step.plan.recompute == "none":
        return 1.0
    raise MissingDatum(f"{shown(measured.metric)}: what of selective recomputation its source counts is not said")


def _whole_flops(measured: Measured, step: Step) -> Figure:
    if step.tokens is None:
        raise MissingDatum(f"{shown(measured.metric)}: the row does not say how many tokens")
    name = step.convention or "kaplan"
    length = int(step.plan.sequence_length)
    return Figure(scale=flops_per_token(step.model, length, name) * step.tokens, rate=False, constant=True)


def _whole_run(measured: Measured, step: Step) -> Figure:
    """Hours of all accelerators together, or days: as many steps as the run's tokens take, and nothing between them."""
    both = f"{measured.metric} {measured.unit}".lower()
    found = re.search(r"for (\d+(?:\.\d+)?)\s*([mbt])\w* tokens", both)
    tokens = float(found[1]) * SCALES[found[2]] if found else step.tokens
    if not tokens:
        raise MissingDatum(f"{shown(measured.metric)}: the row does not say how many tokens")
    steps = tokens / step.tokens_a_step
    if "days" in both and "hours" not in both:
        return Figure(scale=steps / DAY, rate=False)
    return Figure(scale=steps * step.cluster.size / HOUR, rate=False)
