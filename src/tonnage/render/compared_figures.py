"""A figure of a comparison under a heading that says its unit: one rule for the short table and for the whole one."""

from collections.abc import Callable, Mapping
from typing import Any

from tonnage.kernel.units import human, money, significant
from tonnage.render.brief.numbers import column_unit, gib, in_unit, percent
from tonnage.search.compare.columns import Column, ran
from tonnage.search.compare.pivot import part_paid

Formats = Mapping[str, Callable[[Any], str]]  # unit, or the name of a column -> how its values are written


def figure_text(column: Column, row: Mapping[str, Any], formats: Formats) -> str:
    """A figure of a row as a cell shows it; "-" where it has none."""
    value = row[column.name]
    if value is None or not ran(column, row):
        return "-"
    if column.name == "accelerators":
        return f"{value:,}/{row['accelerators_paid']:,}" if part_paid(row) else f"{value:,}"
    write = formats.get(column.name) or formats.get(column.unit) or formats[""]
    return write(value)


def short_formats(unit: tuple[float, str] | None = None) -> Formats:
    """How the short table writes values. `unit`: of the times of a column, where a column stands in one."""
    return {
        "mfu": lambda value: f"{percent(value)} %",
        "USD": money,
        "bytes": gib,
        "seconds": lambda value: in_unit(value, unit or column_unit([value])),
        "": lambda value: f"{value:,}" if isinstance(value, int) else significant(value),
    }


WHOLE: Formats = {
    "mfu": lambda value: f"{100 * value:.1f} %",
    "USD": lambda value: f"{value:,.0f}" if value >= 1000 else human(value, "USD").removesuffix(" USD"),
    "bytes": lambda value: human(value, "bytes"),
    "seconds": lambda value: human(value, "seconds"),
    "": lambda value: f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.3g}",
}
