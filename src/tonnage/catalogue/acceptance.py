"""Published acceptance of drafted tokens: catalogue/acceptance/*.toml, a file for each way to draft."""

from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.kernel.registry import unknown

KIND = "acceptance"


class AcceptanceFact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one publication measured. `model`: the catalogue's name of the model that checks the drafts, else its own;
    `family`: as the catalogue has it; `draft`: the model that drafts; `head`: the checkpoint of the head.

    Either `lengths`: by tokens drafted in each step, the mean tokens that a pass gives, the model's own among them; or
    `positions`: the share of the drafts whose first, second, ... token was accepted. `tree`: candidates of a step where
    it drafts a tree; 0: a chain.
    """

    model: str
    family: str
    task: str
    source: str
    as_of: str
    draft: str = ""
    head: str = ""
    lengths: dict[str, float] = {}
    positions: tuple[float, ...] = ()
    tree: int = 0


class Method(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way to draft. `tokens`: drafted in each step where nobody says a number; `fact`: none where no
    published acceptance is known.
    """

    method: str
    tokens: int
    tokens_source: str
    fact: tuple[AcceptanceFact, ...] = ()


def methods() -> tuple[str, ...]:
    """The names of all methods, by name."""
    return tuple(toml_files.names(KIND))


@cache
def method(name: str) -> Method:
    """The facts of a method; UnknownName for one that there is not."""
    path = toml_files.find(KIND, name)
    if path is None:
        raise unknown("speculative", name, methods())
    return load(path)


def load(path: Path) -> Method:
    """A file."""
    form: Any = Method
    content: Method = toml_files.read(path, form)
    return content
