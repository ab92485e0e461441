"""The model of a row: the catalogue's where it has the sizes that the row says, else the row's own dimensions."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from rows import hparams
from rows.params import usable
from rows.serving_speed.run import Run
from rows.source import Row
from rows.speed.models import catalogued, plain_name, same_sizes
from tonnage.architectures import Model, build
from tonnage.kernel.errors import MissingDatum, shown


def model_of(run: Run, references: Mapping[str, Row]) -> Model:
    """A TonnageError where the row names no model that is known, and does not describe it."""
    found = _bare(run, references)
    if run.quantization is None:
        return found
    return _stored_as(found, json.dumps(run.quantization))


@lru_cache(maxsize=64)
def _stored_as(model: Model, quantization: str) -> Model:
    """The same model as another checkpoint stores it; rows of one checkpoint share one object, and what is worked
    out for it.
    """
    made = build({**model.config, "quantization_config": json.loads(quantization)}, model.name)
    return replace(made, source=f"{model.source}, stored as {quantization}")


def _bare(run: Run, references: Mapping[str, Row]) -> Model:
    row = run.row.model
    names = [str(name) for name in (run.row.config.get("hf_model"), row.get("ref"), row.get("name")) if name]
    config = _described(run, references)
    for name in names:
        found = catalogued(name) or catalogued(plain_name(name))
        if found is not None and (config is None or same_sizes(found, config)):
            return found
    if config is not None:
        return build(config, (names or [run.row.id])[0], f"row {run.row.id}")
    raise MissingDatum(f"no model is called {shown(names[0] if names else '')}, and the row does not describe it")


def _described(run: Run, references: Mapping[str, Row]) -> dict[str, Any] | None:
    """The config that a row's hyper-parameters are, or those of the row that it refers to."""
    said = run.row.model.get("hparams")
    referred = references.get(str(run.row.model.get("ref", "")))
    if not usable(said) and referred is not None:
        said = referred.model.get("hparams")
    if not usable(said):
        return None
    return hparams.config(said, run.row.source_name)
