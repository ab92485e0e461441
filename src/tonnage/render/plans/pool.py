"""A placement on a pool as lines of text: the verdict, what is where, what binds, what it costs."""

from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import counted, human
from tonnage.render.prompts import with_prompts
from tonnage.render.text import table_lines

Rows = Mapping[str, Any]
MAX_ROWS = 60  # lines of a table: --json has all


def pool_lines(document: Rows) -> list[str]:
    """The verdict first."""
    lines = [_verdict(document["verdict"]), "", *_asked(document), ""]
    for key, table in (("stages", _stages), ("replicas", _replicas), ("jobs", _jobs), ("moves", _moves)):
        if document[key]:
            lines += [*table(document[key]), ""]
    lines += [*_figures(document), *_why(document)]
    lines += [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]
    return [*lines, _effort(document["search"])]


def _verdict(verdict: Rows) -> str:
    return worded(verdict["text"])


def _asked(document: Rows) -> Iterator[str]:
    pool, question = document["pool"], document["question"]
    types = say(", ").join(f"{count} {name}" for name, count in pool["types"].items())
    yield (
        say("pool {pool}: {types}", pool=pool["name"], types=types)
        if pool["name"] != "pool"
        else say("pool: {types}", types=types)
    )
    if pool["left"]:
        yield say("left: {left}", left=", ".join(pool["left"]))
    if pool["joined"]:
        yield say("joined: {joined}", joined=", ".join(pool["joined"]))
    shown = (
        "goal",
        "context",
        "concurrency",
        "input_tokens",
        "output_tokens",
        "request_rate",
        "ttft",
        "tpot",
        "weights",
        "engine",
        "runtime",
        "sequence_length",
        "micro_batch_size",
        "global_batch_size",
        "recompute",
        "zero_stage",
        "offload",
    )
    inputs = [
        f"{name} {_value(question[name]['value'])}"
        for name in shown
        if question.get(name, {}).get("value") not in (None, False)
    ]
    if inputs:
        yield say(", ").join(inputs)


def _value(value: Any) -> str:
    return (
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else say("yes")
        if value is True
        else str(value)
    )


def _bytes(row: Rows) -> tuple[str, str]:
    if row["needed_bytes"] is None:
        return "-", "-"
    return human(row["needed_bytes"], "bytes"), human(row["usable_bytes"], "bytes")


def _cut(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> list[str]:
    lines = list(table_lines(rows[:MAX_ROWS], header))
    return (
        [*lines, say("and {rows_count} more: --json has all", rows_count=len(rows) - MAX_ROWS)]
        if len(rows) > MAX_ROWS
        else lines
    )


def _stages(rows: list[Rows]) -> list[str]:
    hosts = any(row["on_host_bytes"] for row in rows)
    header = (
        "stage",
        "on",
        "accelerators",
        "layers",
        "needed",
        "usable",
        *((say("on host"),) if hosts else ()),
        "seconds",
    )
    return _cut(
        [
            (
                str(row["stage"]),
                "+".join(row["nodes"]),
                f"{row['accelerators']}x{row['accelerator']}",
                f"{row['first_layer']}-{row['first_layer'] + row['layers'] - 1} ({row['layers']})",
                *_bytes(row),
                *((human(row["on_host_bytes"], "bytes"),) if hosts else ()),
                human(row["seconds"], "seconds"),
            )
            for row in rows
        ],
        header,
    )


def _replicas(rows: list[Rows]) -> list[str]:
    header = (
        "node",
        "replicas",
        say("each on"),
        "weights",
        say("each answers"),
        say("at once"),
        "needed",
        "usable",
        say("USD an hour"),
    )
    return _cut(
        [
            (
                row["node"],
                str(row["replicas"]),
                f"{row['accelerators']}x{row['accelerator']}",
                row["weights"],
                f"{row['capacity']:,.0f}" if row["capacity"] >= 1000 else f"{row['capacity']:.3g}",
                f"{row['requests']:,}",
                *_bytes(row),
                "-" if row["usd_per_hour"] is None else f"{row['usd_per_hour']:,.2f}",
            )
            for row in rows
        ],
        header,
    )


def _jobs(rows: list[Rows]) -> list[str]:
    header = ("job", "state", "on", "accelerators", "needed", "usable", "tokens/s", say("USD an hour"))
    return _cut(
        [
            (
                f"{row['job']}#{row['replica']}" if row["kind"] == "serve" else row["job"],
                say(row["state"]),
                "+".join(row["nodes"]) or "-",
                (
                    f"{row['accelerators']}x{row['accelerator']}"
                    + (say(" shared") if row["shares"] else "")
                    + (f", {row['offload']}" if row["offload"] else "")
                )
                if row["accelerators"]
                else "-",
                *_bytes(row),
                "-" if row["tokens_per_second"] is None else f"{row['tokens_per_second']:,.0f}",
                "-" if row["usd_per_hour"] is None else f"{row['usd_per_hour']:,.2f}",
            )
            for row in rows
        ],
        header,
    ) + [
        f"{row['job']}{say(': ')}{worded(row['why'])}"
        for row in {row["job"]: row for row in rows if row["why"]}.values()
    ]


def _moves(rows: list[Rows]) -> list[str]:
    header = ("moves", "from", "to", "copied", "takes")
    return _cut(
        [
            (
                f"{row['job']}#{row['replica']}",
                row["leaves"],
                "+".join(row["goes_to"]) or say("nowhere"),
                human(row["copied_bytes"], "bytes"),
                "-" if row["seconds"] is None else human(row["seconds"], "seconds"),
            )
            for row in rows
        ],
        header,
    )


TTFT = "ttft_seconds"
NAMES = {
    "tokens_per_second": ("tokens a second", ""),
    "tpot_seconds": ("each later token", "seconds"),
    "ttft_seconds": ("first token", "seconds"),
    "token_alone_seconds": ("each token of one user alone", "seconds"),
    "step_seconds": ("a step", "seconds"),
    "slowest_stage_seconds": ("slowest stage", "seconds"),
    "requests_per_second": ("requests per second", ""),
    "users": ("users", ""),
}


def _figures(document: Rows) -> Iterator[str]:
    figures = document["figures"]
    sentences = []
    for name, (label, unit) in NAMES.items():
        if (value := figures.get(name)) is not None:
            sentences.append(
                f"{with_prompts(say(label), document['question']) if name == TTFT else say(label)} "
                f"{human(value, unit) if unit else f'{value:,.4g}' if value < 1000 else f'{value:,.0f}'}"
            )
    if sentences:
        yield say("; ").join(sentences)
    if document["usd_per_hour"] is not None:
        yield say("cost {usd_per_hour} an hour", usd_per_hour=human(document["usd_per_hour"], "USD"))


def _why(document: Rows) -> Iterator[str]:
    if document["binding"]:
        yield say("what binds: {binding}", binding=worded(document["binding"]))
    if document["nearest_miss"]:
        yield say("nearest miss: {nearest_miss}", nearest_miss=worded(document["nearest_miss"]))


def _effort(search: Rows) -> str:
    cuts = (
        say(", {cuts} the estimator refused what was found", cuts=counted(search["cuts"], "times"))
        if search["cuts"]
        else ""
    )
    return say(
        "searched {considered}, {programs} of HiGHS{cuts}, in {seconds}",
        considered=counted(search["considered"], "ways"),
        programs=counted(search["programs"], "programs"),
        cuts=cuts,
        seconds=human(search["seconds"], "seconds"),
    )
