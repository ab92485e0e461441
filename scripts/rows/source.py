"""Rows in the form of their sources (validation/sources/README.md): read, checked for form, and looked up by id."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.units import LARGEST
from tonnage.validation.rows import files_of, id_or_place, items_of

# indicative: a recommendation, or a run whose lengths nobody controlled. It is shown, and counts in no error and no
# band.
COMPLETENESS = ("full", "partial", "indicative")
OUT_OF_MEMORY = "OOM"
LONGEST_ID, LONGEST_TEXT = 200, 4_000  # characters
LONG_NUMBER = re.compile(r"\d{31}")  # in a text, from which numbers are read too
LARGEST_NUMBER = 1e30  # of model and config: FLOP of the largest runs are 1e27


class Measured(msgspec.Struct, frozen=True):
    """One metric of a run. `value` is a number, or OOM."""

    metric: str
    value: float | str
    unit: str = ""


class Row(msgspec.Struct, frozen=True):
    """One published run or fact. Unknown keys are kept out: files may carry more than is asked here."""

    id: str
    kind: str
    measured: Measured
    model: dict[str, Any] = {}
    config: dict[str, Any] = {}
    also: list[Measured] = []
    source: Any = ""
    completeness: str = "full"
    note: str = ""
    file: str = ""

    @property
    def completeness_class(self) -> str:
        """full, partial or indicative."""
        return self.completeness.partition(":")[0].strip()

    @property
    def source_name(self) -> str:
        """The source of the measured value, on one line."""
        found = self.source.get("value", "") if isinstance(self.source, Mapping) else self.source
        return " ".join(str(found).split())


class Malformed(msgspec.Struct, frozen=True):
    """A row that has not the form of one. `id`: its own, or the place where it stands; `reason`: what is wrong, with
    its file.
    """

    id: str
    reason: str


def read(paths: Iterable[str], malformed: list[Malformed] | None = None) -> list[Row]:
    """All rows of these YAML files, and of those in folders. A file of another form is an InvalidInput that names
    it, and so is a row, unless a list `malformed` takes what is wrong with it.
    """
    rows: list[Row] = []
    seen: dict[str, str] = {}
    for path in paths:
        for file in files_of(Path(path)):
            for index, item in enumerate(items_of(file)):
                try:
                    row = _row(item, file, index)
                    if row.id in seen:
                        raise InvalidInput(
                            f"row {shown(row.id)} is in {seen[row.id]} and in {row.file}: ids must be unique."
                        )
                except InvalidInput as error:
                    if malformed is None:
                        raise
                    malformed.append(Malformed(id_or_place(item, index), str(error)))
                    continue
                seen[row.id] = row.file
                rows.append(row)
    return rows


def _row(item: Any, path: Path, index: int) -> Row:
    where = f"{path}, row {index + 1}"
    if not isinstance(item, Mapping):
        raise InvalidInput(f"{where} must be a mapping with id, kind and measured. Got {shown(item)}.")
    if isinstance(item.get("id"), str):
        where = f"{path}, row {shown(item['id'])}"
    try:
        named = {"model": {"name": item["model"]}} if isinstance(item.get("model"), str) else {}
        row = msgspec.convert({**item, **named, "also": _spread(item.get("also", []))}, Row)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{where}: {str(error)[:300]}") from None
    if not row.id.strip() or not row.kind.strip():
        raise InvalidInput(f"{where}: id and kind must not be empty.")
    if len(row.kind) > LONGEST_ID:
        raise InvalidInput(f"{where}: kind has at most {LONGEST_ID} characters. Got {len(row.kind):,}.")
    if len(row.id) > LONGEST_ID:
        raise InvalidInput(f"{where}: id has at most {LONGEST_ID} characters. Got {len(row.id):,}.")
    words = [[each.metric, each.unit] for each in (row.measured, *row.also)]
    texts = {"completeness": row.completeness, "note": row.note}
    parts = {"model": row.model, "config": row.config, "source": row.source, "measured": words, **texts}
    for name, fields in parts.items():
        _check_values(fields, name, where)
    if row.completeness_class not in COMPLETENESS:
        known = "full, partial or indicative"
        raise InvalidInput(f"{where}: completeness must begin with {known}. Got {shown(row.completeness)}.")
    _check_value(row.measured, f"{where}: measured")
    for number, measured in enumerate(row.also):
        _check_value(measured, f"{where}: also[{number}]")
    return msgspec.structs.replace(row, file=str(path))


def _spread(also: Any) -> Any:
    """Further metrics, where one with a figure for each rank or stage is as many metrics."""
    if not isinstance(also, list):
        return also
    made = []
    for each in also:
        if isinstance(each, Mapping) and isinstance(each.get("value"), Mapping):
            name = each.get("metric")
            made += [{**each, "metric": f"{name} [{key}]", "value": value} for key, value in each["value"].items()]
        else:
            made.append(each)
    return made


def _check_values(fields: Any, name: str, where: str) -> None:
    """Numbers and texts of a size that something has: whoever reads a field may compute with it."""
    waiting: list[tuple[Any, str]] = [(fields, name)]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend((inner, f"{path}.{str(key)[:80]}") for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend((inner, f"{path}[{number}]") for number, inner in enumerate(value))
        elif isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER:  # nor NaN
            raise InvalidInput(f"{where}: {path} must be a number of at most {LARGEST_NUMBER:g}. Got {shown(value)}.")
        elif isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise InvalidInput(f"{where}: {path} has at most {LONGEST_TEXT:,} characters. Got {len(value):,}.")
        elif isinstance(value, str) and LONG_NUMBER.search(value):
            raise InvalidInput(f"{where}: {path} holds a number of more than 30 digits. Got {shown(value)}.")


def _check_value(measured: Measured, where: str) -> None:
    value = measured.value
    if isinstance(value, str):
        if value != OUT_OF_MEMORY:
            raise InvalidInput(f"{where}.value must be a number, or {OUT_OF_MEMORY}. Got {shown(value)}.")
    elif not 0 <= value <= LARGEST:  # nor NaN
        raise InvalidInput(f"{where}.value must be a finite number that is not negative. Got {shown(value)}.")


def references_of(rows: Iterable[Row]) -> dict[str, Row]:
    """The rows whose hyper-parameters others refer to, by the name of their model."""
    return {str(row.model.get("id", row.id.removeprefix("params-"))): row for row in rows if row.kind == "params"}
