"""What must hold in every document: numbers are finite, amounts are not negative, nodes equal what their children
give.
"""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from tonnage.kernel.formula import FORMULAS
from tonnage.kernel.term import combine_fault, is_difference

# Figures beside the breakdowns that may be negative, by key: differences and shares, changes by a suggestion, days of a
# calendar.
DIFFERENCE_KEYS = frozenset({"relative_error", "bias", "freed_bytes", "bytes_per_sequence", "bytes_per_token"})
AMOUNTS = (
    "bytes",
    "seconds",
    "tokens",
    "usd",
    "flops",
    "per_second",
    "hours",
    "days",
    "requests",
    "users",
    "watts",
    "kwh",
)


def document_faults(document: Any) -> Iterator[str]:
    """Every fault of a document, with the path to it."""
    yield from _faults(document, "$")


def _faults(node: Any, path: str) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "combine" in node:
            yield from term_faults(node, path)
            return
        for key, value in node.items():
            yield from _number_faults(key, value, f"{path}.{key}")
            yield from _faults(value, f"{path}.{key}")
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from _faults(value, f"{path}[{at}]")


def _number_faults(key: str, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if not isfinite(value):
        yield f"{path} = {value} is not finite"
    elif value < 0 and key.endswith(AMOUNTS) and key not in DIFFERENCE_KEYS:
        yield f"{path} = {value} is negative"


def term_faults(term: Mapping[str, Any], path: str) -> Iterator[str]:
    """Faults of a TERM and of those below it."""
    value, children = term["value"], term["children"]
    here = f"{path}/{term['name']}"
    if not isinstance(value, int | float) or not isfinite(value):
        yield f"{here} = {value} is not finite"
        return
    if value < 0 and not _may_be_negative(term):
        yield f"{here} = {value} {term['unit']} is negative"
    if fault := combine_fault(term["combine"], value, [child["value"] for child in children]):
        yield f"{here}: {fault}"
    for child in children:
        yield from term_faults(child, here)


def _may_be_negative(term: Mapping[str, Any]) -> bool:
    formula = FORMULAS.get(term["formula"]) if term["formula"] else None
    return is_difference(term["name"], formula) or any(_may_be_negative(child) for child in term["children"])
