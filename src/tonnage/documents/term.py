"""Figures of documents: a document's struct holds Terms while an answer is made, and their form when it is shown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, Struct

from tonnage.kernel.term import FigureDocument, Term, TermDocument

PLAIN = (str, int, float)  # most fields of a document: the checks for mappings and sequences take longer
Figure = TypeVar("Figure", Term, TermDocument, FigureDocument)


def with_figures(value: Any, figure: Callable[[Term], TermDocument | FigureDocument]) -> Any:
    """The same struct, list or mapping with the form of each Term instead of the Term; sequences become lists."""
    if isinstance(value, Term):
        return figure(value)
    if value is UNSET or value is None or isinstance(value, PLAIN):
        return value
    if isinstance(value, Struct):
        return type(value)(**{name: with_figures(getattr(value, name), figure) for name in value.__struct_fields__})
    if isinstance(value, Mapping):
        return {name: with_figures(each, figure) for name, each in value.items()}
    if isinstance(value, Sequence):
        return [with_figures(each, figure) for each in value]
    return value


def terms_of(value: Any) -> Iterator[Term]:
    """Every Term of a struct, those of structs and lists inside it too."""
    if isinstance(value, Term):
        yield value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from terms_of(getattr(value, name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from terms_of(each)
