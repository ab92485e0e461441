"""The report of `serve --frontier`: speed for a user against throughput of an accelerator."""

from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.language import say
from tonnage.language.quantities import human
from tonnage.render.frontier import MAX_ROWS, frontier_lines, speed_cells, thinned
from tonnage.render.prompts import with_prompts
from tonnage.render.report.blocks import Block, Brief, Cell, Dot, Facts, Paragraph, Plane, Report, Section, Table
from tonnage.render.report.common import all_notes, assumed, inputs, notes

Document = Mapping[str, Any]


def frontier_report(document: Document, **about: str) -> Report:
    """Speed for a user against throughput of an accelerator."""
    question = document["question"]
    best = [point for point in document["points"] if point["pareto"]]
    line = frontier_lines(document)[0]
    sentence = say(
        "How fast is {model} on {on} for a user, and how much does an accelerator answer at that speed?",
        model=question["model"]["value"],
        on=question["on"]["value"],
    )
    chosen = best[len(best) // 2] if best else None
    half: Block = Facts(tuple(_point_facts(chosen, question))) if chosen else Paragraph(say("None of these fits."))
    ends: Block = (
        Table(_header(question), tuple(map(_point, (best[0], best[-1]))))
        if best
        else Paragraph(say("None of these fits."))
    )
    brief = Brief(
        question=sentence,
        kind="fits" if best else "no",
        verdict=line,
        sections=(
            Section(say("In the middle of the frontier"), (half,)),
            Section(say("Its two ends"), (ends,)),
            Section(say("Taken for granted"), (assumed(question),)),
            Section(say("Risks and notes"), (notes(document["warnings"]),)),
        ),
    )
    dots = tuple(
        Dot(
            point["tokens_per_second_per_user"],
            point["tokens_per_second_per_gpu"],
            f"{point['weights']}, TP{point['tensor_parallel_size']}",
            point["pareto"],
        )
        for point in document["points"]
    )
    plane = Plane(dots, say("tokens/s that a user sees"), say("tokens/s of an accelerator"), line)
    blocks: tuple[Block, ...] = (
        (plane, Table(_header(question), tuple(map(_point, thinned(best, MAX_ROWS)))))
        if best
        else (Paragraph(say("None of these fits.")),)
    )
    return Report(
        title=line,
        brief=brief,
        sections=(Section(say("Speed against throughput"), blocks), inputs(question), all_notes(document["warnings"])),
        terms={},
        **about,
    )


def _header(question: Document) -> tuple[str, ...]:
    return (
        say("tokens/s a user"),
        say("tokens/s an accelerator"),
        say("tensor ranks"),
        say("weights"),
        say("users a replica"),
        with_prompts(say("first token"), question),
        say("each later"),
        say("USD a million"),
    )


def _point(point: Document) -> tuple[Cell, ...]:
    cost = point["cost_per_million_output_tokens_all"]
    return (
        *speed_cells(point),
        human(point["tpot_seconds"], "seconds"),
        "" if cost is None else human(cost, "USD"),
    )


def _point_facts(point: Document, question: Document) -> Iterator[tuple[str, Cell, str]]:
    for name, cell in zip(_header(question), _point(point), strict=True):
        yield name, cell, ""
