"""Requests of a file: when each came, and how long its prompt and its answer are. CSV with a header, or JSON, an object a line.

Known columns are ours (arrival_seconds, input_tokens, output_tokens, and cached_tokens), those of the Azure traces
(TIMESTAMP, ContextTokens, GeneratedTokens), those of BurstGPT (Timestamp, Request tokens, Response tokens), and those of Mooncake
(timestamp in milliseconds, input_length, output_length).
"""

import csv
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from tonnage.errors import InvalidInput, shown
from tonnage.estimate.load._requests import Requests
from tonnage.reach import allowed_file, called
from tonnage.units import counted

# ours -> how others write it
_COLUMNS = {
    "arrival_seconds": ("arrival_seconds", "arrival", "timestamp", "arrived_at"),
    "input_tokens": ("input_tokens", "contexttokens", "request tokens", "num_prefill_tokens", "input_length"),
    "output_tokens": ("output_tokens", "generatedtokens", "response tokens", "num_decode_tokens", "output_length"),
    "cached_tokens": ("cached_tokens",),
}
_NEEDED = ("arrival_seconds", "input_tokens", "output_tokens")
# The other form that counts from a moment in another unit, and the one that writes requests without an answer.
_MOONCAKE = frozenset({"timestamp", "input_length", "output_length"})
_BURSTGPT = frozenset({"timestamp", "request tokens", "response tokens"})
MILLISECONDS = "timestamp, input_length and output_length are Mooncake's columns, whose times are milliseconds"


class _Row(Struct, frozen=True):
    """Fields of a line by our names, and those who write them so."""

    line: int
    fields: dict[str, object]
    is_mooncake: bool
    is_burstgpt: bool


def read_requests(path: Path | str) -> Requests:
    """The requests of a file, in order of arrival, from second 0 on. BurstGPT's failures, which have no answer, are left out; `note` says what
    was taken as something."""
    import numpy as np

    given = str(path)
    path = allowed_file(given, "a trace is one, so leave it out, or ask where a folder of models is read (--models)")
    name = called(path)
    found: list[tuple[float, int, int, int]] = []
    failed, milliseconds = 0, False
    for row in _rows(path, given):
        request = _request(row, f"{name}: line {row.line}")
        milliseconds = milliseconds or row.is_mooncake
        if request is None:
            failed += 1
        else:
            found.append(request)
    if not found:
        raise InvalidInput(f"{name}: no requests.")
    found.sort(key=lambda row: row[0])
    times, prompts, answers, cached_tokens = (np.array(column) for column in zip(*found, strict=True))
    notes = [MILLISECONDS] if milliseconds else []
    if failed:
        notes.append(f"{counted(failed, 'requests')} of BurstGPT without an answer left out, which failed")
    return Requests(
        arrival=times - times[0], input_tokens=prompts, output_tokens=answers, cached=cached_tokens, users=None, note="; ".join(notes)
    )  # fmt: skip


def _request(row: _Row, where: str) -> tuple[float, int, int, int] | None:
    """Arrival [seconds], prompt, answer and what is cached of the prompt; None of a request that failed."""
    arrival = _seconds(_field(row.fields, "arrival_seconds", where), where) / (1000 if row.is_mooncake else 1)
    prompt, answer = (
        _count(_field(row.fields, name, where), name, where) for name in ("input_tokens", "output_tokens")
    )
    cached = _count(row.fields.get("cached_tokens", 0), "cached_tokens", where)
    if cached >= prompt > 0:
        raise InvalidInput(f"{where}: cached_tokens must be fewer than input_tokens, {prompt}. Got {cached}.")
    if row.is_burstgpt and not answer:
        return None
    for name, value in (("input_tokens", prompt), ("output_tokens", answer)):
        if not value:
            raise InvalidInput(
                f"{where}: {name} must be at least 1: leave the request out, or count its one token. Got 0."
            )
    return arrival, prompt, answer, cached


def _rows(path: Path, given: str) -> Iterator[_Row]:
    """Every line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"cannot read the trace {shown(given, 300)}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{called(path)}: not a text in UTF-8 ({error.reason} at byte {error.start}).") from None
    read = _json_rows if text.lstrip().startswith("{") else _csv_rows
    yield from read(called(path), text)


def _json_rows(name: str, text: str) -> Iterator[_Row]:
    for line, written in enumerate(text.splitlines(), start=1):
        if not written.strip():
            continue
        try:
            fields = json.loads(written)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"{name}: line {line}: not JSON ({getattr(error, 'msg', 'too deep')}).") from None
        if not isinstance(fields, dict):
            raise InvalidInput(f"{name}: line {line}: must be an object. Got {shown(fields)}.")
        yield _row(line, fields)


def _csv_rows(name: str, text: str) -> Iterator[_Row]:
    reader = csv.reader(text.splitlines())
    try:
        header = next(reader, [])
        missing = [name for name in _NEEDED if name not in _ours(dict.fromkeys(header))]
        if missing:
            raise InvalidInput(
                f"{name}: line 1: no column {missing[0]} (also written {', '.join(_COLUMNS[missing[0]][1:])}). "
                f"Got {shown(', '.join(header))}."
            )
        for row in reader:
            if row:
                yield _row(reader.line_num, dict(zip(header, row, strict=False)))
    except csv.Error as error:
        raise InvalidInput(f"{name}: line {reader.line_num}: not CSV ({error}).") from None


def _row(line: int, fields: Mapping[str, object]) -> _Row:
    names = {str(name).strip().lower() for name in fields}
    return _Row(line, _ours(fields), names >= _MOONCAKE, names >= _BURSTGPT)


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
        if 0 <= number < 1e15:
            return number
    except ValueError:
        whole, _point, rest = text.partition(".")
        digits = len(rest) - len(rest.lstrip("0123456789"))
        try:
            moment = datetime.fromisoformat(f"{whole}.{rest[:digits][:6]:0<6}{rest[digits:]}" if digits else text)
            return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() - _offset(moment)  # noqa: DTZ001
        except ValueError:
            pass
    raise InvalidInput(f"{where}: arrival_seconds must be seconds, 0 or more, or a moment such as 2023-11-16 18:17:03.98. Got {shown(value)}.")  # fmt: skip


def _offset(moment: datetime) -> float:
    offset = moment.utcoffset()
    return offset.total_seconds() if offset else 0.0
