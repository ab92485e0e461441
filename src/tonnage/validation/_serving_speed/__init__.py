"""Rows of kind `infer_speed`: a run of an engine as its source writes it -> times of serving, beside the row's figures.

A file here says what its sources' rows mean and what their scripts imply. Nothing here is about a single row.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.serving_time.rates import ServingRates, serving_rates
from tonnage.estimate.serving_time.times import ServingTimes
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.spec import Cluster, Load, ServingPlan
from tonnage.validation._engine_versions import known_version
from tonnage.validation._predictions import Prediction
from tonnage.validation._rows import Measured, Row
from tonnage.validation._serving_speed._figures import Figure, Quantity, Times, figure_of
from tonnage.validation._serving_speed._machines import cluster_of
from tonnage.validation._serving_speed._models import model_of
from tonnage.validation._serving_speed._predict import predict_times, room
from tonnage.validation._serving_speed._run import Run, Source
from tonnage.validation._serving_speed._sources import source_of


class Cell(Struct, frozen=True, kw_only=True):
    """What rows share that say nothing new about each other: left out together where an error is to be honest."""

    model: str
    accelerator: str
    engine: str
    precision: str


class Asked(Struct, frozen=True, eq=False, kw_only=True):
    """A row as a question: everything that the estimator of serving is asked. `is_guessed`: of what nobody says;
    `rounds`: requests that each user of a benchmark sends, all of whom begin at once; None: it goes on for ever."""

    source: Source
    model: Model
    cluster: Cluster
    plan: ServingPlan
    load: Load
    precision: str
    notes: tuple[str, ...]
    is_guessed: bool
    name: str
    rounds: int | None = None

    @property
    def cell(self) -> Cell:
        return Cell(model=self.name, accelerator=self.cluster.accelerator.name, engine=self.plan.engine, precision=self.precision)  # fmt: skip

    def times(self, rates: ServingRates | None = None) -> ServingTimes:
        """What the product says."""
        return predict_times(
            self.model,
            self.plan,
            self.load,
            self.cluster,
            self.rounds,
            rates,
            room(self.model, self.plan, self.cluster, self.load),
        )

    def figure(self, measured: Measured) -> Figure:
        """How a metric follows from the times; MissingDatum for what does not."""
        return figure_of(measured, self.plan, self.load, self.cluster)


def asked(row: Row, references: Mapping[str, Row]) -> Asked:
    """What a row asks; a TonnageError that names what is in the way."""
    source, run = source_of(row), Run(row)
    source.rules(run)
    model = model_of(run, references)
    cluster = cluster_of(run, source)
    for name in ("input_tokens", "output_tokens"):
        if run.load.get(name) is None:
            raise MissingDatum(f"the row says no number of {name.replace('_', ' ')} of a request")
    load = Load(**run.load)
    whole = int(load.input_tokens) + int(load.output_tokens)
    version, note = known_version(run.engine, str(run.plan.get("engine_version") or ""))
    if note:
        run.note(note)
    sizes: dict[str, Any] = {"context": whole, "concurrency": load.concurrency or 1}
    sizes |= {name: value for name, value in run.plan.items() if value is not None or name not in sizes}
    sizes["engine_version"] = version
    return Asked(
        source=source, model=model, cluster=cluster, plan=ServingPlan(**sizes), load=load, precision=run.precision, notes=tuple(run.notes),
        is_guessed=run.is_guessed, name=str(row.model.get("ref") or model.name), rounds=run.rounds,
    )  # fmt: skip


def predict(row: Row, references: Mapping[str, Row]) -> list[Prediction]:
    """A prediction for the row's metric, and one for each of those under `also`."""
    every = (row.measured, *row.also)
    try:
        question = asked(row, references)
        times = question.times()
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [_predicted(measured, question, times) for measured in every]


def _predicted(measured: Measured, question: Asked, times: Times) -> Prediction:
    try:
        figure = question.figure(measured)
        value = figure.value(times)
    except TonnageError as error:
        return Prediction(skipped=str(error))
    return Prediction(value=value, band=_band(figure, times), notes=question.notes)


def _band(figure: Figure, times: Times) -> tuple[float, float] | None:
    """Where 90 of 100 measurements of its kind lie."""
    band, quantity = serving_rates().bands.get(figure.of), getattr(times, figure.of)
    if band is None or quantity is None:
        return None
    low, high = sorted(figure.of_quantity(quantity * share) for share in (band.low, band.high))
    return low, high


def measured_quantities(row: Row, question: Asked) -> dict[Quantity, float]:
    """What the row's figures say of seconds and rates, each once; empty where they say nothing that is predicted."""
    found: dict[Quantity, float] = {}
    for measured in (row.measured, *row.also):
        try:
            figure = question.figure(measured)
        except MissingDatum:
            continue
        if not isinstance(measured.value, str) and measured.value:
            found.setdefault(figure.of, figure.quantity(float(measured.value)))
    return found
