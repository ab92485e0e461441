"""A row of docs/rows.md as what corrections are made from: each quantity, measured over estimated."""

from collections.abc import Iterator
from contextlib import suppress
from math import log

from msgspec.structs import replace

from tonnage.estimate.site.cases import Compared, serving_case, training_case
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.validation.rows import Row
from tonnage.validation.serving import ServingRow, measured_quantities
from tonnage.validation.training import MEMORY, TrainingRow, memory_factor, step_figure

QUANTITIES = {"ttft_seconds": "ttft", "tpot_seconds": "tpot", "end_to_end_seconds": "request_time"}
RATE = "output_tokens_per_second"  # the more of it, the shorter a request takes


def compared(row: Row) -> tuple[Compared, ...]:
    """Every quantity of a row that is corrected, each once; none where the row says none, or cannot be asked."""
    if row.skipped or row.completeness_class == "indicative":
        return ()
    # what own runs already corrected would be corrected twice
    row = replace(row, question={name: value for name, value in row.question.items() if name != "calibrated"})
    try:
        return tuple(_of_training(row) if row.verb == "train" else _of_serving(row) if row.verb == "serve" else ())
    except TonnageError:
        return ()


def _of_training(row: Row) -> Iterator[Compared]:
    asked = TrainingRow(row)
    case = training_case(asked.model, asked.plan, asked.cluster)
    with suppress(TonnageError):  # no figure is a time, or nobody knows the time
        yield Compared(quantity="step_time", error=log(_seconds(row, asked) / asked.step_seconds), case=case)
    if factor := memory_factor(row):
        yield Compared(quantity="training_memory", error=log(factor), case=case)


def _seconds(row: Row, asked: TrainingRow) -> float:
    """Seconds of a step, by the first figure that says them; MissingDatum where none does."""
    for measured in (row.measured, *row.also):
        if isinstance(measured.value, str) or not measured.value or measured.quantity in MEMORY:
            continue
        with suppress(TonnageError):
            return step_figure(measured, asked).seconds(float(measured.value))
    raise MissingDatum("no figure of the row says the time of a step")


def _of_serving(row: Row) -> Iterator[Compared]:
    asked = ServingRow(row)
    measured = measured_quantities(asked)
    if not measured:
        return
    case = serving_case(asked.model, asked.plan, asked.cluster, asked.needed_load)
    for name, quantity in QUANTITIES.items():
        estimated = getattr(asked.shipped_times, name)
        if name in measured and estimated:
            yield Compared(quantity=quantity, error=log(measured[name] / float(estimated)), case=case)
    if RATE in measured and "end_to_end_seconds" not in measured:
        estimated = float(getattr(asked.shipped_times, RATE))
        yield Compared(quantity="request_time", error=log(estimated / measured[RATE]), case=case)
