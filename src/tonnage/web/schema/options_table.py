"""GET /v1/options/VERB: the options of a verb as a table, for a page that draws an input for each."""

from functools import cache

from litestar import MediaType, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.registry import unknown
from tonnage.question.option import names_in
from tonnage.question.verbs import form_of
from tonnage.web.schema.documents import OptionRow

VERBS = ("train", "serve")


def table(verb: str) -> list[OptionRow]:
    """Every option that is part of a question."""
    if verb not in VERBS:
        raise unknown("verb with a table of options", verb, VERBS)
    form = form_of(verb)
    return [
        OptionRow(
            name=option.name,
            help=option.help,
            unit=option.unit,
            default=option.default,
            group=form.titles[option.name],
            open=bool(option.known),
            kind="switch" if option.kind == "switch" else "text",
            choices=list(names_in(option.choices or option.known)),
        )
        for option in form.of_face("json").values()
        if not option.alone
    ]


@cache
def _encoded(verb: str) -> bytes:
    return encode(table(verb))


@get("/v1/options/{verb:str}", sync_to_thread=False)
def options(verb: FromPath[str]) -> Response[bytes]:
    try:
        body = _encoded(verb)
    except UnknownName as error:
        raise NotFoundException(str(error)) from None
    return Response(body, media_type=MediaType.JSON, headers={"Cache-Control": "no-cache"})


ROUTES = [options]
