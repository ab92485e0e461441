"""GET: the catalogues, the formulas and the words, and what the server says of itself."""

from functools import cache
from typing import Any
from urllib.parse import unquote

from litestar import MediaType, Request, Response, get
from litestar.params import FromPath

from tonnage.documents.document import encode
from tonnage.documents.explain import FormulaDocument, WordDocument
from tonnage.estimate.bands.part_errors import part_errors
from tonnage.interchange.formats import writable
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.version import __version__
from tonnage.web.answer import Refusal
from tonnage.web.metrics import counted
from tonnage.web.questions import answer_to, responded
from tonnage.web.schema.documents import FormulasDocument, GlossaryDocument, HealthDocument, ServerDocument
from tonnage.web.settings import Settings
from tonnage.web.words import LANG

Asking = Request[Any, Any, Any]
PRICES = ("provider", "kind", "region", "term", "currency", "exchange_rate", "as_of")  # options of `tonnage prices`
MODEL = ("revision", LANG)


async def _listed(request: Asking, verb: str, name: str | None) -> Response[bytes]:
    """The document of a verb about one name, or about all. A name that nobody knows is not found."""
    question: dict[str, Any] = dict(request.query_params)
    if name is not None:
        question["model" if verb == "models" else "name"] = unquote(name).removeprefix("/")
    try:
        return responded(await answer_to(request, verb, question))
    except Refusal as refused:
        if refused.kind == UnknownName.__name__ and name is not None:
            nowhere = Refusal(404, refused.kind, refused.message)
            nowhere.language = refused.language
            raise nowhere from None
        raise


@get("/v1/models")
async def models(request: Asking) -> Response[bytes]:
    return await _listed(request, "models", None)


@get("/v1/models/{name:path}", query=MODEL)
async def model(request: Asking, name: FromPath[str]) -> Response[bytes]:
    return await _listed(request, "models", name)


@get("/v1/accelerators")
async def accelerators(request: Asking) -> Response[bytes]:
    return await _listed(request, "accelerators", None)


@get("/v1/accelerators/{name:str}")
async def accelerator(request: Asking, name: FromPath[str]) -> Response[bytes]:
    return await _listed(request, "accelerators", name)


@get("/v1/prices", query=PRICES)
async def prices(request: Asking) -> Response[bytes]:
    return await _listed(request, "prices", None)


@get("/v1/prices/{name:str}", query=PRICES)
async def price(request: Asking, name: FromPath[str]) -> Response[bytes]:
    if name.strip().lower() == "refresh":  # of the command line: reads the network, and writes a file
        raise Refusal(404, "UnknownName", "prices are refreshed on the command line: tonnage prices refresh.")
    return await _listed(request, "prices", name)


@get("/v1/formulas", sync_to_thread=True)
def formulas() -> Response[bytes]:
    return _json(_formulas())


@get("/v1/glossary", sync_to_thread=True)
def glossary() -> Response[bytes]:
    return _json(_glossary())


@get("/v1/server", sync_to_thread=False)
def server(request: Asking) -> Response[bytes]:
    settings: Settings = request.app.state.settings
    reach, limits = settings.reach, settings.limits
    return _json(
        encode(
            ServerDocument(
                version=__version__,
                hubs=reach.hubs,
                files=reach.files is not None,
                local=reach.machine,
                saves=request.app.state.store.saves,
                body_bytes=limits.body_bytes,
                answer_seconds=limits.answer_seconds,
                part_errors=part_errors(),
                exports=writable(),
            )
        )
    )


@get("/healthz", sync_to_thread=False)
def health() -> Response[bytes]:
    return _json(encode(HealthDocument(status="ok", version=__version__)))


@get("/metrics", sync_to_thread=False)
def metrics(request: Asking) -> Response[str]:
    return Response(
        request.app.state.metrics.text() + counted(request.app.state.jobs.board),
        media_type="text/plain; version=0.0.4",  # the framework adds the charset
    )


@cache
def _formulas() -> bytes:
    from tonnage.verbs.explain import explain, formula_names

    documents = [explain(name) for name in formula_names()]
    return encode(
        FormulasDocument(formulas=[document for document in documents if isinstance(document, FormulaDocument)])
    )


@cache
def _glossary() -> bytes:
    from tonnage.kernel.glossary import SYMBOLS, WORDS
    from tonnage.verbs.explain import explain, letter_of, load_formulas

    load_formulas()
    words = [explain(name) for name in WORDS]
    return encode(
        GlossaryDocument(
            letters=[letter_of(entry) for entry in SYMBOLS.values()],
            words=[entry for entry in words if isinstance(entry, WordDocument)],
        )
    )


def _json(body: bytes) -> Response[bytes]:
    return Response(body, media_type=MediaType.JSON, headers={"Cache-Control": "no-cache"})


ROUTES = [models, model, accelerators, accelerator, prices, price, formulas, glossary, server, health, metrics]
