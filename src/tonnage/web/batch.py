"""POST /v1/batch: many questions of `train` or `serve` at once, answered with columns of figures."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tonnage.documents.sweep import ServeBatchDocument, ServeColumns, TrainBatchDocument, TrainColumns
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.reach import Reach, limited
from tonnage.kernel.registry import unknown
from tonnage.question.form import values
from tonnage.question.naming import in_question
from tonnage.question.option import options_of
from tonnage.question.read import Read, read
from tonnage.question.subjects.frontier import FRONTIER
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.verbs.ask import Reply

BATCH = "batch"
FIELDS = ("verb", "rows", "columns", "options", "keep")
MAX_ROWS = 10_000
Question = dict[str, Any]
Kept = dict[str, list[Any]]  # columns that only come back


def batched(body: Mapping[str, Any], within: Reach = Reach()) -> Reply:
    """A TrainBatchDocument or a ServeBatchDocument. InvalidInput for a batch that is none; a row that is wrong has
    its error in the answer.
    """
    for name in body:
        if name not in FIELDS:
            raise unknown("field of a batch", name, FIELDS)
    verb = body.get("verb")
    if verb not in ("train", "serve"):
        raise InvalidInput("the verb of a batch is train or serve. Got {verb}.", verb=shown(verb))
    rows = _rows(body)
    kept = {name: [row.pop(name, None) for row in rows] for name in _texts(body)}
    with limited(within):
        document = _trained(rows, kept) if verb == "train" else _served(rows, kept)
    return Reply(document, 0, ())


def _rows(body: Mapping[str, Any]) -> list[Question]:
    """The questions, each with the options of all."""
    if ("rows" in body) == ("columns" in body):
        raise InvalidInput(
            "a batch has rows, a list of questions, or columns, an object of lists: give one of the two."
        )
    questions = _of_columns(body["columns"]) if "columns" in body else body["rows"]
    if not isinstance(questions, list) or not all(isinstance(row, dict) for row in questions):
        raise InvalidInput("rows is a list of objects. Got {rows}.", rows=shown(questions))
    _check_count(len(questions))
    options = body.get("options") or {}
    if not isinstance(options, dict):
        raise InvalidInput("options is an object of what holds for all rows. Got {options}.", options=shown(options))
    for name in options:
        if any(name in row for row in questions):
            raise InvalidInput("{name} is given twice: for all rows, and in a row. Give one of them.", name=name)
    return [options | row for row in questions]


def _of_columns(columns: Any) -> list[Question]:
    if not isinstance(columns, dict) or not all(isinstance(column, list) for column in columns.values()):
        raise InvalidInput("columns is an object of lists. Got {columns}.", columns=shown(columns))
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise InvalidInput(
            "the columns of a batch are as long as each other. Got {lengths}.", lengths=shown(sorted(lengths))
        )
    _check_count(max(lengths, default=0))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _check_count(count: int) -> None:
    if count > MAX_ROWS:
        raise InvalidInput(
            "a batch has at most {most:,} rows: send the others in another. Got {count:,}.", most=MAX_ROWS, count=count
        )


def _texts(body: Mapping[str, Any]) -> list[str]:
    keep = body.get("keep") or []
    if not isinstance(keep, list) or not all(isinstance(name, str) for name in keep):
        raise InvalidInput("keep is a list of names of fields. Got {keep}.", keep=shown(keep))
    return keep


class _Reading:
    """Reads rows; a model and a machine that several of them name are read once."""

    def __init__(self, verb: str):
        self.verb = verb
        self.parsed: list[Read | None] = []
        self._known: dict[tuple[Any, ...], Any] = {}

    def of(self, question: Question, row_of: Callable[..., Any]) -> Any:
        """The row, or the error of its question."""
        parsed: Read | None = None
        try:
            parsed = read(self.verb, question)
            model, machine, reserve = self._model_and_machine(parsed)
            return row_of(parsed.given, model, machine, reserve)
        except TonnageError as error:
            return error
        finally:
            self.parsed.append(parsed)

    def _model_and_machine(self, parsed: Read) -> tuple[Any, Any, int]:
        from tonnage.question.looked_up import model_and_machine
        from tonnage.question.subjects.model import MACHINE

        given = parsed.given
        machine = values(given, MACHINE)
        named = msgspec.json.encode([given.model, values(given, DIMENSIONS), given.revision, given.offline])
        key = (named, machine.get("on"), machine.get("reserve", 0))
        if key not in self._known:
            model, cluster, reserve = model_and_machine(given)
            model = self._known.setdefault(("model", named), model)
            cluster = self._known.setdefault(("on", machine["on"]), cluster)
            self._known[key] = model, cluster, reserve
        found: tuple[Any, Any, int] = self._known[key]
        return found

    def worded(self, errors: list[Any]) -> list[str | None]:
        """The errors of the rows, with fields in place of options."""
        return [
            None
            if error is None
            else str(error)
            if parsed is None
            else in_question(error, parsed.form, parsed.question)
            for error, parsed in zip(errors, self.parsed, strict=True)
        ]


def _trained(questions: list[Question], kept: Kept) -> TrainBatchDocument:
    from tonnage.question.subjects.money import BillOptions
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.training import TrainingOptions
    from tonnage.search.many.training import TrainingRow, train_rows

    def row_of(given: Any, model: Any, machine: Any, reserve: int) -> TrainingRow:
        options = TrainingOptions(**values(given, options_of(TrainingOptions)))
        run = RunOptions(**values(given, options_of(RunOptions)))
        money = BillOptions(**values(given, options_of(BillOptions)))
        return TrainingRow(model, machine, options, run, money, reserve)

    reading = _Reading("train")
    figures = train_rows([reading.of(question, row_of) for question in questions])
    columns = TrainColumns(**figures | {"error": reading.worded(figures["error"])})
    return TrainBatchDocument(verb="train", rows=len(questions), kept=kept, columns=columns)


def _served(questions: list[Question], kept: Kept) -> ServeBatchDocument:
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.search.many.serving import ServingRow, serve_rows

    def row_of(given: Any, model: Any, machine: Any, reserve: int) -> ServingRow:
        for name in values(given, FRONTIER):
            raise InvalidInput("a batch asks about one configuration in each row: leave out {name}.", name=name)
        options = ServingOptions(**values(given, options_of(ServingOptions)))
        load = LoadOptions(**values(given, options_of(LoadOptions)))
        return ServingRow(model, machine, options, load, BillOptions(**values(given, SERVED)), reserve)

    reading = _Reading("serve")
    figures = serve_rows([reading.of(question, row_of) for question in questions])
    columns = ServeColumns(**figures | {"error": reading.worded(figures["error"])})
    return ServeBatchDocument(verb="serve", rows=len(questions), kept=kept, columns=columns)
