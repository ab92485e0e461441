"""The answer of `trace` as lines of text."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import human
from tonnage.render.text import table_lines, tree_lines
from tonnage.render.tone import Toned

MODULES = 12
LABELS = ("program", "profile", "front_end", "events")


def trace_lines(document: Mapping[str, Any], memory: Term) -> list[str]:
    """The verdict; stages; what is alive at the peak, by kind and by module; how it is known."""
    question = document["question"]
    lines = [_verdict(document), ""]
    for name in LABELS:
        entry = question[name]
        why = f"  ({worded(entry['why'])})" if "why" in entry else ""
        lines.append(f"  {left(say(name), 12)} {worded(str(entry['value']))}{why}")
    lines += ["", *_stages(document["stages"]), "", *tree_lines(memory, depth=2)]
    lines += ["", say("largest at the peak:"), *_modules(document["modules"])]
    lines += _known(document)
    if "against" in document:
        lines += ["", *_against(document["against"])]
    return lines + [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]


def _verdict(document: Mapping[str, Any]) -> str:
    verdict, program = document["verdict"], worded(document["question"]["program"]["value"])
    peak = say(
        "at its peak {peak_allocated_bytes} allocated, {peak_reserved_bytes} reserved",
        peak_allocated_bytes=human(verdict["peak_allocated_bytes"], "bytes"),
        peak_reserved_bytes=human(verdict["peak_reserved_bytes"], "bytes"),
    )
    if verdict["fits"] is None:
        return say(
            "traced: {program}: {peak}; runs in {needed_bytes}",
            program=program,
            peak=peak,
            needed_bytes=human(verdict["needed_bytes"], "bytes"),
        )
    if verdict["fits"]:
        retries = (
            say(", after giving cached memory back {retries} times", retries=verdict["retries"])
            if verdict["retries"]
            else ""
        )
        first = say(
            "fits: {program} in {usable_bytes}{retries}: {peak}",
            program=program,
            usable_bytes=human(verdict["usable_bytes"], "bytes"),
            retries=retries,
            peak=peak,
        )
        return Toned(first, "good")
    failure = verdict["failure"]
    reason = (
        say("it needs more than there is")
        if failure["reason"] == "need"
        else say("there is enough, and not in one piece (fragmentation)")
    )
    first = say(
        "does not fit: {program} in {usable_bytes}: {reason}. {message}",
        program=program,
        usable_bytes=human(verdict["usable_bytes"], "bytes"),
        reason=reason,
        message=worded(failure["message"]),
    )
    return Toned(first, "bad")


def _stages(stages: list[Mapping[str, Any]]) -> list[str]:
    keys = ("allocated_bytes", "reserved_bytes", "peak_allocated_bytes")
    rows = [[say(stage["name"]), *(human(stage[key], "bytes") for key in keys)] for stage in stages]
    return table_lines(rows, ("stage", "allocated", "reserved", "peak in it")) if rows else []


def _modules(modules: list[Mapping[str, Any]]) -> list[str]:
    rows = [
        [share["name"] or "-", say(share["category"]), human(share["bytes"], "bytes"), share["allocations"]]
        for share in modules[:MODULES]
    ]
    return table_lines(rows, ("module or operation", "kind", "bytes", "tensors"))


def _known(document: Mapping[str, Any]) -> list[str]:
    lines = []
    if document["attention"]:
        shown = ", ".join(f"{name} {count}" for name, count in document["attention"].items())
        lines += ["", say("attention: {shown}", shown=shown)]
    if document["overlays"]:
        lines += ["", say("memory that no tensor shows:")]
        lines += [
            "  "
            + say(
                "{each}: {bytes} at most, {calls} times",
                each=worded(entry["name"]),
                bytes=human(entry["bytes"], "bytes"),
                calls=entry["calls"],
            )
            + (
                f"   [{worded(entry['source'])}]"
                if entry["exact"]
                else say(", estimated   [{source}]", source=worded(entry["source"]))
            )
            for entry in document["overlays"]
        ]
    lines += [
        say(
            "note: {operation} asked for data; it was told {answer} ({times} times)",
            operation=entry["operation"],
            answer=entry["answer"],
            times=entry["times"],
        )
        for entry in document["answers"]
    ]
    if document["unmodelled"]:
        shown = ", ".join(f"{name} {count}" for name, count in list(document["unmodelled"].items())[:8])
        lines.append(say("note: scratch memory inside these is not counted: {shown}", shown=shown))
    return lines


def _against(compared: Mapping[str, Any]) -> list[str]:
    return _beside(compared) if "totals" in compared else _analytic(compared)


def _beside(compared: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            say(row["name"]),
            *(
                say("not told") if row[key] is None else human(row[key], "bytes")
                for key in ("predicted_bytes", "real_bytes")
            ),
            "" if row["difference_bytes"] is None else _signed(row["difference_bytes"]),
        ]
        for part in ("totals", "categories", "stages")
        for row in compared[part]
    ]
    return [
        say("beside {source} ({format}):", source=compared["source"], format=compared["format"]),
        *table_lines(rows, ("", "traced", "real", "difference")),
        *(say("note: {what}", what=worded(note)) for note in compared["notes"]),
    ]


def _analytic(compared: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            say(row["stage"]),
            worded(row["part"]),
            *(human(row[key], "bytes") for key in ("traced_bytes", "analytic_bytes")),
            _signed(row["difference_bytes"]),
        ]
        for row in compared["rows"]
    ]
    total = say(
        "tensors at the peak: traced {traced_bytes}, analytic {analytic_bytes}",
        traced_bytes=human(compared["traced_bytes"], "bytes"),
        analytic_bytes=human(compared["analytic_bytes"], "bytes"),
    )
    return [
        f"{total} ({100 * compared['relative_error']:+.1f} %)",
        *table_lines(rows, ("stage", "part", "traced", "analytic", "difference")),
    ]


def _signed(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{human(abs(size), 'bytes')}" if size else "0"
