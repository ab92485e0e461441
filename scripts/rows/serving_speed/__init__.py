"""Rows of kind `infer_speed`: a run of an engine as its source writes it -> times of serving, and what its figures are.

A file here says what its sources' rows mean and what their scripts imply. Nothing here is about a single row.
"""

from collections.abc import Mapping
from typing import Any

from rows.describe import machine, model
from rows.engine_versions import known_version
from rows.reading import Reading
from rows.serving_speed.figures import figure_of
from rows.serving_speed.machines import cluster_of
from rows.serving_speed.models import model_of
from rows.serving_speed.run import Run
from rows.serving_speed.sources import source_of
from rows.source import Row
from rows.training import given
from tonnage.kernel.errors import MissingDatum
from tonnage.spec import Load, ServingPlan


def read(row: Row, references: Mapping[str, Row]) -> Reading:
    """What a row asks; a TonnageError that names what is in the way."""
    source, run = source_of(row), Run(row)
    source.rules(run)
    made = model_of(run, references)
    cluster = cluster_of(run, source)
    for name in ("input_tokens", "output_tokens"):
        if run.load.get(name) is None:
            raise MissingDatum(f"the row says no number of {name.replace('_', ' ')} of a request")
    load = Load(**run.load)
    version, note = known_version(run.engine, str(run.plan.get("engine_version") or ""))
    if note:
        run.imply("engine_version", note)
    run.plan["engine_version"] = version
    question = {"model": model(made), "on": machine(cluster), **_load(load), **_plan(run, load)}
    if run.rounds is not None:
        question["rounds"] = run.rounds
    labels = {"publication": source.name, "model": str(row.model.get("ref") or made.name), "precision": run.precision}
    return Reading(
        verb="serve",
        question=question,
        implied=run.whence,
        guessed=run.guesses,
        from_measured=run.from_measured,
        completeness=run.completeness,
        remarks=tuple(run.notes),
        labels=labels,
        figure=figure_of,
    )


def _load(load: Load) -> dict[str, Any]:
    plain = Load(input_tokens=load.input_tokens, output_tokens=load.output_tokens)
    own = {name: value for name, value in given(load).items() if value != getattr(plain, name)}
    return {"input_tokens": load.input_tokens, "output_tokens": load.output_tokens, **own}


def _plan(run: Run, load: Load) -> dict[str, Any]:
    """The settings that are not an engine's own, the context where it is not what a request takes."""
    whole = int(load.input_tokens) + int(load.output_tokens)
    plain = ServingPlan(context=whole, concurrency=load.concurrency or 1)
    return {
        name: value
        for name, value in run.plan.items()
        if value is not None and (value != plain.field(name) or name == "engine")
    }
