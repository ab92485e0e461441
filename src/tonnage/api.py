"""The Python face: the same questions and documents as the command line, with plain arguments."""

from typing import Any

from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.estimate import answers
from tonnage.estimate.answers import Answer
from tonnage.estimate.plans import TrainingOptions
from tonnage.estimate.serving_answer import ServingOptions
from tonnage.models import read
from tonnage.registry import unknown
from tonnage.spec import Cluster


def train(model: str | Model, on: str | Cluster, *, reserve_bytes: int = 0, **options: Any) -> Answer:
    """Does this training run fit? `options` are those of `tonnage train` (estimate.plans.TrainingOptions), in base units."""
    return answers.train(_model(model), _cluster(on), _options(TrainingOptions, options), reserve_bytes=reserve_bytes)


def serve(model: str | Model, on: str | Cluster, *, reserve_bytes: int = 0, **options: Any) -> Answer:
    """Does this model serve these requests? `options` are those of `tonnage serve` (ServingOptions), in base units."""
    return answers.serve(_model(model), _cluster(on), _options(ServingOptions, options), reserve_bytes=reserve_bytes)


def _model(model: str | Model) -> Model:
    return model if isinstance(model, Model) else read(model)


def _cluster(on: str | Cluster) -> Cluster:
    return on if isinstance(on, Cluster) else cluster(on)


def _options(form: Any, options: dict[str, Any]) -> Any:
    for name in options:
        if name not in form.__struct_fields__:
            raise unknown("option", name, form.__struct_fields__)
    return form(**options)
