"""How far a question may reach beyond what tonnage ships: into files of this machine, and to model hubs.

The command line and Python reach everything that their user does. A server that answers strangers says less, for the time of one question:

>>> with limited(Reach(files=None, hubs=False)):
...     allowed_file("/etc/passwd")
Traceback (most recent call last):
tonnage.errors.InvalidInput: files of the machine that answers are not read: give a name, or the text of a config.json itself. Got '/etc/passwd'.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from tonnage.errors import InvalidInput, Unreachable, shown

EVERYWHERE = "everywhere"


class Reach(NamedTuple):
    """`files`: "everywhere", a folder and what is in it, or None. `hubs`: whether models may be asked of their hubs. `machine`: whether
    `local` may be asked what it is."""

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


def allowed_file(text: str) -> Path:
    """The path that a text means, or InvalidInput where it may not be read."""
    files = _REACH.get().files
    if files == EVERYWHERE:
        return Path(text).expanduser() if text.startswith("~") else Path(text)
    if files is None:
        raise InvalidInput(
            f"files of the machine that answers are not read: give a name, or the text of a config.json itself. Got {shown(text)}."
        )
    folder = Path(files).resolve()
    path = (folder / text).resolve()
    if not path.is_relative_to(folder):
        raise InvalidInput(f"files outside the folder of models are not read. Got {shown(text)}.")
    return path


def check_hubs(text: str) -> None:
    """Unreachable where no hub may be asked for `text`."""
    if not _REACH.get().hubs:
        raise Unreachable(f"model hubs are not asked here: give a name of the catalogue, or the text of the config.json. Got {shown(text)}.")  # fmt: skip


def check_machine() -> None:
    """InvalidInput where this machine does not say what it is."""
    if not _REACH.get().machine:
        raise InvalidInput("local is the machine that answers, which is not asked here: name an accelerator.")
