"""Runs of this site: added from rows, compared again, shared as rows, and what they say together."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from tonnage.calibration.compared import compared
from tonnage.documents.interchange.calibration import CalibratedQuantity, CalibrationDocument, KeptRunDocument
from tonnage.estimate.site.corrections import Corrections
from tonnage.estimate.site.stored import KeptRun, keep, keep_chosen, kept, remove, shown_place
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.version import __version__
from tonnage.validation.rows import files_of, items_of, row_of

#: Quantities of rows that a correction is made from.
CORRECTED = "step time, tokens per second or memory of training; TTFT, TPOT, latency or throughput of serving"


def add(rows: Iterable[Any], where: str = "") -> list[KeptRun]:
    """Compare rows with the estimates and keep them; a row of an id that is there is replaced. InvalidInput where a
    row is malformed, or where none of them says a quantity that is corrected.
    """
    runs, others = [], 0
    for index, item in enumerate(rows):
        found = compared(row_of(item, where, index))
        if found:
            runs.append(_run(dict(item), found))
        else:
            others += 1
    if not runs:
        raise InvalidInput(
            "none of the {count} rows says what is corrected: {quantities}.", count=others, quantities=CORRECTED
        )
    keep(runs)
    keep_chosen()
    return runs


def add_files(paths: Sequence[str]) -> list[KeptRun]:
    """The rows of files, or of folders of them."""
    found: list[KeptRun] = []
    for path in paths:
        for file in files_of(Path(path)):
            found += add(items_of(file), str(file))
    return found


def compare_again() -> list[KeptRun]:
    """Compare all runs with the estimates of this version. A row that this version refuses is left as it is."""
    runs = [_run(run.row, found) for run in kept() if (found := compared(row_of(run.row)))]
    keep(runs)
    keep_chosen()
    return runs


def share(path: str) -> int:
    """Write all runs as rows of docs/rows.md, which `add` reads on another machine; how many there are."""
    from tonnage.measure.rows import merge

    runs = kept()
    if not runs:
        raise InvalidInput("{place} has no runs to share.", place=shown_place())
    merge(Path(path), [run.row for run in runs])
    return len(runs)


def forget(identities: Sequence[str]) -> int:
    """Take runs out by their ids; how many are left."""
    remove(identities)
    keep_chosen()
    return len(kept())


def document() -> CalibrationDocument:
    """What is kept, and what it corrects."""
    runs = kept()
    current = [one for run in runs if run.version == __version__ for one in run.compared]
    checked = Corrections(current).checked() if current else ()
    return CalibrationDocument(
        place=shown_place(),
        version=__version__,
        runs=[
            KeptRunDocument(
                id=run.id, day=run.day, version=run.version, quantities=[one.quantity for one in run.compared]
            )
            for run in runs
        ],
        quantities=[CalibratedQuantity(**asdict(one)) for one in checked],
    )


def _run(row: dict[str, Any], found: Sequence[Any]) -> KeptRun:
    day = str(row.get("date") or f"{datetime.now(UTC):%Y-%m-%d}")[:10]
    return KeptRun(id=str(row["id"]), day=day, version=__version__, row=row, compared=tuple(found))
