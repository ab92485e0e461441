"""A formula is one Python expression with a unit and a source; the text we show is its own code.

The same function takes numbers or numpy arrays with one entry per plan, because a formula never branches.
"""

from collections.abc import Callable, Mapping
from functools import cache
from math import ceil, lgamma
from math import exp as _exp
from math import expm1 as _expm1
from math import log as _log
from math import log2 as _log2
from typing import Any, Literal

from msgspec import Struct
from msgspec.json import decode

from tonnage.kernel import prepared
from tonnage.kernel.glossary import SYMBOLS
from tonnage.kernel.polynomial import NUMBERS, Polynomial
from tonnage.kernel.registry import Registry

# A number, or a numpy array with one entry per plan: no operator tells them apart, and neither does the type checker.
Number = Any
Basis = Literal["rule", "calibrated", "analytic", "traced", "measured"]
# Weakest first: a sum has the first of those of its parts. What own runs correct says so all the way up.
BASES: tuple[Basis, ...] = ("rule", "calibrated", "analytic", "traced", "measured")
SCALARS = NUMBERS | {Polynomial}  # what is one number, and no array
_LARGEST_POWER = 300  # e^300 is 1e130: the product of two still is a number


def maximum(x: Number, y: Number) -> Number:
    """The larger, element by element; numpy is imported only when an array comes."""
    if type(x) in SCALARS and type(y) in SCALARS:
        return x if x >= y else y
    import numpy as np

    return np.maximum(x, y)


def minimum(x: Number, y: Number) -> Number:
    """The smaller, element by element."""
    if type(x) in SCALARS and type(y) in SCALARS:
        return x if x <= y else y
    import numpy as np

    return np.minimum(x, y)


def is_any(truth: Number) -> bool:
    """Whether something is true, or of an array any of it."""
    return bool(truth.any()) if hasattr(truth, "any") else bool(truth)


def ceil_div(x: Number, y: Number) -> Number:
    """x / y rounded up; exact for integers."""
    return -(-x // y)


def power_of_two(x: Number) -> Number:
    """x rounded up to a power of two; 0 stays 0."""
    if type(x) in SCALARS:
        return 1 << (ceil(x) - 1).bit_length() if x > 0 else 0
    import numpy as np

    return np.where(x > 0, np.exp2(np.ceil(np.log2(np.maximum(x, 1)))), 0)


def exp(x: Number) -> Number:
    """e to the power of x, or of 300 where x is more: nothing that takes so long or costs so much is told apart."""
    if type(x) in SCALARS:
        return _exp(min(x, _LARGEST_POWER))
    import numpy as np

    return np.exp(np.minimum(x, _LARGEST_POWER))


def log2(x: Number) -> Number:
    """The logarithm to base 2 of what is positive."""
    if type(x) in SCALARS:
        return _log2(x)
    import numpy as np

    return np.log2(x)


def expm1(x: Number) -> Number:
    """e to the power of x, less 1: exact to the last digits where x is small. From 300 on as `exp`."""
    if type(x) in SCALARS:
        return _expm1(min(x, _LARGEST_POWER))
    import numpy as np

    return np.expm1(np.minimum(x, _LARGEST_POWER))


def erlang_b(servers: Number, load: Number) -> Number:
    """The part of the time in which all of so many servers are busy, where who finds them so leaves."""
    if type(servers) not in SCALARS or type(load) not in SCALARS:
        return _each(erlang_b, servers, load)
    blocked = 1.0
    for number in range(1, int(servers) + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked


def poisson_excess(limit: Number, mean: Number) -> Number:
    """What a Poisson number of this mean is above the limit, on average: nothing where it is below."""
    if type(limit) not in SCALARS or type(mean) not in SCALARS:
        return _each(poisson_excess, limit, mean)
    if mean <= 0:
        return 0.0
    chances = (_exp(number * _log(mean) - mean - lgamma(number + 1)) for number in range(int(limit) + 1))
    below = sum((limit - number) * chance for number, chance in enumerate(chances))
    return max(mean - limit + below, 0.0)


def _each(of: Callable[[Number, Number], Number], x: Number, y: Number) -> Number:
    """The function of each pair of elements."""
    import numpy as np

    return np.vectorize(of, otypes=[float])(x, y)


class Formula(Struct, frozen=True, eq=False):
    """One published formula.

    `symbols` are its arguments, letters of the glossary; `assumes` says what the equation presupposes;
    `basis` is the rung of the ladder of fidelity that its results stand on; `difference`: the result may be negative.
    """

    name: str
    unit: str
    source: str
    assumes: str
    basis: Basis
    symbols: tuple[str, ...]
    evaluate: Callable[..., Number]
    difference: bool = False

    def __call__(self, **inputs: Number) -> Number:
        return self.evaluate(**inputs)

    @property
    def text(self) -> str:
        """The return expression, as written."""
        return text_of(self.evaluate)

    @property
    def summary(self) -> str:
        """First paragraph of the docstring, on one line."""
        return " ".join((self.evaluate.__doc__ or "").split("\n\n")[0].split())

    def substituted(self, inputs: Mapping[str, Number]) -> str:
        """The text with the numbers put in for the letters."""
        import ast

        class PutIn(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.AST:
                return ast.Constant(inputs[node.id]) if node.id in inputs else node

        return ast.unparse(PutIn().visit(ast.parse(self.text, mode="eval")))


FORMULAS: Registry[Formula] = Registry("formula")


def formula(
    *, unit: str, source: str, assumes: str = "", basis: Basis = "analytic", difference: bool = False
) -> Callable[[Callable[..., Number]], Formula]:
    """Declare the decorated function to be *the* implementation of one published formula.

    `source` begins with a key of references.toml and says where in it: "Korthikanti2022, eq. 2". `difference`: the
    result is a difference, such as free memory or savings, which may be negative; every other amount is finite and at
    least 0.
    """

    def declare(function: Callable[..., Number]) -> Formula:
        code = function.__code__
        symbols = code.co_varnames[: code.co_argcount]
        if strangers := [symbol for symbol in symbols if symbol not in SYMBOLS]:
            raise TypeError(f"formula {function.__name__!r} uses {strangers}, which glossary.py does not declare")
        declared = Formula(function.__name__, unit, source, assumes, basis, symbols, function, difference)
        return FORMULAS.add(function.__name__, declared)

    return declare


def check(candidate: Formula) -> None:
    """Refuse a formula that is more than a docstring and one expression, or that branches on a number."""
    _text, is_one_return, branches = _expression(candidate.evaluate)
    if not candidate.evaluate.__doc__:
        raise TypeError(f"formula {candidate.name!r} has no docstring")
    if not is_one_return:
        raise TypeError(f"formula {candidate.name!r} must be a docstring and one return expression")
    if branches:
        raise TypeError(f"formula {candidate.name!r} branches on a number; split it in two or use maximum/minimum")


@cache
def text_of(function: Callable[..., Number]) -> str:
    """The return expression of a formula's function, as written."""
    return _expression(function)[0]


@cache
def _expression(function: Callable[..., Number]) -> tuple[str, bool, bool]:
    code = function.__code__
    return _expressions(code.co_filename)[code.co_name, code.co_firstlineno]


@cache
def _expressions(filename: str) -> dict[tuple[str, int], tuple[str, bool, bool]]:
    """(text, is one return, branches) of every function of a file, by name and first line.

    Read only when somebody asks for a text, from what was prepared or from the source.
    """
    said = prepared.content(filename)
    if said is None:
        with open(filename, encoding="utf-8") as file:  # noqa: PTH123
            found = prepared.expressions(file.read())
    else:
        found = decode(said, type=list[tuple[str, int, str, bool, bool]])
    return {(name, line): (text, is_one_return, branches) for name, line, text, is_one_return, branches in found}
