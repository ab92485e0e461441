"""A row's config, read by the names that sources use. Nothing here knows a row or a source."""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown

# The groups that rows put their keys into; a key is looked for in the config itself, then inside these.
GROUPS = ("parallelism", "training", "moe", "fsdp", "model")
UNSAID = frozenset({"", "n/a", "na", "none stated", "not stated", "unknown", "-", "not named", "default"})


class Config:
    """Typed look-ups in one row's config: each takes several names, and the first that is there counts."""

    def __init__(self, fields: Mapping[str, Any]):
        self.fields = fields

    def find(self, *names: str) -> tuple[str, Any]:
        """The first of these names that is said, with its value; ("", None) where none is."""
        places = [self.fields, *(group for key in GROUPS if isinstance(group := self.fields.get(key), Mapping))]
        for name in names:
            for place in places:
                value = place.get(name)
                if value is not None and str(value).strip().lower() not in UNSAID:
                    return name, value
        return "", None

    def has(self, *names: str) -> bool:
        return bool(self.find(*names)[0])

    def text(self, *names: str) -> str:
        """The words, in small letters; an empty text where nothing is said."""
        value = self.find(*names)[1]
        return "" if value is None or isinstance(value, Mapping) else str(value).strip().lower()

    def size(self, *names: str) -> int | None:
        """A whole number from 1 on, also where a text begins with it."""
        name, value = self.find(*names)
        if not name:
            return None
        found = whole(value)
        if found is None or found < 1:
            raise InvalidInput(f"config.{name} is not a whole number from 1 on. Got {shown(value)}.")
        return found

    def flag(self, *names: str) -> bool | None:
        """Whether something is on: true and false, 0 and 1, yes and no, on and off."""
        value = self.find(*names)[1]
        if value is None:
            return None
        return str(value).strip().lower() not in ("false", "no", "off", "0", "none", "disabled")

    def length(self, *names: str) -> int | None:
        """A number of tokens wherever it stands in a text ("truncated to 256 tokens"); None where no text has one."""
        for name in names:
            value = self.find(name)[1]
            if isinstance(value, str) and (found := re.search(r"\d[\d,_]*", value)):
                value = found.group()
            if value is not None and (number := whole(value)):
                return number
        return None


def whole(value: Any) -> int | None:
    """4, 4.0, "4", "4 (of 8)" -> 4; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if abs(value) < 1e15 and int(value) == value else None  # nor NaN
    found = re.fullmatch(r"(\d[\d_,]{0,17})(\s.*)?", str(value).strip(), re.DOTALL)
    return int(found[1].replace(",", "").replace("_", "")) if found else None
