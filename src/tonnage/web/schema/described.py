"""Jobs and saved plans, as OpenAPI describes them."""

from typing import Any

from tonnage.web.jobs.documents import AskedJob, JobDocument
from tonnage.web.schema import openapi
from tonnage.web.schema.openapi import answer, errors, ref
from tonnage.web.store.documents import AskedSave, DeletedDocument, SavedDocument, SavedPlansDocument
from tonnage.web.store.names import NAME_LENGTH

Schema = dict[str, Any]
TAG: Schema = {"description": "the version, to be said again as If-Match", "schema": {"type": "string"}}
PLACE: Schema = {"description": "its path", "schema": {"type": "string"}}
OF_BODIES, OF_NAMES = (400, 403, 408, 413, 415, 422, 503), (400, 403, 404, 503)


def paths() -> Schema:
    """Of the routes of jobs and of saved plans."""
    job = _named("job", "the id of a job", 64)
    name = _named("name", "the name of a saved plan", NAME_LENGTH)
    seen: Schema = {
        "name": "If-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "the ETag of the version that was seen; * is any version",
    }
    followed = {
        "description": "server-sent events, the numbered steps of the search and its end",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    return {
        "/v1/jobs": {
            "post": _operation(
                "start_job",
                "start a long search",
                (*OF_BODIES, 429),
                202,
                JobDocument,
                body=AskedJob,
                headers={"Location": PLACE},
            )
        },
        "/v1/jobs/{job}": {
            "get": _operation("look_at_job", "a job as it is", (400, 403, 404, 503), 200, JobDocument, [job]),
            "delete": _operation(
                "cancel_job", "cancel a job: the work stops at once", (400, 403, 404, 503), 200, JobDocument, [job]
            ),
        },
        "/v1/jobs/{job}/events": {
            "get": {
                "operationId": "follow_job",
                "summary": "follow a job",
                "parameters": [
                    job,
                    _header("Last-Event-ID", "the last number that was heard: only what came after it is told"),
                ],
                "responses": {
                    "200": followed,
                    "204": {"description": "the job has ended, and nothing came after that number"},
                    **errors((400, 403, 404, 503)),
                },
            }
        },
        "/v1/saved": {
            "get": _operation(
                "saved_plans",
                "a page of saved plans, with the figures of their latest versions",
                (400, 403, 503),
                200,
                SavedPlansDocument,
                [
                    _asked("after", {"type": "string"}),
                    _asked("limit", {"type": "integer", "minimum": 1, "maximum": 1000}),
                ],
            ),
            "post": _operation(
                "save_plan",
                "save a question with what its answer is now",
                (*OF_BODIES, 409),
                201,
                SavedDocument,
                [seen],
                body=AskedSave,
                headers={"ETag": TAG, "Location": PLACE},
            ),
        },
        "/v1/saved/{name}": {
            "get": _operation(
                "saved_plan",
                "the latest version of a saved plan, or another one",
                OF_NAMES,
                200,
                SavedDocument,
                [name, _asked("version", {"type": "integer", "minimum": 1, "maximum": 2**31 - 1})],
                headers={"ETag": TAG},
            ),
            "delete": _operation(
                "delete_plan",
                "delete a saved plan; its history stays",
                (*OF_NAMES, 409),
                200,
                DeletedDocument,
                [name, seen, _asked("history", {"type": "string", "enum": ["true", "false"]})],
            ),
        },
        "/v1/saved/{name}/history": {
            "get": _operation(
                "history_of_plan",
                "a page of the versions of a saved plan, the latest first",
                OF_NAMES,
                200,
                SavedPlansDocument,
                [
                    name,
                    _asked("before", {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}),
                    _asked("limit", {"type": "integer", "minimum": 1, "maximum": 1000}),
                ],
            )
        },
    }


def _operation(
    name: str,
    summary: str,
    codes: tuple[int, ...],
    code: int,
    kind: type,
    parameters: list[Schema] | None = None,
    *,
    body: type | None = None,
    headers: Schema | None = None,
) -> Schema:
    good = {"description": summary, "content": answer((kind,))} | ({"headers": headers} if headers else {})
    made: Schema = {
        "operationId": name,
        "summary": summary,
        "parameters": parameters or [],
        "responses": {str(code): good, **errors(codes)},
    }
    if body is not None:
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": ref(body.__name__)}}}
    return made


def _named(name: str, about: str, longest: int) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": about,
        "schema": {"type": "string", "minLength": 1, "maxLength": longest},
    }


def _asked(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "schema": schema}


def _header(name: str, about: str) -> Schema:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": about}


def describe() -> None:
    """Adds them to what the API says of itself."""
    openapi.MORE_PATHS.append(paths())
    openapi.MORE_TYPES += [AskedJob, JobDocument, AskedSave, SavedDocument, SavedPlansDocument, DeletedDocument]
