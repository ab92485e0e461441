"""docs/speed.md: the lines with their goals, before and after; where missed goals go; other tools in the same run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from speed_lines.goals import LINES, PARTS, Line
from speed_lines.measure import Figure, value_of
from speed_lines.tools import OURS, SAYS, SERVING, TRAINING

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "speed.md"
RESULTS = ROOT / "benchmarks" / "results_speed.json"
HEAD = """# How fast it answers

Generated. `make bench-speed` measures each line and the other tools, and writes this page; `make docs` draws it again from what was measured
(benchmarks/results_speed.json), without measuring. Of one machine that others use too: CPU time of a process with its children, the least of several, is what is
held against a goal; in brackets the same by the clock, which is noise where the machine is busy. Latencies are by the clock alone.

{about}

## Goals

Better: how many times what is measured after is better than before. A dash: not measured. A bare start is `python -c "import numpy, msgspec"`.

{table}

{notes}
"""
MISSED = """## Where the time of missed goals goes

By cProfile, which weighs many small calls heavier than they are: own time by package, module and function, then functions of ours with what
they call. Saving under a load that takes all cores, and a first plan that comes with the last, have none of their own.

{profiles}
"""
TOOLS = """## Other tools in the same run

One question of llama-3.1-8b: training on eight H100s, or serving 16 users on one. Each tool is asked through its own functions, with its config
or headers given, so that no time of the Hub is counted, and each question of a loop differs from the last. They answer less than tonnage does, as the table says, and explain
no number: tonnage's answer is memory by part, time, cost and verdict, each with formula and source, without suggestions, which none of them has.
"times": how many times as long (of answers a second: as few) as tonnage's summary of the same verb; below one the tool is faster.

{table}

{many}
"""


def page(results: Mapping[str, Any]) -> str:
    """The whole page, in markdown."""
    parts = results["parts"]
    about = "\n".join(_about(parts))
    text = HEAD.format(about=about, table="\n".join(_table(parts)), notes="\n".join(_notes(parts)))
    if profiles := "\n".join(_profiles(parts)):
        text += "\n" + MISSED.format(profiles=profiles)
    if "tools" in parts:
        found = parts["tools"]
        text += "\n" + TOOLS.format(table="\n".join(_tools(found)), many="\n".join(_ours(found, parts)))
    return text


def _about(parts: Mapping[str, Any]) -> Iterator[str]:
    """When, on which machine and of which commits; in one line where it is the same of all parts."""
    said: dict[str, list[str]] = {}
    for name, part in parts.items():
        before = f", before {part['commits']['before']}" if "before" in part["commits"] else ""
        said.setdefault(
            f"Measured on {part['measured']}, {part['machine']}: after {part['commits']['after']}{before}", []
        ).append(name)
    for words, names in said.items():
        yield f"{words}." if len(said) == 1 else f"- {words}: {', '.join(names)}."


def _table(parts: Mapping[str, Any]) -> Iterator[str]:
    yield "| what | goal | before | after | better | met |"
    yield "|---|---:|---:|---:|---:|---|"
    for name, lines in PARTS.items():
        part = parts.get(name, {})
        for line in lines:
            before, after = (part.get(side, {}).get(line.key) for side in ("before", "after"))
            goal = "-" if line.goal is None else f"{_sign(line)}{_shown(line, line.goal)}"
            yield f"| {line.what} | {goal} | {_both(line, before)} | {_both(line, after)} | {_gain(line, before, after)} | {_verdict(line, after)} |"


def _sign(line: Line) -> str:
    return "" if line.more_is_better else "≤ "


def _shown(line: Line, value: float) -> str:
    """A value with its unit."""
    if line.unit == "ratio":
        return f"{value:.2f}"
    if line.more_is_better:
        return f"{value:,.0f} {line.unit}"
    return f"{value:.3g} {line.unit}" if value < 100 else f"{value:,.0f} {line.unit}"


def _both(line: Line, figure: Figure | None) -> str:
    """By CPU time, and by the clock in brackets."""
    if figure is None:
        return "-"
    if "missing" in figure:
        return figure["missing"]
    if line.by_clock:
        return _shown(line, figure["wall"])
    clock = _shown(line, figure["wall"]).partition(" ")[0]
    return f"{_shown(line, figure['cpu'])} ({clock})"


def _gain(line: Line, before: Figure | None, after: Figure | None) -> str:
    if not before or not after or "missing" in before or "missing" in after:
        return "-"
    return f"{line.gain(value_of(line.key, before), value_of(line.key, after)):.2f} ×"


def _verdict(line: Line, figure: Figure | None) -> str:
    if line.goal is None or figure is None or "missing" in figure:
        return "-"
    short = line.short_of(value_of(line.key, figure))
    return "met" if short <= 1 else f"missed by {short:.2f} ×"


def _notes(parts: Mapping[str, Any]) -> Iterator[str]:
    """What each figure was measured on."""
    for name, lines in PARTS.items():
        for line in lines:
            sides = parts.get(name, {})
            notes = {side: sides.get(side, {}).get(line.key, {}).get("note") for side in ("before", "after")}
            shown = [f"{side} {note}" for side, note in notes.items() if note]
            if notes["before"] == notes["after"] is not None:
                yield f"- {line.what}: {notes['after']}."
            elif shown:
                yield f"- {line.what}: {'; '.join(shown)}."


def _profiles(parts: Mapping[str, Any]) -> Iterator[str]:
    for part in parts.values():
        for key, lines in part.get("profiles", {}).items():
            yield f"- **{LINES[key].what}**"
            yield from (f"  - {line}" for line in lines)


def _tools(found: Mapping[str, Any]) -> Iterator[str]:
    yield "| tool | answers | said | whole process | times | one answer in-process | times | answers a second | times |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
    for kind in (TRAINING, SERVING):
        ours = found["tonnage"][kind]
        yield (
            f"| tonnage, `{OURS[kind][0]}` | {kind}: memory by part, time, cost, verdict | | {_process(ours)} | 1 | "
            f"{_milliseconds(ours['answer'])} | 1 | {ours['rate']:,.0f} | 1 |"
        )
        for tool, (asked, says) in SAYS.items():
            if asked == kind:
                yield _tool(tool, says, found["tools"][tool], ours)


def _tool(tool: str, says: str, one: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    if "missing" in one:
        return f"| {tool} | {says} | not measured: {one['missing']} | - | - | - | - | - | - |"
    said = ", ".join(f"{value:.4g} {name}" for name, value in one["said"].items())
    ratios = (one["process"] / ours["process"], one["answer"] / ours["answer"], ours["rate"] / one["rate"])
    process, answer, rate = (f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}" for ratio in ratios)
    return (
        f"| {tool} {one['version']} | {says} | {said} | {_process(one)} | {process} | "
        f"{_milliseconds(one['answer'])} | {answer} | {one['rate']:,.0f} | {rate} |"
    )


def _process(one: Mapping[str, float]) -> str:
    return f"{one['process']:.2f} s ({one['process wall']:.2f})"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"


def _ours(found: Mapping[str, Any], parts: Mapping[str, Any]) -> Iterator[str]:
    """What else tonnage answers: full documents, figures alone, and many questions as arrays."""
    for kind, one in found["tonnage"].items():
        verb = OURS[kind][0]
        yield f"- tonnage, full document of `{verb}` with every tree: {_milliseconds(one['full answer'])}, {one['full rate']:,.0f} a second."
        if "figures answer" in one:
            yield (
                f"- bytes and seconds of a step alone, without question, trees, cost and document: "
                f"{_milliseconds(one['figures answer'])}, {one['figures rate']:,.0f} a second."
            )
    for part, key, what in (
        ("answers", "many", "rows of `train_many`"),
        ("search", "search_unpruned", "plans of a search, each walked whole"),
    ):
        figure = parts.get(part, {}).get("after", {}).get(key, {"missing": ""})
        if "missing" not in figure:
            times = {
                tool: figure["cpu"] / found["tools"][tool]["rate"]
                for tool, (asked, _) in SAYS.items()
                if asked == TRAINING and "missing" not in found["tools"][tool]
            }
            shown = ", ".join(f"{value:,.0f} times {tool}" for tool, value in times.items())
            yield f"- {what}, as arrays: {figure['cpu']:,.0f} a second ({shown})."
