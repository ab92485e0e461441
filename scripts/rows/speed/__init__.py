"""Rows of kind `train_speed`: a config as its source writes it -> the step that it ran, and what its figures are.

The dialects of memory's rows read what the two kinds have in common; a file here says what its sources' recipes imply
beyond that. Nothing here is about a single row.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from rows.describe import machine, model
from rows.reading import Reading
from rows.source import Row
from rows.speed import machines, models
from rows.speed.figures import Told, figure_of
from rows.speed.run import Run, Source
from rows.speed.sources import source_of
from rows.training import given, reader_of
from rows.training.config import Config
from rows.training.machines import COUNTS
from rows.training.options import training_options
from rows.training.reader import common
from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.spec import Cluster

ONE = 1  # accelerator, of figures that are about one


def read(row: Row, references: Mapping[str, Row]) -> Reading:
    """What a row asks; a TonnageError that names what is in the way."""
    run, source = _run(row)
    made = models.model_of(run, source, references)
    run.layers, run.parameters = made.num_layers, made.num_parameters()
    cluster = machines.cluster_of(run, source, _alone(row))
    source.rules(run)
    _fill(run)
    options, notes = training_options({name: value for name, value in run.options.items() if value is not None})
    options, unchecked = _merged(made, cluster, options, run.plan)
    tokens = run.config.find("tokens")[1]
    told = Told(
        tokens=float(tokens) if isinstance(tokens, int | float) and tokens > 0 else None,
        convention=source.convention,
        in_micro_batches=options.runtime == "litgpt",
    )
    question = {
        "model": model(made),
        "on": machine(cluster),
        **given(options),
        **({"unchecked": unchecked} if unchecked else {}),
    }
    return Reading(
        verb="train",
        question=question,
        implied=run.whence,
        guessed=run.guesses,
        remarks=(*run.notes, *notes),
        labels=_labels(row, source),
        figure=lambda measured: figure_of(measured, told),
    )


def _labels(row: Row, source: Source) -> dict[str, str]:
    """The publication, and the release of a container where the row names one."""
    release = re.search(r"(\d\d\.\d\d)", str(row.config.get("framework")))
    return {"publication": source.name, **({"release": release[1]} if release else {})}


def _merged(
    made: Model, cluster: Cluster, options: TrainingOptions, plan: Mapping[str, Any]
) -> tuple[TrainingOptions, dict[str, Any]]:
    """Options with these fields of the plan, and those that `train` would refuse or read otherwise, which are set
    past its checks.
    """
    if not plan:
        return options, {}
    both = replace(options, **{name: value for name, value in plan.items() if name in options.__struct_fields__})
    try:
        wanted = training_plan(made, cluster, options, Question()).with_fields(**plan)
    except TonnageError:
        return both, {}
    try:
        if training_plan(made, cluster, both, Question()) == wanted:
            return both, {}
    except TonnageError:
        pass
    return options, dict(plan)


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
            "data_parallel_size",
            (
                f"data_parallel_size {o['data_parallel_size']} does not use the row's accelerators: "
                f"{run.replicas} is taken"
            ),
        )
        o["data_parallel_size"] = run.replicas
    if o.get("micro_batch_size") is None:
        run.guess("micro_batch_size", "micro_batch_size is not said: 1 is taken")
    micro, total = o.get("micro_batch_size") or 1, o.get("global_batch_size")
    if total and o.get("num_microbatches") and total != micro * o["num_microbatches"] * run.replicas:
        del o["num_microbatches"]


def options_of(row: Row, references: Mapping[str, Row]) -> dict[str, Any]:
    """What a row says and its source implies, by the names of TrainingOptions; for tests and for those who study a
    dialect.
    """
    run, source = _run(row)
    run.layers = models.model_of(run, source, references).num_layers
    machines.cluster_of(run, source, _alone(row))
    source.rules(run)
    return {name: value for name, value in run.options.items() if value is not None} | run.plan
