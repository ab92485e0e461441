"""What is already on this machine of a Hub repository: huggingface_hub's own cache, and the headers that were read
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
        """The file, if all of it is here."""
        found = self._folder / "snapshots" / self.commit / name
        return found if found.is_file() else None

    def names(self) -> list[str]:
        """The files that are here, and those that the Hub listed when it was last asked."""
        snapshot = self._folder / "snapshots" / self.commit
        here = {path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()}
        return sorted(here | set(self._listed()))

    def _listed(self) -> list[str]:
        try:
            return msgspec.json.decode((self._assets / "files.json").read_bytes(), type=list[str])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return []

    def list(self, names: list[str], revision: str) -> None:
        """Remember what the repository holds, and which commit the revision means."""
        _write(self._assets / "files.json", msgspec.json.encode(names))
        if revision != self.commit:
            _write(self._folder / "refs" / revision, self.commit.encode())

    def store(self, name: str, data: bytes, etag: str) -> None:
        """Put a whole file where huggingface_hub would."""
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
        """The start of a file and the file's size, as they were read before."""
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
    """Where huggingface_hub keeps the repository."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"


def commit_of(repository: str, revision: str) -> str | None:
    """The commit that the revision meant when the Hub was last asked."""
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
    """Whether the file could be written, all of it or nothing; a cache that cannot be written to is no error."""
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
