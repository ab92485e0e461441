"""
* TonnageError             everything a user can fix or must know; faces print it without a traceback
  x InvalidInput           a file, a config or an option holds something that cannot be
  x UnknownName            not in a catalogue or registry; suggests the nearest names
  x InvalidPlan            the plan contradicts itself, the model or the cluster
    - NotApplicable        ... because an option means nothing beside the value of another one
  x MissingDatum           nobody told us this number, and we do not invent it
    - Unreachable          ... because the network did not answer, or offline mode forbids to ask
    - AccessDenied         ... because the model is gated or private
"""

from typing import Any

from tonnage.kernel.message import Message


class TonnageError(ValueError):
    """Base of every error that tonnage raises for its users. `values` fill the places of the message, a template:

    >>> InvalidInput("--top must be at least {least}. Got {value}.", least=1, value=0)
    InvalidInput('--top must be at least 1. Got 0.')
    """

    exit_status = 64

    def __init__(self, message: str, /, **values: Any):
        super().__init__(Message(message, **values) if values or "{@" in message else message)


class InvalidInput(TonnageError):
    """A value that a user or a file gave cannot be right; the message names the field and the value."""


class OutOfRange(InvalidInput):
    """A number of a size that no quantity has; who knows the quantity says its own range."""


class UnknownName(TonnageError):
    """A name that no catalogue or registry knows; the message lists the nearest ones, and `nearest` has them."""

    nearest: tuple[str, ...] = ()


class InvalidPlan(TonnageError):
    """Sizes that do not divide, or do not belong together."""


class NotApplicable(InvalidPlan, InvalidInput):
    """An option that means nothing beside the value of another one. `option`: its name; `owners`: names of the
    options whose values decide whether it applies. Where one of these is varied, a search leaves the option out
    (tonnage.estimate.answer.companions).
    """

    def __init__(self, message: str, option: str = "", owners: tuple[str, ...] = ()):
        super().__init__(message)
        self.option, self.owners = option, owners


class MissingDatum(TonnageError):
    """A number is needed that no source gave."""

    exit_status = 4


class Unreachable(MissingDatum):
    """A remote file is needed and cannot be asked for."""


class AccessDenied(MissingDatum):
    """A remote file exists, and this user may not read it."""


def shown(value: object, longest: int = 80) -> str:
    """A value as an error quotes it: its repr, cut to about `longest` characters however large the value is.

    >>> shown("a" * 1000, 12)
    "'aaaaaaaa..."
    """
    if isinstance(value, str | bytes):
        text = repr(value[: longest + 1])
    else:
        from reprlib import Repr

        short = Repr()
        short.maxstring = short.maxother = longest
        try:
            text = short.repr(value)
        except (ValueError, RecursionError):  # a whole number of more digits than Python prints
            text = f"<{type(value).__name__}>"
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
