"""Rows of kind `infer_memory`: what a log or a table says of a served model -> a question of serving, and its figures beside the row's.

Nothing here is about a single row.
"""

from collections.abc import Mapping

from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.validation._predictions import Prediction
from tonnage.validation._rows import OUT_OF_MEMORY, Measured, Row
from tonnage.validation._serving_memory._asked import Asked, asked
from tonnage.validation._serving_memory._figures import figure_of, tensor_bytes, unit_of
from tonnage.validation._serving_memory._whole import whole as whole


def predict(row: Row, references: Mapping[str, Row]) -> list[Prediction]:
    """A prediction for the row's metric, and one for each of those under `also`."""
    every = (row.measured, *row.also)
    try:
        question = asked(row, references)
        made = serving_memory(question.model, question.plan, question.accelerator)
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [_predicted(measured, row, question, made) for measured in every]


def _predicted(measured: Measured, row: Row, question: Asked, made: ServingMemory) -> Prediction:
    try:
        figure = figure_of(measured.metric, row.source_name)
        if measured.value == OUT_OF_MEMORY:
            raise MissingDatum("whether it fits is not read from rows of this kind")
        unit = unit_of(measured.unit, binary=question.plan.weights is None or figure is not tensor_bytes)
        return Prediction(value=figure(question, made) / unit, notes=question.notes)
    except TonnageError as error:
        return Prediction(skipped=str(error), notes=question.notes)
