"""Write src/tonnage/estimate/bands/measured.py: how far measured memory lies from the estimate, by runtime and method
(training), and by engine and hardware family (serving).

Of each kind of run, the factors measured / predicted are taken, of the figure of a row that leaves least out, and a
band from their 10 % to their 90 % quantile. It is judged by leaving out: each publisher's rows by the band of the other
publishers' rows (each row by that of all others, where the other publishers have too few). Where fewer than eight of
ten lie inside, both ends move outwards by as much as brings them in (conformalised quantiles, Romano et al. 2019). A
band always holds the estimate itself. Rows that leave something out are used where those that say all are too few. A
kind of run with too few rows has no band of its own. For those there is one of all others: from the rows of every kind
that say everything, moved outwards until it holds eight of ten rows of a kind left out, each kind counting the same.

Rows that are left out for good make no band (scripts/leave_out.py).

PYTHONPATH=src python scripts/fit_bands.py [ROWS.yaml or FOLDER ...]
"""

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from _rows_for_fits import rows_for_fits
from tonnage.estimate.bands import Band, family_of, kind_of
from tonnage.validation import Row, serving, training

ROOT = Path(__file__).parents[1]
CORPUS = tuple(ROOT / "validation" / name for name in ("train_memory.yaml", "infer_memory.yaml"))
OUT = ROOT / "src" / "tonnage" / "estimate" / "bands" / "measured.py"
INSIDE = 0.8  # of the measurements lie inside
FEWEST = 8  # different factors make a band
FEW = 20  # so many do not tell their own quantiles
NARROWEST = 0.005  # a measurement is no surer than its rounding and the run itself
Kind = tuple[str, str]


class Factor(Struct, frozen=True):
    """One measurement over its estimate. `kind`: runtime and method, or engine and hardware family."""

    log: float
    source: str
    verb: str
    kind: Kind
    vendor: str
    is_full: bool


def factors(paths: Sequence[str]) -> list[Factor]:
    """All rows that have both figures of a whole process. Rows that repeat a figure of the same layout count once."""
    rows = rows_for_fits(paths)
    read_as = {"train_memory": _of_training, "infer_memory": _of_serving}
    made = (
        read_as[row.kind](row)
        for row in rows
        if row.kind in read_as and not row.skipped and row.completeness_class != "indicative"
    )
    return list({(each.source, each.kind, round(each.log, 9)): each for each in made if each is not None}.values())


def _of_training(row: Row) -> Factor | None:
    made = training.memory_factor(row)
    if made is None:
        return None
    asked = training.TrainingRow(row)
    kind = asked.plan.runtime, kind_of(asked.plan)
    return _factor(made, row, "train", kind, asked.cluster.accelerator.vendor)


def _of_serving(row: Row) -> Factor | None:
    made = serving.memory_factor(row)
    if made is None:
        return None
    asked = serving.ServingRow(row)
    if asked.runtime is None or not family_of(asked.cluster.accelerator):
        return None
    chip = asked.cluster.accelerator
    return _factor(made, row, "serve", (asked.runtime.name, family_of(chip)), chip.vendor)


def _factor(made: float, row: Row, verb: str, kind: Kind, vendor: str) -> Factor:
    is_full = row.completeness_class == "full"
    return Factor(math.log(made), training.publisher_of(row), verb, kind, vendor, is_full)


def band(kind: Kind, found: Sequence[Factor]) -> Band | None:
    """The band of these measurements, and how it holds for those that did not make it; None for too few."""
    ends = _widened(found)
    if ends is None:
        return None
    sources = sorted({each.source for each in found})
    low, high = (round(math.exp(each), 4) for each in ends)
    only = sources[0] if len(sources) == 1 else ""
    return Band(
        runtime=kind[0],
        kind=kind[1],
        low=low,
        high=high,
        rows=len(found),
        sources=len(sources),
        only=only,
        held=_held(found),
    )


def _widened(found: Sequence[Factor]) -> tuple[float, float] | None:
    """Logarithms of the ends, moved outwards until they hold for rows that did not make them; None for too few rows."""
    if len(found) < FEWEST:
        return None
    # of few that were judged the next one lies inside with a smaller share (Romano2019, theorem 1)
    inside = min(INSIDE * (1 + 1 / len(found)), 1.0) if len(found) < FEW else INSIDE
    further = max(0.0, quantile([_outside(each, _others(each, found)) for each in found], inside))
    low, high = _ends([each.log for each in found])
    return min(low - further, 0.0), max(high + further, 0.0)


def _held(found: Sequence[Factor]) -> float | None:
    """The share of rows inside the band that the other publishers' rows make; None where those are too few for any."""
    judged = []
    for source in sorted({each.source for each in found}):
        ends = _widened([each for each in found if each.source != source])
        if ends is not None:
            judged += [ends[0] <= each.log <= ends[1] for each in found if each.source == source]
    return round(sum(judged) / len(judged), 3) if judged else None


def _others(left_out: Factor, found: Sequence[Factor]) -> list[float]:
    """What judges a measurement: the other publishers', or all other rows where the other publishers have too few to
    judge by.
    """
    elsewhere = [each.log for each in found if each.source != left_out.source]
    return elsewhere if len(elsewhere) >= FEWEST else [each.log for each in found if each is not left_out]


def _outside(each: Factor, others: Sequence[float]) -> float:
    """How far a measurement lies outside of the others' band; negative: inside."""
    low, high = _ends(others)
    return max(low - each.log, each.log - high)


def _ends(logs: Sequence[float]) -> tuple[float, float]:
    return quantile(logs, 0.1) - NARROWEST, quantile(logs, 0.9) + NARROWEST


def quantile(values: Sequence[float], share: float) -> float:
    """Between the two nearest values, by how near each is."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def band_of_others(found: Sequence[Factor]) -> Band | None:
    """The band of a kind of run that nobody measured: how far the rows of a kind lie from what the other kinds say."""
    full = [each for each in found if each.is_full]
    by_kind = {kind: [each.log for each in full if each.kind == kind] for kind in sorted({each.kind for each in full})}
    if len(full) < FEWEST or len(by_kind) < 2:
        return None
    outside = []
    for kind, logs in by_kind.items():
        low, high = _ends([each.log for each in full if each.kind != kind])
        outside += [(max(low - log, log - high), 1 / len(logs)) for log in logs]
    further = max(0.0, _weighted_quantile(outside, INSIDE))
    low, high = _ends([each.log for each in full])
    return Band(
        low=round(math.exp(min(low - further, 0.0)), 4),
        high=round(math.exp(max(high + further, 0.0)), 4),
        rows=len(full),
        sources=len({each.source for each in full}),
    )


def _weighted_quantile(values: Sequence[tuple[float, float]], share: float) -> float:
    """The least value up to which this share of the weights lies; `values`: value and weight."""
    up_to, wanted = 0.0, share * sum(weight for _, weight in values)
    for value, weight in sorted(values):
        up_to += weight
        if up_to >= wanted - 1e-9:
            return value
    return max(value for value, _ in values)


def own_rows(kind: Kind, found: Sequence[Factor]) -> list[Factor]:
    """The rows of this kind of run that say everything; all of its rows, whose errors are of what they leave out
    too, where those are too few.
    """
    own = [each for each in found if each.kind == kind]
    full = [each for each in own if each.is_full]
    return full if len(full) >= FEWEST else own


def text(found: Sequence[Factor]) -> str:
    """The module."""
    lines = [
        '"""Written by scripts/fit_bands.py from validation/train_memory.yaml and infer_memory.yaml: do not edit."""',
        "",
        "from tonnage.estimate.bands.forms import Band, Table",
        "",
        *_table("TRAIN_MEMORY", [each for each in found if each.verb == "train"]),
        *_table("SERVE_MEMORY", [each for each in found if each.verb == "serve"]),
    ]
    return "\n".join([*lines[:-1], lines[-1], ""])


def _table(name: str, found: Sequence[Factor]) -> list[str]:
    """The lines of one table."""
    lines, vendors = [], set()
    for kind in sorted({each.kind for each in found}):
        rows = own_rows(kind, found)
        made = band(kind, rows)
        if made is not None:
            vendors |= {each.vendor for each in rows}
            lines.append(f'        ("{kind[0]}", "{kind[1]}"): {_shown(made)},')
    others = band_of_others(found)
    ends = [f"    vendors={_names(vendors)},", *([f"    others={_shown(others)},"] if others else [])]
    return [f"{name} = Table(", "    bands={", *lines, "    },", *ends, ")"]


def _names(words: Iterable[str]) -> str:
    return "(" + "".join(f'"{word}", ' for word in sorted(words)).rstrip() + ")"


def _shown(made: Band) -> str:
    return (
        f'Band(runtime="{made.runtime}", kind="{made.kind}", low={made.low}, high={made.high}, '
        f"rows={made.rows}, sources={made.sources}, "
        f'only="{made.only}", held={made.held})'
    )


if __name__ == "__main__":
    OUT.write_text(text(factors(sys.argv[1:] or [str(path) for path in CORPUS])), encoding="utf-8")
    print(OUT.read_text(encoding="utf-8"))
