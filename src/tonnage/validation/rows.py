"""Rows of measurements in our own form (docs/rows.md): a question of tonnage, what was measured, and where each came
from."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.reach import is_folder
from tonnage.kernel.registry import nearest
from tonnage.kernel.units import LARGEST
from tonnage.validation.checks import check_measured, check_question
from tonnage.validation.quantities import KINDS, QUANTITIES

T = TypeVar("T")


class Prediction(Struct, frozen=True, kw_only=True):
    """A value in the metric's unit, or the reason for none.

    `agrees`: for what has no number to compare with, whether it came out as measured; `band`: low and high in the
    metric's unit;
    `notes`: what was assumed, or left out.
    """

    value: float | None = None
    skipped: str | None = None
    agrees: bool | None = None
    band: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()


# indicative: a recommendation, or a run whose lengths nobody controlled. It is shown, and counts in no error and no
# band.
COMPLETENESS = ("full", "partial", "indicative")
OUT_OF_MEMORY = "OOM"
MAX_ID_LENGTH, MAX_TEXT_LENGTH = 200, 4_000  # characters
MAX_NUMBER = 1e30  # of a question: FLOP of the largest runs are 1e27
MAX_DEPTH = 40
SOURCE_FORM = (
    "has `config`, as rows in the words of their source have: `python scripts/rows FILE` in a checkout rewrites these"
)


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure of a run.

    `quantity`: what was measured, of docs/rows.md; empty where nothing predicts it, and `skipped` says why. `metric`:
    what the source
    calls it. `rank`, `stage`: whose memory, the fullest GPU's where both are left out; a negative stage counts from
    the last.
    `counting`: how FLOP are counted (docs/rows.md). `peak_tflops`: what a utilization is a share of, the 16-bit peak
    where it is left out.
    `tokens`: of the whole run. `times`: steps, or micro-batches, that the time is of. `relative_to`: options of the
    run that a
    percentage is of.
    """

    value: float | str
    quantity: str = ""
    unit: str = ""
    metric: str = ""
    rank: int | None = None
    stage: int | None = None
    counting: str = ""
    peak_tflops: float | None = None
    tokens: float | None = None
    times: float = 1
    relative_to: dict[str, Any] = {}
    skipped: str = ""

    @property
    def name(self) -> str:
        """What the source calls it, else its quantity."""
        return self.metric or self.quantity

    @property
    def unit_size(self) -> float:
        """What the unit is in base units."""
        return QUANTITIES[self.quantity].units[self.unit]


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run, or one fact.

    `verb`: which question of tonnage it is; empty where there is none, and `skipped` says why. `question`: inputs by
    the names of the program. `implied`, `guessed`: inputs that the source does not state for this run, each with where
    it was taken from; a guessed one is nobody's statement. `from_measured`: inputs that were taken from the figures
    that the row is compared with. `labels`: names that statistics group rows by. `remarks`: what else the reader of
    the row should know. `left_out`: no fit and no band may ever read the row, so that its error is one on a row never
    seen.
    """

    id: str
    measured: Measured
    kind: str = ""
    verb: str = ""
    question: dict[str, Any] = {}
    also: list[Measured] = []
    implied: dict[str, str] = {}
    guessed: dict[str, str] = {}
    from_measured: dict[str, str] = {}
    remarks: list[str] = []
    labels: dict[str, str] = {}
    source: str = ""
    date: str = ""
    completeness: str = "full"
    note: str = ""
    skipped: str = ""
    left_out: bool = False
    file: str = ""

    @property
    def completeness_class(self) -> str:
        """full, partial or indicative; indicative, too, where an input was taken from what was measured."""
        return "indicative" if self.from_measured else self.completeness.partition(":")[0].strip()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a line of `validate` says was assumed."""
        inputs = [
            *self._grouped(self.from_measured, "from what was measured: "),
            *self._grouped(self.guessed, "guessed: "),
            *self._grouped(self.implied, ""),
        ]
        return (*inputs, *self.remarks)

    def _grouped(self, inputs: Mapping[str, str], word: str) -> list[str]:
        """Inputs that come from the same place together."""
        places: dict[str, list[str]] = {}
        for name, why in inputs.items():
            places.setdefault(why, []).append(self._input(name))
        return [f"{', '.join(names)}: {word}{why}" for why, names in places.items()]

    def _input(self, name: str) -> str:
        value = self.question.get(name)
        return name if value is None or isinstance(value, Mapping) else f"{name} {value}"


def predictions(row: Row, prepare: Callable[[], T], predict: Callable[[Measured, T], Prediction]) -> list[Prediction]:
    """A prediction for the row's figure, and one for each of those under `also`.

    `prepare` reads the row's question for all of them; its error is the reason where there is no prediction.
    """
    every = (row.measured, *row.also)
    try:
        question = prepare()
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [
        Prediction(skipped=measured.skipped) if measured.skipped else predict(measured, question) for measured in every
    ]


class Malformed(msgspec.Struct, frozen=True):
    """A row that has not the form of one. `id`: its own, or the place where it stands; `reason`: what is wrong, with
    its file."""

    id: str
    reason: str


def read(paths: Iterable[str], malformed: list[Malformed] | None = None) -> list[Row]:
    """All rows of these YAML files, and of those in folders.

    Raises InvalidInput, naming file, row and field, for what is not of the form; with a list `malformed` such rows go
    there instead.
    """
    rows: list[Row] = []
    seen: dict[str, str] = {}
    for path in paths:
        for file in files_of(Path(path)):
            for index, item in enumerate(items_of(file)):
                try:
                    row = row_of(item, str(file), index)
                    if row.id in seen:
                        raise InvalidInput(
                            "row {row} is in {seen} and in {file}: ids must be unique.",
                            row=shown(row.id),
                            seen=seen[row.id],
                            file=row.file,
                        )
                except InvalidInput as error:
                    if malformed is None:
                        raise
                    malformed.append(Malformed(id_or_place(item, index), str(error)))
                    continue
                seen[row.id] = row.file
                rows.append(row)
    return rows


def row_of(item: Any, file: str = "", index: int = 0) -> Row:
    """The row that a mapping is, checked; InvalidInput names the field that is wrong, its value and the nearest known
    name."""
    where = f"{file}, row {index + 1}" if file else f"row {index + 1}"
    if not isinstance(item, Mapping):
        raise InvalidInput(
            "{where} must be a mapping with id, verb, question and measured. Got {item}.", where=where, item=shown(item)
        )
    if isinstance(item.get("id"), str):
        where = f"{file}, row {shown(item['id'])}" if file else f"row {shown(item['id'])}"
    if "config" in item:
        raise InvalidInput("{where} {source_form}.", where=where, source_form=SOURCE_FORM)
    item = _with_on(item)
    _check_fields(item, Row, where)
    for name, part in _measured_parts(item):
        _check_fields(part, Measured, f"{where}: {name}")
    _check_sizes(item, where)
    try:
        row = msgspec.convert({**item, "file": file}, Row)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise InvalidInput(joined(": ", (where, str(error)[:300]))) from None
    _check_row(row, where)
    return row if row.kind else msgspec.structs.replace(row, kind=KINDS.get(row.measured.quantity, row.verb))


def _with_on(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """YAML 1.1 reads a bare `on` as true: as a key of a question it is the name of the input."""
    question = item.get("question")
    if not isinstance(question, Mapping) or True not in question:
        return item
    return {**item, "question": {"on" if name is True else name: value for name, value in question.items()}}


def _check_row(row: Row, where: str) -> None:
    if not row.id.strip() or len(row.id) > MAX_ID_LENGTH:
        raise InvalidInput(
            "{where}: id must have from 1 to {max_id_length} characters. Got {count:,}.",
            where=where,
            max_id_length=MAX_ID_LENGTH,
            count=len(row.id),
        )
    if row.completeness_class not in COMPLETENESS:
        known = "full, partial or indicative"
        raise InvalidInput(
            "{where}: completeness must begin with {known}. Got {completeness}.",
            where=where,
            known=known,
            completeness=shown(row.completeness),
        )
    if not row.verb and not row.skipped:
        raise InvalidInput(
            "{where}: verb is missing (train, serve, models or collectives), or `skipped` with a reason.", where=where
        )
    if row.verb and not row.skipped:
        check_question(row.verb, row.question, where)
    for name, measured in (("measured", row.measured), *((f"also[{n}]", figure) for n, figure in enumerate(row.also))):
        _check_value(measured, f"{where}: {name}")
        if row.verb and not row.skipped and not measured.skipped:
            check_measured(row.verb, measured.quantity, measured.unit, f"{where}: {name}")


def _measured_parts(item: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    also = item.get("also")
    listed = (
        [("measured", item.get("measured")), *((f"also[{n}]", part) for n, part in enumerate(also or []))]
        if isinstance(also, list | None)
        else [("measured", item.get("measured"))]
    )
    return [(name, part) for name, part in listed if isinstance(part, Mapping)]


def _check_fields(item: Mapping[str, Any], form: type[msgspec.Struct], where: str) -> None:
    """A field that the form does not have is an InvalidInput with the nearest one that it has."""
    known = [name for name in form.__struct_fields__ if name != "file"]
    for name in item:
        if name not in known:
            near = nearest(str(name), known)
            hint = (
                Message("Did you mean {near!r}?", near=near[0])
                if near
                else Message("Known: {names}.", names=listed(known))
            )
            raise InvalidInput(
                "{where}: {name} is no field of a row. {hint}", where=where, name=shown(str(name)), hint=hint
            )


def id_or_place(item: Any, index: int) -> str:
    """The id of a row, or its number in the file."""
    identity = item.get("id") if isinstance(item, Mapping) else None
    return identity[:MAX_ID_LENGTH] if isinstance(identity, str) and identity.strip() else f"row {index + 1}"


def files_of(path: Path) -> list[Path]:
    """The file, or the *.yaml of the folder; InvalidInput where it holds none."""
    if not is_folder(path):
        return [path]
    files = sorted(path.glob("*.yaml"))
    if not files:
        raise InvalidInput("{path} holds no *.yaml.", path=path)
    return files


def items_of(path: Path) -> list[Any]:
    """What the file lists, nothing checked; InvalidInput where it is no list or empty."""
    from tonnage.user_files.yaml_text import load

    listed = load(path)
    if not isinstance(listed, list):
        raise InvalidInput("{path} must hold a list of rows. Got {type}.", path=path, type=type(listed).__name__)
    if not listed:
        raise InvalidInput("{path} holds no rows.", path=path)
    return listed


def _check_sizes(item: Mapping[str, Any], where: str) -> None:
    """Numbers and texts of a size that something has: whoever reads a field may compute with it."""
    waiting: list[tuple[Any, str, int]] = [(value, str(key)[:80], 0) for key, value in item.items()]
    while waiting:
        value, path, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidInput(
                "{where}: {path} is nested more than {max_depth} levels deep.",
                where=where,
                path=path[:80],
                max_depth=MAX_DEPTH,
            )
        if isinstance(value, Mapping):
            waiting.extend((inner, f"{path}.{str(key)[:80]}", depth + 1) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend((inner, f"{path}[{number}]", depth + 1) for number, inner in enumerate(value))
        elif path == "measured.value" or (path.startswith("also[") and path.endswith(".value")):
            continue
        elif isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:  # nor NaN
            raise InvalidInput(
                "{where}: {path} must be a number of at most {max_number:g}. Got {value}.",
                where=where,
                path=path,
                max_number=MAX_NUMBER,
                value=shown(value),
            )
        elif isinstance(value, str) and len(value) > MAX_TEXT_LENGTH:
            raise InvalidInput(
                "{where}: {path} has at most {max_text_length:,} characters. Got {count:,}.",
                where=where,
                path=path,
                max_text_length=MAX_TEXT_LENGTH,
                count=len(value),
            )


def _check_value(measured: Measured, where: str) -> None:
    value = measured.value
    if isinstance(value, str):
        if value != OUT_OF_MEMORY:
            raise InvalidInput(
                "{where}.value must be a number, or {out_of_memory}. Got {value}.",
                where=where,
                out_of_memory=OUT_OF_MEMORY,
                value=shown(value),
            )
    elif not 0 <= value <= LARGEST:  # nor NaN
        raise InvalidInput(
            "{where}.value must be a finite number that is not negative. Got {value}.", where=where, value=shown(value)
        )
