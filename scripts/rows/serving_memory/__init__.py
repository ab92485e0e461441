"""Rows of kind `infer_memory`: what a log or a table says of a served model -> a question of serving, and what its
figures are.

Nothing here is about a single row.
"""

from collections.abc import Mapping
from typing import Any

from rows.describe import machine, model
from rows.reading import Reading
from rows.serving_memory.asked import asked
from rows.serving_memory.figures import figure_of
from rows.source import Measured, Row
from tonnage.spec import Cluster, ServingPlan


def read(row: Row, references: Mapping[str, Row]) -> Reading:
    """A TonnageError that names the field where the row cannot be read."""
    made = asked(row, references)
    cluster = Cluster(accelerator=made.accelerator, accelerators_per_node=made.gpus)
    question = {"model": model(made.model), "on": machine(cluster, made.sized, any_node=True), **_plan(made.plan)}
    question["engine"] = made.plan.engine if made.runtime else "other"

    def figure(measured: Measured) -> dict[str, Any]:
        return figure_of(measured, row.source_name, made.plan.weights is None)

    return Reading(verb="serve", question=question, remarks=made.notes, figure=figure)


def _plan(plan: ServingPlan) -> dict[str, Any]:
    """What differs from a plan of nothing but its context."""
    plain = ServingPlan(context=plan.context)
    values = ((name, plan.field(name)) for name in ServingPlan.field_names())
    own = {name: value for name, value in values if value is not None and value != plain.field(name)}
    return {"context": plan.context, **own}
