"""What logs, metrics and results of benchmarks say was measured: figures by the quantities of docs/rows.md.

A module for each kind of tool adds readers to READERS. A reader takes the text, and gives the figures that it finds;
each is one that the source states, or the median, mean or largest of several that it does.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal

from msgspec import Struct

from tonnage.kernel.registry import Registry

Verb = Literal["train", "serve"]


class Figure(Struct, frozen=True, kw_only=True):
    """A figure that was measured.

    quantity, value, unit: as docs/rows.md has them; `metric`: as the source calls it
    count: of how many values it is the median, mean or largest
    more: what else the quantity needs, such as how FLOP are counted
    inputs: options of the question that the source says for this figure, such as the tokens of a prompt
    skipped: why nothing predicts it; it has no `quantity` then
    notes: limits of what the source says
    """

    quantity: str
    value: float
    unit: str
    metric: str
    count: int = 1
    more: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = {}
    skipped: str = ""
    notes: tuple[str, ...] = ()


class LogReader(Struct, frozen=True, kw_only=True):
    """A tool whose output is read. `verbs`: of the runs that it is of; `source`: where its lines are from."""

    name: str
    tool: str
    verbs: tuple[Verb, ...]
    source: str
    read: Callable[[str], Iterable[Figure]]


READERS: Registry[LogReader] = Registry("reader of logs")


def readers() -> tuple[LogReader, ...]:
    """Every reader, by name."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return tuple(READERS[name] for name in sorted(READERS))


def figures_of(text: str) -> dict[str, list[Figure]]:
    """Tool -> the figures that it states in a text."""
    found = {reader.tool: list(reader.read(text)) for reader in readers()}
    return {tool: figures for tool, figures in found.items() if figures}
