"""Detects a file's format from its content, and reads it."""

from pathlib import Path
from typing import Any

import msgspec

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign import files, nsight, profiler, snapshot, tensorflow, timeline, xla
from tonnage.trace.foreign._foreign import Foreign
from tonnage.trace.foreign.unpickle import loads

KNOWN = (
    "a memory snapshot of PyTorch (pickle, JSON), a trace or memory timeline of its profiler, an SQLite "
    "export of Nsight Systems, "
    "a memory profile of TensorFlow (JSON), a buffer assignment of XLA (text)"
)
MAX_PARTS = 50_000_000  # commas, lists and objects of a JSON: each takes some 50 bytes when it is read
_PICKLES = (b"\x80", b"(", b"}", b"]")  # protocol 2 and later; older ones begin with a container


def read(path: Path, device: int | None = None) -> Foreign:
    """The memory of one device in a file: `device`, or the one with most data.

    Raises InvalidInput for a file that is none of the known formats, is broken, or carries code; nothing of it is run.
    """
    where = str(path)
    if files.head(path).startswith(nsight.MAGIC):
        return nsight.from_database(path, device)
    data = files.content(path)
    if data.startswith(nsight.MAGIC):
        raise InvalidInput("{where} is a packed SQLite database: unpack it first.", where=where)
    if data.startswith(_PICKLES):
        return snapshot.from_data(loads(data, where), where, device)
    start = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"{", b"[")):
        return from_json(data, where, device)
    if start.startswith(xla.HEADS):
        return xla.from_text(data, where)
    raise InvalidInput("{where} is none of the files that are known: {known}.", where=where, known=KNOWN)


def from_json(data: bytes, where: str, device: int | None) -> Foreign:
    """Read a JSON file by the keys of its outermost object, or by the start of its list."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    outer = _decode(data, where, dict[str, msgspec.Raw] | list[msgspec.Raw])
    if isinstance(outer, list):
        return _from_list(outer, data, where, device)
    if profiler.KEY in outer:
        return profiler.from_json(data, where, device)
    if snapshot.KEYS & set(outer):
        return snapshot.from_data(_decode(data, where, Any), where, device)
    if tensorflow.KEY in outer:
        return tensorflow.from_data(_decode(data, where, Any), where, device)
    raise InvalidInput(
        "{where} is JSON without {key}, device_traces or {key2}. Known are {known}; it has {outer}.",
        where=where,
        key=profiler.KEY,
        key2=tensorflow.KEY,
        known=KNOWN,
        outer=", ".join(map(repr, list(outer)[:8]))[:200],
    )


def _from_list(outer: list[msgspec.Raw], data: bytes, where: str, device: int | None) -> Foreign:
    first = bytes(outer[0]).lstrip()[:1] if outer else b""
    if first != b"{":
        return timeline.from_json(data, where)
    keys = _decode(bytes(outer[0]), where, dict[str, msgspec.Raw])
    if tensorflow.KEY in keys:
        return tensorflow.from_data(_decode(bytes(outer[0]), where, Any), where, device)
    if "ph" in keys:
        return profiler.from_json(data, where, device)
    return snapshot.from_data(_decode(data, where, Any), where, device)


def _decode(data: bytes, where: str, kind: Any) -> Any:
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_PARTS:
        raise InvalidInput(
            "{where} holds more than {most_parts:,} values: record less.", where=where, most_parts=MAX_PARTS
        )
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInput("{where} is no JSON: {error}.", where=where, error=error) from None
