"""Rows of kind `train_memory`: a config as its source writes it -> a question of `tonnage train`, and its figures beside the row's.

A dialect is one small file with a READER. Nothing here is about a single row.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.bands import Band, training_band
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import TrainingMemory, training_memory
from tonnage.estimate.options.plans import DEFAULT_SEQUENCE_LENGTH, training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, shown
from tonnage.spec import Cluster, TrainingPlan
from tonnage.validation._params import model_of
from tonnage.validation._predictions import Prediction
from tonnage.validation._rows import OUT_OF_MEMORY, Measured, Row
from tonnage.validation._training import _machines
from tonnage.validation._training._config import Config
from tonnage.validation._training._figures import WHOLE, Figure, figure_of, value_of
from tonnage.validation._training._options import training_options
from tonnage.validation._training._reader import Reader, parallel_sizes

# Dialects in the order in which they are tried: what names another's words comes before it.
DIALECTS = (
    "korthikanti", "fitcheck", "torchtitan", "torchtune", "llama_factory", "nanotron", "litgpt", "galvatron", "llm_foundry", "maxtext", "peft", "qlora",
    "unsloth", "megatron", "deepspeed", "trainer", "plain",
)  # fmt: skip


class Asked(Struct, frozen=True, eq=False):
    """A row as a question: everything that the estimator is asked, `found` being what the row says by the names of TrainingOptions."""

    reader: Reader
    model: Model
    cluster: Cluster
    found: Mapping[str, Any]
    options: TrainingOptions
    notes: tuple[str, ...]


@cache
def readers() -> tuple[Reader, ...]:
    """All dialects; their files are imported when the first row asks."""
    return tuple(import_module(f"{__name__}.{name}").READER for name in DIALECTS)


def reader_of(row: Row) -> Reader:
    """The dialect of a row: by its framework, else by its source; a harness drives a framework of others, and its source says so."""
    framework = Config(row.config).text("framework")
    source = row.source_name.lower()
    for reader in readers():
        if reader.matches(framework, source if reader.is_harness or not framework else ""):
            return reader
    raise MissingDatum(f"config.framework {shown(framework)} is a dialect that nothing reads")


def asked(row: Row, references: Mapping[str, Row]) -> Asked:
    """What a row asks; a TonnageError that names the field where it cannot be read."""
    config = Config(row.config)
    reader = reader_of(row)
    found = reader.read(config)
    options, notes = training_options(found)
    layers = config.size("layers", "num_layers", "num_hidden_layers")
    unsaid = {"context": options.sequence_length or DEFAULT_SEQUENCE_LENGTH, **reader.hparams(config)}
    model = model_of(row, references, unsaid, layers)
    cluster, note = _machines.cluster_of(config, parallel_sizes(config))
    return Asked(reader, model, cluster, found, options, (*notes, *([note] if note else [])))


def predict(row: Row, references: Mapping[str, Row]) -> list[Prediction]:
    """A prediction for the row's metric, and one for each of those under `also`."""
    every = (row.measured, *row.also)
    try:
        question = asked(row, references)
        plan, made = _estimate(question, {})
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    band = training_band(plan, question.cluster)
    return [_predicted(measured, row, question, plan, made, band) for measured in every]


def _estimate(question: Asked, changes: Mapping[str, Any]) -> tuple[TrainingPlan, TrainingMemory]:
    from msgspec.structs import replace

    options = replace(question.options, **changes)
    plan = training_plan(question.model, question.cluster, options, Question())
    return plan, training_memory(question.model, plan, question.cluster)


def _predicted(
    measured: Measured, row: Row, question: Asked, plan: TrainingPlan, made: TrainingMemory, band: Band | None
) -> Prediction:
    reader = question.reader
    try:
        figure = figure_of(measured, reader.figure, reader.gigabyte, reader.activations)
        if measured.value == OUT_OF_MEMORY:
            return _out_of_memory(figure, question, made)
        if figure.kind == "needs-more" and measured is not row.measured:
            raise MissingDatum(f"{shown(measured.metric)} is about another run")
        return _compared(measured, figure, question, plan, made, band)
    except TonnageError as error:
        return Prediction(skipped=str(error))


def _compared(
    measured: Measured, figure: Figure, question: Asked, plan: TrainingPlan, made: TrainingMemory, band: Band | None
) -> Prediction:
    value = value_of(figure, made, question.cluster.size / plan.pipeline_parallel_size) / figure.unit
    if figure.kind == "ratio":
        if not question.reader.baseline:
            raise MissingDatum(
                f"{shown(measured.metric)}: what it is relative to is not known for {question.reader.name}"
            )
        _, base = _estimate(question, question.reader.baseline)
        below = value_of(figure, base, question.cluster.size / plan.pipeline_parallel_size)
        if not below:
            raise InvalidInput(f"{shown(measured.metric)}: the run that it is relative to keeps none")
        value *= 100 / below
    limit = float(measured.value)
    if figure.kind in ("bound", "needs-more"):
        return Prediction(
            value=value, agrees=value <= limit if figure.kind == "bound" else value > limit, notes=question.notes
        )
    around = (value * band.low, value * band.high) if band and figure.kind in WHOLE else None
    return Prediction(value=value, band=around, notes=question.notes)


def _out_of_memory(figure: Figure, question: Asked, made: TrainingMemory) -> Prediction:
    """A run that ran out: whether more is predicted than a program can get on the card."""
    if not _machines.is_known(question.cluster.accelerator):
        return Prediction(skipped="the row ran out of memory on a GPU that it does not name", notes=question.notes)
    needed = max(float(rank.peak.value) for rank in made.ranks)
    usable = question.cluster.accelerator.memory.usable_bytes
    return Prediction(value=needed / figure.unit, agrees=needed > usable, notes=question.notes)
