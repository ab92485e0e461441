"""Jobs and saved plans, as OpenAPI describes them."""

from typing import Any

from tonnage.web.jobs.documents import AskedJob, JobDocument
from tonnage.web.schema.operations import Schema, content, in_header, in_path, in_query, operation, ref
from tonnage.web.store.documents import AskedSave, DeletedDocument, SavedDocument, SavedPlansDocument
from tonnage.web.store.names import NAME_LENGTH

TYPES: tuple[type, ...] = (AskedJob, JobDocument, AskedSave, SavedDocument, SavedPlansDocument, DeletedDocument)
VERSION_TAG: Schema = {"description": "the version, to be said again as If-Match", "schema": {"type": "string"}}
LOCATION: Schema = {"description": "its path", "schema": {"type": "string"}}
JOB = in_path("job", minLength=1, maxLength=64) | {"description": "the id of a job"}
PLAN = in_path("name", minLength=1, maxLength=NAME_LENGTH) | {"description": "the name of a saved plan"}
SEEN = in_header("If-Match", "the ETag of the version that was seen; * is any version")
HEARD = in_header("Last-Event-ID", "the last number that was heard: only what came after it is told")
PAGE: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 1000}
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}
OF_BODIES, OF_LISTS, OF_NAMES = (400, 403, 408, 413, 415, 422, 503), (400, 403, 503), (400, 403, 404, 503)


def paths() -> Schema:
    """The routes of jobs and of saved plans."""
    return {
        "/v1/jobs": {"post": _start_job()},
        "/v1/jobs/{job}": {
            "get": _job("look_at_job", "a job as it is"),
            "delete": _job("cancel_job", "cancel a job: the work stops at once"),
        },
        "/v1/jobs/{job}/events": {"get": _follow_job()},
        "/v1/saved": {
            "get": operation(
                "saved_plans",
                "a page of saved plans, with the figures of their latest versions",
                {"content": content([SavedPlansDocument])},
                OF_LISTS,
                parameters=[in_query("after"), in_query("limit", **PAGE)],
            ),
            "post": _save_plan(),
        },
        "/v1/saved/{name}": {
            "get": operation(
                "saved_plan",
                "the latest version of a saved plan, or another one",
                {"content": content([SavedDocument]), "headers": {"ETag": VERSION_TAG}},
                OF_NAMES,
                parameters=[PLAN, in_query("version", **NUMBER)],
            ),
            "delete": operation(
                "delete_plan",
                "delete a saved plan; its history stays",
                {"content": content([DeletedDocument])},
                (*OF_NAMES, 409),
                parameters=[PLAN, SEEN, in_query("history", enum=["true", "false"])],
            ),
        },
        "/v1/saved/{name}/history": {
            "get": operation(
                "history_of_plan",
                "a page of the versions of a saved plan, the latest first",
                {"content": content([SavedPlansDocument])},
                OF_NAMES,
                parameters=[PLAN, in_query("before", **NUMBER), in_query("limit", **PAGE)],
            )
        },
    }


def _job(name: str, summary: str) -> Schema:
    return operation(name, summary, {"content": content([JobDocument])}, OF_NAMES, parameters=[JOB])


def _start_job() -> Schema:
    return operation(
        "start_job",
        "start a long search",
        {"content": content([JobDocument]), "headers": {"Location": LOCATION}},
        (*OF_BODIES, 429),
        code=202,
        body=ref(AskedJob.__name__),
    )


def _follow_job() -> Schema:
    answer = {
        "description": "server-sent events, the numbered steps of the search and its end",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    schema = operation("follow_job", "follow a job", answer, OF_NAMES, parameters=[JOB, HEARD])
    schema["responses"]["204"] = {"description": "the job has ended, and nothing came after that number"}
    return schema


def _save_plan() -> Schema:
    return operation(
        "save_plan",
        "save a question with what its answer is now",
        {"content": content([SavedDocument]), "headers": {"ETag": VERSION_TAG, "Location": LOCATION}},
        (*OF_BODIES, 409),
        code=201,
        parameters=[SEEN],
        body=ref(AskedSave.__name__),
    )
