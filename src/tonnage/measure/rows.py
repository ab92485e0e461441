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
