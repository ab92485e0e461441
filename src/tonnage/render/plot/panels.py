"""Which pictures an answer has."""

from typing import Any

from msgspec.structs import replace

from tonnage.estimate.plan.pipeline_boxes import DRAWN, pipeline_boxes
from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.brief.verdict import verdict_line
from tonnage.render.plot.memory import memory_by_phase, memory_by_rank
from tonnage.render.plot.money import buy_or_rent
from tonnage.render.plot.panel import Panel, together
from tonnage.render.plot.step import pipeline_picture, work_of_step

SERVED = ("ttft_seconds", "tpot_seconds", "tokens_per_second", "requests_per_second", "cost_per_million_tokens")


def panels(answer: Any) -> tuple[str, list[Panel]]:
    """The verdict, and the pictures in the order in which they are looked at; those of what is not known are left
    out.
    """
    pictures = [_in_numbers(answer), memory_by_rank(answer)]
    owned = answer.bill.ownership if answer.bill is not None else None
    if answer.phases:
        pictures.append(memory_by_phase(answer))
    if answer.pieces is not None:
        seconds = float(answer.step_time.value)
        work = work_of_step(answer.pieces, seconds)
        if answer.pieces.schedule in DRAWN:
            pictures.append(pipeline_picture(answer.pieces, pipeline_boxes(answer.pieces), seconds))
        else:
            work = replace(work, says=together([work.says, _not_drawn(answer.pieces.schedule)]))
        pictures.append(replace(work, wide=not owned))
    if owned:
        pictures.append(buy_or_rent(owned))
    model, on = (answer.question[name].value for name in ("model", "on"))
    what = say("{model} on {on}", model=model, on=on)
    return f"{what}{say(': ')}{verdict_line(answer.without_trees())}", pictures


def _not_drawn(name: str) -> str:
    return say(
        "There is no picture of the pipeline: the order of {name} is not drawn, only that of {drawn}.",
        name=name,
        drawn=say(" and ").join(DRAWN),
    )


def _in_numbers(answer: Any) -> Panel:
    """Memory, time, cost and energy: of the run, or of a step where nobody said how long the run is."""
    tiles = [
        (say("memory of the fullest GPU"), human(answer.needed_bytes, "bytes")),
        (say("usable"), human(answer.usable_bytes, "bytes")),
    ]
    if answer.step_time is not None:
        tiles.append(_tile(answer.step_time))
    tiles += [_tile(term) for name in SERVED if (term := getattr(answer.serving, name))]
    if (run := answer.run) is not None:
        tiles += [_tile(term) for term in (run.seconds, run.accelerator_hours) if term]
        tiles.append((say("tokens per second"), f"{run.tokens_per_second.value:,.0f}"))
        tiles.append(("MFU", f"{100 * run.mfu.value:.1f} %"))
    if answer.bill is not None:
        tiles += [
            _tile(term) for term in (answer.bill.cost, answer.bill.energy, answer.bill.carbon) if term is not None
        ]
        if (owned := answer.bill.ownership) and (month := owned.break_even_month):
            tiles.append((say("buying costs less from"), say("month {number}", number=month)))
    figures = say(", ").join(f"{name} {figure}" for name, figure in tiles)
    return Panel(
        name="numbers",
        title=say("In numbers"),
        says=say("{said}.", said=figures),
        tiles=tuple(tiles),
        wide=True,
        height=60 + 75 * -(-len(tiles) // 6),
    )


def _tile(term: Term) -> tuple[str, str]:
    name, figure = worded(term.name), human(term.value, term.unit)
    return name, figure.removesuffix(f" {term.name}").removesuffix(f" {name}")
