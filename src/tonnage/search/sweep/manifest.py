"""What a directory holds: the sweep's own file, checked before anything is added to it, and a lock, so that one
driver adds at a time.
"""

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import tonnage
from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.reach import why
from tonnage.search.sweep import dataset
from tonnage.search.sweep.spec import Spec
from tonnage.search.sweep.tasks import Tasks
from tonnage.user_files import json_text, read_bytes

NAME, LOCK = "manifest.json", ".lock"
MAX_BYTES = 64_000_000  # bytes of a manifest
MAX_SECTIONS = 4_000_000  # its lists and objects
GIVE_ANOTHER = "Give another --out, or remove it."


@cache
def estimator() -> str:
    """A digest of the package's code and data: rows of one dataset come from one estimator."""
    root, digest = Path(tonnage.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".toml") and path.is_file():
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def manifest(spec: Spec, tasks: Tasks) -> dict[str, Any]:
    """The document of a directory."""
    import numpy as np

    versions = {
        "tonnage": tonnage.__version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "pyarrow": dataset.arrow().__version__,
    }
    return {
        "schema": "tonnage/sweep/1",
        "sweep": spec.digest(),
        "estimator": estimator(),
        "plans": tasks.plans,
        "chunks": tasks.count,
        "versions": versions,
        "spec": builtins(spec),
    }


def open_directory(directory: Path, spec: Spec, tasks: Tasks, *, resume: bool) -> None:
    """The directory as this sweep needs it: new, or its own and to be gone on with. InvalidInput says what else it
    holds.
    """
    path = directory / NAME
    now = manifest(spec, tasks)
    try:
        there = path.exists()
    except (OSError, ValueError) as error:  # a name too long for a folder; a null byte
        raise InvalidInput(
            "--out {directory} cannot be made: {why}.", directory=shown(str(directory), 300), why=why(error)
        ) from None
    if there:
        _check(path, now)
        if not resume:
            raise InvalidInput(
                "{directory} holds this sweep already, as far as it came: add --resume to go on with it. {again}",
                directory=directory,
                again=GIVE_ANOTHER,
            )
    elif directory.is_dir() and any(entry.name != LOCK for entry in directory.iterdir()):
        raise InvalidInput(
            "{directory} is not empty and holds no sweep. {again}", directory=directory, again=GIVE_ANOTHER
        )
    try:
        (directory / dataset.FOLDER).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            "--out {directory} cannot be made: {why}.", directory=shown(str(directory), 300), why=why(error)
        ) from None
    if not there:
        dataset.write_whole(path, json.dumps(now, indent=1, ensure_ascii=False).encode())


def _check(path: Path, now: dict[str, Any]) -> None:
    try:
        was = json_text.parse(read_bytes(path, MAX_BYTES), str(path), sections=MAX_SECTIONS)
        same = {name: was[name] == now[name] for name in ("sweep", "estimator")}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            "{path} cannot be read: {error}. {again}", path=path, error=error, again=GIVE_ANOTHER
        ) from None
    if not same["sweep"]:
        raise InvalidInput(
            "{parent} holds another sweep ({plans:,} plans; this one has {plans2:,}{first}). {again}",
            parent=path.parent,
            plans=was["plans"],
            plans2=now["plans"],
            first=_first_difference(was, now),
            again=GIVE_ANOTHER,
        )
    if not same["estimator"]:
        raise InvalidInput(
            "{parent} was begun with another tonnage ({tonnage}, or its code or catalogue have changed): "
            "its rows and new ones would not be alike. {again}",
            parent=path.parent,
            tonnage=was["versions"]["tonnage"],
            again=GIVE_ANOTHER,
        )


def _first_difference(was: dict[str, Any], now: dict[str, Any]) -> str:
    """The sentence on the first field that differs."""
    for name, value in now["spec"].items():
        if json.loads(json.dumps(value)) != was["spec"].get(name):
            return Message("; {name} differs", name=name)
    return ""


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One driver at a time; the lock goes with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows: no lock
        yield
        return
    try:
        opened = (directory / LOCK).open("a")
    except OSError as error:
        raise InvalidInput(
            "--out {directory} cannot be written to: {strerror}.", directory=directory, strerror=error.strerror or error
        ) from None
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(
                "another process is at work on {directory}: wait for it, or end it.", directory=directory
            ) from None
        yield
