"""What a question is about: the model and the machine, by name or field by field; and the model's parameter count."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tonnage.architectures import Model, build
from tonnage.catalogue import accelerator, node
from tonnage.catalogue.clusters import cluster as cluster_named
from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.registry import nearest
from tonnage.spec import Accelerator, Cluster, Memory, Node
from tonnage.validation.rows import Measured, Prediction, Row, predictions

MODEL_KEYS = ("like", "name", "config", "dtype", "quantization")
MACHINE_KEYS = ("accelerator", "nodes", "per_node", "node")
T = TypeVar("T")
UNNAMED = "an accelerator that is not named"
UNNAMED_MEMORY = 80 << 30


class RowMachine(msgspec.Struct, frozen=True, eq=False):
    """A cluster, and whether the question says how much memory its accelerator has."""

    cluster: Cluster
    is_known: bool


def model_of(question: Mapping[str, Any]) -> Model:
    """The question's model: a name of the catalogue, or a mapping with `like`, `name`, `config`, `dtype`,
    `quantization`.

    `config` holds fields of config.json: all of them, or those that differ from the model that `like` names.
    """
    said = question.get("model")
    if isinstance(said, str):
        return _named(said)
    if not isinstance(said, Mapping):
        raise InvalidInput(
            "question.model must be a name, or a mapping of {model_keys}. Got {said}.",
            model_keys=listed(MODEL_KEYS),
            said=shown(said),
        )
    _check_keys("question.model", said, MODEL_KEYS)
    return _described(json.dumps(said, sort_keys=True, default=str))


def _named(name: str) -> Model:
    from tonnage.models import read

    return read(name, offline=True)


@lru_cache(maxsize=512)
def _described(text: str) -> Model:
    """The same object for equal descriptions: what is worked out of a model is kept with it."""
    said = json.loads(text)
    base = _named(str(said["like"])) if said.get("like") else None
    fields = said.get("config", {})
    if not isinstance(fields, Mapping) or not (fields or base):
        raise InvalidInput(
            "question.model.config must map fields of config.json to values. Got {fields}.", fields=shown(fields)
        )
    if base is None or fields:
        own = base.config if base else {}
        made = build(
            {**own, **fields}, str(said.get("name") or (base.name if base else "model")), "question.model.config"
        )
    else:
        made = replace(base, name=str(said["name"])) if said.get("name") else base
    changes = {name: said[name] for name in ("dtype", "quantization") if said.get(name) is not None}
    return replace(made, **changes)


def machine_of(question: Mapping[str, Any]) -> RowMachine:
    """The question's machine: text as `--on` takes it, or a mapping with `accelerator`, `nodes`, `per_node` and `node`.

    `accelerator` and `node` are names of the catalogue, or mappings of the fields in which they differ from the one
    that `like` names.
    Without an accelerator it is one of NVIDIA's whose memory nobody knows.
    """
    said = question.get("on", {})
    if isinstance(said, str):
        return RowMachine(cluster_named(said), True)
    if not isinstance(said, Mapping):
        raise InvalidInput(
            "question.on must be a name, or a mapping of {machine_keys}. Got {said}.",
            machine_keys=listed(MACHINE_KEYS),
            said=shown(said),
        )
    _check_keys("question.on", said, MACHINE_KEYS)
    return _machine(json.dumps(said, sort_keys=True, default=str))


@lru_cache(maxsize=2048)
def _machine(text: str) -> RowMachine:
    said = json.loads(text)
    counts = {name: said.get(name, 1) for name in ("nodes", "per_node")}
    for name, count in counts.items():
        if type(count) is not int or not 1 <= count <= 10_000_000:
            raise InvalidInput(
                "question.on.{name} must be a whole number from 1 on. Got {count}.", name=name, count=shown(count)
            )
    chip = _accelerator(said["accelerator"]) if "accelerator" in said else _unnamed()
    domain = _node(said["node"]) if said.get("node") is not None else None
    made = Cluster(accelerator=chip, num_nodes=counts["nodes"], accelerators_per_node=counts["per_node"], node=domain)
    return RowMachine(made, "accelerator" in said)


def _unnamed() -> Accelerator:
    return Accelerator(
        name=UNNAMED,
        vendor="NVIDIA",
        kind="gpu",
        generation="",
        memory=Memory(nominal_bytes=UNNAMED_MEMORY),
        dense_flops={},
    )


def _accelerator(said: Any) -> Accelerator:
    if isinstance(said, str):
        return accelerator(said)
    return _changed(said, "question.on.accelerator", Accelerator, accelerator)


def _node(said: Any) -> Node:
    if isinstance(said, str):
        return node(said)
    return _changed(said, "question.on.node", Node, node)


def _changed(said: Any, where: str, form: Any, named: Any) -> Any:
    """The one that `like` names with the fields that stand beside it; without `like`, those alone."""
    if not isinstance(said, Mapping):
        raise InvalidInput("{where} must be a name, or a mapping of fields. Got {said}.", where=where, said=shown(said))
    _check_keys(where, said, ("like", *form.__struct_fields__))
    fields = {name: value for name, value in said.items() if name != "like"}
    base = builtins(named(str(said["like"]))) if "like" in said else {}
    try:
        return msgspec.convert({**base, **fields}, form)
    except (msgspec.ValidationError, OverflowError) as error:
        raise InvalidInput(joined(": ", (where, str(error)[:300]))) from None


def _check_keys(where: str, said: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in said:
        if name not in known:
            near = nearest(str(name), known)
            hint = (
                Message("Did you mean {near!r}?", near=near[0])
                if near
                else Message("Known: {names}.", names=listed(known))
            )
            raise InvalidInput("{where} has no {name}. {hint}", where=where, name=shown(str(name)), hint=hint)


def converted(fields: Mapping[str, Any], form: type[T]) -> T:
    """The options of a question as the type that holds them; InvalidInput names the one whose value is of another
    type."""
    try:
        return msgspec.convert(dict(fields), form)
    except msgspec.ValidationError as error:
        raise InvalidInput("question: {error}", error=str(error)[:300]) from None


def predict_parameters(row: Row) -> list[Prediction]:
    """The count of the question's model: a released checkpoint holds the multi-token-prediction layers that its
    config names."""

    def predict(measured: Measured, count: float) -> Prediction:
        return Prediction(value=count, notes=row.notes)

    return predictions(row, lambda: float(model_of(row.question).num_parameters(drafts=True)), predict)
