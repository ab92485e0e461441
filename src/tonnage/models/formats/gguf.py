"""Headers of GGUF files, versions 1 to 3, either byte order: metadata, and the place of each tensor.

The form is that of ggml-org/ggml, docs/gguf.md. Every count and length is checked against the file's size and against
limits before anything is read for it, so that a hostile file costs little.
"""

import struct
from collections.abc import Callable
from math import prod
from typing import Any

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.models.tensors import Tensor

# ---- The types of ggml: number -> name, elements of a block, bytes of a block.
#
# ggml-org/llama.cpp, ggml/src/ggml-common.h and ggml.c (type_traits), as the Python package gguf 0.19 lists them
# (GGML_QUANT_SIZES). Numbers that are missing were removed from the format.

TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}

# general.file_type: the name of the file's quantisation (LLAMA_FTYPE of llama.h).
FILE_TYPES: dict[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4_MOE",
    39: "NVFP4",
    40: "Q1_0",
}


MAGIC = b"GGUF"
LARGEST_HEADER = 256 * 2**20  # bytes; a tokenizer of 260,000 tokens with its merges takes about 10 MB
MAX_KEYS = 65_536
MAX_TENSORS = 300_000
MAX_STRINGS = 4_000_000  # of all arrays together: a tokenizer has 260,000 tokens and as many merges
MAX_ITEMS = 4_000_000  # of one array
KEPT_ITEMS = 4_096  # of an array of numbers; longer ones and texts are only counted
MAX_KEPT_ITEMS, MAX_NESTED = 1_000_000, 100_000  # of all arrays together
MAX_NAME = 65_535
LARGEST_FILE = 2**62
FIRST_READ, LARGEST_READ = 2**18, 2**24
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DEPTH = 4
Read = Callable[[int, int], bytes]


class Counted(Struct, frozen=True):
    """An array whose items were not kept."""

    items: int


class Header(Struct, frozen=True):
    """The content of a GGUF header."""

    version: int
    metadata: dict[str, Any]
    tensors: list[Tensor]
    big_endian: bool = False


class _Cursor:
    """Reads forward through a file in growing pieces."""

    def __init__(self, read: Read, size: int | None, where: str):
        self._read, self.size, self.where = read, size, where
        self._buffer, self._at, self._end, self._piece = b"", 0, 0, FIRST_READ
        self.order, self.count_format = "<", "Q"
        self.kept_items, self.nested, self.strings = 0, 0, 0

    @property
    def position(self) -> int:
        return self._end - len(self._buffer) + self._at

    @property
    def left(self) -> int:
        """Bytes that the header may still take."""
        return min(LARGEST_HEADER, LARGEST_HEADER if self.size is None else self.size) - self.position

    def take(self, count: int) -> bytes:
        if count > len(self._buffer) - self._at:
            self._fill(count)
        self._at += count
        return self._buffer[self._at - count : self._at]

    def skip(self, count: int) -> None:
        inside = len(self._buffer) - self._at
        if count <= inside:
            self._at += count
            return
        if count > self.left:
            raise self.cut_off()
        self._end += count - inside
        self._buffer, self._at = b"", 0

    def number(self, form: str) -> Any:
        return struct.unpack(self.order + form, self.take(struct.calcsize(f"={form}")))[0]

    def count(self) -> int:
        return self.number(self.count_format)

    def cut_off(self) -> InvalidInput:
        return InvalidInput(
            "{where} is no whole GGUF file: its header runs past byte {position:,}.",
            where=self.where,
            position=self.position + self.left,
        )

    def _fill(self, count: int) -> None:
        if count > self.left:
            raise self.cut_off()
        rest = self._buffer[self._at :]
        wanted = max(count - len(rest), self._piece)
        if self.size is not None:
            wanted = min(wanted, self.size - self._end)
        new = self._read(self._end, wanted)
        self._piece = min(2 * self._piece, LARGEST_READ)
        self._buffer, self._at, self._end = rest + new, 0, self._end + len(new)
        if len(self._buffer) < count:
            raise self.cut_off()

    def skip_strings(self, count: int) -> None:
        """Skip texts, each stored as a length and that many bytes."""
        width, form = (8, "Q") if self.count_format == "Q" else (4, "I")
        unpack = struct.Struct(self.order + form).unpack_from
        while count:
            buffer, at = self._buffer, self._at
            last = len(buffer) - width
            while count and at <= last:
                following = at + width + unpack(buffer, at)[0]
                if following > len(buffer):
                    break
                at, count = following, count - 1
            self._at = at
            if count:
                self.skip(self.count())
                count -= 1


def read_header(read: Read, size: int | None, where: str, file: int = 0) -> Header:
    """The header of a file that `read(start, length)` reads; `size` is the file's, None where it is unknown."""
    cursor = _Cursor(read, size, where)
    version = _version(cursor)
    tensor_count, key_count = cursor.count(), cursor.count()
    if key_count > min(MAX_KEYS, cursor.left // 12) or tensor_count > min(MAX_TENSORS, cursor.left // 16):
        raise InvalidInput(
            "{where}: {key_count:,} keys and {tensor_count:,} tensors do not fit its header: it is cut "
            "off or no GGUF file.",
            where=where,
            key_count=key_count,
            tensor_count=tensor_count,
        )
    metadata = _metadata(cursor, key_count)
    infos = [_tensor_info(cursor) for _ in range(tensor_count)]
    _check_data(infos, cursor, metadata)
    tensors = [Tensor(name, TYPES[number][0], shape, size, file) for name, shape, number, size, _ in infos]
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise InvalidInput("{where}: two tensors have the same name.", where=where)
    return Header(version, metadata, tensors, cursor.order == ">")


def _version(cursor: _Cursor) -> int:
    if (cursor.size is not None and cursor.size < 24) or cursor.take(4) != MAGIC:
        raise InvalidInput("{where} is no GGUF file: it does not begin with GGUF.", where=cursor.where)
    version = cursor.number("I")
    if version & 0xFFFF == 0:  # written in the other byte order
        cursor.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (1, 2, 3):
        raise InvalidInput(
            "{where}: GGUF versions 1 to 3 can be read. Got {version}.", where=cursor.where, version=version
        )
    cursor.count_format = "I" if version == 1 else "Q"
    return version


def _text(cursor: _Cursor, longest: int, what: str) -> str:
    length = cursor.count()
    if length > longest:
        raise InvalidInput(
            "{where}: {what} of {length:,} bytes is too long.", where=cursor.where, what=what, length=length
        )
    return cursor.take(length).decode("utf-8", "replace")


def _metadata(cursor: _Cursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(count):
        key = _text(cursor, MAX_NAME, "a key")
        if key in metadata:
            raise InvalidInput("{where} holds {key} twice.", where=cursor.where, key=shown(key))
        metadata[key] = _value(cursor, cursor.number("I"), key, 0)
    return metadata


def _value(cursor: _Cursor, kind: int, key: str, depth: int) -> Any:
    if kind in _SCALARS:
        if kind == 7:
            return cursor.number("B") != 0
        return cursor.number(_SCALARS[kind])
    if kind == _STRING:
        return _string(cursor)
    if kind == _ARRAY and depth < _MAX_DEPTH:
        return _array(cursor, key, depth)
    raise InvalidInput(
        "{where}: {key} is of type {kind}, or nested too deep.", where=cursor.where, key=shown(key), kind=kind
    )


def _string(cursor: _Cursor) -> Any:
    length = cursor.count()
    if length > cursor.left:
        raise cursor.cut_off()
    if length > MAX_NAME:  # chat templates and tokenizers, which are not needed here
        cursor.skip(length)
        return Counted(length)
    return cursor.take(length).decode("utf-8", "replace")


def _array(cursor: _Cursor, key: str, depth: int) -> Any:
    kind, count = cursor.number("I"), cursor.count()
    form = _SCALARS.get(kind)
    width = struct.calcsize(f"={form}") if form else 4
    if count > MAX_ITEMS or count * width > cursor.left:
        raise InvalidInput(
            "{where}: {key} claims {count:,} items, more than the file holds or a header may.",
            where=cursor.where,
            key=shown(key),
            count=count,
        )
    if form and count <= KEPT_ITEMS and cursor.kept_items + count <= MAX_KEPT_ITEMS:
        cursor.kept_items += count
        return list(struct.unpack(f"{cursor.order}{count}{'B' if kind == 7 else form}", cursor.take(count * width)))
    if form:
        cursor.skip(count * width)
    elif kind == _STRING:
        cursor.strings += count
        if cursor.strings > MAX_STRINGS:
            raise InvalidInput(
                "{where}: its arrays hold more than {most_strings:,} texts.",
                where=cursor.where,
                most_strings=MAX_STRINGS,
            )
        cursor.skip_strings(count)
    elif cursor.nested + count > MAX_NESTED:
        raise InvalidInput("{where}: {key} claims {count:,} arrays.", where=cursor.where, key=shown(key), count=count)
    else:
        cursor.nested += count
        return [_value(cursor, kind, key, depth + 1) for _ in range(count)]
    return Counted(count)


def _tensor_info(cursor: _Cursor) -> tuple[str, tuple[int, ...], int, int, int]:
    """Name, shape (rows first), type, bytes and offset."""
    name = _text(cursor, 4096, "a tensor's name")
    dimensions = cursor.number("I")
    if dimensions > 8:
        raise InvalidInput(
            "{where}: tensor {name} has {dimensions} dimensions.",
            where=cursor.where,
            name=shown(name),
            dimensions=dimensions,
        )
    shape = tuple(cursor.count() for _ in range(dimensions))
    number, offset = cursor.number("I"), cursor.number("Q")
    if number not in TYPES:
        raise InvalidInput(
            "{where}: tensor {name} is of ggml type {number}, which is none that tonnage knows.",
            where=cursor.where,
            name=shown(name),
            number=number,
        )
    kind, block, block_bytes = TYPES[number]
    elements = prod(shape)
    if elements > LARGEST_FILE or (shape and shape[0] % block):
        raise InvalidInput(
            "{where}: tensor {name}: {kind} cannot have the shape {shape}.",
            where=cursor.where,
            name=shown(name),
            kind=kind,
            shape=list(shape),
        )
    return name, shape[::-1], number, elements // block * block_bytes, offset


def _check_data(
    infos: list[tuple[str, tuple[int, ...], int, int, int]], cursor: _Cursor, metadata: dict[str, Any]
) -> None:
    """Check that tensors are aligned, do not overlap, and end before the file does."""
    where = cursor.where
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1) or alignment > 2**20:
        raise InvalidInput(
            "{where}: general.alignment must be a power of two. Got {alignment}.",
            where=where,
            alignment=shown(alignment),
        )
    start = -(-cursor.position // alignment) * alignment
    at = 0
    for offset, size, name in sorted((offset, size, name) for name, _, _, size, offset in infos):
        if offset < at or offset % alignment:
            raise InvalidInput(
                "{where}: tensor {name} overlaps another or is not aligned to {alignment} bytes.",
                where=where,
                name=shown(name),
                alignment=alignment,
            )
        at = offset + size
        if start + at > (LARGEST_FILE if cursor.size is None else cursor.size):
            known = (
                "no file is as large"
                if cursor.size is None
                else Message("the file has {size:,}: it is cut off", size=cursor.size)
            )
            raise InvalidInput(
                "{where}: tensor {name} ends at byte {start:,}, and {known}.",
                where=where,
                name=shown(name),
                start=start + at,
                known=known,
            )
