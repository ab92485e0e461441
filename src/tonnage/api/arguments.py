"""Checks of the named arguments of the public functions: an argument of the wrong type is bad input, and the error
says what it takes.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from math import isfinite
from operator import index
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct

from tonnage import models
from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import option_name
from tonnage.kernel.registry import unknown
from tonnage.question.option import types_of
from tonnage.question.owners import unknown_option
from tonnage.question.subjects.money import OF_TRAINING, BillOptions
from tonnage.question.subjects.serving import ServingOptions
from tonnage.spec import Cluster

TAKES: dict[Any, str] = {
    int: "a whole number",
    bool: "True or False",
    str: "a name",
    float: "a finite number",
    int | str: "a whole number, or a text such as auto or 15T",
    float | str: "a finite number, or a text such as 100k, 30d or 20GB/s",
}
P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose wrong arguments are InvalidInput instead of TypeError; a name that it does not take comes
    with the nearest that it does.
    """
    form = signature(function)
    takes_options = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in form.parameters.values())

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            form.bind(*args, **kwargs)
        except TypeError as error:
            for name in () if takes_options else kwargs:
                if name not in form.parameters:
                    raise unknown("argument", name, form.parameters) from None
            raise InvalidInput(
                "{function} cannot be called so: {error}.", function=function.__name__, error=error
            ) from None
        return function(*args, **kwargs)

    return call


def check_text(name: str, value: Any) -> str:
    """The name that an argument holds."""
    if not isinstance(value, str):
        raise InvalidInput("{name} takes a name. Got {typed}.", name=name, typed=typed(value))
    return value


def check_whole(name: str, value: Any) -> int:
    """The whole number that an argument holds; numpy's integers become Python's."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInput("{name} takes a whole number. Got {typed}.", name=name, typed=typed(value))
    return index(value)


def check_number(name: str, value: Any) -> float:
    """The finite number that an argument holds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InvalidInput("{name} takes a finite number. Got {typed}.", name=name, typed=typed(value))
    return value


def check_switch(name: str, value: Any) -> bool:
    """The truth that an argument holds."""
    if not isinstance(value, bool):
        raise InvalidInput("{name} takes True or False. Got {typed}.", name=name, typed=typed(value))
    return value


def check_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """What an argument maps names to."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(
            "{name} takes a mapping of names to lists of values. Got {typed}.", name=name, typed=typed(value)
        )
    return value


def listed(value: Any) -> list[Any]:
    """Several values, or one."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]


def typed(value: Any) -> str:
    """A value with its type, as errors quote it."""
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def model_of(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return models.read(os.fspath(model))
    raise InvalidInput("{@model} takes a name, a path or a Model. Got {typed}.", typed=typed(model))


def cluster_of(on: Any) -> Cluster:
    if isinstance(on, Cluster):
        return on
    if isinstance(on, str):
        return cluster(on)
    raise InvalidInput("{@on} takes a name such as 8xH100-SXM-80GB, or a Cluster. Got {typed}.", typed=typed(on))


def names_in_text(value: Any, what: str) -> list[Any]:
    """What is named: one, a list, or a text with commas between, as the command line has it."""
    if not isinstance(value, str):
        return list(value) if isinstance(value, list | tuple) else [value]
    names = [part.strip() for part in value.split(",")]
    if not all(names):
        raise InvalidInput(
            "{what} takes a name, or names with commas between. Got {typed}.", what=what, typed=typed(value)
        )
    return names


def check_served(bill: BillOptions) -> None:
    for name in OF_TRAINING:
        if getattr(bill, name) is not None:
            raise InvalidInput("{name} is of a training run. Got {value}.", name=name, value=shown(getattr(bill, name)))


def reserve_of(size: Any) -> int:
    """Whole bytes; the estimate checks that they leave something."""
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size < float("inf"):
        raise InvalidInput("reserve_bytes takes a finite number of bytes, at least 0. Got {typed}.", typed=typed(size))
    return round(size)


def options_by_subject(options: Mapping[str, Any], form: type[Struct], *others: type[Struct]) -> tuple[Any, ...]:
    """The options as the structs of their subjects; what none of `others` has is one of `form`, or is unknown."""
    parts: dict[type[Struct], dict[str, Any]] = {struct_type: {} for struct_type in (form, *others)}
    for name, value in options.items():
        parts[next((struct_type for struct_type in others if name in struct_type.__struct_fields__), form)][name] = (
            value
        )
    return tuple(options_from(struct_type, part, *others) for struct_type, part in parts.items())


def options_from(form: Any, options: Mapping[str, Any], *others: type[Struct]) -> Any:
    """The options as their struct. `others`: of the same question, whose names may be meant too."""
    for name in options:
        if name not in form.__struct_fields__:
            known = [field for struct_type in (form, *others) for field in struct_type.__struct_fields__]
            verb = "serve" if ServingOptions in (form, *others) else "train"
            raise unknown_option(name, dict.fromkeys(("on", "reserve_bytes", "advice", *known)), verb)
    return form(**{name: option_value(form, name, value) for name, value in options.items()})


def option_value(form: type[Struct], name: str, value: Any) -> Any:
    """The value if its type is the option's; numpy's integers become Python's."""
    if isinstance(value, str) and not value.strip():
        raise InvalidInput("{what} is empty: give it a value, or leave the option out.", what=option_name(name))
    declared = types_of(form)[name]
    takes = next(kind for kind in TAKES if declared in (kind, kind | None))
    words = TAKES[takes]
    if takes == int | str:  # amounts, which people write as 1e9
        takes = str if isinstance(value, str) else int
        value = int(value) if isinstance(value, float) and value.is_integer() else value
    if takes == float | str:
        takes = str if isinstance(value, str) else float
    if value is None or (type(value) is takes and takes is not float):
        return value
    if takes is int and not isinstance(value, bool) and hasattr(value, "__index__"):
        return index(value)
    if takes is str and isinstance(value, str):
        return str(value)
    if takes is float and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    raise InvalidInput(
        "{name} takes {words}, or None for its default. Got {typed}.", name=name, words=words, typed=typed(value)
    )
