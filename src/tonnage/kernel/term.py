"""A breakdown is a tree: leaves are evaluated formulas, nodes only combine their children.

A node's value is computed from its children and can never be stated, so a tree cannot disagree with itself; the one
exception is a `method` node, whose figure a procedure made, and which names the procedure. Values are numbers, or
arrays with one entry per plan; `at(i)` is the tree of plan i.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from math import inf, isfinite
from operator import add, mul
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import UNSET, Struct, UnsetType

from tonnage.kernel import frames
from tonnage.kernel.encoding import builtins
from tonnage.kernel.formula import BASES, SCALARS, Basis, Formula, Number, maximum, text_of
from tonnage.kernel.message import Series
from tonnage.kernel.polynomial import Polynomial
from tonnage.kernel.units import human

if TYPE_CHECKING:
    import pandas
    import polars

# ---- Checks of a Term when it is made: an amount is finite and not negative, and a node equals what its children give.
#
# Tests and fuzzing set the environment variable TONNAGE_CHECK_TERMS; nothing is checked without it.
# A difference (free memory, savings) may be negative: its formula is declared with `difference=True`, or its name is
# one
# of `DIFFERENCES`.

# Figures of a procedure have no formula: those that may be negative, by name.
DIFFERENCES: frozenset[str] = frozenset()
RELATIVE = 1e-9  # sums of floats differ by their order
COMBINED = frozenset({"sum", "max", "product", "ratio"})  # what equals what its children give


class CheckedTerm(Protocol):
    """What a check reads of a Term."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> Number: ...

    @property
    def unit(self) -> str: ...

    @property
    def combine(self) -> str: ...

    @property
    def formula(self) -> Formula | None: ...

    @property
    def inputs(self) -> Mapping[str, Number]: ...

    @property
    def children(self) -> Sequence["CheckedTerm"]: ...


def check_term(term: CheckedTerm) -> None:
    """AssertionError where a Term is not finite, is negative though no difference, or differs from its children."""
    if reason := term_fault(term):
        raise AssertionError(f"Term {term.name!r}: {reason}")


def term_fault(term: CheckedTerm) -> str:
    """What is wrong with one Term, its children aside; "" where nothing is.

    Each array of a test is looked through here: its least and its largest value say both whether it is finite (a NaN
    is the least and the largest of its array) and whether it is negative.
    """
    value = term.value
    if type(value) is Polynomial:
        return ""  # of the numbers that it stands for each is looked through
    if type(value) in SCALARS:
        least, is_finite = value, isinstance(value, int) or isfinite(value)  # a whole number may be of any size
    elif hasattr(value, "ndim"):
        least = value.min(initial=0)
        is_finite = isfinite(least) and isfinite(value.max(initial=0))
    else:
        return f"its value is a {type(value).__name__}"
    if not is_finite:
        return f"its value is not finite: {value!r}"
    if least < 0 and not may_be_negative(term):
        return f"its value is negative, and it is no difference: {value!r} {term.unit}, {_formula_of(term)}"
    if term.combine not in COMBINED:
        return ""
    return combine_fault(term.combine, value, [child.value for child in term.children])


def may_be_negative(term: CheckedTerm) -> bool:
    """Whether a Term is a difference, or combines one."""
    return is_difference(term.name, term.formula) or any(may_be_negative(child) for child in term.children)


def is_difference(name: str, formula: Formula | None) -> bool:
    """Whether this figure may be negative by itself."""
    return name in DIFFERENCES or (formula is not None and formula.difference)


def combine_fault(combine: str, value: Number, children: list[Number]) -> str:
    """Where a node differs from its children: what they give; "" where it does not, and for leaves."""
    if combine == "sum":
        expected: Number = reduce(add, children) if children else 0
    elif combine == "max":
        expected = reduce(maximum, children)
    elif combine == "product":
        expected = reduce(mul, children)
    elif combine == "ratio":
        expected = children[0] / children[1] if _is_nowhere_zero(children[1]) else inf
    else:
        return ""
    equal = value == expected
    if equal is True or (equal is not False and equal.all()):  # to the last bit, as nearly all are: no room to work out
        return ""
    largest = max((_highest(abs(child)) for child in children), default=0.0)
    room = RELATIVE * (largest if combine in ("sum", "max") else _highest(abs(expected)))
    return (
        ""
        if _highest(abs(value - expected)) <= room < inf  # a ratio to nothing has no room
        else f"its value {value!r} is not the {combine} of its children, {expected!r}"
    )


def _formula_of(term: CheckedTerm) -> str:
    inputs = ", ".join(f"{symbol}={value!r}" for symbol, value in term.inputs.items())
    return f"{term.formula.name}({inputs})" if term.formula else term.combine


def _is_nowhere_zero(value: Number) -> bool:
    return bool((value != 0).all()) if hasattr(value, "ndim") else value != 0


def _highest(value: Number) -> float:
    return value.max(initial=0) if hasattr(value, "ndim") else value


Combine = Literal["leaf", "sum", "max", "product", "ratio", "method"]
CHECK_TERMS = "TONNAGE_CHECK_TERMS"  # environment variable: every Term is checked where it is made
_NOTHING: Mapping[str, Number] = {}
_BETWEEN = {"sum": " + ", "product": " * ", "ratio": " / "}


class TermDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One number with everything that made it, in its base unit."""

    name: str
    value: float
    unit: str
    combine: Combine | UnsetType  # this and what follows is left out of a summary
    basis: Basis | UnsetType
    formula: str | UnsetType | None
    text: str | UnsetType
    source: str | UnsetType
    inputs: dict[str, float] | UnsetType
    children: list["TermDocument"] | UnsetType
    method: dict[str, Any] | UnsetType = UNSET


class FigureDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """One number of a summary, in its base unit; `parts`: what it is the sum of, where that is shown."""

    name: str
    value: float
    unit: str
    parts: dict[str, float] | UnsetType = UNSET


class Term(Struct, frozen=True):
    """One number of a breakdown, in its base unit, with everything that made it.

    `name`; `value` in `unit` (bytes, seconds, FLOP, FLOP/s, tokens/s, USD, joules, "" for shares); `combine`: leaf (a
    `formula` of `inputs`), sum, max, product or ratio of `children`, or `method` (a procedure); `basis`: rule,
    analytic, traced or measured; `source`: where the formula or its inputs are from.
    """

    name: str
    value: float  # to type checkers; inside a search an array with an entry a plan
    unit: str
    combine: Combine = "leaf"
    basis: Basis = "analytic"
    formula: Formula | None = None
    source: str = ""
    inputs: Mapping[str, Number] = _NOTHING
    children: tuple["Term", ...] = ()
    method: Mapping[str, Any] | None = None

    if os.environ.get(CHECK_TERMS):  # of tests and fuzzing, and of their subprocesses: a serving process pays nothing

        def __post_init__(self) -> None:
            check_term(self)

    def __repr__(self) -> str:
        if type(self.value) not in SCALARS:
            return f"<Term {self.name}: {len(self.value)} values in {self.unit}>"  # type: ignore[arg-type]
        return f"<Term {self.name}: {human(self.value, self.unit)}>"

    @classmethod
    def of(
        cls, name: str, formula: Formula, /, *, basis: Basis | None = None, source: str = "", **inputs: Number
    ) -> "Term":
        """A leaf: the formula evaluated on these inputs. `source` is given when the inputs, not the formula, need
        one.
        """
        return cls(
            name,
            formula.evaluate(**inputs),
            formula.unit,
            "leaf",
            basis or formula.basis,
            formula,
            source or formula.source,
            inputs,
        )

    @classmethod
    def sum(cls, name: str, *children: "Term", unit: str = "") -> "Term":
        """Children of one unit, added. Without children: nothing of `unit`."""
        total: Number = 0
        for child in children:
            total = total + child.value
        return cls(name, total, _one_unit(name, children, unit), "sum", _weakest(children), children=children)

    @classmethod
    def max(cls, name: str, *children: "Term") -> "Term":
        """The largest of children of one unit: overlap, pipeline stages, phases."""
        value = reduce(maximum, (child.value for child in children))
        return cls(name, value, _one_unit(name, children, ""), "max", _weakest(children), children=children)

    @classmethod
    def product(cls, name: str, unit: str, *children: "Term") -> "Term":
        """Children of any units, multiplied; `unit` is what comes out."""
        product = children[0].value
        for child in children[1:]:
            product = product * child.value
        return cls(name, product, unit, "product", _weakest(children), children=children)

    @classmethod
    def ratio(cls, name: str, unit: str, above: "Term", below: "Term") -> "Term":
        """One child divided by the other."""
        return cls(name, above.value / below.value, unit, "ratio", _weakest((above, below)), children=(above, below))

    @classmethod
    def by(
        cls,
        name: str,
        value: Number,
        unit: str,
        *,
        basis: Basis,
        source: str,
        procedure: str,
        version: str,
        **parameters: Any,
    ) -> "Term":
        """A figure that a procedure made (a replay, a simulation, a fit): it names the procedure and its parameters."""
        how = {"procedure": procedure, "version": version, "parameters": parameters}
        return cls(name, value, unit, "method", basis, source=source, method=how)

    def at(self, i: int) -> "Term":
        """The tree of plan i, when the values are arrays over plans."""
        return Term(
            self.name,
            _pick(self.value, i),
            self.unit,
            self.combine,
            self.basis,
            self.formula,
            self.source,
            {symbol: _pick(value, i) for symbol, value in self.inputs.items()},
            tuple(child.at(i) for child in self.children),
            self.method,
        )

    def named(self, name: str) -> "Term":
        """The same figure under another name."""
        return Term(
            name,
            self.value,
            self.unit,
            self.combine,
            self.basis,
            self.formula,
            self.source,
            self.inputs,
            self.children,
            self.method,
        )

    def child(self, name: str) -> "Term":
        """The child of this name; KeyError without one."""
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(name)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Term"]]:
        """Every node with its depth, parents first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    @property
    def document(self) -> TermDocument:
        """The TERM of a document: the only serialisation."""
        return self.documented({})

    def documented(self, known: "dict[int, tuple[Term, TermDocument]]") -> TermDocument:
        """The same. `known`: by the identity of each Term what was made of it: two of three nodes of an answer stand
        in it more than once. It holds the Term too, so that no other gets its identity.
        """
        found = known.get(id(self))
        if found is None:
            inputs, children = self.inputs, self.children
            made = TermDocument(
                name=self.name,
                value=_plain(self.value),
                unit=self.unit,
                combine=self.combine,
                basis=self.basis,
                formula=self.formula.name if self.formula else None,
                text=self.text,
                source=self.source,
                inputs={symbol: _plain(value) for symbol, value in inputs.items()} if inputs else {},
                children=[child.documented(known) for child in children] if children else [],
                method=dict(self.method) if self.method else UNSET,
            )
            found = known[id(self)] = (self, made)
        return found[1]

    @property
    def summary(self) -> TermDocument:
        """The same without what made it."""
        return TermDocument(
            name=self.name,
            value=_plain(self.value),
            unit=self.unit,
            combine=UNSET,
            basis=UNSET,
            formula=UNSET,
            text=UNSET,
            source=UNSET,
            inputs=UNSET,
            children=UNSET,
        )

    @property
    def figure(self) -> FigureDocument:
        """The number alone."""
        return FigureDocument(name=self.name, value=_plain(self.value), unit=self.unit)

    @property
    def figure_with_parts(self) -> FigureDocument:
        """The number, and of a sum what each of its children adds; those of one name together."""
        figure = self.figure
        if self.combine == "sum" and self.children:
            parts: dict[str, float] = {}
            for child in self.children:
                parts[child.name] = parts.get(child.name, 0) + _plain(child.value)
            figure.parts = parts
        return figure

    def to_dict(self) -> dict[str, Any]:
        """The TERM of a document as a dictionary."""
        document: dict[str, Any] = builtins(self.document)
        return document

    def to_rows(self) -> list[dict[str, Any]]:
        """The figures as flat rows, parents first: path, name, value, unit, basis, formula, text, source."""
        return list(rows_of(self.to_dict(), self.name))

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a polars.DataFrame. Needs polars."""
        return frames.to_polars(self.to_rows())

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a pandas.DataFrame. Needs pandas."""
        return frames.to_pandas(self.to_rows())

    @property
    def text(self) -> str:
        """How the value comes about: the formula's own code, or how the children combine."""
        if self.formula:
            return text_of(self.formula.evaluate)  # from a cache: a document has some hundred
        if self.method:
            return str(self.method["procedure"])
        names = [child.name for child in self.children]
        between = _BETWEEN.get(self.combine)
        if between:
            return Series(between, names)
        return Series("", ("max(", *[part for name in names for part in (", ", name)][1:], ")"))


def rows_of(document: Mapping[str, Any], path: str) -> Iterator[dict[str, Any]]:
    """A TERM of a document as flat rows; the path of a child is that of its parent and its name."""
    columns = ("name", "value", "unit", "basis", "formula", "text", "source")
    yield {"path": path, **{name: document[name] for name in columns}}
    for child in document["children"]:
        yield from rows_of(child, f"{path}/{child['name']}")


_WEAKER: dict[tuple[Basis, Basis], Basis] = {
    (first, second): first if row <= column else second
    for row, first in enumerate(BASES)
    for column, second in enumerate(BASES)
}


def weaker(first: Basis, second: Basis) -> Basis:
    """The lower of two rungs of the ladder of fidelity."""
    return _WEAKER[first, second]


def _weakest(children: tuple[Term, ...]) -> Basis:
    if not children:
        return "analytic"
    basis = children[0].basis
    for child in children:
        if child.basis != basis:
            basis = _WEAKER[basis, child.basis]
    return basis


def _one_unit(name: str, children: tuple[Term, ...], unit: str) -> str:
    first = unit or (children[0].unit if children else "")
    for child in children:
        if child.unit != first:
            break
    else:
        if first:
            return first
    units = {child.unit for child in children} | ({unit} if unit else set())
    raise TypeError(f"{name!r} combines different units: {sorted(units)}")


def _pick(value: Number, i: int) -> Number:
    return value[i].item() if getattr(value, "ndim", 0) else value


def _plain(value: Number) -> Any:
    return value if type(value) in SCALARS else value.tolist() if hasattr(value, "tolist") else value
