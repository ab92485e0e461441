"""An estimate beside what a run says: figures of its logs, each predicted by the question that the run was."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tonnage.documents.interchange.reconcile import ReconciledFigure, ReconcileDocument
from tonnage.documents.validation import RowDocument
from tonnage.interchange.logs import Figure, figures_of, readers
from tonnage.interchange.logs.snapshots import figures_of_file, is_recorded
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.kernel.reach import allowed_file, called
from tonnage.kernel.units import MB
from tonnage.question.form import values
from tonnage.question.read import in_fields, read

OF_SERVING = {"process_memory": "process", "allocated_memory": "allocated"}  # quantity of a log -> that of serving
COMPLETENESS = "full"
LARGEST = 50_000_000  # bytes of a log; of recorded memory trace/foreign has limits of its own
_HEAD = 16  # bytes by which recorded memory is told from a log
_OF_TRAINING = ("train",)  # what recorded memory is of


class Measurements(NamedTuple):
    """What a file says: its name, and tool -> figures."""

    name: str
    figures: Mapping[str, Sequence[Figure]]


class _Said(NamedTuple):
    """A figure and the tool that states it."""

    tool: str
    figure: Figure


class _Compared(NamedTuple):
    """A row in the form of docs/rows.md, what it holds, and the lines that predict it."""

    row: dict[str, Any]
    said: list[_Said]
    lines: list[RowDocument]


def text_measurements(text: str, name: str) -> Measurements:
    """What a log, metrics or a result say. InvalidInput where it is too large."""
    if len(text) > LARGEST:
        raise InvalidInput("{name} is larger than {largest:,} MB.", name=name, largest=int(LARGEST // MB))
    return Measurements(name, figures_of(text))


def file_measurements(name: str) -> Measurements:
    """What a file that a user names says: a log, or recorded memory such as a snapshot of PyTorch. InvalidInput where
    it cannot be read.
    """
    from tonnage.trace.foreign.files import head
    from tonnage.user_files import read_bytes

    path = allowed_file(name, instead="paste what it holds")
    if is_recorded(head(path, _HEAD)):
        return Measurements(called(path), figures_of_file(Path(path)))
    return text_measurements(read_bytes(path, LARGEST).decode("utf-8", "replace"), called(path))


def reconcile(sources: Sequence[Measurements], verb: str, question: Mapping[str, Any], day: str) -> ReconcileDocument:
    """Compare what logs say with the answer to a question. `day`: of the run, for the row.

    InvalidInput where no figure is found, or none of this verb.
    """
    found = [
        _Said(tool, figure) for source in sources for tool, figures in source.figures.items() for figure in figures
    ]
    verbs = {reader.tool: reader.verbs for reader in readers()}
    said = [one for one in found if verb in verbs.get(one.tool, _OF_TRAINING)]
    if not said:
        raise InvalidInput(_nothing(sources, found, verb))
    inputs = _inputs(verb, question)
    compared = [_compared(group, verb, inputs, sources, day) for group in _grouped(said)]
    return ReconcileDocument(
        verb=verb,
        question=inputs,
        tools=list(dict.fromkeys(one.tool for one in said)),
        figures=[_line(one, line) for each in compared for one, line in zip(each.said, each.lines, strict=True)],
        rows=[each.row for each in compared],
    )


def _inputs(verb: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The question with its values as rows have them: numbers in base units."""
    if not question.get("model"):
        raise InvalidInput("MODEL of the run is needed, such as llama-3.1-8b.")
    if not question.get("on"):
        raise InvalidInput("{--on} of the run is needed, such as {--on} 8xh100.")
    parsed = read(verb, question)
    with in_fields(parsed):
        options = [option for option in parsed.form.options.values() if not option.alone and option.name != "on"]
        return {"model": question.get("model"), "on": question.get("on"), **values(parsed.given, options)}


def _nothing(sources: Sequence[Measurements], found: Sequence[_Said], verb: str) -> Message:
    files = listed(source.name for source in sources)
    if found:
        tools = listed(dict.fromkeys(one.tool for one in found))
        return Message("{files}: {tools} measured no {verb}: ask the other verb.", files=files, tools=tools, verb=verb)
    known = listed(reader.tool for reader in readers() if verb in reader.verbs)
    return Message("{files}: no figure is found. Read are logs and results of {known}.", files=files, known=known)


def _grouped(said: Sequence[_Said]) -> list[list[_Said]]:
    """Figures of the same inputs together: each group is one row."""
    groups: dict[tuple[tuple[str, Any], ...], list[_Said]] = {}
    for one in said:
        groups.setdefault(tuple(sorted(one.figure.inputs.items())), []).append(one)
    return list(groups.values())


def _compared(
    said: list[_Said], verb: str, question: Mapping[str, Any], sources: Sequence[Measurements], day: str
) -> _Compared:
    from tonnage.validation import row_of, validate

    measured = [_measured(one.figure, verb) for one in said]
    row: dict[str, Any] = {
        "id": f"{verb} {question.get('model')} on {question.get('on')}, {day}, {said[0].figure.metric}"[:200],
        "verb": verb,
        "question": {**question, **said[0].figure.inputs},
        "measured": measured[0],
        **({"also": measured[1:]} if measured[1:] else {}),
        "source": ", ".join(str(source.name) for source in sources),
        "date": day,
        "completeness": COMPLETENESS,
    }
    lines = validate([row_of(row)]).rows
    return _Compared(row, said, list(lines))


def _measured(figure: Figure, verb: str) -> dict[str, Any]:
    if figure.skipped:
        return {"value": figure.value, "unit": figure.unit, "metric": figure.metric, "skipped": figure.skipped}
    quantity = OF_SERVING.get(figure.quantity, figure.quantity) if verb == "serve" else figure.quantity
    return {"quantity": quantity, "value": figure.value, "unit": figure.unit, "metric": figure.metric, **figure.more}


def _line(one: _Said, line: RowDocument) -> ReconciledFigure:
    figure = one.figure
    band = line.band
    return ReconciledFigure(
        tool=one.tool,
        quantity=figure.quantity,
        metric=figure.metric,
        count=figure.count,
        measured=figure.value,
        predicted=line.predicted,
        unit=figure.unit,
        relative_error=line.relative_error,
        band=band,
        inside=None if band is None else band[0] <= figure.value <= band[1],
        skipped=line.skipped,
        notes=[*figure.notes, *line.notes],
    )
