"""Rows of kind `params`: the published parameter count against ours, from the row's own hyper-parameters."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from tonnage.architectures import Model, build
from tonnage.kernel.errors import TonnageError, UnknownName
from tonnage.validation import _hparams
from tonnage.validation._predictions import Prediction
from tonnage.validation._rows import Row


def predict(row: Row, references: Mapping[str, Row]) -> list[Prediction]:
    """The count by the row's hyper-parameters, else those of the params row that it refers to, else the catalogue's model."""
    also = [Prediction(skipped=f"{measured.metric} is not predicted yet") for measured in row.also]
    try:
        model = model_of(row, references)
    except TonnageError as error:
        return [Prediction(skipped=str(error)), *also]
    return [Prediction(value=float(counted(model, row))), *also]


def model_of(
    row: Row, references: Mapping[str, Row], unsaid: Mapping[str, Any] = {}, layers: int | None = None
) -> Model:
    """The model that a row is about. `unsaid`: what its source's models have where the row's own hyper-parameters do not say it;
    `layers`: as many of them as the run had, which the row says elsewhere."""
    hparams = row.model.get("hparams")
    count = layers if layers is not None else row.model.get("layers")
    shown = {} if count is None else {"layers": count}
    name = str(row.model.get("id") or row.model.get("name") or row.model.get("ref") or row.id)
    if usable(hparams):
        return build(_hparams.config({**unsaid, **hparams, **shown}, row.source_name), name, f"row {row.id}")
    referred = references.get(str(row.model.get("ref", "")))
    if referred is not None and usable(referred.model.get("hparams")):
        return build(
            _hparams.config({**referred.model["hparams"], **shown}, referred.source_name), name, f"row {referred.id}"
        )
    return _shortened(_from_catalogue(name), count)


def _shortened(model: Model, layers: Any) -> Model:
    """The same model with fewer layers, as a profiler runs it."""
    if layers is None or layers == model.num_layers:
        return model
    return build({**model.config, "num_hidden_layers": layers}, f"{model.name}, {layers} layers", model.source)


def usable(hparams: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether hyper-parameters say more than a remark."""
    return isinstance(hparams, Mapping) and any(key in hparams for key in ("hidden", "hidden_size"))


def counted(model: Model, row: Row) -> int:
    """What the row counted: a released checkpoint holds the multi-token-prediction layers that its config names."""
    return model.num_parameters(drafts=True)


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
