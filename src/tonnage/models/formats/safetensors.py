"""Headers of safetensors files: 8 bytes of length, then JSON with the place of each tensor.

The format's own rules are checked (README of huggingface/safetensors): a header of at most 100 MB, an object without
duplicate keys, offsets that cover the file without gap or overlap.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed
from tonnage.models.names import plain_path
from tonnage.models.tensors import Tensor
from tonnage.user_files import json_text

LARGEST_HEADER = 100_000_000
LARGEST_FILE = 2**62
MAX_TENSORS = 300_000  # of a model; DeepSeek-V3 has 92,000, and an expert of a larger mixture in 4 bits takes nine
MAX_NAME = 1_000  # characters; published ones stay under 200
MAX_COMMAS = 4_000_000
SLOW_LIMIT = 32_000_000  # bytes of the largest header that is searched for duplicate keys
# Bits of an element; safetensors 0.8, Dtype.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
FIRST_READ = 65_536
Read = Callable[[int, int], bytes]


class _Entry(msgspec.Struct, gc=False):
    dtype: str = ""
    shape: tuple[int, ...] = ()
    data_offsets: tuple[int, int] | None = None


_HEADER = msgspec.json.Decoder(dict[str, _Entry])
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)


def read_header(read: Read, size: int | None, where: str, file: int = 0) -> list[Tensor]:
    """The tensors of a file that `read(start, length)` reads; `size` is the file's, None where it is unknown."""
    first = read(0, FIRST_READ if size is None else min(FIRST_READ, size))
    length = header_length(first, size, where)
    if 8 + length > len(first):
        first += read(len(first), 8 + length - len(first))
    if len(first) < 8 + length:
        raise InvalidInput("{where} ends inside its header.", where=where)
    return parse(first[8 : 8 + length], None if size is None else size - 8 - length, where, file)


def header_length(first: bytes, size: int | None, where: str) -> int:
    """The length that the first 8 bytes state, checked."""
    if len(first) < 8:
        raise InvalidInput(
            "{where} is no safetensors file: it has {count} bytes, and the header's length takes 8.",
            where=where,
            count=len(first),
        )
    length = int.from_bytes(first[:8], "little")
    if length > LARGEST_HEADER:
        raise InvalidInput(
            "{where} is no safetensors file: its header would take {length:,} bytes, and 100 MB is the limit.",
            where=where,
            length=length,
        )
    if length < 2 or (size is not None and 8 + length > size):
        raise InvalidInput(
            "{where} is no safetensors file: a header of {length:,} bytes does not fit a file of {size} bytes.",
            where=where,
            length=length,
            size=size,
        )
    return length


def parse(header: bytes, data_bytes: int | None, where: str, file: int = 0) -> list[Tensor]:
    """The tensors of a header; `data_bytes` is what follows it in the file."""
    if not header.startswith(b"{"):
        raise InvalidInput("{where}: the header does not begin with an object.", where=where)
    if header.count(b"{") > MAX_TENSORS or header.count(b",") > MAX_COMMAS:
        raise InvalidInput(
            "{where}: the header lists more than {most_tensors:,} tensors.", where=where, most_tensors=MAX_TENSORS
        )
    entries = _entries(header, where)
    tensors, spans = [], []
    for name, entry in entries.items():
        if len(name) > MAX_NAME:
            raise InvalidInput(
                "{where}: a tensor's name has at most {longest_name:,} characters. Got {name}.",
                where=where,
                longest_name=MAX_NAME,
                name=shown(name),
            )
        tensor, begin = _tensor(name, entry, where, file)
        tensors.append(tensor)
        spans.append((begin, begin + tensor.bytes, name))
    _check_spans(spans, data_bytes, where)
    return tensors


def _entries(header: bytes, where: str) -> dict[str, _Entry]:
    try:
        try:
            entries = _HEADER.decode(header)
        except msgspec.ValidationError:  # metadata may hold keys of an entry's names
            entries = {name: _entry(name, raw, where) for name, raw in _RAW.decode(header).items()}
    except RecursionError:
        raise InvalidInput("{where}: the header is nested too deep.", where=where) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "{where}: the header is not JSON of safetensors' form: {error}.", where=where, error=error
        ) from None
    entries.pop("__metadata__", None)
    # The fast decoder keeps the last of two equal keys. One of them shows as one data_offsets too many, or is escaped.
    if header.count(b'"data_offsets"') != len(entries) or b"\\u" in header:
        _refuse_duplicates(header, where)
    return entries


def _entry(name: str, raw: msgspec.Raw, where: str) -> _Entry:
    try:
        if name == "__metadata__":
            return _Entry()
        return _ENTRY.decode(raw)
    except msgspec.ValidationError as error:
        raise InvalidInput("{where}: tensor {name}: {error}.", where=where, name=shown(name), error=error) from None


def _refuse_duplicates(header: bytes, where: str) -> None:
    def once(pairs: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in pairs}) != len(pairs):
            raise InvalidInput("{where}: the header holds a key twice.", where=where)

    if len(header) > SLOW_LIMIT:
        raise InvalidInput(
            "{where}: the header of {count:,} bytes holds a key twice, or escapes in its names.",
            where=where,
            count=len(header),
        )
    try:
        json.loads(header, object_pairs_hook=once)
    except (RecursionError, UnicodeDecodeError):
        raise InvalidInput("{where}: the header is nested too deep or no UTF-8.", where=where) from None


def _tensor(name: str, entry: _Entry, where: str, file: int) -> tuple[Tensor, int]:
    bits = BITS.get(entry.dtype)
    if bits is None:
        raise InvalidInput(
            "{where}: tensor {name} is of type {dtype}. Known types: {bits}.",
            where=where,
            name=shown(name),
            dtype=shown(entry.dtype),
            bits=listed(BITS),
        )
    if entry.data_offsets is None:
        raise InvalidInput("{where}: tensor {name} lacks data_offsets.", where=where, name=shown(name))
    elements = 1
    for size in entry.shape:
        if size < 0:
            raise InvalidInput("{where}: tensor {name} has a size below 0 in its shape.", where=where, name=shown(name))
        elements *= size
        if elements > LARGEST_FILE:
            raise InvalidInput(
                "{where}: tensor {name} has a shape that no file can hold.", where=where, name=shown(name)
            )
    begin, end = entry.data_offsets
    if begin < 0 or (end - begin) * 8 != elements * bits:
        raise InvalidInput(
            "{where}: tensor {name}: {dtype} of shape {shape} does not take the {end} bytes that data_offsets give it.",
            where=where,
            name=shown(name),
            dtype=entry.dtype,
            shape=list(entry.shape)[:8],
            end=end - begin,
        )
    return Tensor(name, entry.dtype, entry.shape, end - begin, file), begin


def _check_spans(spans: list[tuple[int, int, str]], data_bytes: int | None, where: str) -> None:
    spans.sort()
    at = 0
    for begin, end, name in spans:
        if begin != at:
            word = "overlaps the one before it" if begin < at else "leaves a hole before it"
            raise InvalidInput(
                "{where}: tensor {name} {word} (byte {begin}, expected {at}).",
                where=where,
                name=shown(name),
                word=word,
                begin=begin,
                at=at,
            )
        at = end
    if data_bytes is not None and at != data_bytes:
        word = "the file is cut off" if at > data_bytes else "the file holds more than that"
        raise InvalidInput(
            "{where}: the header places {at:,} bytes of tensors, and {data_bytes:,} follow it: {word}.",
            where=where,
            at=at,
            data_bytes=data_bytes,
            word=word,
        )


def parse_index(data: bytes, where: str) -> dict[str, str]:
    """model.safetensors.index.json -> the shard of each tensor."""
    index = json_text.parse(data, where)
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict) or not shards or not all(isinstance(file, str) for file in shards.values()):
        raise InvalidInput("{where}: weight_map must name a file for each tensor.", where=where)
    for file in dict.fromkeys(shards.values()):
        plain_path(file, Message("{where}: a shard's name", where=where))
    return shards
