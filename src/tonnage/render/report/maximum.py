"""The report of `max`: the largest value, what binds, and what would let it be more."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.brief.maximum import verdict_line
from tonnage.render.maximum import BINDS, amount_text, speed_text
from tonnage.render.prompts import both_limits
from tonnage.render.report.bars import capacity, term_bars, tree_table
from tonnage.render.report.blocks import Block, Brief, Cell, Facts, Paragraph, Report, Section, Table
from tonnage.render.report.common import all_notes, assumed, between, inputs, notes, price, prices

Document = Mapping[str, Any]
MOVES = 4  # of the first page


def maximum_report(document: Document, **about: str) -> Report:
    """The value, the estimates at it and beyond it."""
    question = document["question"]
    line = verdict_line(document)
    kind = "fits" if document["value"] is not None else "tight" if document["tight_value"] is not None else "no"
    subject = (
        question["on"]["value"]
        if document["what"] == "model"
        else say("{model} on {on}", model=question["model"]["value"], on=question["on"]["value"])
    )
    brief = Brief(
        question=say("What is the largest {what} of {subject}?", what=document["what"], subject=subject),
        kind=kind,
        verdict=line,
        sections=(
            Section(say("At most"), (Facts(tuple(_facts(document))),)),
            Section(say("What would raise it"), (_moves(document, MOVES),)),
            Section(say("Taken for granted"), (assumed(question),)),
            Section(say("Risks and notes"), (notes(document["warnings"]),)),
            Section(say("Prices"), (prices(price(question)),)),
        ),
    )
    return Report(
        title=line, brief=brief, sections=tuple(_details(document)), terms={"memory": document["memory"]}, **about
    )


def _facts(document: Document) -> Iterator[tuple[str, Cell, str]]:
    unit, value = document["unit"], document["value"]
    yield say("machine"), str(document["question"]["on"]["value"]), ""
    yield document["what"], amount_text(value, unit) if value is not None else say("none fits"), document["text"]
    yield say("bound by"), worded(BINDS[document["limit"]["by"]]), worded(document["limit"]["text"])
    for key, name in (("at", say("memory there")), ("beyond", say("memory just beyond"))):
        tried = document[key]
        if tried and tried["needed_bytes"] is not None:
            of = say("of {usable} usable", usable=human(tried["usable_bytes"], "bytes"))
            yield (
                name,
                human(tried["needed_bytes"], "bytes"),
                "; ".join(filter(None, (of, between(tried["band"], "bytes")))),
            )
    if document["estimate_value"] is not None and value is not None:
        yield (
            say("error band"),
            both_limits(amount_text(document["estimate_value"], unit), amount_text(value, unit)),
            "",
        )
    if document["tight_value"] is not None:
        yield say("tight up to"), amount_text(document["tight_value"], unit), say("inside the error band")
    if document["memory_value"] is not None:
        yield say("memory alone would do for"), amount_text(document["memory_value"], unit), ""
    if document["speed"]:
        yield say("speed there"), speed_text(document), ""


def _moves(document: Document, most: int) -> Block:
    rows = tuple(
        (
            move["text"],
            amount_text(move["value"], document["unit"]),
            human(move["needed_bytes"], "bytes"),
            worded(move["changes"]),
        )
        for move in document["advice"][:most]
    )
    if not rows:
        return Paragraph(say("No change that was tried raises it."))
    return Table((say("change"), say("then at most"), say("needs"), say("changes")), rows)


def _details(document: Document) -> Iterator[Section]:
    tried = document["at"] or document["beyond"]
    usable = tried["usable_bytes"] if tried else None
    memory = document["memory"]
    yield Section(say("Memory there"), (_bars(document, memory, usable), tree_table(memory, "memory", 2)))
    if len(document["advice"]) > MOVES:
        yield Section(say("What would raise it"), (_moves(document, len(document["advice"])),))
    yield inputs(document["question"])
    yield all_notes(document["warnings"])


def _bars(document: Document, memory: Document, usable: float | None) -> Block:
    return replace(term_bars(memory, memory["name"], usable), capacity=capacity(document))
