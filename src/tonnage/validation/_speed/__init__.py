"""Rows of kind `train_speed`: a config as its source writes it -> the time of a step, beside the row's figure.

The dialects of memory's rows read what the two kinds have in common; a file here says what its sources' recipes imply beyond that.
Nothing here is about a single row.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.hardware.rates import Band, rates
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.ops import MoE
from tonnage.spec import Cluster, TrainingPlan
from tonnage.validation._predictions import Prediction
from tonnage.validation._rows import Measured, Row
from tonnage.validation._speed import _figures, _machines, _models
from tonnage.validation._speed._predict import predict_step_seconds
from tonnage.validation._speed._run import Run, Source
from tonnage.validation._speed._sources import source_of
from tonnage.validation._training import reader_of
from tonnage.validation._training._config import Config
from tonnage.validation._training._machines import COUNTS
from tonnage.validation._training._options import training_options
from tonnage.validation._training._reader import common

ONE = 1  # accelerator, of figures that are about one


class Asked(Struct, frozen=True, eq=False):
    """A row as a question: everything that the estimator of time is asked. `is_guessed`: of what nobody says."""

    source: Source
    model: Model
    cluster: Cluster
    plan: TrainingPlan
    step: _figures.Step
    notes: tuple[str, ...]
    is_guessed: bool

    @property
    def is_mixture(self) -> bool:
        """Whether the model has experts."""
        return any(isinstance(op, MoE) for block in self.model.decoder.blocks for op in block.ops)

    @property
    def kind(self) -> str:
        """Of which error band its time is."""
        return "moe" if self.is_mixture else "dense"


def asked(row: Row, references: Mapping[str, Row]) -> Asked:
    """What a row asks; a TonnageError that names what is in the way."""
    run, source = _run(row)
    model = _models.model_of(run, source, references)
    run.layers, run.parameters = model.num_layers, model.num_parameters()
    cluster = _machines.cluster_of(run, source, _alone(row))
    source.rules(run)
    _fill(run)
    found = {name: value for name, value in run.options.items() if value is not None}
    options, notes = training_options(found)
    plan = replace(training_plan(model, cluster, options, Question()), **run.plan)
    tokens = run.config.find("tokens")[1]
    step = _figures.Step(
        model=model, plan=plan, cluster=cluster, tokens=float(tokens) if isinstance(tokens, int | float) and tokens > 0 else None,
        convention=source.convention, iterations=_iterations(run, plan),
    )  # fmt: skip
    return Asked(source, model, cluster, plan, step, (*run.notes, *notes), run.is_guessed)


def _run(row: Row) -> tuple[Run, Source]:
    """The row in the words of its framework's dialect."""
    source, config = source_of(row), Config(_counted(row.config))
    try:
        options = reader_of(row).read(config)
    except MissingDatum:
        if not source.runtime:
            raise
        options = common(config, "mixed") | {"runtime": source.runtime}
    if source.runtime:
        options["runtime"] = source.runtime
    return Run(row, {name: value for name, value in options.items() if value is not None}), source


def _counted(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A range of accelerators ("128-512") as its smallest, for dialects that read a number."""
    ranges = {name: re.match(r"(\d+)\s*-\s*\d+", str(fields[name])) for name in COUNTS if name in fields}
    return {**fields, **{name: int(found[1]) for name, found in ranges.items() if found}}


def _alone(row: Row) -> int:
    """One accelerator where a figure is about one and no number is said; 0: the number matters."""
    return ONE if "gpu" in row.measured.unit.lower() and "hours" not in row.measured.unit.lower() else 0


def _fill(run: Run) -> None:
    """What options must agree on, and what a layout leaves."""
    o = run.options
    if o.get("replicate_size") == 1:
        del o["replicate_size"]
    if o.get("data_parallel_size") not in (None, run.replicas):
        run.guess(
            f"data_parallel_size {o['data_parallel_size']} does not use the row's accelerators: {run.replicas} is taken"
        )
        o["data_parallel_size"] = run.replicas
    if o.get("micro_batch_size") is None:
        run.guess("micro_batch_size is not said: 1 is taken")
    micro, total = o.get("micro_batch_size") or 1, o.get("global_batch_size")
    if total and o.get("num_microbatches") and total != micro * o["num_microbatches"] * run.replicas:
        del o["num_microbatches"]


def _iterations(run: Run, plan: TrainingPlan) -> float:
    """Iterations of a step, for figures a thousand iterations: LitGPT counts micro-batches."""
    return float(plan.num_microbatches) if plan.runtime == "litgpt" else 1.0


def predict(row: Row, references: Mapping[str, Row]) -> list[Prediction]:
    """A prediction for the row's metric, and one for each of those under `also`."""
    every = (row.measured, *row.also)
    try:
        question = asked(row, references)
        seconds = predict_step_seconds(question.model, question.plan, question.cluster)
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [_predicted(measured, question, seconds) for measured in every]


def _predicted(measured: Measured, question: Asked, seconds: float) -> Prediction:
    try:
        figure = _figures.figure_of(measured, question.step)
    except TonnageError as error:
        return Prediction(skipped=str(error))
    return Prediction(value=figure.value(seconds), band=_band(figure, question, seconds), notes=question.notes)


def _band(figure: _figures.Figure, question: Asked, seconds: float) -> tuple[float, float] | None:
    """Where 90 of 100 measurements of its kind lie."""
    band = bands().get(question.kind)
    if band is None or figure.constant:
        return None
    low, high = sorted((figure.value(seconds * band.low), figure.value(seconds * band.high)))
    return low, high


@cache
def bands() -> Mapping[str, Band]:
    """Of the rates that ship."""
    return rates().bands


def measured_seconds(row: Row, question: Asked) -> float:
    """Seconds of a step that the row's own metric stands for; MissingDatum where it stands for none."""
    if isinstance(row.measured.value, str) or not row.measured.value:
        raise MissingDatum("the row has no number")
    return _figures.figure_of(row.measured, question.step).seconds(float(row.measured.value))


def options_of(row: Row, references: Mapping[str, Row]) -> dict[str, Any]:
    """What a row says and its source implies, by the names of TrainingOptions; for tests and for those who study a dialect."""
    run, source = _run(row)
    run.layers = _models.model_of(run, source, references).num_layers
    _machines.cluster_of(run, source, _alone(row))
    source.rules(run)
    return {name: value for name, value in run.options.items() if value is not None} | run.plan
