"""Whole files, unpacked where they are packed, within limits."""

import gzip
import io
import zlib
from pathlib import Path

from tonnage.errors import InvalidInput
from tonnage.units import GIB, MIB, human

LARGEST_FILE = GIB  # of what is read, unpacked
GZIP = b"\x1f\x8b"
_PIECE = 4 * MIB


def head(path: Path, length: int = 64) -> bytes:
    """The first bytes. Raises InvalidInput."""
    try:
        with path.open("rb") as file:
            return file.read(length)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}.") from None


def content(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """All bytes, unpacked if they are gzip's. Raises InvalidInput for what is too large or broken."""
    try:
        if path.is_file() and path.stat().st_size > largest:
            raise _too_large(path, largest)
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}.") from None
    if data.startswith(GZIP):
        data = _unpacked(data, path, largest)
    if len(data) > largest:
        raise _too_large(path, largest)
    return data


def _unpacked(data: bytes, path: Path, largest: int) -> bytes:
    pieces, count = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            while piece := packed.read(_PIECE):
                pieces.append(piece)
                count += len(piece)
                if count > largest:
                    raise _too_large(path, largest)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path} is no whole gzip file: {error}.") from None
    return b"".join(pieces)


def _too_large(path: Path, largest: int) -> InvalidInput:
    return InvalidInput(
        f"{path} holds more than {human(largest, 'bytes')}: record less, with max_entries or fewer steps."
    )
