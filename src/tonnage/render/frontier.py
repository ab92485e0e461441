"""A frontier as lines of text: its best configurations, the fastest for a user first."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.prompts import with_prompts
from tonnage.render.text import inputs_lines, table_lines
from tonnage.render.tone import Toned

MAX_ROWS = 16  # lines of the table: more are thinned out evenly


def frontier_lines(document: Mapping[str, Any]) -> list[str]:
    """The verdict, the inputs, the best configurations."""
    best = [point for point in document["points"] if point["pareto"]]
    question = document["question"]
    what = say("{model} on {on}", model=question["model"]["value"], on=question["on"]["value"])
    if not best:
        return [
            Toned(say("does not fit: {what}", what=what), "bad"),
            "",
            *inputs_lines(question),
            "",
            *(say("note: {what}", what=worded(warning)) for warning in document["warnings"]),
        ]
    fast, most = best[0], best[-1]
    first = say(
        (
            "{what}: from {tokens_per_second_per_user} tokens/s for a user to {tokens_per_second_per_gpu} "
            "tokens/s of an accelerator, {best_count} best of {configurations} configurations"
        ),
        what=what,
        tokens_per_second_per_user=f"{fast['tokens_per_second_per_user']:,.0f}",
        tokens_per_second_per_gpu=f"{most['tokens_per_second_per_gpu']:,.0f}",
        best_count=len(best),
        configurations=f"{document['configurations']:,}",
    )
    rows = [_row(point) for point in thinned(best, MAX_ROWS)]
    header = (
        say("tokens/s a user"),
        say("tokens/s an accelerator"),
        say("tensor ranks"),
        "weights",
        say("users a replica"),
        with_prompts(say("first token"), question),
        say("USD a million"),
    )
    return [
        first,
        "",
        *inputs_lines(question),
        "",
        *table_lines(rows, header),
        *(say("note: {what}", what=worded(warning)) for warning in document["warnings"]),
    ]


def thinned(rows: Sequence[Any], most: int) -> list[Any]:
    """Not more than so many, evenly, with the first and the last."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(at * (len(rows) - 1) / (most - 1))] for at in range(most)]


def speed_cells(point: Mapping[str, Any]) -> tuple[str, ...]:
    """Speed for a user, throughput, tensor size, weights, users and TTFT of a point."""
    return (
        f"{point['tokens_per_second_per_user']:,.1f}",
        f"{point['tokens_per_second_per_gpu']:,.0f}",
        str(point["tensor_parallel_size"]),
        point["weights"],
        f"{point['concurrency']:,}",
        human(point["ttft_seconds"], "seconds"),
    )


def _row(point: Mapping[str, Any]) -> tuple[str, ...]:
    cost = point["cost_per_million_output_tokens_all"]
    return (*speed_cells(point), "-" if cost is None else f"{cost:.3g}")
