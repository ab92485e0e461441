"""The report of `plan --inventory`: what goes where on a pool of unlike machines, and what is proven of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.plans.pool import NAMES
from tonnage.render.report.blocks import (
    Bar,
    Bars,
    Brief,
    Bullets,
    Cell,
    Facts,
    Figure,
    Paragraph,
    Part,
    Report,
    Section,
    Table,
)
from tonnage.render.report.common import all_notes, assumed, inputs, notes, percent, quantity

Document = Mapping[str, Any]


def pool_report(document: Document, **about: str) -> Report:
    """Stages, replicas or jobs by node."""
    verdict = document["verdict"]
    placed = verdict["placed"]
    sentence = say(
        "What goes where on the pool {pool}: {count} accelerators of {types} types?",
        pool=document["pool"]["name"],
        count=f"{document['pool']['accelerators']:,}",
        types=len(document["pool"]["types"]),
    )
    line = worded(verdict["text"])
    why = tuple(
        text
        for text in (
            _why(say("What binds: {what}.", what=worded(document["binding"])), document["binding"]),
            _why(say("Nearest miss: {what}.", what=worded(document["nearest_miss"])), document["nearest_miss"]),
        )
        if text
    )
    proof = (
        say("No placement is better: this is proven.")
        if verdict["optimal"]
        else say("A better placement may exist: the gap is {gap}.", gap=_gap(document))
    )
    brief = Brief(
        question=sentence,
        kind="fits" if placed else "no",
        verdict=line,
        sections=(
            Section(say("Placed"), (Facts(tuple(_figures(document))),)),
            Section(say("What else there could be"), (Bullets((proof, *why)),)),
            Section(say("Taken for granted"), (assumed(document["question"]),)),
            Section(say("Risks and notes"), (notes(document["warnings"]),)),
            Section(
                say("Prices"),
                (
                    Paragraph(
                        say("Prices of the nodes are those of the inventory, or of the catalogue (`tonnage prices`).")
                    ),
                ),
            ),
        ),
    )
    return Report(title=line, brief=brief, sections=tuple(_details(document)), terms={}, **about)


def _why(text: str, reason: str) -> str:
    return text if reason else ""


def _gap(document: Document) -> str:
    gap = document["search"]["gap"]
    return say("unknown") if gap is None else percent(gap)


def _figures(document: Document) -> Iterator[tuple[str, Cell, str]]:
    pool = document["pool"]
    yield say("pool"), pool["name"], ", ".join(f"{count} x {name}" for name, count in pool["types"].items())
    for name, (label, unit) in NAMES.items():
        value = document["figures"].get(name)
        if value is not None:
            yield (
                worded(label),
                human(value, unit) if unit else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}",
                "",
            )
    yield say("cost of an hour"), quantity(document["usd_per_hour"], "USD"), ""
    search = document["search"]
    if search["value"] is not None:
        yield worded(search["objective"]), f"{search['value']:,.6g} {worded(search['unit'])}", ""


def _details(document: Document) -> Iterator[Section]:
    rows = [(_name(row), row) for key in ("stages", "replicas", "jobs") for row in document[key] if row["needed_bytes"]]
    if rows:
        bars = tuple(
            Bar(
                name,
                Figure(human(row["needed_bytes"], "bytes")),
                row["needed_bytes"] / row["usable_bytes"],
                (Part(say("needed"), "weights", row["needed_bytes"] / row["usable_bytes"]),),
            )
            for name, row in rows
        )
        yield Section(
            say("Memory of an accelerator, as a share of what is usable"),
            (Bars(bars, "share", say("How full each accelerator is."), 1.0),),
        )
    for key, title in (
        ("stages", say("Stages")),
        ("replicas", say("Replicas")),
        ("jobs", say("Jobs")),
        ("moves", say("Moves")),
    ):
        if document[key]:
            yield Section(title, (_table(document[key]),))
    search = document["search"]
    sentence = say(
        "{count} ways were considered in {time}.",
        count=f"{search['considered']:,}",
        time=human(search["seconds"], "seconds"),
    )
    yield Section(say("What was searched"), (Paragraph(sentence),))
    yield inputs(document["question"])
    yield all_notes(document["warnings"])


def _name(row: Document) -> str:
    if "stage" in row:
        return say("stage {at}", at=row["stage"])
    where = "+".join(row["nodes"]) if "nodes" in row else row["node"]
    return f"{row['job']}#{row['replica']}, {where}" if "job" in row else where


def _table(rows: list[Document]) -> Table:
    """The columns that have something in any row, by their names in the document."""
    names = [name for name in rows[0] if any(row[name] not in (None, "", 0, [], False) for row in rows)]
    return Table(
        tuple(worded(_header(name)) for name in names),
        tuple(tuple(_cell(name, row[name]) for name in names) for row in rows),
    )


def _header(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if name.endswith("_bytes"):
        return human(value, "bytes")
    if name == "seconds":
        return human(value, "seconds")
    if name.startswith("usd_"):
        return human(value, "USD")
    return (
        f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else worded(str(value))
    )
