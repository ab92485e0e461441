"""A model on this machine: a folder, or one file of it."""

import os
from collections.abc import Callable, Sequence
from errno import ENAMETOOLONG
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.reach import allowed_file, allowed_member, called, is_folder, is_root, is_there, reads_files
from tonnage.kernel.registry import nearest
from tonnage.models.contents import Contents
from tonnage.models.not_models import ADAPTER_CONFIG, PIPELINE
from tonnage.user_files import file_size, open_regular, read_part

if TYPE_CHECKING:
    from tonnage.models.places import File

MAX_FILES = 100_000
MAX_COMPARED, MAX_NEAR = 1_000, 3  # files of a folder that are compared with one that is not there; that are named
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
_ENDINGS = (".json", ".safetensors", ".gguf", ".toml")


class Folder:
    """The files of one folder, without subfolders."""

    def __init__(self, path: Path, only: str | None = None):
        self.path, self.label = path, _label(path)
        self.name = _name(path)
        self.names: Sequence[str] = [only] if only else _names(path)

    def small(self, name: str, largest: int) -> bytes:
        opened = self.open(name)
        size = opened.size or 0
        if size > largest:
            raise InvalidInput(
                "{called} has {size:,} bytes; more than {largest:,} are not read.",
                called=called(self.path / name),
                size=size,
                largest=largest,
            )
        return opened.read(0, size)

    def open(self, name: str) -> "File":
        from tonnage.models.places import File

        path = allowed_member(self.path, name)
        with open_regular(path) as file:
            return File(_reader(path), file_size(file))

    def read_each(self, names: Sequence[str], read: Callable[[str], Any]) -> list[Any]:
        return [read(name) for name in names]


def _label(folder: Path) -> str:
    """What errors and sources call a folder: the current one by its whole path, since "." says nothing."""
    label = called(folder)
    if label != ".":
        return label
    return "the folder of models" if is_root(folder) else str(folder.absolute())


def _name(folder: Path) -> str:
    """The model's name: that of the folder; the folder that is the argument itself has no name for the user."""
    return "model" if is_root(folder) else folder.name or folder.resolve().name


def _names(path: Path) -> list[str]:
    with os.scandir(path) as entries:
        names = [entry.name for _, entry in zip(range(MAX_FILES), entries, strict=False) if _is_file(entry)]
    return sorted(names)


def _is_file(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link in a circle
        return False


def _reader(path: Path) -> Callable[[int, int], bytes]:
    def part(start: int, length: int) -> bytes:
        with open_regular(path) as file:
            return read_part(file, path, start, length)

    return part


def find(text: str) -> Path | None:
    """The path that the text names: one that exists and holds a model, or a text that can only be a path."""
    if "\0" in text or len(text) > 4096:
        return None
    if not reads_files() and not looks_like_path(text):
        return None
    try:
        path = allowed_file(text)
        there = path.exists()
        if there and ((path.is_file() and path.suffix in _ENDINGS) or (path.is_dir() and _holds_model(path))):
            return path
    except OSError as error:
        if error.errno == ENAMETOOLONG and not looks_like_path(text):
            return None
        raise InvalidInput("cannot read {called}: {why}.", called=shown(text, 300), why=error.strerror) from None
    if not looks_like_path(text):
        return None
    if not there:
        raise no_such_file(text)
    return path


def is_missing_path(text: str) -> bool:
    """Whether a text that can only be a path names nothing that is there."""
    return looks_like_path(text) and "\0" not in text and not _exists(allowed_file(text))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def is_missing_file(text: str) -> bool:
    """Whether a text that names no file, no model and no site is the path of a file that is not there: by the ending of
    a model's file, or by its folders. owner/name.gguf is one too.
    """
    return ":" not in text and "@" not in text and (text.lower().endswith(_ENDINGS) or text.count("/") > 1)


def no_such_file(text: str) -> InvalidInput:
    """The error for a file that is not there, with files of that folder that are called alike."""
    allowed_file(text)
    hint = ""
    if near := near_files(text):
        hint = Message("Did you mean {near}?", near=joined(" or ", map(repr, near)))
    elif text.endswith(".gguf") and text.count("/") == 1:
        hint = Message("A repository of the Hugging Face Hub is written {reference}.", reference=f"hf:{text}")
    missing = Message("there is no file or folder {text}.", text=shown(text, 300))
    return InvalidInput(joined(" ", filter(None, (missing, hint))))


def near_files(text: str) -> list[str]:
    """Files of models, and folders, that are called nearly as a path that is not there; nothing where the folder cannot
    be listed.
    """
    try:
        folder = allowed_file(text).parent
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for _, entry in zip(range(MAX_COMPARED), entries, strict=False)
                if entry.name.endswith(_ENDINGS) or entry.is_dir()
            ]
    except (OSError, InvalidInput):
        return []
    before = text[: len(text) - len(Path(text).name)]
    return [f"{before}{name}" for name in nearest(Path(text).name, names)[:MAX_NEAR]]


def looks_like_path(text: str) -> bool:
    """Whether a text can only be a path."""
    return text.startswith(("/", "./", "../", "~", ".\\", "..\\")) or text in (".", "..") or text[1:3] in (":\\", ":/")


def _holds_model(path: Path) -> bool:
    return any(
        name.endswith((".safetensors", ".gguf", ".safetensors.index.json"))
        or name in ("config.json", ADAPTER_CONFIG, PIPELINE)
        for name in _names(path)
    )


def contents(path: Path) -> Contents:
    """The content of the files at `path`."""
    try:
        contents_of_path = _contents(path)
    except OSError as error:
        raise InvalidInput("cannot read {called}: {why}.", called=called(path), why=error.strerror) from None
    if path.is_dir() or path.suffix == ".gguf":  # which loaders take
        contents_of_path.place = called(path)
    elif path.suffix == ".safetensors" or path.name.endswith(".index.json") or _is_beside_weights(path):
        contents_of_path.place = called(path.parent)
    return contents_of_path


def _is_beside_weights(path: Path) -> bool:
    """Whether a file is the config of the checkpoint in its folder; a config saved on its own describes a model without
    saying where its weights are.
    """
    return path.name == "config.json" and any(name.endswith(WEIGHTS) for name in _names(path.parent))


def _contents(path: Path) -> Contents:
    from tonnage.models.location import read

    if path.is_dir():
        return read(Folder(path))
    with open_regular(path):  # a pipe or a device is refused by its kind, before its name is looked at
        pass
    if path.suffix == ".toml":
        return _from_toml(path)
    if path.suffix not in _ENDINGS:
        raise InvalidInput(
            "a model's file ends with {endings}. Got {path}.", endings=listed(_ENDINGS), path=shown(path.name, 300)
        )
    if path.suffix == ".json" and not path.name.endswith(".index.json"):
        contents = read(Folder(path.parent, only=path.name), path.name)
        contents.name = _name(path.absolute().parent) if path.name == "config.json" else path.stem
        return contents
    return read(Folder(path.parent), path.name)


def _from_toml(path: Path) -> Contents:
    from tonnage.catalogue.models import load

    form = load(path)
    return Contents(
        name=form.name,
        source=f"model file {called(path)}",
        where=called(path),
        fields=dict(form.config),
        place=form.hub,
    )


def held_back(text: str) -> TonnageError | None:
    """The error that says why a folder of this name was not read; None where there is none."""
    try:
        if is_there(text) and is_folder(path := allowed_file(text)):
            contents(path)
    except TonnageError as error:
        return error
    except OSError:
        return None
    return None
