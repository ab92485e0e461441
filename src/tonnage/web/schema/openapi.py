"""GET /schema/openapi.json: every route, from the types of the documents and the options of the command line."""

from functools import cache
from typing import Any

import msgspec
from litestar import MediaType, Response, get

from tonnage.documents import schema as d
from tonnage.kernel.encoding import encode
from tonnage.kernel.version import __version__
from tonnage.web.listings import MODEL, PRICES
from tonnage.web.schema import documents as w
from tonnage.web.schema import options
from tonnage.web.schema.options_table import VERBS

Schema = dict[str, Any]
# Verb -> what it answers.
ANSWERS: dict[str, tuple[type, ...]] = {
    "train": (d.AnswerDocument,),
    "serve": (d.AnswerDocument, d.FrontierDocument, d.MachineDocument),
    "plan": (d.PlansDocument, d.ServingPlansDocument, d.PoolDocument),
    "max": (d.MaxDocument,),
    "compare": (d.CompareDocument,),
    "rules": (d.RulesDocument,),
    "explain": (
        d.NamesDocument,
        d.FormulaDocument,
        d.SymbolDocument,
        d.WordDocument,
        d.SourceDocument,
        d.RulesDocument,
    ),
}
# Path -> what it answers, its summary, the parameters of its query.
LISTED: dict[str, tuple[tuple[type, ...], str, tuple[str, ...]]] = {
    "/v1/models": ((d.ModelsDocument,), "the catalogue of models", ()),
    "/v1/models/{name}": ((d.ModelDocument,), "one model", MODEL),
    "/v1/accelerators": ((d.AcceleratorsDocument,), "the catalogue of accelerators and nodes", ()),
    "/v1/accelerators/{name}": ((d.AcceleratorDocument, d.NodeDocument), "one accelerator or node", ()),
    "/v1/prices": ((d.PricesDocument,), "what machines cost", PRICES),
    "/v1/prices/{name}": ((d.PricesDocument,), "what machines with one accelerator cost", PRICES),
    "/v1/formulas": ((w.FormulasDocument,), "every formula", ()),
    "/v1/glossary": ((w.GlossaryDocument,), "the letters of the formulas, and the words of the answers", ()),
    "/v1/server": ((w.ServerDocument,), "what this server may do", ()),
    "/healthz": ((w.HealthDocument,), "whether the server answers", ()),
}
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
OF_QUESTIONS, OF_LISTS = (400, 403, 408, 413, 415, 422, 503), (400, 403, 404, 422, 503)
HEADERS = {
    "Tonnage-Status": {
        "description": "the exit status of the command line: 0 fits, 2 tight, 3 does not fit, 4 not enough is known",
        "schema": {"type": "integer"},
    },
    "Tonnage-Command": {
        "description": "the command line that asks the same, percent-encoded",
        "schema": {"type": "string"},
    },
}
# Other modules' routes: their paths, and the types that they name.
MORE_PATHS: list[Schema] = []
MORE_TYPES: list[type] = []


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def answer(kinds: tuple[type, ...]) -> Schema:
    """A response body of one of these documents."""
    schemas = [ref(kind.__name__) for kind in kinds]
    return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}


def errors(codes: tuple[int, ...]) -> dict[str, Schema]:
    return {str(code): {"description": ERRORS[code], "content": answer((d.ErrorDocument,))} for code in codes}


def document() -> Schema:
    """The OpenAPI document."""
    types = {kind for kinds in ANSWERS.values() for kind in kinds} | {
        kind for kinds, _, _ in LISTED.values() for kind in kinds
    }
    types |= {w.LaunchDocument, d.TimelineDocument, d.ErrorDocument, w.OptionRow, *MORE_TYPES}
    _, schemas = msgspec.json.schema_components(
        sorted(types, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    questions = options.schemas()
    launch = {
        "allOf": [
            {"anyOf": [ref("TrainQuestion"), ref("ServeQuestion")]},
            {"type": "object", "required": ["verb"], "properties": {"verb": {"enum": ["train", "serve"]}}},
        ]
    }
    paths: Schema = {f"/v1/{verb}": {"post": _question(verb)} for verb in ANSWERS}
    paths["/v1/launch"] = {
        "post": _operation(
            "launch", "settings that start the run, in the words of its runtime", launch, (w.LaunchDocument,)
        )
    }
    drawn = "a step of training as boxes, played out in the order of its pipeline's schedule"
    paths["/v1/timeline"] = {"post": _operation("timeline", drawn, ref("TrainQuestion"), (d.TimelineDocument,))}
    paths |= {path: {"get": _listing(path, *what)} for path, what in LISTED.items()}
    paths["/v1/options/{verb}"] = {"get": _options()}
    paths["/metrics"] = {
        "get": {
            "operationId": "metrics",
            "summary": "counts of requests, for Prometheus",
            "responses": {
                "200": {"description": "text of Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}},
                **errors((400, 403)),
            },
        }
    }
    for more in MORE_PATHS:
        paths |= more
    info = {
        "title": "tonnage",
        "version": __version__,
        "description": (
            "Does a large language model fit a machine, how fast, at what price, and why: the answers of the "
            "command line."
        ),
    }
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": {**schemas, **questions}}}


def _question(verb: str) -> Schema:
    from tonnage.cli import VERBS

    forms = [ref(name) for name in options.NAMED[verb]]
    return _operation(verb, VERBS[verb], forms[0] if len(forms) == 1 else {"anyOf": forms}, ANSWERS[verb])


def _operation(name: str, summary: str, body: Schema, kinds: tuple[type, ...]) -> Schema:
    good = {"description": "the document that --json prints", "headers": HEADERS, "content": answer(kinds)}
    return {
        "operationId": name,
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": good, **errors(OF_QUESTIONS)},
    }


def _listing(path: str, kinds: tuple[type, ...], summary: str, query: tuple[str, ...]) -> Schema:
    named = (
        [{"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]
        if "{name}" in path
        else []
    )
    asked = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in query]
    return {
        "operationId": path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        "summary": summary,
        "parameters": [*named, *asked],
        "responses": {
            "200": {"description": summary, "content": answer(kinds)},
            **errors(OF_LISTS if path.startswith("/v1/") else (400, 403)),
        },
    }


def _options() -> Schema:
    summary = "the options of a verb, each with its help, unit, default and choices"
    verb = {"name": "verb", "in": "path", "required": True, "schema": {"type": "string", "enum": list(VERBS)}}
    table = {"application/json": {"schema": {"type": "array", "items": ref("OptionRow")}}}
    good = {"description": summary, "content": table}
    return {
        "operationId": "options",
        "summary": summary,
        "parameters": [verb],
        "responses": {"200": good, **errors((400, 403, 404))},
    }


@cache
def _encoded() -> bytes:
    return encode(document())


@get("/schema/openapi.json", sync_to_thread=True)
def schema() -> Response[bytes]:
    return Response(_encoded(), media_type=MediaType.JSON, headers={"Cache-Control": "no-cache"})


ROUTES = [schema]
