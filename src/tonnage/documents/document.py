"""What every document has: the name of its schema; how a document is written and read; and what is printed beside
the answers.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from tonnage.kernel.encoding import builtins, encode
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed

__all__ = [
    "READABLE",
    "SCHEMA",
    "Document",
    "ErrorDocument",
    "OptionsDocument",
    "ToolsDocument",
    "builtins",
    "check_readable",
    "encode",
]

SCHEMA = "tonnage/2"
READABLE = ("tonnage/1", SCHEMA)  # documents of older releases that are still read


class Document(Struct, kw_only=True, tag_field="schema", tag=SCHEMA):
    """A document: its first key is `schema`."""


class ToolsDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `mcp --json` prints: the tools that assistants are offered, each with its name, description and the JSON
    Schema of its fields.
    """

    tools: list[dict[str, Any]]


class OptionsDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What the tool `options` of assistants answers: the names of all options of a verb, by subject."""

    verb: str
    options: dict[str, list[str]]


class Problem(Struct, kw_only=True, forbid_unknown_fields=True):
    """An input that cannot be used, what is wrong with it, and what may be meant. `pointer`: the field of a question
    that is JSON, as RFC 6901 writes it.
    """

    input: str
    problem: str
    nearest: list[str]
    pointer: str | UnsetType = UNSET


class ErrorDocument(Document, kw_only=True):
    """What --json prints when there is no answer. `errors`: everything that is wrong with a command or a question, of
    which `error` is the first; `corrected`: a command that is right, where all of it can be put right. Over HTTP it is
    a problem of RFC 9457 too, with `type`, `title`, `status` and `detail`.
    """

    error: dict[str, str]
    type: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    status: int | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    errors: list[Problem] | UnsetType = UNSET
    corrected: str | UnsetType = UNSET


def check_readable(document: Mapping[str, Any]) -> None:
    """InvalidInput for a document of a schema that this version cannot read."""
    schema = document.get("schema")
    if schema not in READABLE:
        raise InvalidInput(
            "the schema of a document must be one of {readable}. Got {schema}.",
            readable=listed(READABLE),
            schema=shown(schema),
        )
