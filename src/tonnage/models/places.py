"""Protocols of a location that holds files, a folder or a repository, and of the files in it that make a model."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct


class File(Struct, frozen=True):
    """A file that can be read in parts; `size` in bytes, None where it is unknown."""

    read: Callable[[int, int], bytes]
    size: int | None


class Location(Protocol):
    """`names` are the paths of all files in it, with / between folders."""

    name: str
    label: str
    names: Sequence[str]

    def small(self, name: str, largest: int) -> bytes: ...

    def open(self, name: str) -> File: ...

    def read_each(self, names: Sequence[str], read: Callable[[str], Any]) -> list[Any]: ...


class Choice(Struct, frozen=True):
    """The files that make the model: its config, the index of its shards, its weights."""

    config: str | None = None
    index: str | None = None
    weights: tuple[str, ...] = ()
    form: Literal["safetensors", "gguf"] = "safetensors"
    pickles: bool = False
    adapter: str | None = None
