"""The rules of thumb of the five source documents. One file a document; a rule is one function there."""

from importlib import import_module

from tonnage.rules._rule import GIVEN as GIVEN
from tonnage.rules._rule import RULES as RULES
from tonnage.rules._rule import Rule as Rule

DOCUMENTS = "abcde"


def load() -> None:
    """Register all rules."""
    for letter in DOCUMENTS:
        import_module(f"tonnage.rules.document_{letter}")
