"""Measurements as rows in the form of validation/sources/README.md. A row is plain data: it is written as JSON or as
YAML.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tonnage
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, plain
from tonnage.measure.run import Measurement
from tonnage.user_files import read_text, yaml_text

Row = dict[str, Any]
OUT_OF_MEMORY = "OOM"
TRIAL = "trial"  # the kind of rows measured on the host, which must never pass for a GPU's
_SMI = "as the driver counts it (NVML or nvidia-smi)"


def source(tool: str) -> str:
    return Message("own measurement: {tool} of tonnage {version}", tool=tool, version=tonnage.__version__)


def training_row(
    identity: str,
    model: Mapping[str, Any],
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    measured: Measurement,
    tool: str,
    note: str = "",
) -> Row:
    """The row of a training program. The main figure is the allocator's peak of reserved bytes; the note of a run that
    ran out of memory is PyTorch's message.
    """
    peak: Any = OUT_OF_MEMORY if measured.failure is not None else measured.peak_reserved
    notes = [note, measured.failure or ""]
    return _row(
        identity,
        "train_memory",
        model,
        {**config, **environment},
        ("max_memory_reserved", peak, "bytes"),
        _also(measured),
        tool,
        "; ".join(text for text in notes if text),
    )


def figure_row(
    identity: str,
    kind: str,
    config: Mapping[str, Any],
    environment: Mapping[str, Any],
    measured: tuple[str, float, str],
    also: Iterable[tuple[str, Any, str]],
    tool: str,
    note: str = "",
) -> Row:
    """The row of one figure of a device: a rate, a size."""
    return _row(identity, kind, {}, {**config, **environment}, measured, also, tool, note)


def _row(
    identity: str,
    kind: str,
    model: Mapping[str, Any],
    config: Mapping[str, Any],
    measured: tuple[str, Any, str],
    also: Iterable[tuple[str, Any, str]],
    tool: str,
    note: str,
) -> Row:
    def metric(name: str, value: Any, unit: str) -> dict[str, Any]:
        return {"metric": name, "value": value, "unit": unit}

    row: Row = {
        "id": identity,
        "kind": TRIAL if config.get("gpu") == "cpu" else kind,
        "model": dict(model),
        "config": dict(config),
        "measured": metric(*measured),
        "also": [metric(*figure) for figure in also],
        "source": source(tool),
        "completeness": "full",
    }
    return {**row, "note": note} if note else row


def _also(measured: Measurement) -> list[tuple[str, Any, str]]:
    figures: list[tuple[str, Any, str]] = [("max_memory_allocated", measured.peak_allocated, "bytes")]
    for field in ("allocated", "reserved", "peak_allocated", "peak_reserved"):
        # a stage that comes again (micro-batches) counts as it ended last, its peaks as they were at most
        by_stage: dict[str, int] = {}
        for stage in measured.stages:
            size = getattr(stage, field)
            by_stage[stage.name] = max(size, by_stage.get(stage.name, 0)) if field.startswith("peak") else size
        figures.append((field.replace("_", " "), by_stage, "bytes"))
    if measured.held:
        figures.append(("tensors", measured.held, "bytes"))
    figures += [
        (name, value, "bytes")
        for name, value in (
            (Message("process memory, {smi}", smi=_SMI), measured.process_bytes),
            ("memory of the device in use", measured.device_bytes),
        )
        if value is not None
    ]
    if measured.step_time is not None:
        figures.append(("step time", measured.step_time, "s"))
        spread = {"least": min(measured.step_seconds), "most": max(measured.step_seconds)}
        figures.append(("step time over the timed steps", spread, "s"))
    if measured.parameters:
        figures.append(("parameters", measured.parameters, "parameters"))
    return figures


def written_as_yaml(rows: Iterable[Row]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Messages as their English text."""

    Dumper.add_multi_representer(Message, lambda dumper, message: dumper.represent_str(plain(message)))
    return str(yaml.dump(list(rows), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=140))


def merge(path: Path, rows: Iterable[Row], header: str = "") -> int:
    """Write rows into a YAML file: rows of known ids are replaced, comments at its head stay. Returns the number of
    rows in the file. Raises InvalidInput where the file cannot be read or written.
    """
    try:
        text = read_text(path, yaml_text.LARGEST) if path.exists() else header
        before = yaml_text.parse(text, str(path)) or []
        rows_by_id = {str(row["id"]): row for row in before}
    except (OSError, TypeError, KeyError) as error:
        raise InvalidInput(
            "{path} is no file of rows: {error}", path=path, error=" ".join(str(error).split())[:200]
        ) from None
    comments = [line for line in text.splitlines() if line.startswith("#")]
    rows_by_id |= {row["id"]: row for row in rows}
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(
            "".join(f"{line}\n" for line in comments) + written_as_yaml(rows_by_id.values()), encoding="utf-8"
        )
        part.replace(path)
    except OSError as error:
        raise InvalidInput("cannot write {path}: {strerror}", path=path, strerror=error.strerror or error) from None
    return len(rows_by_id)


# ---- Converts a row of `measure` to the form of docs/rows.md, which `tonnage validate` compares with the answer of
# `tonnage train`.

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
