"""What a dataset says as a whole: counts and the best rows, made by going through its parts in their order, one at a
time.
"""

from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from tonnage.search.sweep import dataset
from tonnage.search.sweep.keep import RATE, best, workload
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.tasks import Tasks

BEST = "best.parquet"
SHOWN = 20  # workloads whose best row a summary quotes, those of most tokens a second


class Summary(Struct, frozen=True, kw_only=True):
    """`considered`: plans, or questions of serving; `valid`: those whose sizes belong together and of which enough
    is known; `fitting`: those that fit with the high end of the error band; `rows` are kept. `without`: of options
    that do not apply to all of them, how many were estimated without; `damaged`: parts whose pages are not what was
    written.
    """

    considered: int
    valid: int
    fitting: int
    rows: int
    size: int
    removed: dict[str, int]
    without: dict[str, int]
    best: list[dict[str, Any]]
    best_rows: int
    missing: int
    damaged: tuple[int, ...]


def summarise(directory: Path, spec: Spec, tasks: Tasks) -> Summary:
    """Goes over all parts; memory is that of one part and of the best rows of one model and cluster."""
    folder, totals = directory / dataset.FOLDER, dict.fromkeys(("considered", "valid", "fitting"), 0)
    removed: dict[str, int] = {}
    without: dict[str, int] = {}
    rows = size = missing = 0
    damaged: list[int] = []
    chosen = _Best(spec, directory / BEST)
    try:
        for number in range(tasks.count):
            path = folder / dataset.part_name(number)
            facts = dataset.facts(path) if path.exists() else None
            if facts is None:
                missing += 1
                continue
            part = dataset.rows_of(path)
            if part is None:
                damaged.append(number)
                continue
            for name in totals:
                totals[name] += facts[name]
            for constraint, plans in facts["removed"].items():
                removed[constraint] = removed.get(constraint, 0) + plans
            for option, plans in facts["without"].items():
                without[option] = without.get(option, 0) + plans
            rows, size = rows + part.num_rows, size + path.stat().st_size
            chosen.add(part)
        chosen.close()
    finally:
        chosen.discard()
    return Summary(
        **totals,
        rows=rows,
        size=size,
        removed=removed,
        without=without,
        best=chosen.top,
        best_rows=chosen.rows,
        missing=missing,
        damaged=tuple(damaged),
    )


class _Best:
    """The best rows of each workload, written as soon as no later part can have one of the same model and cluster."""

    def __init__(self, spec: Spec, path: Path):
        self.spec, self.path = spec, path
        self.beside = path.with_name(f".{path.name}{dataset.WRITING}")
        self.writer: Any = None
        self.held: Any = None
        self.rows = 0
        self.top: list[dict[str, Any]] = []
        self._rates: list[float] = []

    def add(self, part: Any) -> None:
        if not part.num_rows:
            return
        part = self._best_of(_plain(part))
        if not part.num_rows:
            return
        self.held = part if self.held is None else dataset.arrow().concat_tables([self.held, part])
        places = _places(self.held)
        last = places == places[-1]
        if not last.all():
            self._write(self.held.filter(~last))
            self.held = self.held.filter(last)
        if self.held.num_rows > 4 * len(part):
            self.held = self._best_of(self.held)

    def close(self) -> None:
        """Write the rows that are left and give the file its name."""
        if self.held is not None:
            self._write(self.held)
        self.held = None
        if self.writer is None:
            self._open(_plain(dataset.table(self.spec, {}, {})).schema)
        self.writer.close()
        self.writer = None
        self.beside.replace(self.path)

    def discard(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.beside.unlink(missing_ok=True)

    def _open(self, schema: Any) -> None:
        self.writer = dataset.arrow().parquet.ParquetWriter(self.beside, schema, compression="zstd")

    def _write(self, table: Any) -> None:
        table = self._best_of(table)
        if self.writer is None:
            self._open(table.schema)
        self.writer.write_table(table)
        self.rows += table.num_rows
        rows = self._best_of(table, 1).to_pylist()
        self.top = sorted((*self.top, *rows), key=lambda row: (-(row[RATE[self.spec.kind]] or 0), row["plan"]))[:SHOWN]

    def _best_of(self, table: Any, count: int = 0) -> Any:
        spec = self.spec
        names = {*workload(spec), RATE[spec.kind], "plan", *({"fits", "needed_bytes"} & set(table.column_names))}
        columns = {name: _numbers(table[name]) for name in names}
        return table.filter(dataset.arrow().array(best(spec, columns, count or spec.best)))


def _plain(table: Any) -> Any:
    """Words as strings: the dictionaries of parts differ."""
    pa = dataset.arrow()
    schema = pa.schema(
        [(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in table.schema]
    )
    return table.replace_schema_metadata(None).cast(schema)


def _numbers(column: Any) -> np.ndarray:
    """A column as an array; words as numbers that tell them apart."""
    pa = dataset.arrow()
    if pa.types.is_string(column.type):
        return np.unique(column.to_numpy(zero_copy_only=False).astype(str), return_inverse=True)[1].reshape(-1)
    if pa.types.is_boolean(column.type):
        return np.asarray([1 if flag else 0 for flag in column.to_pylist()])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _places(table: Any) -> np.ndarray:
    """Which model and cluster each row is of."""
    return _numbers(table["model"]) * (len(table) + 1) + _numbers(table["cluster"])
