"""Things that are known by being the same thing: keys of a cache for what has tables in it and has no hash of its
own.
"""

from typing import Any


class ByIdentity:
    """Holds a thing; equal to another that holds the same one."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any):
        self.thing = thing

    def __hash__(self) -> int:
        return id(self.thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.thing is self.thing
