"""How far a question may reach beyond what tonnage ships: into files of this machine, and to model hubs.

The command line and Python reach everything that their user does. A server that answers strangers says less, for the
time of one question:

>>> with limited(Reach(files=None, hubs=False)):
...     allowed_file("/etc/passwd")
Traceback (most recent call last):
tonnage.kernel.errors.InvalidInput: files of the machine that answers are not read: give a name, or for model what its
config.json holds. Got '/etc/passwd'.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from tonnage.kernel.errors import InvalidInput, Unreachable, shown
from tonnage.kernel.message import Message

EVERYWHERE = "everywhere"
LONGEST_PATH = 300  # characters of a path in an error; no file of a usual system has a longer name
A_MODEL = "give a name, or for model what its config.json holds"


class Reach(NamedTuple):
    """`files`: "everywhere", a folder and what is in it, or None. `hubs`: whether models may be asked of their hubs.
    `machine`: whether `local` may be asked what it is.
    """

    files: Path | str | None = EVERYWHERE
    hubs: bool = True
    machine: bool = True


_REACH: ContextVar[Reach] = ContextVar("reach", default=Reach())  # noqa: B039 - a Reach cannot change


@contextmanager
def limited(reach: Reach) -> Iterator[None]:
    """What is asked inside reaches no further than `reach`."""
    before = _REACH.set(reach)
    try:
        yield
    finally:
        _REACH.reset(before)


def reads_files() -> bool:
    """Whether any file may be read."""
    return _REACH.get().files is not None


def allowed_file(text: str, instead: str = A_MODEL) -> Path:
    """The path that a text means, or InvalidInput where it is none or may not be read. `instead`: what is given
    where no file may be.
    """
    files = _REACH.get().files
    if files is None:
        raise InvalidInput(
            "files of the machine that answers are not read: {instead}. Got {text}.",
            instead=instead,
            text=shown(text),
        )
    if "\0" in text:
        raise InvalidInput("a path holds no null byte. Got {text}.", text=shown(text))
    try:
        if files == EVERYWHERE:
            return Path(text).expanduser() if text.startswith("~") else Path(text)
        folder = Path(files).resolve()
        path = (folder / text).resolve()
    except RuntimeError:
        reason = "there is no such home folder" if files == EVERYWHERE else "its links lead in a circle"
        raise InvalidInput("cannot read {called}: {why}.", called=shown(text, 300), why=reason) from None
    if not path.is_relative_to(folder):
        raise InvalidInput("files outside the folder of models are not read. Got {text}.", text=shown(text))
    return path


def allowed_member(folder: Path, name: str) -> Path:
    """A file of a folder that may be read, with its links followed. InvalidInput where it lies outside the one
    folder that is read: by a link, or by a name with .. that another file gives. A folder outside that one is not
    the asker's choice (a hub's cache), and is not checked.
    """
    path, only = folder / name, _only()
    if only is None or not folder.is_relative_to(only):
        return path
    try:
        target = path.resolve()
    except RuntimeError:
        raise InvalidInput(
            "cannot read {called}: its links lead in a circle.", called=shown(called(path), 300)
        ) from None
    if not target.is_relative_to(only):
        raise InvalidInput(
            "files outside the folder of models are not read, and a link leads there. Got {called}.",
            called=shown(called(path), 300),
        )
    return target


def is_there(text: str) -> bool:
    """Whether a text means a file or a folder that is there and may be read; what can be no path, or no name of a
    file, means none.
    """
    try:
        return reads_files() and _is(allowed_file(text).exists)
    except InvalidInput:
        return False


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name too long for one, or that may not be looked at, is none: Path raises for
    these.
    """
    return _is(path.is_file)


def is_folder(path: Path) -> bool:
    """The same of a folder."""
    return _is(path.is_dir)


def _is(predicate: Callable[[], bool]) -> bool:
    try:
        return predicate()
    except (OSError, ValueError):  # ValueError: a null byte
        return False


def called(path: Path) -> str:
    """What answers call a path: where one folder is read, nobody who asks is told where on the machine it is."""
    folder = _only()
    text = str(path.relative_to(folder)) if folder is not None and path.is_relative_to(folder) else str(path)
    return text if len(text) <= LONGEST_PATH else f"{text[: LONGEST_PATH - 3]}..."


def is_root(path: Path) -> bool:
    """Whether a path is the one folder that is read."""
    return path == _only()


def _only() -> Path | None:
    files = _REACH.get().files
    return None if files is None or files == EVERYWHERE else Path(files).resolve()


def why(error: Exception) -> str:
    """Why a file could not be read, without the path that the system says too."""
    return str(getattr(error, "strerror", None) or error)


def check_hubs(text: str) -> None:
    """Unreachable where no hub may be asked for `text`."""
    if not _REACH.get().hubs:
        raise Unreachable(
            Message(
                "model hubs are not asked here: give a name of the catalogue, or the text of the "
                "config.json. Got {text}.",
                text=shown(text),
            )
        )


def reads_machine() -> bool:
    """Whether the machine that answers may be asked what it is and what it keeps."""
    return _REACH.get().machine


def check_machine() -> None:
    """InvalidInput where this machine does not say what it is."""
    if not reads_machine():
        raise InvalidInput("local is the machine that answers, which is not asked here: name an accelerator.")
