"""Forms of what `explain` answers."""

from typing import Literal

from msgspec import Struct

from tonnage.documents.document import SCHEMA, Document
from tonnage.kernel.glossary import Word
from tonnage.kernel.references import Reference


class LetterDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A letter of the formulas."""

    letter: str
    long_name: str
    unit: str
    meaning: str


class KeyedReference(Reference, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of the bibliography with its key."""

    key: str


class FormulaDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers about a formula. (A rule of thumb is explained by a RulesDocument.)"""

    kind: Literal["formula"]
    name: str
    text: str
    unit: str
    meaning: str
    assumes: str
    basis: Literal["rule", "calibrated", "analytic", "traced", "measured"]
    source: str
    symbols: list[LetterDocument]
    references: list[KeyedReference]


class SymbolDocument(LetterDocument, kw_only=True, forbid_unknown_fields=True, tag_field="schema", tag=SCHEMA):
    """What `explain` answers about a letter; `formulas` are those that use it."""

    kind: Literal["symbol"]
    name: str
    formulas: list[str]


class WordDocument(Word, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema", tag=SCHEMA):
    """What `explain` answers about a word of the answers."""

    kind: Literal["word"]


class SourceDocument(Reference, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="schema", tag=SCHEMA):
    """What `explain` answers about a source."""

    kind: Literal["source"]
    name: str


class NamesDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `explain` answers without a name."""

    formulas: list[str]
    symbols: list[str]
    words: list[str]
    sources: list[str]
