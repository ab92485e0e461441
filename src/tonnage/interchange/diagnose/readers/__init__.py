"""Lines of logs, a module for each tool, found by the name of its file: FAILURES say that memory ran out, FACTS how
much of it there was and where it went.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tonnage.interchange.diagnose.patterns import LinePattern


@cache
def failures() -> tuple[LinePattern, ...]:
    """Lines that say that memory ran out, of every tool."""
    return tuple(sign for module in _modules() for sign in getattr(module, "FAILURES", ()))


@cache
def facts() -> tuple[LinePattern, ...]:
    """Lines that have numbers, of every tool."""
    return tuple(sign for module in _modules() for sign in getattr(module, "FACTS", ()))


@cache
def _modules() -> tuple[object, ...]:
    return tuple(import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
