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
    written = question.get("model")
    if isinstance(written, str):
        return _named(written)
    if not isinstance(written, Mapping):
        raise InvalidInput(
            "question.model must be a name, or a mapping of {model_keys}. Got {said}.",
            model_keys=listed(MODEL_KEYS),
            said=shown(written),
        )
    _check_keys("question.model", written, MODEL_KEYS)
    return _described(json.dumps(written, sort_keys=True, default=str))


def _named(name: str) -> Model:
    from tonnage.models import read

    return read(name, offline=True)


@lru_cache(maxsize=512)
def _described(text: str) -> Model:
    """The same object for equal descriptions: what is worked out of a model is kept with it."""
    fields_written = json.loads(text)
    base = _named(str(fields_written["like"])) if fields_written.get("like") else None
    fields = fields_written.get("config", {})
    if not isinstance(fields, Mapping) or not (fields or base):
        raise InvalidInput(
            "question.model.config must map fields of config.json to values. Got {fields}.", fields=shown(fields)
        )
    if base is None or fields:
        own = base.config if base else {}
        model = build(
            {**own, **fields},
            str(fields_written.get("name") or (base.name if base else "model")),
            "question.model.config",
        )
    else:
        model = replace(base, name=str(fields_written["name"])) if fields_written.get("name") else base
    changes = {name: fields_written[name] for name in ("dtype", "quantization") if fields_written.get(name) is not None}
    return replace(model, **changes)


def machine_of(question: Mapping[str, Any]) -> RowMachine:
    """The question's machine: text as `--on` takes it, or a mapping with `accelerator`, `nodes`, `per_node` and `node`.

    `accelerator` and `node` are names of the catalogue, or mappings of the fields in which they differ from the one
    that `like` names.
    Without an accelerator it is one of NVIDIA's whose memory nobody knows.
    """
    written = question.get("on", {})
    if isinstance(written, str):
        return RowMachine(cluster_named(written), True)
    if not isinstance(written, Mapping):
        raise InvalidInput(
            "question.on must be a name, or a mapping of {machine_keys}. Got {said}.",
            machine_keys=listed(MACHINE_KEYS),
            said=shown(written),
        )
    _check_keys("question.on", written, MACHINE_KEYS)
    return _machine(json.dumps(written, sort_keys=True, default=str))


@lru_cache(maxsize=2048)
def _machine(text: str) -> RowMachine:
    written = json.loads(text)
    counts = {name: written.get(name, 1) for name in ("nodes", "per_node")}
    for name, count in counts.items():
        if type(count) is not int or not 1 <= count <= 10_000_000:
            raise InvalidInput(
                "question.on.{name} must be a whole number from 1 on. Got {count}.", name=name, count=shown(count)
            )
    chip = _accelerator(written["accelerator"]) if "accelerator" in written else _unnamed()
    domain = _node(written["node"]) if written.get("node") is not None else None
    cluster = Cluster(
        accelerator=chip, num_nodes=counts["nodes"], accelerators_per_node=counts["per_node"], node=domain
    )
    return RowMachine(cluster, "accelerator" in written)


def _unnamed() -> Accelerator:
    return Accelerator(
        name=UNNAMED,
        vendor="NVIDIA",
        kind="gpu",
        generation="",
        memory=Memory(nominal_bytes=UNNAMED_MEMORY),
        dense_flops={},
    )


def _accelerator(written: Any) -> Accelerator:
    if isinstance(written, str):
        return accelerator(written)
    return _changed(written, "question.on.accelerator", Accelerator, accelerator)


def _node(written: Any) -> Node:
    if isinstance(written, str):
        return node(written)
    return _changed(written, "question.on.node", Node, node)


def _changed(written: Any, where: str, form: Any, named: Any) -> Any:
    """The one that `like` names with the fields that stand beside it; without `like`, those alone."""
    if not isinstance(written, Mapping):
        raise InvalidInput(
            "{where} must be a name, or a mapping of fields. Got {said}.", where=where, said=shown(written)
        )
    _check_keys(where, written, ("like", *form.__struct_fields__))
    fields = {name: value for name, value in written.items() if name != "like"}
    base = builtins(named(str(written["like"]))) if "like" in written else {}
    try:
        return msgspec.convert({**base, **fields}, form)
    except (msgspec.ValidationError, OverflowError) as error:
        raise InvalidInput(joined(": ", (where, str(error)[:300]))) from None


def _check_keys(where: str, written: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in written:
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
