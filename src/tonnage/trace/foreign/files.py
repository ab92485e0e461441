"""Reads complete files, decompressed if they are compressed, within limits."""

import gzip
import io
import zlib
from pathlib import Path

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.units import GIB, MIB, human
from tonnage.user_files import file_size, open_regular, read_part

LARGEST_FILE = GIB  # decompressed
GZIP = b"\x1f\x8b"
_PIECE = 4 * MIB


def head(path: Path, length: int = 64) -> bytes:
    """The first bytes. Raises InvalidInput."""
    with open_regular(path) as file:
        return read_part(file, path, 0, length)


def content(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """All bytes, decompressed if they are gzip's. Raises InvalidInput for a file that is too large or broken."""
    with open_regular(path) as file:
        if file_size(file) > largest:
            raise _too_large(path, largest)
        data = read_part(file, path, 0, largest + 1)
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
        raise InvalidInput("{path} is no whole gzip file: {error}.", path=path, error=error) from None
    return b"".join(pieces)


def _too_large(path: Path, largest: int) -> InvalidInput:
    return InvalidInput(
        "{path} holds more than {largest}: record less, with max_entries or fewer steps.",
        path=path,
        largest=human(largest, "bytes"),
    )
