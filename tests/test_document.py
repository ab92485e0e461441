"""The JSON Schema ships with the package and is that of the types."""

import json
from pathlib import Path

import jsonschema

import tonnage
from tonnage.document import json_schema

SHIPPED = Path(tonnage.__file__).with_name("tonnage.schema.json")


def test_the_shipped_schema_is_generated_from_the_types():
    assert json.loads(SHIPPED.read_text()) == json_schema(), "run `make schema`"


def test_the_schema_is_a_schema_and_refuses_what_is_no_document():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    validator = jsonschema.Draft202012Validator(json_schema())
    assert not validator.is_valid({})
    assert not validator.is_valid({"schema": "tonnage/1", "question": {}})
