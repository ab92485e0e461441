"""Converts a row of `measure` to the form of docs/rows.md, which `tonnage validate` compares with the answer of
`tonnage train`.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.measure.rows import OUT_OF_MEMORY, Row

# Inputs of a question by the names that a measured program's config has for them.
INPUTS = {
    "sequence_length": "seq_len",
    "micro_batch_size": "local_batch",
    "num_microbatches": "num_microbatches",
    "recompute": "activation_checkpointing",
    "optimizer": "optimizer",
    "precision": "precision",
}
QUANTITIES = {
    "max_memory_reserved": "reserved_memory",
    "max_memory_allocated": "allocated_memory",
    "step time": "step_time",
}
IMPLEMENTATIONS = {"foreach", "fused"}
PLAIN_ATTENTION = ("eager", "sdpa")


def in_own_form(row: Row) -> Row:
    """The same measurement in the form of docs/rows.md; device, versions and settings are its labels."""
    config = row["config"]
    question = _question(row) if "seq_len" in config else {"skipped": "a program in a file is no question of tonnage"}
    labels = {name: str(value) for name, value in config.items() if name not in INPUTS.values()}
    fields = {
        "id": row["id"],
        "kind": row["kind"],
        **question,
        "measured": _figure(row["measured"]),
        "also": [figure for metric in row["also"] for figure in _figures(metric)],
        "labels": labels,
        "source": row["source"],
        "date": str(config.get("date", "")),
        "completeness": row["completeness"],
        "note": row.get("note", ""),
    }
    return {name: value for name, value in fields.items() if value not in ("", [], {})}


def _question(row: Row) -> dict[str, Any]:
    config, model = row["config"], row["model"]
    named: Any = model["name"]
    if model.get("overrides"):
        named = {"like": named, "config": dict(model["overrides"])}
    question = {"model": named, "on": str(config["gpu"]), "runtime": "transformers"}
    question |= {name: config[own] for name, own in INPUTS.items()}
    attention = str(config["attention"])
    question["attention"] = attention if attention in PLAIN_ATTENTION else "flash"
    if config.get("optimizer_implementation") in IMPLEMENTATIONS:
        question["optimizer_implementation"] = config["optimizer_implementation"]
    return {"verb": "train", "question": question}


def _figures(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures of one metric: one for each stage, where it has several."""
    if not isinstance(measured["value"], Mapping):
        return [_figure(measured)]
    return [
        _figure({**measured, "metric": f"{measured['metric']} [{stage}]", "value": value})
        for stage, value in measured["value"].items()
    ]


def _figure(measured: Mapping[str, Any]) -> dict[str, Any]:
    metric = str(measured["metric"])
    quantity = QUANTITIES.get(metric) or ("process_memory" if metric.startswith("process memory") else "")
    value = measured["value"] if measured["value"] == OUT_OF_MEMORY else float(measured["value"])
    if not quantity:
        return {"metric": metric, "value": value, "unit": measured["unit"], "skipped": "nothing predicts this figure"}
    return {"quantity": quantity, "value": value, "unit": measured["unit"], "metric": metric}
