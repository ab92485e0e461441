"""A dictionary that refuses duplicates and suggests names."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from tonnage.errors import UnknownName, shown

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Things of one kind by name. Adding a second thing of the same name is a programming error."""

    def __init__(self, kind: str):
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        if name in self._items:
            raise ValueError(f"{self.kind} {name!r} is already registered")
        self._items[name] = item
        return item

    def __getitem__(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            raise unknown(self.kind, name, self._items) from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that is not among the known ones, with the nearest of them."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name[:200].lower(), names, n=3, cutoff=0.4)
    if near:
        hint = f"Did you mean {', '.join(map(repr, near))}?"
    elif len(names) <= 40:
        hint = f"Known: {', '.join(sorted(names))}."
    else:
        hint = f"{len(names)} are known."
    return UnknownName(f"no {kind} is called {shown(name)}. {hint}")
