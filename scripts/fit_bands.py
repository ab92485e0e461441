"""Write src/tonnage/estimate/_bands.py: how far measured memory of training lies from the estimate, by runtime and over all.

Of each kind of run, the factors measured / predicted are taken, and a band from their 10 % to their 90 % quantile. It is judged by
leaving out: each source's rows by the band of the other sources' rows (each row by that of all others, where the other sources have too few). Where
fewer than eight of ten lie inside, both ends move outwards by as much as brings them in (conformalised quantiles, Romano et al. 2019). A
band always holds the estimate itself. Rows that leave something out are used for runtimes that have no others.

PYTHONPATH=src python scripts/fit_bands.py [ROWS.yaml ...]
"""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.bands import Band
from tonnage.validation import read, references_of
from tonnage.validation.training import asked, factor, source_of

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "validation" / "train_memory.yaml"
OUT = ROOT / "src" / "tonnage" / "estimate" / "_bands.py"
INSIDE = 0.8  # of the measurements lie inside
FEWEST = 8  # different factors make a band
NARROWEST = 0.005  # a measurement is no surer than its rounding and the run itself


class Factor(Struct, frozen=True):
    """One measurement over its estimate."""

    log: float
    source: str
    runtime: str
    vendor: str
    method: str
    is_full: bool


def factors(paths: Sequence[str]) -> list[Factor]:
    """All rows that have both figures of a whole rank. Rows that repeat a figure of the same layout count once."""
    rows = read(paths)
    known, found = references_of(rows), []
    for row in rows:
        made = factor(row, known) if row.kind == "train_memory" and row.completeness_class != "indicative" else None
        if made is not None:
            question = asked(row, known)
            vendor, method = question.cluster.accelerator.vendor, str(question.found.get("method", "full"))
            found.append(
                Factor(
                    math.log(made),
                    source_of(row),
                    str(question.options.runtime),
                    vendor,
                    method,
                    row.completeness_class == "full",
                )
            )
    return list({(f.source, f.runtime, round(f.log, 9)): f for f in found}.values())


def band(kind: str, found: Sequence[Factor]) -> Band | None:
    """The band of these measurements, and how it holds for those that did not make it; None for too few."""
    if len(found) < FEWEST:
        return None
    sources = sorted({each.source for each in found})
    further = max(0.0, quantile([_outside(each, _others(each, found)) for each in found], INSIDE))
    low, high = _ends([each.log for each in found])
    low, high = min(low - further, 0.0), max(high + further, 0.0)
    return Band(
        kind=kind, low=round(math.exp(low), 4), high=round(math.exp(high), 4), rows=len(found), sources=len(sources)
    )


def _others(left_out: Factor, found: Sequence[Factor]) -> list[float]:
    """What judges a measurement: the other sources', or all other rows where the other sources have too few to judge by."""
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


def nearest(runtime: str, found: Sequence[Factor]) -> list[Factor]:
    """The rows of a runtime that say everything; the others, whose errors are of what they leave out too, where it has no such row."""
    own = [each for each in found if each.runtime == runtime]
    return [each for each in own if each.is_full] or own


def text(found: Sequence[Factor]) -> str:
    """The module."""
    every = band("all runtimes", [each for each in found if each.is_full])
    runtimes = {
        name: _wider(band(name, nearest(name, found)), every) for name in sorted({each.runtime for each in found})
    }
    lines = [
        '"""Written by scripts/fit_bands.py from validation/train_memory.yaml: do not edit."""', "",
        "from tonnage.estimate.bands import Band, Table", "", "TRAIN_MEMORY = Table(",
        f"    all={_shown(every)},", "    runtimes={",
        *(f'        "{name}": {_shown(made)},' for name, made in runtimes.items() if made), "    },",
        f"    vendors={_names(each.vendor for each in found)},", f"    methods={_names(each.method for each in found)},", ")  # fmt: skip", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _wider(own: Band | None, every: Band | None) -> Band | None:
    """A source cannot show what all of its runs have in common: the band of one alone is no narrower than that of all."""
    if own is None or every is None or own.sources > 1:
        return own
    return replace(own, low=min(own.low, every.low), high=max(own.high, every.high))


def _names(words: Any) -> str:
    return "(" + "".join(f'"{word}", ' for word in sorted(set(words))).rstrip() + ")"


def _shown(made: Band | None) -> str:
    if made is None:
        return "None"
    return f'Band(kind="{made.kind}", low={made.low}, high={made.high}, rows={made.rows}, sources={made.sources})'


if __name__ == "__main__":
    OUT.write_text(text(factors(sys.argv[1:] or [str(CORPUS)])), encoding="utf-8")
    print(OUT.read_text(encoding="utf-8"))
