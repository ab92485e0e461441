"""A sweep as lines for people."""

from typing import Any

from tonnage.render.text import table_lines
from tonnage.units import human

SHOWN = 10
COLUMNS = {
    "train": {"model": "model", "cluster": "on", "tokens_per_second": "tokens/s", "step_seconds": "step", "needed_bytes": "needed",
              "usd_per_million_tokens": "USD/M tokens", "sequence_length": "seq", "global_batch_size": "batch", "micro_batch_size": "mbs", "tensor_parallel_size": "tp",
              "pipeline_parallel_size": "pp", "context_parallel_size": "cp", "expert_parallel_size": "ep", "data_parallel_size": "dp", "recompute": "recompute"},
    "serve": {"model": "model", "cluster": "on", "tokens_per_second_per_accelerator": "tokens/s an accelerator", "tokens_per_second_per_user": "tokens/s a user",
              "ttft_seconds": "ttft", "usd_per_million_output_tokens": "USD/M answer tokens", "engine": "engine", "weights": "weights", "tensor_parallel_size": "tp", "concurrency": "users"},
}  # fmt: skip
UNITS = {"step_seconds": "seconds", "ttft_seconds": "seconds", "needed_bytes": "bytes"}


def sweep_lines(document: dict[str, Any]) -> list[str]:
    """What was done, what was left out, and the best rows."""
    what = "plans" if document["kind"] == "train" else "questions"
    first = (
        "done"
        if not document["failed"]
        else f"{len(document['failed']):,} of {document['chunks']:,} chunks could not be computed"
    )
    lines = [
        f"{first}: {document['considered']:,} {what}, {document['valid']:,} valid, {document['fitting']:,} {'fit' if what == 'plans' else 'points'}",
        "",
    ]
    lines += [
        f"  {'rows':<10} {document['rows']:,} in {document['directory']}/plans, {human(document['bytes'], 'bytes')} of Parquet"
    ]
    lines += [
        f"  {'chunks':<10} {document['chunks_made']:,} made, {document['chunks_before']:,} were there, of {document['chunks']:,}"
    ]
    if document["chunks_made"]:
        rate = f"{document['plans_per_second']:,.0f} {what}/s"
        lines += [f"  {'time':<10} {human(document['seconds'], 'seconds')} on {document['workers']}, {rate}"]
    lines += [f"  chunk {each['chunk']}: {each['why']}" for each in document["failed"][:SHOWN]]
    if document["left_out"]:
        rows = [(f"{each['plans']:,}", each["constraint"][:150]) for each in document["left_out"][:SHOWN]]
        lines += [
            "",
            "left out, by what they break:",
            *table_lines(rows, (what, "what must hold, or why it is not known")),
        ]
    if document["best"]:
        lines += [
            "",
            f"best of each workload by tokens a second; {document['directory']}/best.parquet has {document['best_rows']:,} rows:",
        ]
        lines += table_lines(*_best(document))
    return [*lines, *(f"warning: {each}" for each in document["warnings"])]


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
