"""Write src/tonnage/estimate/post_training/measured.py: what phases of published steps of reinforcement learning take
beyond kernels and links, and how far whole steps lie from the estimate.

Each constant is the median over the rows that measure its phase alone, and follows from those before it:

- a pass of an engine in the trainer's process: measured less estimated rollout, over its passes, of engines of one
  rank; of several ranks, what is left of it over the layers, at each of which they wait for each other;
- an update and a pass without gradients: measured over estimated, by runtime where two rows or more have it, without
  an optimizer that runs on the host; of other accelerators than an H100, as formulas/post_training.py: loop_factor;
- a tensor on its way to the engine: of rows whose trainer keeps its states, over their tensors;
- the host: bytes of the states that leave and return, over what the refit takes beyond its tensors.

The band of a step comes from the rows of whole steps, each estimated with the constants of the other publications, as
scripts/fit_bands.py makes bands. Rows that are left out for good are read by nothing but the last table.

PYTHONPATH=src python scripts/fit_rl.py [--print]     --print: tables alone, nothing is written
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from _rows_for_fits import RECENT
from fit_bands import Factor, band
from tonnage.estimate.bands import Band
from tonnage.estimate.post_training.overheads import REFERENCE_PEAK, Overheads
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.validation import Row, read
from tonnage.validation.training import POST_TRAINING, TrainingRow

OUT = Path(__file__).parents[1] / "src" / "tonnage" / "estimate" / "post_training" / "measured.py"
FEWEST = 2  # rows that give a runtime a factor of its own


class Measured:
    """A row, its figures in seconds by quantity, and its step with any overheads."""

    def __init__(self, row: Row):
        self.row, self.question = row, TrainingRow(row)
        self.seconds = {
            each.quantity: float(each.value)
            for each in (row.measured, *row.also)
            if each.unit == "s" and each.quantity in POST_TRAINING and not isinstance(each.value, str)
        }
        self._steps: dict[str, PostTrainingStep] = {}

    @property
    def publication(self) -> str:
        return self.row.labels["publication"]

    def step(self, overheads: Overheads) -> PostTrainingStep:
        key = repr(overheads)
        if key not in self._steps:
            q = self.question
            self._steps[key] = PostTrainingStep(q.model, q.plan, q.cluster, q.memory, overheads=overheads)
        return self._steps[key]

    def estimate(self, quantity: str, overheads: Overheads) -> float:
        return float(POST_TRAINING[quantity](self.step(overheads)))


def fitted(rows: Sequence[Measured]) -> Overheads:
    """The constants of these rows; those that no row measures stay as they are."""
    found = Overheads()
    alone, several = [], []
    for row in _having(rows, "rollout_time"):
        step = row.step(found)
        if step.rollouts.engine.queues:
            beyond = row.seconds["rollout_time"] - row.estimate("rollout_time", found)
            of_pass = beyond / step.rollouts.alone.passes
            if step.rollouts.served[0].tensor_parallel_size > 1:
                several.append((of_pass, row.question.model.num_layers))
            else:
                alone.append(of_pass)
    one = max(median(alone), 0.0) if alone else 0.0
    more = max(median((each - one) / layers for each, layers in several), 0.0) if several else 0.0
    found = replace(found, pass_seconds=_round(one), ranks_seconds=_round(more))
    found = replace(found, update_factors=_factors(rows, found), forward_factor=_forward(rows, found))
    kept = [row for row in _having(rows, "weight_sync_time") if not row.step(found).moved_to_host]
    each = [max(_beyond(row, found), 0.0) / tensors(row) for row in kept]
    found = replace(found, tensor_seconds=_round(median(each)) if each else 0.0)
    rates = []
    for row in _having(rows, "weight_sync_time"):
        step = row.step(found)
        if step.moved_to_host:
            left = row.seconds["weight_sync_time"] - float(step.sync.value)
            rates.append(2 * step.leaving / max(left, 1e-3))
    return replace(found, host_bytes_per_second=_round(median(rates)) if rates else 0.0)


def tensors(row: Measured) -> int:
    return sum(weight.copies * count for weight, count in row.question.model.weighted())


def _beyond(row: Measured, found: Overheads) -> float:
    return row.seconds["weight_sync_time"] - row.estimate("weight_sync_time", found)


def _factors(rows: Sequence[Measured], found: Overheads) -> dict[str, float]:
    ratios: dict[str, list[float]] = {}
    for row in _having(rows, "update_time"):
        host = row.step(found).host_seconds
        ratio = (row.seconds["update_time"] - host) / (row.estimate("update_time", found) - host)
        ratio = _at_reference(row, ratio)
        for name in (row.question.plan.runtime, ""):
            ratios.setdefault(name, []).append(ratio)
    return {name: round(median(each), 3) for name, each in sorted(ratios.items()) if not name or len(each) >= FEWEST}


def _at_reference(row: Measured, ratio: float) -> float:
    """The factor of a loop on the accelerator of the constants, of the ratio on the row's own."""
    kernels = row.step(Overheads()).walk.kernels
    return 1 + (ratio - 1) * REFERENCE_PEAK / kernels.chip.peak(kernels.wide)


def _forward(rows: Sequence[Measured], found: Overheads) -> float:
    ratios = [
        _at_reference(row, row.seconds["forward_time"] / row.estimate("forward_time", found))
        for row in _having(rows, "forward_time")
    ]
    return round(median(ratios), 3) if ratios else 1.0


def _having(rows: Iterable[Measured], quantity: str) -> list[Measured]:
    return [row for row in rows if quantity in row.seconds]


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def held_out(rows: Sequence[Measured]) -> list[Factor]:
    """Measured over estimated steps, each with the constants of the other publications."""
    factors = []
    for publication in sorted({row.publication for row in rows}):
        others = fitted([row for row in rows if row.publication != publication])
        for row in _having([row for row in rows if row.publication == publication], "rl_step_time"):
            ratio = row.seconds["rl_step_time"] / row.estimate("rl_step_time", others)
            vendor = row.question.cluster.accelerator.vendor
            factors.append(Factor(math.log(ratio), publication, "train", ("rl", "step"), vendor, is_full=True))
    return factors


def table(rows: Sequence[Measured], found: Overheads) -> list[str]:
    """Median error of each quantity."""
    lines = []
    for quantity in POST_TRAINING:
        having = _having(rows, quantity)
        errors = [row.estimate(quantity, found) / row.seconds[quantity] - 1 for row in having]
        if errors:
            lines.append(
                f"  {quantity:26} {len(errors):3} rows  median |error| {median(map(abs, errors)):6.1%}  "
                f"bias {median(errors):+6.1%}"
            )
    return lines


def written(found: Overheads, of_steps: Band | None, rows: Sequence[Measured]) -> str:
    sources: Mapping[str, str] = {
        name: ", ".join(sorted({row.publication for row in _having(rows, quantity)}))
        for name, quantity in {
            "pass_seconds": "rollout_time",
            "update_factors": "update_time",
            "forward_factor": "forward_time",
            "tensor_seconds": "weight_sync_time",
        }.items()
    }
    found = replace(found, sources=dict(sources))
    fields = ",\n    ".join(f"{name}={_laid_out(getattr(found, name))}" for name in found.__struct_fields__)
    text = (
        '"""Written by scripts/fit_rl.py from validation/recent: do not edit."""\n\n'
        "from tonnage.estimate.bands import Band\n"
        "from tonnage.estimate.post_training.overheads import Overheads\n\n"
        f"OVERHEADS = Overheads(\n    {fields},\n)\n"
    )
    if of_steps is None:
        return text + "BAND: Band | None = None\n"
    fields = ",\n    ".join(f"{name}={_laid_out(getattr(of_steps, name))}" for name in of_steps.__struct_fields__)
    return text + f"BAND: Band | None = Band(\n    {fields},\n)\n"


def _laid_out(value: object) -> str:
    """As the formatter lays it out: a line for each entry of a mapping."""
    if isinstance(value, dict) and any(isinstance(each, str) for each in value.values()):
        return (
            "{\n" + "".join(f"        {_laid_out(key)}: {_laid_out(each)},\n" for key, each in value.items()) + "    }"
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_laid_out(key)}: {each!r}" for key, each in value.items()) + "}"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def main() -> None:
    every = [row for row in read([str(RECENT)]) if row.kind == "rl_speed"]
    counted = [Measured(row) for row in every if row.completeness_class != "indicative"]
    shown = [row for row in counted if not row.row.left_out]
    found = fitted(shown)
    judged = held_out(shown)
    of_steps = band(("rl", "step"), judged)
    print(found)
    print("bands", of_steps)
    print("with the constants of other publications:", [(f.source, round(math.exp(f.log), 2)) for f in judged])
    for name, rows, constants in (
        ("kernels and links alone, shown", shown, Overheads()),
        ("shown", shown, found),
        ("left out, kernels and links alone", [row for row in counted if row.row.left_out], Overheads()),
        ("left out", [row for row in counted if row.row.left_out], found),
    ):
        print(name, *table(rows, constants), sep="\n")
    if "--print" not in sys.argv:
        OUT.write_text(written(found, of_steps, shown), encoding="utf-8")


if __name__ == "__main__":
    main()
