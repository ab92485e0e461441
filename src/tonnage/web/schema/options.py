"""The form of a question, from the options of the command line: a JSON Schema for each verb, and for each form of a
verb.
"""

from typing import Any

from tonnage.question.form import Form
from tonnage.question.option import Option
from tonnage.question.read import NO_DEFAULT
from tonnage.question.subjects.maximum import NAMES
from tonnage.question.verbs import form_of

# The forms of each verb, by the names of their schemas.
NAMED: dict[str, dict[str, str]] = {
    "train": {"TrainQuestion": ""},
    "serve": {"ServeQuestion": ""},
    "plan": {"PlanTrainQuestion": "train", "PlanServeQuestion": "serve", "PlanPoolQuestion": "inventory"},
    "max": {"MaxServeQuestion": "serve", "MaxTrainQuestion": "train"},
    "compare": {"CompareServeQuestion": "serve", "CompareTrainQuestion": "train"},
    "rules": {"RulesQuestion": ""},
    "explain": {"ExplainQuestion": ""},
}
MODEL = {
    "anyOf": [{"type": "string", "maxLength": 4096}, {"type": "object", "description": "the content of a config.json"}],
    "description": (
        "A name of the catalogue; an id or https URL of Hugging Face or ModelScope where the server may ask "
        "them; or the content of a config.json."
    ),
}
KINDS = {"switch": ["boolean"], "number": ["number", "string"], "text": ["string"]}
SEVERAL = "; or a list of such"
AXIS, AXIS_OR_NULL = "; or a list: each value is an axis of the table", ", null the default"
NULL = {"type": "null"}  # not said: what many clients send of a field that is left empty


def schemas() -> dict[str, dict[str, Any]]:
    """Name of each form -> its schema."""
    return {name: _schema(form_of(verb, kind)) for verb, forms in NAMED.items() for name, kind in forms.items()}


def _schema(form: Form) -> dict[str, Any]:
    properties = {name: _field(field, form) for name, field in form.of_face("json").items()}
    words = " ".join((form.verb, *form.words))
    about = (
        f"The options of `tonnage {words}`, named with underscores. Sizes are numbers, or texts as people write "
        "them (8k, 1T, 80GiB)."
    )
    needed = {"required": list(form.required)} if form.required else {}
    return {"type": "object", "title": f"tonnage {form.verb}", "description": about, "properties": properties} | needed


def _field(field: Option, form: Form) -> dict[str, Any]:
    """The schema of one name."""
    if field.alone:
        return _positional(field, form.takes_lists(field.name))
    schema: dict[str, Any] = {"description": field.meaning}
    if field.unit:
        schema["x-unit"] = field.unit
    if field.default:
        schema["x-default"] = field.default
    if field.name == "inventory":
        return schema | {
            "anyOf": [{"type": "string"}, {"type": "object", "description": "the content of the file"}, NULL]
        }
    kinds = KINDS[field.kind]
    one = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if not form.takes_lists(field.name):
        return schema | {"type": [*kinds, "null"]}
    if form.axes:
        needed = field.name in NO_DEFAULT
        schema["description"] += AXIS if needed else AXIS + AXIS_OR_NULL
        item = one if needed else {"type": [*kinds, "null"]}
        return schema | {"anyOf": [one, {"type": "array", "minItems": 1, "items": item}, NULL]}
    schema["description"] += SEVERAL
    several: list[dict[str, Any]] = [one, {"type": "array", "minItems": 1, "items": one}]
    if field.repeated:  # of a plan to serve it is names alone
        several.append(
            {
                "type": "object",
                "description": "of training: option: value, or a list of values",
                "additionalProperties": {"anyOf": [{"type": ["string", "number"]}, {"type": "array"}]},
            }
        )
    return schema | {"anyOf": [*several, NULL]}


def _positional(field: Option, several: bool) -> dict[str, Any]:
    if field.name == "model":
        more = [{"type": "array", "minItems": 1, "items": {"type": "string"}}] if several else []
        return MODEL | {"anyOf": [*MODEL["anyOf"], *more, NULL]}
    about = {"description": field.about}
    if field.name == "what":
        return about | {"type": "string", "enum": list(NAMES)}
    if field.name == "names":
        return about | {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, NULL]}
    return about | {"type": ["string", "null"]}
