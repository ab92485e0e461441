"""What runs on a machine, as lines of text: of each model the widest precision that fits."""

from collections.abc import Iterable, Mapping
from typing import Any

from tonnage.kernel.units import human
from tonnage.language import say, worded
from tonnage.render.prompts import with_prompts
from tonnage.render.text import inputs_lines, table_lines

MAX_ROWS = 40  # lines: --json has all


def machine_lines(document: Mapping[str, Any], widest: Iterable[Any]) -> list[str]:
    """`widest`: a line for each model, in the order of the answer."""
    question, rows = document["question"], list(widest)
    first = say(
        "{rows_count} of {models_tried} models run on {on} with {usable_bytes} an accelerator",
        rows_count=len(rows),
        models_tried=document["models_tried"],
        on=question["on"]["value"],
        usable_bytes=human(document["usable_bytes"], "bytes"),
    )
    header = (
        "model",
        "parameters",
        "weights",
        "engine",
        "memory",
        "download",
        "tokens/s",
        with_prompts(say("first token"), question),
        say("context up to"),
    )
    lines = [first, "", *inputs_lines(question), ""]
    if rows:
        lines += table_lines(map(_row, rows[:MAX_ROWS]), header)
    if len(rows) > MAX_ROWS:
        lines.append(
            say(
                "and {rows_count} more: --json has all, --order and --context choose others",
                rows_count=len(rows) - MAX_ROWS,
            )
        )
    return lines + [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]


def _row(row: Any) -> tuple[str, ...]:
    speed = "-" if row.tokens_per_second is None else f"{row.tokens_per_second:,.0f}"
    first = "-" if row.ttft_seconds is None else human(row.ttft_seconds, "seconds")
    return (
        row.model,
        human(row.parameters, "parameters").removesuffix(" parameters"),
        row.weights,
        row.engine,
        human(row.needed_bytes, "bytes"),
        human(row.download_bytes, "bytes"),
        speed,
        first,
        f"{row.longest_context:,}",
    )
