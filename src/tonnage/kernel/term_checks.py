"""Checks of a Term when it is made: an amount is finite and not negative, and a node equals what its children give.

Tests and fuzzing set the environment variable TONNAGE_CHECK_TERMS; nothing is checked without it.
A difference (free memory, savings) may be negative: its formula is declared with `difference=True`, or its name is one
of `DIFFERENCES`.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from math import inf, isfinite
from typing import Protocol

from tonnage.kernel.formula import SCALARS, Formula, Number, maximum

# Figures of a procedure have no formula: those that may be negative, by name.
DIFFERENCES: frozenset[str] = frozenset()
RELATIVE = 1e-9  # sums of floats differ by their order


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
    """What is wrong with one Term, its children aside; "" where nothing is."""
    if type(term.value) not in SCALARS and not hasattr(term.value, "ndim"):
        return f"its value is a {type(term.value).__name__}"
    if not _is_finite(term.value):
        return f"its value is not finite: {term.value!r}"
    if _lowest(term.value) < 0 and not may_be_negative(term):
        return f"its value is negative, and it is no difference: {term.value!r} {term.unit}, {_formula_of(term)}"
    return combine_fault(term.combine, term.value, [child.value for child in term.children])


def may_be_negative(term: CheckedTerm) -> bool:
    """Whether a Term is a difference, or combines one."""
    return is_difference(term.name, term.formula) or any(may_be_negative(child) for child in term.children)


def is_difference(name: str, formula: Formula | None) -> bool:
    """Whether this figure may be negative by itself."""
    return name in DIFFERENCES or (formula is not None and formula.difference)


def combine_fault(combine: str, value: Number, children: list[Number]) -> str:
    """Where a node differs from its children: what they give; "" where it does not, and for leaves."""
    if combine == "sum":
        expected: Number = sum(children)
    elif combine == "max":
        expected = reduce(maximum, children)
    elif combine == "product":
        expected = reduce(lambda x, y: x * y, children)
    elif combine == "ratio":
        expected = children[0] / children[1] if _lowest(abs(children[1])) > 0 else inf
    else:
        return ""
    largest = max((_highest(abs(child)) for child in children), default=0.0)
    room = RELATIVE * (largest if combine in ("sum", "max") else _highest(abs(expected)))
    return (
        ""
        if _highest(abs(value - expected)) <= room
        else f"its value {value!r} is not the {combine} of its children, {expected!r}"
    )


def _formula_of(term: CheckedTerm) -> str:
    inputs = ", ".join(f"{symbol}={value!r}" for symbol, value in term.inputs.items())
    return f"{term.formula.name}({inputs})" if term.formula else term.combine


def _is_finite(value: Number) -> bool:
    if type(value) in SCALARS:
        return isinstance(value, int) or isfinite(value)
    import numpy as np

    return bool(np.isfinite(value).all())


def _lowest(value: Number) -> float:
    return value.min(initial=0) if hasattr(value, "ndim") else value


def _highest(value: Number) -> float:
    return value.max(initial=0) if hasattr(value, "ndim") else value
