"""Which publication a row is of."""

import re
from functools import cache
from importlib import import_module

from rows.source import Row
from rows.speed.published import OTHERS
from rows.speed.run import Source

# A file each; one file may have several small ones.
FILES = ("bridge", "nemo", "megatron", "simumax", "megascale", "llm_foundry", "torchtitan", "small", "published")


@cache
def sources() -> tuple[Source, ...]:
    """All of them, in the order in which they are tried."""
    found: list[Source] = []
    for name in FILES:
        module = import_module(f"rows.speed.{name}")
        found += getattr(module, "SOURCES", ()) or [module.SOURCE]
    return tuple(found)


def source_of(row: Row) -> Source:
    """The publication of a row; any other is taken as it is written."""
    return next((each for each in sources() if re.search(each.pattern, row.source_name)), OTHERS)
