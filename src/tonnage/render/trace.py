"""The answer of `trace` as lines of text."""

from collections.abc import Mapping
from typing import Any

from tonnage.breakdown import Term
from tonnage.render.text import table_lines, tree_lines
from tonnage.units import human

MODULES = 12


def trace_lines(document: Mapping[str, Any], memory: Term) -> list[str]:
    """The verdict; stages; what is alive at the peak, by kind and by module; how it is known."""
    question = document["question"]
    lines = [_verdict(document), ""]
    for name in ("program", "profile", "front_end", "events"):
        entry = question[name]
        why = f"  ({entry['why']})" if "why" in entry else ""
        lines.append(f"  {name:<12} {entry['value']}{why}")
    lines += ["", *_stages(document["stages"]), "", *tree_lines(memory, depth=2)]
    lines += ["", "largest at the peak:", *_modules(document["modules"])]
    lines += _known(document)
    if "against" in document:
        lines += ["", *_against(document["against"])]
    return lines + [f"note: {warning}" for warning in document["warnings"]]


def _verdict(document: Mapping[str, Any]) -> str:
    verdict, program = document["verdict"], document["question"]["program"]["value"]
    peak = f"at its peak {human(verdict['peak_allocated_bytes'], 'bytes')} allocated, {human(verdict['peak_reserved_bytes'], 'bytes')} reserved"
    if verdict["fits"] is None:
        return f"traced: {program}: {peak}; runs in {human(verdict['needed_bytes'], 'bytes')}"
    if verdict["fits"]:
        retries = f", after giving cached memory back {verdict['retries']} times" if verdict["retries"] else ""
        return f"fits: {program} in {human(verdict['usable_bytes'], 'bytes')}{retries}: {peak}"
    failure = verdict["failure"]
    reason = (
        "it needs more than there is"
        if failure["reason"] == "need"
        else "there is enough, and not in one piece (fragmentation)"
    )
    return f"does not fit: {program} in {human(verdict['usable_bytes'], 'bytes')}: {reason}. {failure['message']}"


def _stages(stages: list[Mapping[str, Any]]) -> list[str]:
    keys = ("allocated_bytes", "reserved_bytes", "peak_allocated_bytes")
    rows = [[stage["name"], *(human(stage[key], "bytes") for key in keys)] for stage in stages]
    return table_lines(rows, ("stage", "allocated", "reserved", "peak in it")) if rows else []


def _modules(modules: list[Mapping[str, Any]]) -> list[str]:
    rows = [
        [share["name"] or "-", share["category"], human(share["bytes"], "bytes"), share["allocations"]]
        for share in modules[:MODULES]
    ]
    return table_lines(rows, ("module or operation", "kind", "bytes", "tensors"))


def _known(document: Mapping[str, Any]) -> list[str]:
    lines = []
    if document["attention"]:
        shown = ", ".join(f"{name} {count}" for name, count in document["attention"].items())
        lines += ["", f"attention: {shown}"]
    if document["overlays"]:
        lines += ["", "memory that no tensor shows:"]
        lines += [
            f"  {each['name']}: {human(each['bytes'], 'bytes')} at most, {each['calls']} times"
            f"{'' if each['exact'] else ', estimated'}   [{each['source']}]"
            for each in document["overlays"]
        ]
    lines += [
        f"note: {each['operation']} asked for data; it was told {each['answer']} ({each['times']} times)"
        for each in document["answers"]
    ]
    if document["unmodelled"]:
        shown = ", ".join(f"{name} {count}" for name, count in list(document["unmodelled"].items())[:8])
        lines.append(f"note: scratch memory inside these is not counted: {shown}")
    return lines


def _against(compared: Mapping[str, Any]) -> list[str]:
    return _beside(compared) if "totals" in compared else _analytic(compared)


def _beside(compared: Mapping[str, Any]) -> list[str]:
    rows = [
        [row["name"], *("not told" if row[key] is None else human(row[key], "bytes") for key in ("predicted_bytes", "real_bytes")),
         "" if row["difference_bytes"] is None else _signed(row["difference_bytes"])]
        for part in ("totals", "categories", "stages")
        for row in compared[part]
    ]  # fmt: skip
    return [
        f"beside {compared['source']} ({compared['format']}):",
        *table_lines(rows, ("", "traced", "real", "difference")),
        *(f"note: {note}" for note in compared["notes"]),
    ]


def _analytic(compared: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            row["stage"],
            row["part"],
            *(human(row[key], "bytes") for key in ("traced_bytes", "analytic_bytes")),
            _signed(row["difference_bytes"]),
        ]
        for row in compared["rows"]
    ]
    total = f"tensors at the peak: traced {human(compared['traced_bytes'], 'bytes')}, analytic {human(compared['analytic_bytes'], 'bytes')}"
    return [
        f"{total} ({100 * compared['relative_error']:+.1f} %)",
        *table_lines(rows, ("stage", "part", "traced", "analytic", "difference")),
    ]


def _signed(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{human(abs(size), 'bytes')}" if size else "0"
