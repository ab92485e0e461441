"""Which publication a row is of."""

import re
from functools import cache
from importlib import import_module

from rows.serving_speed.run import Source
from rows.source import Row
from tonnage.kernel.errors import MissingDatum, shown

# A file each; one file may have several small ones.
FILES = ("silicon_sample", "qwen", "llama_cpp", "plain_torch", "neuron", "nvidia", "large_scale")


@cache
def sources() -> tuple[Source, ...]:
    """All of them, in the order in which they are tried."""
    found: list[Source] = []
    for name in FILES:
        found += import_module(f"rows.serving_speed.{name}").SOURCES
    return tuple(found)


def source_of(row: Row) -> Source:
    """The publication of a row; MissingDatum for one whose protocol nobody described."""
    found = next((each for each in sources() if re.search(each.pattern, row.source_name)), None)
    if found is None:
        raise MissingDatum(f"how {shown(row.source_name)} measured is not described")
    return found
