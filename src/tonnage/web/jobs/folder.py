"""The private folder that the workers of one server share: what is in it is gone with the server."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "tonnage-web-"
ALIVE = "server.lock"


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A new folder that nobody else can read, until the end. What servers left that were killed is taken away first."""
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        alive = hold(folder / ALIVE)
        yield folder
        os.close(alive)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def hold(path: Path) -> int:
    """Lock the file, until the number that this gives is closed here and in every process that inherits it."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def _sweep(parent: Path) -> None:
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if left.stat().st_uid == os.getuid() and (left / ALIVE).exists() and not is_held(left / ALIVE):
                shutil.rmtree(left, ignore_errors=True)
