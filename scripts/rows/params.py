"""Rows of kind `params`: the published parameter count and the model that the row's hyper-parameters are."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from rows import hparams
from rows.describe import model
from rows.reading import Reading
from rows.source import Measured, Row
from tonnage.architectures import Model, build
from tonnage.kernel.errors import MissingDatum, UnknownName


def read(row: Row, references: Mapping[str, Row]) -> Reading:
    """The model by the row's hyper-parameters, else those of the params row that it refers to, else the catalogue's."""
    question = {"model": model(model_of(row, references))}
    return Reading(verb="models", question=question, figure=lambda measured: _figure(measured, row))


def _figure(measured: Measured, row: Row) -> dict[str, Any]:
    if measured is not row.measured:
        raise MissingDatum(f"{measured.metric} is not predicted yet")
    return {"quantity": "parameters", "unit": "count"}


def model_of(
    row: Row, references: Mapping[str, Row], unsaid: Mapping[str, Any] = {}, layers: int | None = None
) -> Model:
    """The model that a row is about. `unsaid`: what its source's models have where the row's own hyper-parameters do
    not say it;
    `layers`: as many of them as the run had, which the row says elsewhere."""
    said = row.model.get("hparams")
    count = layers if layers is not None else row.model.get("layers")
    shown = {} if count is None else {"layers": count}
    name = str(row.model.get("id") or row.model.get("name") or row.model.get("ref") or row.id)
    if usable(said):
        return build(hparams.config({**unsaid, **said, **shown}, row.source_name), name, f"row {row.id}")
    referred = references.get(str(row.model.get("ref", "")))
    if referred is not None and usable(referred.model.get("hparams")):
        return build(
            hparams.config({**referred.model["hparams"], **shown}, referred.source_name), name, f"row {referred.id}"
        )
    return _shortened(_from_catalogue(name), count)


def _shortened(model: Model, layers: Any) -> Model:
    """The same model with fewer layers, as a profiler runs it."""
    if layers is None or layers == model.num_layers:
        return model
    return build({**model.config, "num_hidden_layers": layers}, f"{model.name}, {layers} layers", model.source)


def usable(said: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether hyper-parameters say more than a remark."""
    return isinstance(said, Mapping) and any(key in said for key in ("hidden", "hidden_size"))


def _from_catalogue(name: str) -> Model:
    """The catalogue's model; a remark in brackets behind a name is none of it ("mt0-xxl (12B)")."""
    from tonnage.models import read

    bare = name.partition(" (")[0].strip()
    try:
        return read(name, offline=True)
    except UnknownName:
        if bare == name or not bare:
            raise
        return read(bare, offline=True)
