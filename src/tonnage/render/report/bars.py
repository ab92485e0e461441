"""Bars of memory and of time, from the TERMs of a document."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.palette import memory_part, term_label, time_part
from tonnage.render.report.blocks import Bar, Bars, Figure, Part, Table
from tonnage.render.report.common import basis, figure
from tonnage.render.text import TOGETHER

Document = Mapping[str, Any]
TIMES = ("fwd", "bwd", "comm2", "opt", "other")  # one after the other: most times have no kind of their own


def memory_bars(document: Document) -> Bars:
    """A bar for each pipeline stage, those that are alike together; the fullest has the error band."""
    verdict, ranks = document["verdict"], document["ranks"]
    groups = alike(ranks)
    fullest = max(range(len(ranks)), key=lambda at: ranks[at]["value"])
    bars = []
    for group in groups:
        rank = ranks[group[0]]
        band = tuple(verdict["band"]) if verdict["band"] and fullest in group else None
        bars.append(
            Bar(stages(group, len(ranks)), figure(rank, f"ranks/{group[0]}"), rank["value"], _parts(rank), band)
        )
    held = capacity(document)
    says = say(
        "The fullest GPU needs {needed} of {usable} usable.",
        needed=human(verdict["needed_bytes"], "bytes"),
        usable=human(verdict["usable_bytes"], "bytes"),
    )
    return Bars(tuple(bars), "bytes", says, verdict["usable_bytes"], held)


def fullest_bar(document: Document) -> Bars:
    """Memory of the fullest GPU alone, for the first page."""
    all_ranks = memory_bars(document)
    return replace(all_ranks, bars=(max(all_ranks.bars, key=lambda bar: bar.value),))


def term_bars(term: Document, name: str, usable: float | None = None) -> Bars:
    """One bar of a TERM whose children add up."""
    says = say("{name}: {value}", name=worded(name), value=human(term["value"], term["unit"]))
    return Bars((Bar(worded(name), figure(term), term["value"], _parts(term)),), term["unit"], says, usable)


def time_bars(term: Document, path: str) -> Bars:
    """What the time of a step, or of a token, goes to."""
    parts = [child for child in term["children"] if child["value"] > 0]
    drawn = tuple(
        Part(worded(child["name"]), kind, child["value"])
        for child, kind in zip(parts, _kinds_of_time(parts), strict=True)
    )
    says = say("{name}: {value}", name=worded(term["name"]), value=human(term["value"], term["unit"]))
    return Bars((Bar("", figure(term, path), term["value"], drawn),), "seconds", says)


def _kinds_of_time(parts: Sequence[Document]) -> list[str]:
    """The pattern of each part: its own, or the next that none beside it has."""
    own = [part.name if (part := time_part(child["name"])) else "" for child in parts]
    left = [kind for kind in TIMES if kind not in own]
    return [kind or (left.pop(0) if left else TIMES[-1]) for kind in own]


def memory_table(document: Document) -> Table:
    """Categories down, stages across, with the share of each in the fullest."""
    ranks = document["ranks"]
    groups = alike(ranks)
    fullest = max(ranks, key=lambda rank: rank["value"])
    names = list(dict.fromkeys(child["name"] for rank in ranks for child in rank["children"]))
    rows: list[tuple[Any, ...]] = []
    for name in names:
        cells = [_of(ranks[group[0]], name, f"ranks/{group[0]}") for group in groups]
        mine = next((child for child in fullest["children"] if child["name"] == name), None)
        share = f"{100 * mine['value'] / fullest['value']:.1f} %" if mine and fullest["value"] else ""
        rows.append((term_label(name) or worded(name), *cells, share, basis(mine) if mine else ""))
    totals = [figure(ranks[group[0]], f"ranks/{group[0]}") for group in groups]
    rows.append((say("needed"), *totals, "100 %", basis(fullest)))
    header = (say("component"), *(stages(group, len(ranks)) for group in groups), say("share"), say("basis"))
    return Table(header, tuple(rows), strong=(len(rows) - 1,))


def tree_table(term: Document, path: str, depth: int = 2) -> Table:
    """A breakdown opened so deep; what is nothing is left out."""
    rows: list[tuple[Any, ...]] = []
    deep: list[int] = []

    def put(node: Document, where: str, level: int) -> None:
        rows.append(
            (
                name_of(node),
                figure(node, where),
                worded(TOGETHER.get(node["combine"], "")),
                basis(node),
            )
        )
        deep.append(level)
        for at, child in enumerate(node["children"] if level < depth else ()):
            if child["value"]:
                put(child, f"{where}/{at}", level + 1)

    put(term, path, 0)
    return Table(
        (say("component"), say("value"), say("made of"), say("basis")), tuple(rows), strong=(0,), deep=tuple(deep)
    )


def alike(ranks: Sequence[Document]) -> list[list[int]]:
    """Neighbours whose categories are the same, to the byte."""
    groups: list[list[int]] = []
    for at, rank in enumerate(ranks):
        if groups and _sizes(ranks[groups[-1][0]]) == _sizes(rank):
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


def stages(group: Sequence[int], of: int) -> str:
    if of == 1:
        return say("every rank")
    return (
        say("stage {at}", at=group[0])
        if len(group) == 1
        else say("stages {first} to {last}", first=group[0], last=group[-1])
    )


def capacity(document: Document) -> float | None:
    """The memory of the accelerator as it is sold, where the catalogue has it under this name."""
    from tonnage.catalogue import accelerator_names, node_names
    from tonnage.catalogue.clusters import parts

    name = str(document["question"]["on"]["value"])
    last = name.lower()
    while last[:1].isdigit() and "x" in last and last.partition("x")[0].isdigit():
        last = last.partition("x")[2]
    if last not in accelerator_names() and last not in node_names():
        return None  # a file, or this machine: nothing is read again for a picture
    return parts(last)[1].memory.nominal_bytes


def _of(rank: Document, name: str, path: str) -> Figure:
    for at, child in enumerate(rank["children"]):
        if child["name"] == name:
            return figure(child, f"{path}/{at}")
    return Figure(human(0, rank["unit"]))


def _parts(term: Document) -> tuple[Part, ...]:
    children = term["children"] if term["combine"] == "sum" else (term,)
    return tuple(
        Part(name_of(child), memory_part(child["name"]).name, child["value"])
        for child in children
        if child["value"] > 0
    )


def name_of(term: Document) -> str:
    """What a part is called: of memory by the label that it has everywhere."""
    return (term_label(term["name"]) if term["unit"] == "bytes" else None) or worded(term["name"])


def _sizes(rank: Document) -> list[tuple[str, float]]:
    return [(child["name"], child["value"]) for child in rank["children"]]
