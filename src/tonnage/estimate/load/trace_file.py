"""Requests of a file: when each came, and how long its prompt and its answer are. CSV with a header, or JSON, an object a line.

Known columns are ours (arrival_seconds, input_tokens, output_tokens, and cached_tokens), those of the Azure traces
(TIMESTAMP, ContextTokens, GeneratedTokens), and those of BurstGPT (Timestamp, Request tokens, Response tokens).
"""

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from tonnage.errors import InvalidInput, shown
from tonnage.estimate.load._requests import Requests

# ours -> how others write it
_COLUMNS = {
    "arrival_seconds": ("arrival_seconds", "arrival", "timestamp", "arrived_at"),
    "input_tokens": ("input_tokens", "contexttokens", "request tokens", "num_prefill_tokens", "input_length"),
    "output_tokens": ("output_tokens", "generatedtokens", "response tokens", "num_decode_tokens", "output_length"),
    "cached_tokens": ("cached_tokens",),
}
_NEEDED = ("arrival_seconds", "input_tokens", "output_tokens")


def read_requests(path: Path | str) -> Requests:
    """The requests of a file, in order of arrival, from second 0 on. Those without an answer (BurstGPT's failures) are left out."""
    import numpy as np

    path = Path(path)
    found: list[tuple[float, int, int, int]] = []
    for line, row in _rows(path):
        where = f"{path}: line {line}"
        arrival = _seconds(_field(row, "arrival_seconds", where), where)
        prompt, answer = (_count(_field(row, name, where), name, where) for name in ("input_tokens", "output_tokens"))
        cached = _count(row.get("cached_tokens", 0), "cached_tokens", where)
        if cached >= prompt > 0:
            raise InvalidInput(f"{where}: cached_tokens must be fewer than input_tokens, {prompt}. Got {cached}.")
        if prompt and answer:
            found.append((arrival, prompt, answer, cached))
    if not found:
        raise InvalidInput(f"{path}: no requests.")
    found.sort(key=lambda row: row[0])
    times, prompts, answers, cached_tokens = (np.array(column) for column in zip(*found, strict=True))
    return Requests(
        arrival=times - times[0], input_tokens=prompts, output_tokens=answers, cached=cached_tokens, users=None
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """(number of the line, its fields by our names)."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not a text in UTF-8 ({error.reason} at byte {error.start}).") from None
    yield from _json_rows(path, text) if text.lstrip().startswith("{") else _csv_rows(path, text)


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, object]]]:
    for line, written in enumerate(text.splitlines(), start=1):
        if not written.strip():
            continue
        try:
            fields = json.loads(written)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"{path}: line {line}: not JSON ({getattr(error, 'msg', 'too deep')}).") from None
        if not isinstance(fields, dict):
            raise InvalidInput(f"{path}: line {line}: must be an object. Got {shown(fields)}.")
        yield line, _ours(fields)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, object]]]:
    reader = csv.reader(text.splitlines())
    try:
        header = next(reader, [])
        missing = [name for name in _NEEDED if name not in _ours(dict.fromkeys(header))]
        if missing:
            raise InvalidInput(
                f"{path}: line 1: no column {missing[0]} (also written {', '.join(_COLUMNS[missing[0]][1:])}). "
                f"Got {shown(', '.join(header))}."
            )
        for row in reader:
            if row:
                yield reader.line_num, _ours(dict(zip(header, row, strict=False)))
    except csv.Error as error:
        raise InvalidInput(f"{path}: line {reader.line_num}: not CSV ({error}).") from None


def _ours(fields: Mapping[str, object]) -> dict[str, object]:
    by_name = {str(name).strip().lower(): value for name, value in fields.items()}
    return {ours: by_name[name] for ours, names in _COLUMNS.items() for name in names if name in by_name}


def _field(row: Mapping[str, object], name: str, where: str) -> object:
    if row.get(name) in (None, ""):
        raise InvalidInput(f"{where}: {name} is missing.")
    return row[name]


def _count(value: object, name: str, where: str) -> int:
    try:
        number = float(str(value))
        if number == int(number) >= 0:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"{where}: {name} must be a whole number, 0 or more. Got {shown(value)}.")


def _seconds(value: object, where: str) -> float:
    """A number of seconds, or a moment: 2023-11-16 18:17:03.9799600 (Azure's have seven digits after the point)."""
    text = str(value).strip()
    try:
        number = float(text)
        if abs(number) < 1e15:
            return number
    except ValueError:
        whole, _point, rest = text.partition(".")
        digits = len(rest) - len(rest.lstrip("0123456789"))
        try:
            moment = datetime.fromisoformat(f"{whole}.{rest[:digits][:6]:0<6}{rest[digits:]}" if digits else text)
            return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() - _offset(moment)  # noqa: DTZ001
        except ValueError:
            pass
    raise InvalidInput(f"{where}: arrival_seconds must be seconds or a moment such as 2023-11-16 18:17:03.98. Got {shown(value)}.")  # fmt: skip


def _offset(moment: datetime) -> float:
    offset = moment.utcoffset()
    return offset.total_seconds() if offset else 0.0
