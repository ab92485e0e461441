"""The bibliography: references.toml -> Reference. Read only when somebody asks what a source is."""

from functools import lru_cache
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.prepared import tables
from tonnage.kernel.registry import Registry

FILE = Path(__file__).with_name("references.toml")


class Reference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A publication, a program or a document. `checked`: what was compared with it, and when; `errata`: what it gets
    wrong.
    """

    authors: str
    title: str
    where: str
    checked: str
    year: int | None = None  # None: the publication does not say
    errata: str = ""

    @property
    def citation(self) -> str:
        """On one line, for people."""
        return f"{self.authors} ({self.year or 'no date'}). {self.title}. {self.where}."


@lru_cache(maxsize=1)
def references() -> Registry[Reference]:
    """All of the bibliography, by key."""
    registry: Registry[Reference] = Registry("reference")
    for key, fields in tables(str(FILE)).items():
        try:
            registry.add(key, convert(fields, Reference))
        except ValidationError as error:
            raise InvalidInput(f"{FILE.name}: {key}: {error}") from None
    return registry


def reference(key: str) -> Reference:
    """The entry of this key; UnknownName with the nearest keys without one."""
    return references()[key]


def cited(source: str) -> tuple[str, ...]:
    """The keys that a source names: at its start, and at the start of each part after a semicolon.

    >>> cited("Korthikanti2022, eq. 2; Megatron-LM, arguments.py")
    ('Korthikanti2022', 'Megatron-LM')
    """
    keys = (_key(part.strip()) for part in source.split(";"))
    return tuple(key for key in keys if key)


def _key(part: str) -> str:
    """The key that `part` begins with: the text up to a comma, a colon, a space or a bracket, as far as it is one."""
    end = min((part.find(mark) for mark in ",:( " if mark in part), default=len(part))
    return part[:end] if part[:end] in references() else ""
