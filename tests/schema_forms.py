"""Validators of the shipped JSON Schema, made once: `jsonschema.validate` would check the whole schema again for
each document.
"""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tonnage.documents.schema import json_schema


@cache
def form(*names: str) -> Draft202012Validator:
    """What a document of one of these definitions must look like; without names, of any verb."""
    schema = json_schema()
    if names:
        schema = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names], "$defs": schema["$defs"]}
    return Draft202012Validator(schema)


def validate(document: Any, *names: str) -> None:
    form(*names).validate(document)
