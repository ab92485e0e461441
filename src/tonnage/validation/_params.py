"""Rows of kind `params`: the published parameter count against ours, from the row's own hyper-parameters."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from tonnage.architectures import Model, build
from tonnage.errors import TonnageError
from tonnage.validation import _hparams
from tonnage.validation._rows import Row

Prediction = tuple[float | None, str | None]  # predicted, or the reason why not


def predict(row: Row, references: Mapping[str, Row]) -> Prediction:
    """The count by the row's hyper-parameters, else those of the params row that it refers to, else the catalogue's model."""
    try:
        model = model_of(row, references)
    except TonnageError as error:
        return None, str(error)
    return float(counted(model, row)), None


def model_of(row: Row, references: Mapping[str, Row]) -> Model:
    """The model that a row is about."""
    hparams = row.model.get("hparams")
    name = str(row.model.get("id") or row.model.get("name") or row.model.get("ref") or row.id)
    if usable(hparams):
        return build(_hparams.config(hparams, row.source_name), name, f"row {row.id}")
    referred = references.get(str(row.model.get("ref", "")))
    if referred is not None and usable(referred.model.get("hparams")):
        return build(_hparams.config(referred.model["hparams"], referred.source_name), name, f"row {referred.id}")
    return _from_catalogue(name)


def usable(hparams: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether hyper-parameters say more than a remark."""
    return isinstance(hparams, Mapping) and any(key in hparams for key in ("hidden", "hidden_size"))


def counted(model: Model, row: Row) -> int:
    """What the row counted: a released checkpoint holds the multi-token-prediction layers that its config names."""
    return model.num_parameters(drafts=True)


def _from_catalogue(name: str) -> Model:
    from tonnage.models import read

    return read(name, offline=True)
