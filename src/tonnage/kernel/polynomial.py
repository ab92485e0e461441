"""A number that knows how it grows with one unknown: it goes through formulas instead of a number, and what comes out
holds for every value of the unknown at which all that was asked on the way has the same answer.

What is no polynomial (a quotient by the unknown, a part that is rounded, a number as text) raises NotPolynomial.
"""

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NoReturn

from msgspec import Struct

NUMBERS = frozenset({int, float, bool})
Coefficients = tuple[float, ...]  # the constant first


class NotPolynomial(Exception):  # no fault: whoever asks goes on with numbers
    """What was asked of a polynomial has no polynomial for an answer."""


class Leaves(Struct, frozen=True):
    """Whether a whole number divided by `by` leaves `rest`."""

    by: int
    rest: int

    def __call__(self, number: float, _: float) -> bool:
        return number % self.by == self.rest


class Condition(Struct, frozen=True):
    """`difference` compared with 0 was `truth`."""

    difference: Coefficients
    compare: Callable[[float, float], bool]
    truth: bool

    def holds(self, at: float) -> bool:
        """Whether it is so for this value of the unknown."""
        return self.compare(value_of(self.difference, at), 0) is self.truth


def value_of(coefficients: Coefficients, at: float) -> float:
    """The value of a polynomial."""
    value: float = 0
    for coefficient in reversed(coefficients):
        value = value * at + coefficient
    return value


class Polynomial:
    """A polynomial in an unknown that is `at` for now: comparisons are decided by that, and noted in `asked`."""

    __slots__ = ("asked", "at", "coefficients")
    __hash__ = None  # type: ignore[assignment]  # no cache may take it for a number

    def __init__(self, coefficients: Coefficients, at: float, asked: set[Condition]):
        self.coefficients, self.at, self.asked = coefficients, at, asked

    @classmethod
    def unknown(cls, at: float) -> "Polynomial":
        """The unknown itself."""
        return cls((0, 1), at, set())

    def __repr__(self) -> str:
        return f"<Polynomial {self.coefficients} at {self.at}>"

    def _like(self, coefficients: Coefficients) -> "Polynomial":
        return Polynomial(coefficients, self.at, self.asked)

    def __add__(self, other: Any) -> "Polynomial":
        if type(other) in NUMBERS:
            return self._like((self.coefficients[0] + other, *self.coefficients[1:]))
        longer, shorter = self.coefficients, _coefficients(other)
        if len(longer) < len(shorter):
            longer, shorter = shorter, longer
        added = (one + more for one, more in zip(longer, shorter, strict=False))
        return self._like((*added, *longer[len(shorter) :]))

    def __mul__(self, other: Any) -> "Polynomial":
        if type(other) in NUMBERS:
            return self._like(tuple(one * other for one in self.coefficients))
        factors = _coefficients(other)
        product: list[float] = [0] * (len(self.coefficients) + len(factors) - 1)
        for power, one in enumerate(self.coefficients):
            for more, factor in enumerate(factors):
                product[power + more] += one * factor
        return self._like(tuple(product))

    def __truediv__(self, other: Any) -> "Polynomial":
        if type(other) not in NUMBERS:
            raise NotPolynomial
        return self._like(tuple(one / other for one in self.coefficients))

    def __mod__(self, other: Any) -> int:
        """Of whole numbers; all that leave the same are the same here."""
        if {type(other), type(self.at), *map(type, self.coefficients)} != {int} or other < 1:
            raise NotPolynomial
        rest: int = value_of(self.coefficients, self.at) % other
        if other > 1:
            self.asked.add(Condition(self.coefficients, Leaves(other, rest), True))
        return rest

    def __floordiv__(self, other: Any) -> "Polynomial":
        if type(other) is not int or other != 1 or {*map(type, self.coefficients)} != {int}:
            raise NotPolynomial
        return self

    def __neg__(self) -> "Polynomial":
        return self._like(tuple(-one for one in self.coefficients))

    def __sub__(self, other: Any) -> "Polynomial":
        return self + -other

    def __rsub__(self, other: Any) -> "Polynomial":
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def _is(self, compare: Callable[[float, float], bool], other: Any) -> bool:
        difference = (self - other).coefficients
        truth = bool(compare(value_of(difference, self.at), 0))
        if any(difference[1:]):
            self.asked.add(Condition(difference, compare, truth))
        return truth

    def __eq__(self, other: object) -> bool:
        return self._is(eq, other)

    def __ne__(self, other: object) -> bool:
        return self._is(ne, other)

    def __lt__(self, other: Any) -> bool:
        return self._is(lt, other)

    def __le__(self, other: Any) -> bool:
        return self._is(le, other)

    def __gt__(self, other: Any) -> bool:
        return self._is(gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._is(ge, other)

    def __bool__(self) -> bool:
        return self._is(ne, 0)

    def _refused(self, *_: Any) -> NoReturn:
        raise NotPolynomial

    __int__ = __float__ = __index__ = __round__ = __ceil__ = __floor__ = __abs__ = __format__ = _refused
    __rtruediv__ = __rfloordiv__ = __rmod__ = __divmod__ = __rdivmod__ = _refused
    __pow__ = __rpow__ = _refused


def _coefficients(other: Any) -> Coefficients:
    if isinstance(other, Polynomial):
        return other.coefficients
    raise NotPolynomial
