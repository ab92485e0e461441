"""GET /v1/options/VERB: the options of a verb as a table, for a page that draws an input for each."""

from collections.abc import Iterable
from functools import cache

import msgspec
from litestar import MediaType, Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from tonnage.estimate.load import options as load_options
from tonnage.estimate.money import bill
from tonnage.estimate.options import training_method
from tonnage.estimate.options.plans import ATTENTION
from tonnage.estimate.plan import schedule
from tonnage.estimate.step import objective
from tonnage.fields import fields
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.registry import unknown
from tonnage.numerics.optimizers import OPTIMIZERS
from tonnage.numerics.precisions import PRECISIONS, TRAINING_RECIPES
from tonnage.runtimes import serving_runtimes, training_runtimes
from tonnage.web.documents import OptionRow

VERBS = ("train", "serve")
# Names that an option takes and nothing else; in OPEN: beside other spellings, or as the engine has them.
CHOICES: dict[str, Iterable[str]] = {
    "attention": ATTENTION,
    "engine": serving_runtimes(),
    "method": training_method.METHODS,
    "objective": objective.OBJECTIVES,
    "optimizer": OPTIMIZERS,
    "percentile": load_options.PERCENTILES,
    "pipeline_schedule": schedule.SCHEDULES,
    "precision": TRAINING_RECIPES,
    "price_kind": bill.KINDS,
    "recompute": ("none", "selective", "selective-op", "full"),
    "runtime": training_runtimes(),
}
OPEN: dict[str, Iterable[str]] = {
    "base_weights": ("nf4", "nf4-double", "fp4", "fp4-double", "int8"),
    "kv_cache": ("auto", "bf16", "fp8", "fp8_e5m2", "nvfp4", "int8", "int4"),
    "weights": PRECISIONS,
}


def table(verb: str) -> list[OptionRow]:
    """Every option that is part of a question."""
    if verb not in VERBS:
        raise unknown("verb with a table of options", verb, VERBS)
    return [
        OptionRow(
            name=each.name, help=each.help, unit=each.unit, default=each.default, group=each.group, open=each.name in OPEN,
            kind="switch" if each.kind == "switch" else "text", choices=list(CHOICES.get(each.name, OPEN.get(each.name, ()))),
        )
        for each in fields(verb).values()
        if not each.alone
    ]  # fmt: skip


@cache
def _encoded(verb: str) -> bytes:
    return msgspec.json.encode(table(verb))


@get("/v1/options/{verb:str}", sync_to_thread=False)
def options(verb: FromPath[str]) -> Response[bytes]:
    try:
        body = _encoded(verb)
    except UnknownName as error:
        raise NotFoundException(str(error)) from None
    return Response(body, media_type=MediaType.JSON, headers={"Cache-Control": "no-cache"})


ROUTES = [options]
