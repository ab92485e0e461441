"""All that a served model takes of a row: one figure of the row that covers it, or several that add up to it."""

from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import TonnageError
from tonnage.validation._rows import Row
from tonnage.validation._serving_memory import _figures as figures
from tonnage.validation._serving_memory._asked import Asked

Both = tuple[float, float]  # measured and predicted bytes
PARTS = (figures._weights, figures._activations, figures._outside_torch, figures._graphs)


def whole(row: Row, question: Asked) -> Both | None:
    """What torch allocated or the process took, where the row says it; else the sum of the parts of an engine that takes a share, or
    the share less the cache that was left. None where the row says none of these."""
    found = _figures_of(row, question)
    for figure in (figures._process, figures._allocated, figures._at_the_end):
        if figure in found and (figure is not figures._process or figures._share(question) is None):
            return found[figure]
    if all(part in found for part in PARTS):
        return sum(found[part][0] for part in PARTS), sum(found[part][1] for part in PARTS)
    if figures._pool in found and question.sized:
        measured, predicted = found[figures._pool]
        rank = serving_memory(question.model, question.plan, question.accelerator).ranks[0]
        taken = question.accelerator.memory.usable_bytes - figures._left(rank)
        return taken - measured, taken - predicted
    return None


def _figures_of(row: Row, question: Asked) -> dict[figures.Figure, Both]:
    """Each figure that the row has, measured and predicted."""
    made = serving_memory(question.model, question.plan, question.accelerator)
    found: dict[figures.Figure, Both] = {}
    for measured in (row.measured, *row.also):
        try:
            figure = figures.figure_of(measured.metric, row.source_name)
            if isinstance(measured.value, str):
                continue
            unit = figures.unit_of(
                measured.unit, binary=question.plan.weights is None or figure is not figures.tensor_bytes
            )
            found.setdefault(figure, (float(measured.value) * unit, figure(question, made)))
        except TonnageError:
            continue
    return found
