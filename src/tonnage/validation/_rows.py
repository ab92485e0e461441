"""Published measurements as rows: read, checked for form, and looked up by id."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tonnage.errors import InvalidInput, shown


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
        """full or partial."""
        return self.completeness.partition(":")[0].strip()

    @property
    def source_name(self) -> str:
        """The source of the measured value, on one line."""
        found = self.source.get("value", "") if isinstance(self.source, Mapping) else self.source
        return " ".join(str(found).split())


def read(paths: Iterable[str]) -> list[Row]:
    """All rows of these YAML files; a file or row of another form is an InvalidInput that names it."""
    rows: list[Row] = []
    for path in paths:
        rows += _read_file(Path(path))
    seen: dict[str, str] = {}
    for row in rows:
        if row.id in seen:
            raise InvalidInput(f"row {shown(row.id)} is in {seen[row.id]} and in {row.file}: ids must be unique.")
        seen[row.id] = row.file
    return rows


def _read_file(path: Path) -> list[Row]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        listed = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(listed, list):
        raise InvalidInput(f"{path} must hold a list of rows. Got {type(listed).__name__}.")
    return [_row(item, path, index) for index, item in enumerate(listed)]


def _row(item: Any, path: Path, index: int) -> Row:
    where = f"{path}, row {index + 1}"
    if isinstance(item, Mapping) and isinstance(item.get("id"), str):
        where = f"{path}, row {shown(item['id'])}"
    try:
        row = msgspec.convert(item, Row)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(f"{where}: {error}") from None
    return msgspec.structs.replace(row, file=str(path))
