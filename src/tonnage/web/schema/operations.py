"""The parts that operations of OpenAPI are put together from."""

from collections.abc import Sequence
from typing import Any

from tonnage.documents.schema import ErrorDocument
from tonnage.web.answer import PROBLEM

Schema = dict[str, Any]
ERRORS = {
    400: "the question cannot be, as the command line says it (status 64); or a parameter is none of the route's",
    403: "asked by a page of another site, or by a name that is not the server's",
    404: "there is none of this name",
    408: "the body came too slowly",
    409: "somebody else has saved since, or nobody has: read it, and ask again",
    413: "the body is too large",
    415: "the body is no JSON by its name",
    422: (
        "a number is missing that nobody told (status 4); or the answer would take longer, or more memory, than "
        "the server gives one"
    ),
    429: "too many jobs wait already: ask again after Retry-After seconds",
    503: "too many questions at once: ask again after Retry-After seconds",
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def content(kinds: Sequence[type], media_type: str = "application/json") -> Schema:
    """A body that is one of these documents."""
    schemas = [ref(kind.__name__) for kind in kinds]
    return {media_type: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}


def errors(codes: Sequence[int]) -> dict[str, Schema]:
    return {str(code): {"description": ERRORS[code], "content": content([ErrorDocument], PROBLEM)} for code in codes}


def operation(
    name: str,
    summary: str,
    answer: Schema,
    codes: Sequence[int],
    *,
    code: int = 200,
    parameters: Sequence[Schema] = (),
    body: Schema | None = None,
) -> Schema:
    """`answer`: the response of status `code`, `codes`: of the errors, `body`: the schema of the request's."""
    schema: Schema = {"operationId": name, "summary": summary}
    if parameters:
        schema["parameters"] = list(parameters)
    if body is not None:
        schema["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return schema | {"responses": {str(code): {"description": summary} | answer, **errors(codes)}}


def in_path(name: str, **schema: Any) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", **schema}}


def in_query(name: str, **schema: Any) -> Schema:
    return {"name": name, "in": "query", "schema": {"type": "string", **schema}}


def in_header(name: str, description: str) -> Schema:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": description}
