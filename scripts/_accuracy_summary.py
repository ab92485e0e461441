"""docs/accuracy.md and its plot: one line for each kind of figure, from the rows of validation/ and, where constants
were fitted to published runs, from the errors on rows that the fit has not seen (the heads of rates.toml).
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from _rows_for_fits import RECENT
from tonnage.documents.document import builtins
from tonnage.validation import Row, read, validate

ROOT = Path(__file__).parents[1]
SUMMARY = ROOT / "docs" / "accuracy.md"
PLOT = ROOT / "docs" / "images" / "accuracy.svg"
STEP = ROOT / "src" / "tonnage" / "estimate" / "hardware" / "rates.toml"
SERVED = ROOT / "src" / "tonnage" / "estimate" / "serving_time" / "rates.toml"
SAMPLE, OTHERS = "cells left out, silicon sample, full", "cells left out, others, full"
COUNTED, LEFT_OUT, FITTED = "counted", "rows left out of the fit", "fitted to these rows"
FOR_GOOD = "left out of every fit for good"
EXACT = 0.0005  # an error below it is no error of a count


class Figure(NamedTuple):
    """A kind of figure: how many rows, and the sizes of their errors as shares."""

    name: str
    rows: int
    middle: float
    most: float  # of nine rows in ten
    how: str


@cache
def figures() -> tuple[Figure, ...]:
    """Each kind of figure with its errors."""
    return (
        _of_rows("parameters of a model", "params.yaml", "full", COUNTED),
        _of_rows("size of a GGUF file", "gguf_sizes.yaml", "", COUNTED),
        _of_rows("memory of training, every setting published", "train_memory.yaml", "full", COUNTED),
        _of_rows("memory of training, some settings not published", "train_memory.yaml", "partial", COUNTED),
        _of_rows("memory of serving", "infer_memory.yaml", "full", COUNTED),
        _of_head("time of a training step, dense model", STEP, "sources left out, dense"),
        _of_head("time of a training step, mixture of experts", STEP, "sources left out, moe"),
        _of_head("TPOT, benchmarks of InferenceX and NVIDIA", SERVED, f"{SAMPLE}, tpot_seconds"),
        _of_head("TPOT, other publications", SERVED, f"{OTHERS}, tpot_seconds"),
        _of_head("TTFT, benchmarks of InferenceX and NVIDIA", SERVED, f"{SAMPLE}, ttft_seconds"),
        _of_head("TTFT, other publications", SERVED, f"{OTHERS}, ttft_seconds"),
        _of_recent("speed of serving, new sources of 2025 and 2026", "infer_speed"),
        _of_recent("speed of training, new sources of 2025 and 2026", "train_speed"),
        _of_recent("time of a step of reinforcement learning", "rl_speed", "rl_step_time"),
        _of_rows("time of a collective", "collectives.yaml", "", FITTED),
    )


def _of_rows(name: str, file: str, completeness: str, how: str) -> Figure:
    """Errors of the main figures of a file's rows."""
    rows = read([str(ROOT / "validation" / file)])
    return _figure(name, rows, lambda line: line["completeness"].startswith(completeness), how)


def _of_recent(name: str, kind: str, quantity: str = "") -> Figure:
    """Errors of the main figures of new sources' rows that no fit may read; of one quantity, where it is named."""
    rows = [
        row
        for row in read([str(RECENT)])
        if row.left_out and row.kind == kind and quantity in ("", row.measured.quantity)
    ]
    return _figure(name, rows, lambda line: not line["completeness"].startswith("indicative"), FOR_GOOD)


def _figure(name: str, rows: list[Row], counts: Callable[[Any], bool], how: str) -> Figure:
    lines: list[Any] = builtins(validate(rows))["rows"]
    known = [line for line in lines if line["main"] and line["relative_error"] is not None]
    sizes = sorted(abs(line["relative_error"]) for line in known if counts(line))
    return Figure(name, len(sizes), median(sizes), sizes[-(-9 * len(sizes) // 10) - 1], how)


def _of_head(name: str, file: Path, left_out: str) -> Figure:
    """Errors that a fit wrote into the head of its rates, in percent."""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"# {left_out}: "):
            found = {word: float(value) for word, value in re.findall(r"\b(n|median|p90) ([\d.]+)", line)}
            return Figure(name, int(found["n"]), found["median"] / 100, found["p90"] / 100, LEFT_OUT)
    raise ValueError(f"{file}: no line '{left_out}'")


def table() -> list[str]:
    """One row for each kind of figure."""
    return [
        "| figure | rows | median error | nine in ten within | compared |",
        "|---|---:|---:|---:|---|",
        *(
            f"| {each.name} | {each.rows:,} | {percent(each.middle)} | {percent(each.most)} | {each.how} |"
            for each in figures()
        ),
    ]


def percent(share: float) -> str:
    """A share as people read it; 'exact' where nothing is off."""
    return "exact" if share < EXACT else f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


FONT = 'font-family="sans-serif" font-size="13"'
WIDTH, LEFT, ROW, TOP = 780, 350, 26, 34
LEAST, MOST = 0.001, 1.0  # the ends of the axis, as shares
TICKS = ((0.001, "0.1 %"), (0.01, "1 %"), (0.1, "10 %"), (1.0, "100 %"))


def plot(shown: Sequence[Figure]) -> str:
    """An SVG: of each kind of figure the median error (a dot) and what nine rows in ten keep within (a line)."""
    height = TOP + ROW * len(shown) + 40
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
            "<title>Errors of estimates beside published measurements</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            f'<text x="{LEFT}" y="18" fill="#555">size of the error (log scale): dot median, line nine in ten</text>',
            *_axis(height),
            *(line for at, each in enumerate(shown) for line in _drawn(each, TOP + ROW * at + 18)),
            "</svg>",
            "",
        ]
    )


def _x(share: float) -> float:
    inside = min(max(share, LEAST), MOST)
    return round(LEFT + (WIDTH - LEFT - 40) * math.log(inside / LEAST) / math.log(MOST / LEAST), 1)


def _axis(height: int) -> Iterable[str]:
    for share, words in TICKS:
        yield f'<line x1="{_x(share)}" x2="{_x(share)}" y1="{TOP}" y2="{height - 26}" stroke="#ddd"/>'
        yield f'<text x="{_x(share)}" y="{height - 10}" fill="#555" text-anchor="middle">{words}</text>'


def _drawn(each: Figure, y: int) -> Iterable[str]:
    colour = "#0b6e4f" if each.how == COUNTED else "#1f5fa8" if each.how in (LEFT_OUT, FOR_GOOD) else "#8a6d00"
    yield f'<text x="{LEFT - 12}" y="{y}" text-anchor="end" fill="#222">{each.name}</text>'
    if each.most >= EXACT:
        yield (
            f'<line x1="{_x(each.middle)}" x2="{_x(each.most)}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" '
            'stroke-width="3" stroke-linecap="round"/>'
        )
    yield f'<circle cx="{_x(each.middle)}" cy="{y - 4}" r="5" fill="{colour}"/>'
    if each.most < EXACT:
        yield f'<text x="{_x(each.middle) + 10}" y="{y}" fill="{colour}">exact</text>'


def summary() -> str:
    """The page with its table as it is now: between the marks, all else is written by hand."""
    text = SUMMARY.read_text(encoding="utf-8")
    return re.sub(r"(<!-- accuracy all -->\n).*?(<!-- end -->)", _marked, text, flags=re.S)


def _marked(mark: re.Match[str]) -> str:
    return "\n".join([mark[1].rstrip("\n"), *table(), mark[2]])


def write_summary() -> None:
    """Write the page and its plot."""
    SUMMARY.write_text(summary(), encoding="utf-8")
    PLOT.write_text(plot(figures()), encoding="utf-8")
