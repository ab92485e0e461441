"""The form of a question as it was understood: every input, its value, and where the value came from."""

from typing import Any, Literal

from msgspec import Struct, field

Origin = Literal[
    "given", "file", "default", "model", "cluster", "runtime", "catalogue", "measurements", "search", "chosen"
]

ASKED: tuple[Origin, ...] = ("given", "file")  # by whoever asks


class Entry(Struct, frozen=True, omit_defaults=True):
    """An input. `from`: where its value came from; `why`: the reason, where a value that was not given has one; `keys`:
    of another tool's file or command, those that decide it; `tool`: that was asked for by its name, such as axolotl,
    where `value` is what it runs on.
    """

    value: Any
    origin: Origin = field(name="from")
    why: str = ""
    keys: tuple[str, ...] = ()
    tool: str = ""
