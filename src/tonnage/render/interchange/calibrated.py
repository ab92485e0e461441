"""What is kept of own runs, and what they correct, as text."""

from collections.abc import Mapping
from typing import Any

from tonnage.language import say
from tonnage.render.text import table_lines

HEADER = ("quantity", "accelerator", "runtime", "runs", "error", "corrected", "factor", "used")
NAMES = {
    "step_time": "step time",
    "training_memory": "memory of training",
    "ttft": "TTFT",
    "tpot": "TPOT",
    "request_time": "time of a request",
}


def calibration_lines(document: Mapping[str, Any]) -> list[str]:
    """What is kept and where, then a line for each quantity, accelerator and runtime."""
    runs, quantities = document["runs"], document["quantities"]
    if not runs:
        return [
            say(
                "no runs are kept in {place}: `tonnage reconcile LOG --keep`, or `tonnage calibrate add FILE`",
                place=document["place"],
            )
        ]
    used = sum(one["used"] for one in quantities)
    first = say(
        "{count} runs in {place}; {used} of {all} quantities are corrected",
        count=len(runs),
        place=document["place"],
        used=used,
        all=len(quantities),
    )
    old = sum(run["version"] != document["version"] for run in runs)
    if old:
        first = say(
            "{first}; {old} were compared with another version: `tonnage calibrate compare`", first=first, old=old
        )
    return [first, "", *table_lines([_row(one) for one in quantities], HEADER)] if quantities else [first]


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        say(NAMES[one["quantity"]]),
        one["accelerator"],
        one["runtime"],
        str(one["runs"]),
        f"{100 * one['error']:.1f} %",
        f"{100 * one['corrected_error']:.1f} %",
        f"{one['factor']:.2f}",
        say("yes") if one["used"] else say("no"),
    )
