"""Published measurements as rows: read, checked for form, and looked up by id."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tonnage.errors import InvalidInput, shown
from tonnage.reach import is_folder
from tonnage.units import LARGEST

# indicative: a recommendation, or a run whose lengths nobody controlled. It is shown, and counts in no error and no band.
COMPLETENESS = ("full", "partial", "indicative")
OUT_OF_MEMORY = "OOM"


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


def read(paths: Iterable[str]) -> list[Row]:
    """All rows of these YAML files, and of those in folders; a file or row of another form is an InvalidInput that names it."""
    rows = [row for path in paths for file in _files(Path(path)) for row in _read_file(file)]
    seen: dict[str, str] = {}
    for row in rows:
        if row.id in seen:
            raise InvalidInput(f"row {shown(row.id)} is in {seen[row.id]} and in {row.file}: ids must be unique.")
        seen[row.id] = row.file
    return rows


def _files(path: Path) -> list[Path]:
    if not is_folder(path):
        return [path]
    found = sorted(path.glob("*.yaml"))
    if not found:
        raise InvalidInput(f"{path} holds no *.yaml.")
    return found


def _read_file(path: Path) -> list[Row]:
    from tonnage.yaml_files import load

    listed = load(path)
    if not isinstance(listed, list):
        raise InvalidInput(f"{path} must hold a list of rows. Got {type(listed).__name__}.")
    if not listed:
        raise InvalidInput(f"{path} holds no rows.")
    return [_row(item, path, index) for index, item in enumerate(listed)]


def _row(item: Any, path: Path, index: int) -> Row:
    where = f"{path}, row {index + 1}"
    if not isinstance(item, Mapping):
        raise InvalidInput(f"{where} must be a mapping with id, kind and measured. Got {shown(item)}.")
    if isinstance(item.get("id"), str):
        where = f"{path}, row {shown(item['id'])}"
    try:
        row = msgspec.convert({**item, "also": _spread(item.get("also", []))}, Row)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{where}: {str(error)[:300]}") from None
    if not row.id.strip() or not row.kind.strip():
        raise InvalidInput(f"{where}: id and kind must not be empty.")
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


def _check_value(measured: Measured, where: str) -> None:
    value = measured.value
    if isinstance(value, str):
        if value != OUT_OF_MEMORY:
            raise InvalidInput(f"{where}.value must be a number, or {OUT_OF_MEMORY}. Got {shown(value)}.")
    elif not 0 <= value <= LARGEST:  # nor NaN
        raise InvalidInput(f"{where}.value must be a finite number that is not negative. Got {shown(value)}.")
