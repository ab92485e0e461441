"""Checks of the named arguments of the public functions: an argument of the wrong type is bad input, and the error says what it takes."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, signature
from math import isfinite
from operator import index
from typing import Any, ParamSpec, TypeVar

from tonnage.errors import InvalidInput
from tonnage.spelling import short_names

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with the short names of the command line (users, tp, ctx) beside the names of its options; arguments that it cannot
    take are InvalidInput, not TypeError."""
    form = signature(function)
    takes_options = any(each.kind is Parameter.VAR_KEYWORD for each in form.parameters.values())

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        named: dict[str, Any] = long_names(kwargs, form.parameters) if takes_options else dict(kwargs)
        try:
            form.bind(*args, **named)
        except TypeError as error:
            raise InvalidInput(f"{function.__name__} cannot be called so: {error}.") from None
        return function(*args, **named)

    return call


def long_names(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The options under their long names; `own`: names of parameters, which stay."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        long = name if name in own else _by_short_name().get(name, name)
        if long in found or (long != name and long in given):
            raise InvalidInput(
                f"{long} is given twice: as {long} or another name of it, and as {name}. Give one of them."
            )
        found[long] = value
    return found


@cache
def _by_short_name() -> dict[str, str]:
    return {short: name for name, shorts in short_names().items() for short in shorts}


def check_text(name: str, value: Any) -> str:
    """The name that an argument holds."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} takes a name. Got {typed(value)}.")
    return value


def check_whole(name: str, value: Any) -> int:
    """The whole number that an argument holds; numpy's integers become Python's."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInput(f"{name} takes a whole number. Got {typed(value)}.")
    return index(value)


def check_number(name: str, value: Any) -> float:
    """The finite number that an argument holds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidInput(f"{name} takes a finite number. Got {typed(value)}.")
    return value


def check_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """What an argument maps names to."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(f"{name} takes a mapping of names to lists of values. Got {typed(value)}.")
    return value


def listed(value: Any) -> list[Any]:
    """Several values, or one."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]


def typed(value: Any) -> str:
    """A value with its type, as errors quote it."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
