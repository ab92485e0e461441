"""Memory of each pipeline stage, and of the fullest one phase by phase: bars in layers, the usable line, the error
band.
"""

from collections.abc import Sequence
from typing import Any

from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.palette import palette, term_label
from tonnage.render.plot.panel import GIB, INK, LIMIT, Panel, lines, marker, told

MAX_BAR_WIDTH = 0.7  # of a bar, where there are many
MAX_NAMED_BARS = 8  # bars whose names find room
NARROW = 4  # fewer bars are not drawn as wide as their share of the picture


def memory_by_rank(answer: Any) -> Panel:
    """The peak of a rank of each stage; those that shard or share a stage hold the same."""
    many = len(answer.ranks) > 1
    names = [say("stage {index}", index=index) for index in range(len(answer.ranks))] if many else [say("every rank")]
    sizes = [rank.value for rank in answer.ranks]
    fullest = sizes.index(max(sizes))
    title = say("Memory of each pipeline stage") if many else say("Memory")
    says = say(
        "{title} at its peak, by category: {where} needs {needed} of {usable} usable{band}.",
        title=title,
        where=say("the fullest, {stage},", stage=names[fullest]) if many else names[0],
        needed=human(sizes[fullest], "bytes"),
        usable=human(answer.usable_bytes, "bytes"),
        band=_band(answer),
    )
    traces = [*_stacked(names, answer.ranks), *_error_bar(answer, names[fullest])]
    return _panel("ranks", title, says, names, answer.ranks, traces, answer, say("pipeline stage"))


def memory_by_phase(answer: Any) -> Panel:
    """The phases of a step on the fullest GPU."""
    names = [worded(phase.name) for phase in answer.phases]
    peak = max(answer.phases, key=lambda phase: phase.value)
    title = say("Memory of the fullest GPU, phase by phase")
    says = say(
        "{title} of a step: most in {phase}, {needed} of {usable} usable.",
        title=title,
        phase=worded(peak.name),
        needed=human(peak.value, "bytes"),
        usable=human(answer.usable_bytes, "bytes"),
    )
    return _panel("phases", title, says, names, answer.phases, _stacked(names, answer.phases), answer, say("phase"))


def _panel(
    name: str,
    title: str,
    says: str,
    names: list[str],
    terms: Sequence[Term],
    traces: list[dict[str, Any]],
    answer: Any,
    first: str,
) -> Panel:
    kinds = _kinds(terms)
    usable = answer.usable_bytes / GIB
    top = max(usable, *(term.value / GIB for term in terms), (answer.band or (0, 0))[1] / GIB)
    return Panel(
        name=name,
        title=title,
        says=says,
        traces=tuple(traces),
        x=_axis(names, first),
        y={"title": {"text": say("GiB of an accelerator")}, "range": [0, 1.1 * top]},
        shapes=(
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": usable,
                "y1": usable,
                "line": {"color": LIMIT, "width": 2, "dash": "dash"},
            },
        ),
        notes=(
            {
                "xref": "paper",
                "x": 1,
                "xanchor": "right",
                "y": usable,
                "yanchor": "bottom",
                "showarrow": False,
                "text": say("usable {size}", size=human(answer.usable_bytes, "bytes")),
                "font": {"color": LIMIT},
            },
        ),
        header=(first, *map(_label, kinds), say("together")),
        rows=tuple(
            (where, *(human(_of(term, kind), "bytes") for kind in kinds), human(term.value, "bytes"))
            for where, term in zip(names, terms, strict=True)
        ),
    )


def _axis(names: list[str], first: str) -> dict[str, Any]:
    """Names below their bars, on several lines; of many stages the number alone."""
    if len(names) <= MAX_NAMED_BARS:
        return {"type": "category", "tickvals": names, "ticktext": [lines(name, 13) for name in names], "tickangle": 0}
    return {
        "type": "category",
        "tickvals": names,
        "ticktext": [str(index) for index in range(len(names))],
        "title": {"text": first},
    }


def _stacked(names: list[str], terms: Sequence[Term]) -> list[dict[str, Any]]:
    return [
        {
            "type": "bar",
            "name": _label(kind),
            "x": names,
            "y": [_of(term, kind) / GIB for term in terms],
            "marker": marker(kind),
            "width": min(MAX_BAR_WIDTH, 0.18 * len(names)) if len(names) < NARROW else MAX_BAR_WIDTH,
            "customdata": [
                told(f"{where}{say(', ')}{_label(kind)}", _of(term, kind), "bytes")
                for where, term in zip(names, terms, strict=True)
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
        for kind in _kinds(terms)
    ]


def _error_bar(answer: Any, where: str) -> list[dict[str, Any]]:
    if not answer.band:
        return []
    low, high = answer.band
    needed = answer.needed_bytes
    span = {
        "type": "data",
        "symmetric": False,
        "array": [max(high - needed, 0) / GIB],
        "arrayminus": [max(needed - low, 0) / GIB],
    }
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": say("error band of the fullest GPU"),
            "x": [where],
            "y": [needed / GIB],
            "marker": {"color": INK, "size": 6},
            "error_y": {**span, "color": INK, "thickness": 2.5, "width": 9},
            "customdata": [
                f"<b>{say('error band')}</b><br>"
                + say("{low} to {high}", low=human(low, "bytes"), high=human(high, "bytes"))
            ],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    ]


def _band(answer: Any) -> str:
    if not answer.band:
        return ""
    low, high = (human(edge, "bytes") for edge in answer.band)
    return say(", between {low} and {high} in the error band", low=low, high=high)


def _kinds(terms: Sequence[Term]) -> list[str]:
    """Categories that hold anything, always in the same order."""
    present = dict.fromkeys(child.name for term in terms for child in term.children if child.value)
    ordered = [term for part in palette().parts for term in part.terms if term in present]
    return ordered + [name for name in present if name not in ordered]


def _label(kind: str) -> str:
    return term_label(kind) or worded(kind)


def _of(term: Term, kind: str) -> float:
    return sum(child.value for child in term.children if child.name == kind)
