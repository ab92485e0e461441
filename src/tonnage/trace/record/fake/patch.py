"""Patches an attribute until a stack closes."""

from contextlib import ExitStack
from typing import Any


def patch(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)

    def undo() -> None:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    stack.callback(undo)
