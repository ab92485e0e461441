"""Speed for a user against throughput of an accelerator: a line for each plan, the best configurations marked."""

from typing import Any

from tonnage.language import say
from tonnage.language.quantities import counted, human
from tonnage.render.palette import colour, series
from tonnage.render.plot.panel import Panel
from tonnage.render.prompts import with_prompts

BEST = colour("bad")


def frontier_panels(frontier: Any) -> tuple[str, list[Panel]]:
    """The title, and the one picture."""
    document = frontier.to_dict()
    question = document["question"]
    title = say(
        "{model} on {on}: speed for a user against throughput",
        model=question["model"]["value"],
        on=question["on"]["value"],
    )
    best = [row for row in document["points"] if row["pareto"]]
    colours = series(len(frontier.curves))
    traces = [_line(curve, of_curve) for curve, of_curve in zip(frontier.curves, colours, strict=True)]
    traces.append(_best(best))
    sentence = say(
        (
            "Tokens a second of an accelerator over tokens a second that a user sees: {plans} plans, {best} best "
            "configurations."
        ),
        plans=len(frontier.curves),
        best=len(best),
    )
    panel = Panel(
        name="frontier",
        title=say("Speed against throughput"),
        says=sentence,
        traces=tuple(traces),
        wide=True,
        height=620,
        x={"title": {"text": say("tokens/s that a user sees")}, "rangemode": "tozero"},
        y={"title": {"text": say("tokens/s of an accelerator")}, "rangemode": "tozero", "tickformat": "~s"},
        header=(
            *map(say, ("tokens/s a user", "tokens/s an accelerator", "tensor ranks", "weights", "users a replica")),
            with_prompts(say("first token"), question),
        ),
        rows=tuple(
            (
                f"{row['tokens_per_second_per_user']:,.1f}",
                f"{row['tokens_per_second_per_gpu']:,.1f}",
                str(row["tensor_parallel_size"]),
                row["weights"],
                f"{row['concurrency']:,}",
                human(row["ttft_seconds"], "seconds"),
            )
            for row in best
        ),
    )
    return title, [panel]


def _line(curve: Any, of_line: str) -> dict[str, Any]:
    name = f"{curve.weights}{say(', ')}{counted(curve.plan.tensor_parallel_size, 'tensor ranks')}"
    users, seconds = curve.concurrency.tolist(), curve.ttft_seconds.tolist()
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": curve.tokens_per_second_per_user.tolist(),
        "y": curve.tokens_per_second_per_gpu.tolist(),
        "line": {"color": of_line, "width": 2},
        "marker": {"size": 5, "color": of_line},
        "customdata": [_told(name, user_count, first) for user_count, first in zip(users, seconds, strict=True)],
        "hovertemplate": "%{customdata}<br>"
        + say("{user} tokens/s a user, {each} an accelerator", user="%{x:.1f}", each="%{y:.0f}")
        + "<extra></extra>",
    }


def _told(name: str, users: int, first: float) -> str:
    of = say(
        "{users} of a replica, first token in {first}", users=counted(users, "users"), first=human(first, "seconds")
    )
    return f"<b>{name}</b><br>{of}"


def _best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": say("best"),
        "x": [row["tokens_per_second_per_user"] for row in rows],
        "y": [row["tokens_per_second_per_gpu"] for row in rows],
        "hoverinfo": "skip",
        "marker": {"size": 11, "color": "rgba(0,0,0,0)", "line": {"width": 2, "color": BEST}},
    }
