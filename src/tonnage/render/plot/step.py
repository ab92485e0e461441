"""A step as a picture of the pipeline, one row a stage, and its seconds by kind of work."""

from typing import Any

from tonnage.estimate.plan.pipeline_boxes import SENDING, Box, PipelineBoxes, StepSeconds
from tonnage.language import say, worded
from tonnage.language.quantities import counted, human
from tonnage.render.palette import colour as named
from tonnage.render.plot.panel import (
    IDLE,
    INK,
    Panel,
    colour,
    dark_colour,
    marker,
    scale,
    shade,
    together,
)

ROWS = 32  # stages that are drawn: the first and the last of a longer pipeline
LABELLED = 1500  # boxes at most that bear the number of their micro-batch
ORDER = ("forward", "run again", "backward", "exposed communication", "between stages", "once a step")
TICKS = 14
INKS = {"forward": "on-fwd", "backward": "on-bwd"}  # of the numbers in boxes: what is read on their colour
PALE = 0.3  # from here on a box is as pale as the ground


def pipeline_picture(pieces: StepSeconds, drawn: PipelineBoxes, seconds: float) -> Panel:
    """Boxes from left to right as time goes by; where the row shows through, a stage waits. `seconds`: the answer's
    own, of a step.
    """
    stages = len(pieces.stages)
    rows = [rank for rank in range(stages) if stages <= ROWS or rank < ROWS // 2 or rank >= stages - ROWS // 2]
    factor, unit = scale(seconds)
    boxes = [box for box in drawn.boxes if box.stage in set(rows)]
    names = {rank: say("stage {index}", index=rank) if stages > 1 else say("each rank") for rank in rows}
    traces = [_waiting(rows, names, drawn, factor)] if stages > 1 else []
    labelled = len(boxes) <= LABELLED
    for kind in dict.fromkeys(
        [*(kind for kind in ORDER if any(box.kind == kind for box in boxes)), *(box.kind for box in boxes)]
    ):
        traces.append(
            _bars(
                kind,
                sorted((box for box in boxes if box.kind == kind), key=lambda box: box.chunk),
                names,
                drawn,
                pieces,
                factor,
                labelled,
            )
        )
    tall = 90 + 30 * len(rows) if stages > 1 else 170
    return Panel(
        name="pipeline",
        title=_title(pieces),
        says=_said(pieces, drawn, seconds, stages - len(rows)),
        traces=tuple(traces),
        bars="overlay",
        wide=True,
        x={
            "title": {"text": say("time since the step began, {unit}", unit=unit)},
            **_ticks(drawn, factor),
            "zeroline": False,
        },
        y={"type": "category", "autorange": "reversed", "showgrid": False},
        height=min(tall + 70, 1100),
        shapes=tuple(_cut(drawn, factor)),
        notes=tuple(_cut_note(drawn, factor)),
        header=(
            say("stage"),
            say("forward"),
            say("run again"),
            say("backward"),
            say("not hidden communication of both"),
            say("one micro-batch"),
        ),
        rows=tuple(_stage_row(pieces, rank) for rank in range(stages)),
    )


def work_of_step(pieces: StepSeconds, seconds: float) -> Panel:
    """Bars of seconds by kind of work, in layers by pass; together they are the step."""
    kinds: dict[str, float] = {}
    for work in pieces.work:
        kinds[work.kind] = kinds.get(work.kind, 0.0) + work.seconds
    kinds = {kind: kinds[kind] for kind in sorted(kinds, key=lambda kind: kinds[kind]) if kinds[kind]}
    factor, unit = scale(max(kinds.values(), default=seconds))
    passes = [when for when in ORDER if any(work.when == when and work.seconds for work in pieces.work)]
    longest = max(kinds, key=lambda kind: kinds[kind]) if kinds else ""
    traces = []
    for when in passes:
        of = {
            kind: sum(work.seconds for work in pieces.work if (work.when, work.kind) == (when, kind)) for kind in kinds
        }
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": worded(when),
                "y": list(map(worded, of)),
                "x": [value * factor for value in of.values()],
                "marker": marker(when),
                "customdata": [
                    f"<b>{worded(kind)}</b>{say(', ')}{worded(when)}<br>{human(value, 'seconds')}"
                    for kind, value in of.items()
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    ends = {
        "type": "scatter",
        "mode": "text",
        "y": list(map(worded, kinds)),
        "x": [value * factor for value in kinds.values()],
        "showlegend": False,
        "hoverinfo": "skip",
        "text": [f" {human(value, 'seconds')}" for value in kinds.values()],
        "textposition": "middle right",
        "cliponaxis": False,
    }
    return Panel(
        name="work",
        title=say("Where the time of a step goes"),
        traces=(*traces, ends),
        height=max(300, 110 + 28 * len(kinds)),
        says=say(
            "Seconds of a step by kind of work: {all_of} together, most of it {longest}.",
            all_of=human(seconds, "seconds"),
            longest=worded(longest),
        ),
        x={
            "title": {"text": say("{unit} of a step on the slowest stage", unit=unit)},
            "range": [0, 1.18 * factor * max(kinds.values(), default=1)],
        },
        y={"type": "category", "automargin": True, "showgrid": False},
        header=(say("work"), *map(worded, passes), say("together")),
        rows=tuple(
            (
                worded(kind),
                *(
                    human(sum(w.seconds for w in pieces.work if (w.when, w.kind) == (when, kind)), "seconds")
                    for when in passes
                ),
                human(kinds[kind], "seconds"),
            )
            for kind in reversed(kinds)
        ),
    )


def _title(pieces: StepSeconds) -> str:
    if len(pieces.stages) == 1:
        return say("One step")
    order = "1F1B" if pieces.chunks == 1 else say("1F1B, interleaved by {chunks} chunks", chunks=pieces.chunks)
    return say("One step through the pipeline: {order}", order=order)


def _said(pieces: StepSeconds, drawn: PipelineBoxes, seconds: float, hidden: int) -> str:
    stages, count = len(pieces.stages), pieces.num_microbatches
    parts = [
        say(
            "{count} through {where}: a step takes {took}.",
            count=counted(count, "micro-batches"),
            where=counted(stages, "stages") if stages > 1 else say("one stage"),
            took=human(seconds, "seconds"),
        )
    ]
    if stages > 1:
        parts.append(
            say(
                "A box is the work of one stage on one micro-batch, with its communication; where the row "
                "shows through, the stage waits (the bubble)."
            )
        )
    elif any(box.kind == SENDING for box in drawn.boxes):
        parts.append(
            say("Communication that nothing hides is drawn behind its pass; in truth it lies between the layers.")
        )
    if pieces.chunks > 1:
        parts.append(
            say("The paler a box, the later its chunk of the layers; chunks of a stage are taken to be of equal time.")
        )
    if drawn.skipped:
        parts.append(
            say(
                "{count} in the middle are left out, {took}.",
                count=counted(drawn.skipped, "micro-batches"),
                took=human(drawn.gap, "seconds"),
            )
        )
    if hidden:
        parts.append(say("{count} in the middle are left out.", count=counted(hidden, "stages")))
    if abs(drawn.seconds - seconds) > 0.002 * seconds:
        parts.append(
            say(
                "Played out, stages of uneven time end after {took}; the estimate takes a closed form.",
                took=human(drawn.seconds, "seconds"),
            )
        )
    return together(parts)


def _at(start: float, drawn: PipelineBoxes) -> float:
    """Where a moment lies on the paper, from which the gap is cut out."""
    return start - drawn.gap if drawn.skipped and start >= drawn.cut + drawn.gap else start


def _waiting(rows: list[int], names: dict[int, str], drawn: PipelineBoxes, factor: float) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": say("waiting (bubble)"),
        "y": [names[rank] for rank in rows],
        "base": [0] * len(rows),
        "width": 0.92,
        "x": [_at(drawn.pipeline, drawn) * factor] * len(rows),
        "marker": {"color": IDLE},
        "hoverinfo": "skip",
    }


def _bars(
    kind: str,
    boxes: list[Box],
    names: dict[int, str],
    drawn: PipelineBoxes,
    pieces: StepSeconds,
    factor: float,
    labelled: bool,
) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "name": worded(kind),
        "y": [names[box.stage] for box in boxes],
        "width": 0.8,
        "base": [_at(box.start, drawn) * factor for box in boxes],
        "x": [box.seconds * factor for box in boxes],
        "marker": {**marker(kind), "line": {"width": 0.5, "color": "rgba(255,255,255,0.7)"}},
        "meta": {"dark": {"marker.color": dark_colour(kind)}},
        "customdata": [_hover(box, names[box.stage], pieces) for box in boxes],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    if pieces.chunks > 1:
        pale = [_pale(box, pieces) for box in boxes]
        trace["marker"]["color"] = [shade(colour(kind), share) for share in pale]
        trace["meta"]["dark"]["marker.color"] = [shade(dark_colour(kind), share, named("bg", "dark")) for share in pale]
    if labelled and kind in INKS:
        trace |= {
            "text": [str(box.microbatch + 1) for box in boxes],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": 0,
            "textfont": {"color": _inks(kind, boxes, pieces, "light"), "size": 10},
        }
        trace["meta"]["dark"]["textfont.color"] = _inks(kind, boxes, pieces, "dark")
    return trace


def _inks(kind: str, boxes: list[Box], pieces: StepSeconds, theme: str) -> list[str]:
    """The colours of the numbers in boxes."""
    return [named("ink" if _pale(box, pieces) > PALE else INKS[kind], theme) for box in boxes]


def _pale(box: Box, pieces: StepSeconds) -> float:
    """How pale a box is: the more, the later its chunk."""
    return 0.6 * max(box.chunk, 0) / max(pieces.chunks - 1, 1)


def _hover(box: Box, where: str, pieces: StepSeconds) -> str:
    which = [f"<b>{worded(box.kind)}</b>", where]
    if box.microbatch >= 0:
        which.append(say("micro-batch {number}", number=box.microbatch + 1))
    if box.chunk >= 0 and pieces.chunks > 1:
        which.append(say("chunk {number}", number=box.chunk + 1))
    when = say("from {start}, for {took}", start=human(box.start, "seconds"), took=human(box.seconds, "seconds"))
    return f"{say(', ').join(which)}<br>{when}"


def _cut(drawn: PipelineBoxes, factor: float) -> list[dict[str, Any]]:
    if not drawn.skipped:
        return []
    x = drawn.cut * factor
    return [
        {
            "type": "line",
            "yref": "paper",
            "x0": x,
            "x1": x,
            "y0": 0,
            "y1": 1,
            "line": {"color": INK, "width": 3, "dash": "dot"},
        }
    ]


def _cut_note(drawn: PipelineBoxes, factor: float) -> list[dict[str, Any]]:
    if not drawn.skipped:
        return []
    text = say(
        "{count} left out here ({took})",
        count=counted(drawn.skipped, "micro-batches"),
        took=human(drawn.gap, "seconds"),
    )
    return [{"x": drawn.cut * factor, "yref": "paper", "y": 1, "yanchor": "bottom", "showarrow": False, "text": text}]


def _ticks(drawn: PipelineBoxes, factor: float) -> dict[str, Any]:
    """True times on a paper from which the gap is cut out."""
    if not drawn.skipped:
        return {}
    length = (drawn.seconds - drawn.gap) * factor
    spacing = _round(length / TICKS)
    cut, gap, end = drawn.cut * factor, drawn.gap * factor, drawn.seconds * factor
    before = [index * spacing for index in range(int(cut / spacing) + 1)]
    first = int((cut + gap) / spacing) + 1
    after = [
        index * spacing
        for index in range(first, first + int((end - first * spacing) / spacing) + 1)
        if index * spacing <= end
    ]
    return {
        "tickvals": [*before, *(tick - gap for tick in after)],
        "ticktext": [f"{tick:,.6g}" for tick in (*before, *after)],
    }


def _round(length: float) -> float:
    """1, 2 or 5 times a power of ten, near a length."""
    power = 10.0 ** (len(str(int(length))) - 1) if length >= 1 else 10.0 ** -len(str(int(1 / length)))
    return next((power * times for times in (1, 2, 5) if power * times >= length), 10 * power)


def _stage_row(pieces: StepSeconds, rank: int) -> tuple[str, ...]:
    stage = pieces.stages[rank]
    values = (
        stage.forward,
        stage.again,
        stage.backward,
        stage.forward_sent + stage.backward_sent,
        stage.there + stage.back,
    )
    return (str(rank), *(human(value, "seconds") for value in values))
