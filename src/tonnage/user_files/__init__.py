"""Reads the files that users name. Every verb and the server open such files here.

A file is a regular file of bounded size. It is opened without blocking, and its kind is checked on the open descriptor,
so that a pipe or a device that takes its place in between is refused too. `yaml_text`, `toml_text`, `json_text` and
`csv_text` parse what was read, in time proportional to the size of the text for any content.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import called, why

# O_NONBLOCK: opening a pipe waits for a writer, and some files of /proc wait for data. Windows has none of the flags
# but the last.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_PIECE = 2**24  # bytes of one read


def read_bytes(path: Path, largest: int) -> bytes:
    """The content of a regular file of at most `largest` bytes. InvalidInput names the file and the problem."""
    with open_regular(path) as file:
        if file_size(file) > largest:
            raise too_large(path, largest)
        data = read_part(file, path, 0, largest + 1)  # a file may grow, and those of /proc state no size
    if len(data) > largest:
        raise too_large(path, largest)
    return data


def read_text(path: Path, largest: int) -> str:
    """The content of a regular file as text in UTF-8, without a byte order mark."""
    return decode(read_bytes(path, largest), called(path))


def decode(data: bytes, where: str) -> str:
    """Bytes as text in UTF-8, without a byte order mark; InvalidInput where they are none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "{where} is not UTF-8 text: {reason} at byte {start}.",
            where=where,
            reason=error.reason,
            start=error.start,
        ) from None


@contextmanager
def open_regular(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading; InvalidInput for anything else, without waiting for it."""
    try:
        _check_kind(path, path.stat().st_mode)  # opening a device can have effects of its own
        number = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput("cannot read {called}: {why}.", called=called(path), why=why(error)) from None
    with open(number, "rb", buffering=0) as file:  # noqa: PTH123 - of a descriptor
        _check_kind(path, os.fstat(number).st_mode)
        yield file


def file_size(file: BinaryIO) -> int:
    """Bytes of an open file, as the system states them."""
    return os.fstat(file.fileno()).st_size


def read_part(file: BinaryIO, path: Path, start: int, length: int) -> bytes:
    """At most `length` bytes from `start` on; fewer where the file ends."""
    pieces: list[bytes] = []
    try:
        file.seek(start)
        while length > 0:
            piece = file.read(min(length, _PIECE))
            if piece is None:  # a file of /proc that would wait
                raise InvalidInput("cannot read {called}: it gives no data.", called=called(path))
            if not piece:
                break
            pieces.append(piece)
            length -= len(piece)
    except (OSError, OverflowError) as error:
        raise InvalidInput("cannot read {called}: {why}.", called=called(path), why=why(error)) from None
    return b"".join(pieces)


def too_large(path: Path, largest: int) -> InvalidInput:
    """The error for a file of more than `largest` bytes."""
    return InvalidInput("{called} is larger than {largest:,} MB.", called=called(path), largest=largest // 10**6)


def _check_kind(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise InvalidInput("{called} is a folder, not a regular file.", called=called(path))
    if stat.S_ISFIFO(mode):
        raise InvalidInput(
            "{called} is a pipe, not a regular file: write its content to a file first.", called=called(path)
        )
    raise InvalidInput("{called} is a device or a socket, not a regular file.", called=called(path))
