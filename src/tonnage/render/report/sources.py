"""Where figures come from: the nodes of a TERM with formula, numbers and source, and the bibliography of what they
name.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from tonnage.kernel.formula import FORMULAS
from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.report.bars import name_of
from tonnage.render.report.common import basis
from tonnage.render.text import SUM, TOGETHER

Document = Mapping[str, Any]


class Node(Struct, frozen=True, kw_only=True):
    """One figure, in the reader's language. `codes`: its formula, and that with the numbers put in; `exact`: all its
    digits, in the base unit.
    """

    path: str
    depth: int
    name: str
    value: str
    exact: str
    basis: str
    codes: tuple[str, ...]
    source: str


def appendix(terms: Mapping[str, Document]) -> tuple[tuple[Node, ...], ...]:
    """The nodes of each TERM by its path, the TERM itself first."""
    return tuple(tuple(nodes(term, path)) for path, term in terms.items())


def nodes(term: Document, path: str, depth: int = 0) -> Iterator[Node]:
    """A TERM and all below it; of what is nothing, itself alone."""
    value = human(term["value"], term["unit"])
    exact = _exact(repr(term["value"]), term["unit"])
    yield Node(
        path=path,
        depth=depth,
        name=name_of(term),
        value=value,
        exact="" if exact == value else exact,
        basis=basis(term),
        codes=codes(term),
        source=worded(term["source"]),
    )
    for at, child in enumerate(term["children"] if term["value"] else ()):
        yield from nodes(child, f"{path}/{at}", depth + 1)


def _exact(number: str, unit: str) -> str:
    """All digits, with the unit in words."""
    form = f"{{n}} {unit}"
    worded_number = say(form, n=number) if unit else number
    return worded_number if worded_number != form.format(n=number) else f"{number} {worded(unit)}".rstrip()


def codes(term: Document) -> tuple[str, ...]:
    """How it came about, a line each."""
    if term["formula"]:
        put_in = ", ".join(f"{letter} = {value!r}" for letter, value in term["inputs"].items())
        known = term["formula"] in FORMULAS
        worked = FORMULAS[term["formula"]].substituted(term["inputs"]) if known else ""
        return tuple(filter(None, (f"{term['formula']} = {term['text']}", f"= {worked}" if worked else "", put_in)))
    if term.get("method"):
        parameters = ", ".join(
            f"{name} = {worded(str(value))}" for name, value in term["method"].get("parameters", {}).items()
        )
        return tuple(filter(None, (say("by {procedure}", procedure=worded(term["method"]["procedure"])), parameters)))
    return (worded(TOGETHER.get(term["combine"], SUM)),)


def citations(terms: Iterable[Document]) -> dict[str, str]:
    """The bibliography's entries for all sources that these terms name."""
    from tonnage.kernel.references import cited, references

    keys = {key for term in terms for source in _sources(term) if source for key in cited(source)}
    return {key: references()[key].citation for key in sorted(keys)}


def _sources(term: Document) -> Iterator[str]:
    yield term["source"]
    for child in term["children"]:
        yield from _sources(child)
