"""Speed for a user against throughput of an accelerator: a line for each plan, the best configurations marked."""

from typing import Any

from tonnage.render.plot._panel import Panel
from tonnage.units import human

LINES = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#f2b134", "#9d755d", "#d67195", "#a0a83b")
BEST = "#d6353c"


def frontier_panels(frontier: Any) -> tuple[str, list[Panel]]:
    """The title, and the one picture."""
    question = frontier.question
    title = f"{question['model']['value']} on {question['on']['value']}: speed for a user against throughput"
    best = list(frontier.points(pareto=True))
    traces = [_line(curve, LINES[at % len(LINES)]) for at, curve in enumerate(frontier.curves)]
    traces.append(_best(best))
    said = (f"Tokens a second of an accelerator over tokens a second that a user sees: {len(frontier.curves)} plans, "
            f"{len(best)} best configurations.")  # fmt: skip
    panel = Panel(
        name="frontier", title="Speed against throughput", says=said, traces=tuple(traces), wide=True, height=620,
        x={"title": {"text": "tokens/s that a user sees"}, "rangemode": "tozero"}, y={"title": {"text": "tokens/s of an accelerator"}, "rangemode": "tozero", "tickformat": "~s"},
        header=("tokens/s a user", "tokens/s an accelerator", "tensor ranks", "weights", "users a replica", "first token"),
        rows=tuple((f"{row['tokens_per_second_per_user']:,.1f}", f"{row['tokens_per_second_per_gpu']:,.1f}", str(row["tensor_parallel_size"]), row["weights"],
                    f"{row['concurrency']:,}", human(row["ttft_seconds"], "seconds")) for row in best),
    )  # fmt: skip
    return title, [panel]


def _line(curve: Any, colour: str) -> dict[str, Any]:
    name = f"{curve.weights}, {curve.plan.tensor_parallel_size} tensor rank{'' if curve.plan.tensor_parallel_size == 1 else 's'}"
    users, seconds = curve.concurrency.tolist(), curve.ttft_seconds.tolist()
    return {"type": "scatter", "mode": "lines+markers", "name": name, "x": curve.tokens_per_second_per_user.tolist(),
            "y": curve.tokens_per_second_per_gpu.tolist(), "line": {"color": colour, "width": 2}, "marker": {"size": 5, "color": colour},
            "customdata": [_told(name, each, first) for each, first in zip(users, seconds, strict=True)],
            "hovertemplate": "%{customdata}<br>%{x:.1f} tokens/s a user, %{y:.0f} an accelerator<extra></extra>"}  # fmt: skip


def _told(name: str, users: int, first: float) -> str:
    return f"<b>{name}</b><br>{users:,} user{'' if users == 1 else 's'} of a replica, first token in {human(first, 'seconds')}"


def _best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "scatter", "mode": "markers", "name": "best", "x": [row["tokens_per_second_per_user"] for row in rows],
            "y": [row["tokens_per_second_per_gpu"] for row in rows], "hoverinfo": "skip",
            "marker": {"size": 11, "color": "rgba(0,0,0,0)", "line": {"width": 2, "color": BEST}}}  # fmt: skip
