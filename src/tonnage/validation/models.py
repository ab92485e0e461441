"""Rows of verb `models`: the published parameter count beside ours."""

from tonnage.kernel.errors import TonnageError
from tonnage.validation.predictions import Prediction
from tonnage.validation.rows import Row
from tonnage.validation.subjects import model_of


def predict(row: Row) -> list[Prediction]:
    """The count of the question's model: a released checkpoint holds the multi-token-prediction layers that its
    config names."""
    every = (row.measured, *row.also)
    try:
        count = float(model_of(row.question).num_parameters(drafts=True))
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [
        Prediction(skipped=measured.skipped) if measured.skipped else Prediction(value=count, notes=row.notes)
        for measured in every
    ]
