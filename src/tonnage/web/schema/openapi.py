"""GET /schema/openapi.json: every route, from the types of the documents and the options of the command line."""

from functools import cache

import msgspec
from litestar import MediaType, Response, get

from tonnage.documents import schema as d
from tonnage.interchange.json_questions import ABOUT, CHECK, EXPORT, LENIENT
from tonnage.interchange.log_questions import ABOUT as ABOUT_LOGS
from tonnage.interchange.log_questions import DIAGNOSE, RECONCILE
from tonnage.kernel.encoding import encode
from tonnage.kernel.version import __version__
from tonnage.verbs.answered import DETAILS, FULL
from tonnage.web.batch import MAX_ROWS
from tonnage.web.listings import MODEL, PRICES
from tonnage.web.questions import DETAIL, SUMMARISED
from tonnage.web.schema import documents as w
from tonnage.web.schema import jobs_and_saved, options
from tonnage.web.schema.operations import Schema, content, in_path, in_query, operation, ref
from tonnage.web.schema.options_table import VERBS

# Verb -> what it answers.
ANSWERS: dict[str, tuple[type, ...]] = {
    "train": (d.AnswerDocument, d.AnswerSummary),
    "serve": (d.AnswerDocument, d.AnswerSummary, d.FrontierDocument, d.MachineDocument),
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
OF_QUESTIONS, OF_LISTS, OF_SERVER = (400, 403, 408, 413, 415, 422, 503), (400, 403, 404, 422, 503), (400, 403)
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
INFO = {
    "title": "tonnage",
    "version": __version__,
    "description": (
        "Does a large language model fit a machine, how fast, at what price, and why: the answers of the command line."
    ),
}


def document() -> Schema:
    """The OpenAPI document."""
    types = {
        w.LaunchDocument,
        d.TimelineDocument,
        d.TrainBatchDocument,
        d.ServeBatchDocument,
        d.ErrorDocument,
        d.ExportDocument,
        d.DiagnosisDocument,
        d.ReconcileDocument,
        w.OptionRow,
        *jobs_and_saved.TYPES,
    }
    types |= {kind for kinds in ANSWERS.values() for kind in kinds}
    types |= {kind for kinds, _, _ in LISTED.values() for kind in kinds}
    _, schemas = msgspec.json.schema_components(
        sorted(types, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    paths = _questions() | {path: {"get": _listing(path, *listed)} for path, listed in LISTED.items()}
    paths |= {"/v1/options/{verb}": {"get": _options()}, "/metrics": {"get": _metrics()}} | jobs_and_saved.paths()
    components = {"schemas": d.plain_names(schemas) | options.schemas()}
    return {"openapi": "3.1.0", "info": INFO, "paths": paths, "components": components}


def _questions() -> Schema:
    from tonnage.cli import VERBS as SUMMARIES

    launch = {
        "allOf": [
            {"anyOf": [ref("TrainQuestion"), ref("ServeQuestion")]},
            {"type": "object", "required": ["verb"], "properties": {"verb": {"enum": ["train", "serve"]}}},
        ]
    }
    started = "settings that start the run, in the words of its runtime"
    drawn = "a step of training as boxes, played out in the order of its pipeline's schedule"
    paths = {f"/v1/{verb}": _question(verb, SUMMARIES[verb], _forms(verb), kinds) for verb, kinds in ANSWERS.items()}
    paths["/v1/launch"] = _question("launch", started, launch, (w.LaunchDocument,))
    paths["/v1/timeline"] = _question("timeline", drawn, ref("TrainQuestion"), (d.TimelineDocument,))
    columns = "many questions of train or serve at once: columns of figures, an entry for each row"
    paths["/v1/batch"] = _question("batch", columns, _batch(), (d.TrainBatchDocument, d.ServeBatchDocument))
    checking = "what another tool's file or command asks for, answered"
    paths["/v1/check"] = _question(CHECK, checking, _check(), (d.AnswerDocument, d.AnswerSummary))
    exported: Schema = {"allOf": [launch, {"type": "object", "required": ["format"], "properties": {"format": FORMAT}}]}
    written = "the file or command of another tool that starts the run"
    paths["/v1/export"] = _question(EXPORT, written, exported, (d.ExportDocument,))
    why = "why a run ran out of memory, by the text of its log"
    paths["/v1/diagnose"] = _question(DIAGNOSE, why, _of_logs(DIAGNOSE), (d.DiagnosisDocument,))
    beside = "the estimate of a run beside what the texts of its logs say"
    paths["/v1/reconcile"] = _question(RECONCILE, beside, _of_logs(RECONCILE), (d.ReconcileDocument,))
    return paths


FORMAT: Schema = {"type": "string", "description": "the name of a format, such as vllm or deepspeed"}


def _check() -> Schema:
    fields = {name: {"type": "boolean" if name == LENIENT else "string", "description": ABOUT[name]} for name in ABOUT}
    return {"type": "object", "required": ["text"], "properties": fields, "additionalProperties": False}


def _of_logs(verb: str) -> Schema:
    """The schema of a question about logs: texts, and the run."""
    fields: Schema = {name: {"type": "string", "description": about} for name, about in ABOUT_LOGS[verb].items()}
    fields["options"] = {"type": "object", "description": ABOUT_LOGS[verb]["options"]}
    if verb == RECONCILE:
        one: Schema = {"type": "string", "minLength": 1}
        fields["text"] |= {"type": ["string", "array"], "items": one, "minItems": 1}
        fields["verb"] |= {"enum": ["train", "serve"]}
    return {"type": "object", "required": ["text"], "properties": fields, "additionalProperties": False}


def _batch() -> Schema:
    """The schema of many questions: rows or columns of them, with what holds for all."""
    question: Schema = {"type": "object", "description": "fields of a question to the verb"}
    column: Schema = {"type": "array", "maxItems": MAX_ROWS}
    fields: Schema = {
        "verb": {"enum": ["train", "serve"]},
        "rows": column | {"items": question},
        "columns": {"type": "object", "additionalProperties": column, "description": "lists of the same length"},
        "options": question | {"description": "fields that hold for all rows"},
        "keep": {"type": "array", "items": {"type": "string"}, "description": "fields that only come back"},
    }
    return {
        "type": "object",
        "required": ["verb"],
        "properties": fields,
        "oneOf": [{"required": ["rows"]}, {"required": ["columns"]}],
        "additionalProperties": False,
    }


def _forms(verb: str) -> Schema:
    """The schema of a question: any form of its verb."""
    forms = [ref(name) for name in options.NAMED[verb]]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _question(name: str, summary: str, body: Schema, kinds: tuple[type, ...]) -> Schema:
    answer = {"description": "the document that --json prints", "headers": HEADERS, "content": content(kinds)}
    detail = [in_query(DETAIL, enum=list(DETAILS), default=FULL)] if name in SUMMARISED else []
    return {"post": operation(name, summary, answer, OF_QUESTIONS, parameters=detail, body=body)}


def _listing(path: str, kinds: tuple[type, ...], summary: str, query: tuple[str, ...]) -> Schema:
    return operation(
        path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        summary,
        {"content": content(kinds)},
        OF_LISTS if path.startswith("/v1/") else OF_SERVER,
        parameters=[*([in_path("name", minLength=1)] if "{name}" in path else []), *map(in_query, query)],
    )


def _options() -> Schema:
    return operation(
        "options",
        "the options of a verb, each with its help, unit, default and choices",
        {"content": {"application/json": {"schema": {"type": "array", "items": ref("OptionRow")}}}},
        (400, 403, 404),
        parameters=[in_path("verb", enum=list(VERBS))],
    )


def _metrics() -> Schema:
    text = {"text/plain": {"schema": {"type": "string"}}}
    answer = {"description": "text of Prometheus", "content": text}
    return operation("metrics", "counts of requests, for Prometheus", answer, OF_SERVER)


@cache
def _encoded() -> bytes:
    return encode(document())


@get("/schema/openapi.json", sync_to_thread=True)
def schema() -> Response[bytes]:
    return Response(_encoded(), media_type=MediaType.JSON, headers={"Cache-Control": "no-cache"})


ROUTES = [schema]
