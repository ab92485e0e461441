"""The files of a Hub repository that are on this machine: huggingface_hub's own cache, and headers that were read
before.

The layout of the cache is huggingface_hub's (its guide "Understand caching"): refs/<revision> holds a commit,
snapshots/<commit>/<path> are links to blobs/<etag>. Headers belong to a commit, so they never change.
"""

import os
import re
import zlib
from hashlib import sha256
from pathlib import Path

import msgspec

COMMIT = re.compile(r"[0-9a-f]{40}")
LARGEST_HEADER = 256 * 2**20
_ETAG = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Cache:
    """The files of one repository at one commit."""

    def __init__(self, repository: str, commit: str):
        self.repository, self.commit = repository, commit
        self._folder = folder(repository)
        self._assets = _assets(repository, commit)

    def path(self, name: str) -> Path | None:
        """The file, if it is complete in the cache."""
        file = self._folder / "snapshots" / self.commit / name
        return file if file.is_file() else None

    def names(self) -> list[str]:
        """The files in the cache, and those that the Hub listed when it was last asked."""
        snapshot = self._folder / "snapshots" / self.commit
        here = {path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()}
        return sorted(here | set(self._listed()))

    def _listed(self) -> list[str]:
        try:
            return msgspec.json.decode((self._assets / "files.json").read_bytes(), type=list[str])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return []

    def list(self, names: list[str], revision: str) -> None:
        """Store the list of files, and the commit of the revision."""
        _write(self._assets / "files.json", msgspec.json.encode(names))
        if revision != self.commit:
            _write(self._folder / "refs" / revision, self.commit.encode())

    def store(self, name: str, data: bytes, etag: str) -> None:
        """Store a complete file where huggingface_hub would."""
        place = self._folder / "snapshots" / self.commit / name
        etag = etag.removeprefix("W/").strip('"')
        if place.exists():
            return
        if not _ETAG.fullmatch(etag):
            _write(place, data)
            return
        blob = self._folder / "blobs" / etag
        if _write(blob, data):
            _link(blob, place, data)

    def header(self, name: str) -> tuple[bytes, int] | None:
        """The stored start of a file, and the file's size."""
        try:
            packed = (self._assets / _key(name)).read_bytes()
            unpacker = zlib.decompressobj()
            start = unpacker.decompress(packed[8:], LARGEST_HEADER)
        except (OSError, zlib.error):
            return None
        if not unpacker.eof:
            return None
        return start, int.from_bytes(packed[:8], "little")

    def store_header(self, name: str, start: bytes, size: int) -> None:
        _write(self._assets / _key(name), size.to_bytes(8, "little") + zlib.compress(start, 1))


def folder(repository: str) -> Path:
    """The folder where huggingface_hub keeps the repository."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"


def commit_of(repository: str, revision: str) -> str | None:
    """The commit of the revision when the Hub was last asked."""
    if COMMIT.fullmatch(revision):
        return revision
    try:
        text = (folder(repository) / "refs" / revision).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if COMMIT.fullmatch(text) else None


def _assets(repository: str, commit: str) -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_ASSETS_CACHE) / "tonnage" / repository.replace("/", "--") / commit


def _key(name: str) -> str:
    return f"{sha256(name.encode()).hexdigest()[:32]}.header"


def _write(path: Path, data: bytes) -> bool:
    """Write the file atomically, and return whether that worked; a read-only cache is no error."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}.incomplete")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError:
        return False
    return True


def _link(blob: Path, place: Path, data: bytes) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(blob, place.parent))
    except FileExistsError:
        return
    except OSError:  # no symbolic links here
        _write(place, data)
