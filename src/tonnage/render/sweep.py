"""A sweep as lines for people."""

from typing import Any

from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import human
from tonnage.render.text import table_lines

SHOWN = 10
COLUMNS = {
    "train": {
        "model": "model",
        "cluster": "on",
        "tokens_per_second": "tokens/s",
        "step_seconds": "step",
        "needed_bytes": "needed",
        "usd_per_million_tokens": "USD/M tokens",
        "sequence_length": "seq",
        "global_batch_size": "batch",
        "micro_batch_size": "mbs",
        "tensor_parallel_size": "tp",
        "pipeline_parallel_size": "pp",
        "context_parallel_size": "cp",
        "expert_parallel_size": "ep",
        "data_parallel_size": "dp",
        "recompute": "recompute",
    },
    "serve": {
        "model": "model",
        "cluster": "on",
        "tokens_per_second_per_accelerator": "tokens/s an accelerator",
        "tokens_per_second_per_user": "tokens/s a user",
        "ttft_seconds": "ttft",
        "usd_per_million_output_tokens": "USD/M answer tokens",
        "engine": "engine",
        "weights": "weights",
        "tensor_parallel_size": "tp",
        "concurrency": "users",
    },
}
UNITS = {"step_seconds": "seconds", "ttft_seconds": "seconds", "needed_bytes": "bytes"}


def sweep_lines(document: dict[str, Any]) -> list[str]:
    """What was done, what was left out, and the best rows."""
    lines = [_counts(document), "", *_made(document)]
    if document["left_out"]:
        rows = [(f"{item['plans']:,}", _constraint(item["constraint"])) for item in document["left_out"][:SHOWN]]
        lines += [
            "",
            say("left out, by what they break:"),
            *table_lines(rows, (_what(document), "what must hold, or why it is not known")),
        ]
    if document["best"]:
        lines += [
            "",
            say(
                "best of each workload by tokens a second; {directory}/best.parquet has {best_rows} rows:",
                directory=document["directory"],
                best_rows=f"{document['best_rows']:,}",
            ),
        ]
        lines += table_lines(*_best(document))
    return [*lines, *(say("warning: {what}", what=worded(item)) for item in document["warnings"])]


def _what(document: dict[str, Any]) -> str:
    return "plans" if document["kind"] == "train" else "questions"


def _counts(document: dict[str, Any]) -> str:
    first = (
        say("done")
        if not document["failed"]
        else say(
            "{failed_count} of {chunks} chunks could not be computed",
            failed_count=f"{len(document['failed']):,}",
            chunks=f"{document['chunks']:,}",
        )
    )
    considered, valid, fitting = (f"{document[name]:,}" for name in ("considered", "valid", "fitting"))
    return (
        say(
            "{first}: {considered} plans, {valid} valid, {fitting} fit",
            first=first,
            considered=considered,
            valid=valid,
            fitting=fitting,
        )
        if document["kind"] == "train"
        else say(
            "{first}: {considered} questions, {valid} valid, {fitting} points",
            first=first,
            considered=considered,
            valid=valid,
            fitting=fitting,
        )
    )


def _made(document: dict[str, Any]) -> list[str]:
    lines = [
        f"  {left(say('rows'), 10)} "
        + say(
            "{rows} in {directory}/plans, {bytes} of Parquet",
            rows=f"{document['rows']:,}",
            directory=document["directory"],
            bytes=human(document["bytes"], "bytes"),
        )
    ]
    lines += [
        f"  {left(say('chunks'), 10)} "
        + say(
            "{chunks_made} made, {chunks_before} were there, of {chunks}",
            chunks_made=f"{document['chunks_made']:,}",
            chunks_before=f"{document['chunks_before']:,}",
            chunks=f"{document['chunks']:,}",
        )
    ]
    if document["chunks_made"]:
        rate = f"{document['plans_per_second']:,.0f} {say(_what(document))}/s"
        lines += [
            f"  {left(say('time'), 10)} "
            + say(
                "{seconds} on {workers}, {rate}",
                seconds=human(document["seconds"], "seconds"),
                workers=worded(document["workers"]),
                rate=rate,
            )
        ]
    lines += [
        "  " + say("chunk {chunk}: {why}", chunk=failure["chunk"], why=worded(failure["why"]))
        for failure in document["failed"][:SHOWN]
    ]
    return lines


def _constraint(text: str) -> str:
    translated = worded(text)
    return text[:150] if translated == text else translated


def _best(document: dict[str, Any]) -> tuple[list[list[str]], list[str]]:
    columns = COLUMNS[document["kind"]]
    rows = [[_cell(name, row.get(name)) for name in columns] for row in document["best"][:SHOWN]]
    return rows, list(columns.values())


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in UNITS:
        return human(value, UNITS[name])
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)
