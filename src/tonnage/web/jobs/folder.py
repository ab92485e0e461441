"""The private folder that the workers of one server share: what is in it is gone with the server, unless that was
killed.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tonnage.kernel.version import __version__
from tonnage.web.jobs.limits import JobLimits

PREFIX = "tonnage-web-"
ALIVE = "server.lock"
SPARED_SECONDS = JobLimits().kept_seconds  # a killed server's folder waits so long for a new server at its address


@contextmanager
def shared_folder(address: str | None = None) -> Iterator[Path]:
    """A folder that nobody else can read, until the end.

    Where a server at this `address` was killed, its folder is taken over: who waits for a job learns what became of it.
    Other folders of killed servers are removed when they are older than jobs are kept.
    """
    parent = Path(tempfile.gettempdir())
    taken_over = _take_over(parent, address) if address else None
    _remove_old(parent)
    folder = taken_over[0] if taken_over else Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        alive = taken_over[1] if taken_over else hold(folder / ALIVE)
        if address:
            os.pwrite(alive, _identity(address), 0)
        yield folder
        os.close(alive)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def hold(path: Path) -> int:
    """Lock the file, until the number that this gives is closed here and in every process that inherits it."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number


def is_held(path: Path) -> bool:
    """Whether whoever locked the file still lives."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who look at once do not see each other
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False


def _identity(address: str) -> bytes:
    """What a folder says of its server: another version of tonnage may write other tables, and does not take it
    over.
    """
    return f"{address} {__version__}\n".encode()


def _take_over(parent: Path, address: str) -> tuple[Path, int] | None:
    """The folder of a killed server at this address, the last that was used, with its lock held."""
    for folder in sorted(_abandoned(parent), key=_last_used, reverse=True):
        with suppress(OSError):
            if (folder / ALIVE).read_bytes() == _identity(address):
                return folder, hold(folder / ALIVE)
    return None


def _remove_old(parent: Path) -> None:
    for folder in _abandoned(parent):
        if time.time() - _last_used(folder) > SPARED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def _abandoned(parent: Path) -> Iterator[Path]:
    """Folders of this user's servers that have ended without removing them."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            about = folder.lstat()
            own = stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and about.st_mode & 0o077 == 0
            if own and (folder / ALIVE).is_file() and not is_held(folder / ALIVE):
                yield folder


def _last_used(folder: Path) -> float:
    """Seconds since the epoch of the last change in it."""
    times = [0.0]
    with suppress(OSError):
        times += [path.lstat().st_mtime for path in folder.iterdir()]
    return max(times)
