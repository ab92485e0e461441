"""Rows of verb `collectives`: bandwidth and time of collectives and of single links, beside what the network model
gives."""

import re
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from tonnage.estimate.hardware.links import Links, links
from tonnage.estimate.hardware.network import PASSES, Algorithm, Collective, Network
from tonnage.formulas import network as f
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, shown
from tonnage.spec import Link
from tonnage.validation.quantities import SECONDS
from tonnage.validation.rows import Measured, Prediction, Row, predictions
from tonnage.validation.subjects import machine_of

OF_LINKS = ("copy_bandwidth", "effective_bandwidth", "memory_copy_bandwidth")


class Collected(msgspec.Struct, frozen=True, eq=False):
    """Seconds of a collective of `size` bytes, and what busbw multiplies size over seconds with."""

    seconds: float
    size: float
    factor: float


def predict(row: Row) -> list[Prediction]:
    """A prediction for the row's figure, and one for each of those under `also`."""
    return predict_with(row, links())


def predict_with(row: Row, constants: Links) -> list[Prediction]:
    """A prediction for each figure of the row, with these constants."""

    def predict(measured: Measured, collective: Collected | None) -> Prediction:
        return _predicted(measured, row, collective, constants)

    return predictions(row, lambda: None if is_link(row) else collected(row.question, constants), predict)


def is_link(row: Row) -> bool:
    """Whether a row is about a link alone, not about a collective."""
    return "collective" not in row.question


def source_of(row: Row) -> str:
    """The document that a row's figure is from, without the place inside it; of logs that stand somewhere on GitHub,
    the machine."""
    document = re.split(r"[,;(]| nccl_perf| network/| SHARP| issue", row.source)[0].strip()
    return f"log of {row.labels.get('hardware')}" if document.startswith("GitHub") else document


def collected(question: Mapping[str, Any], constants: Links) -> Collected:
    """What the network model gives for a question."""
    kind: Collective = _one_of(question, "collective", tuple(PASSES))
    cluster = machine_of(question).cluster
    if cluster.size < 2:
        raise InvalidInput("question.on must have 2 accelerators or more: one rank sends nothing to others.")
    size = question.get("payload_bytes")
    if type(size) is not int or size < 1:
        raise InvalidInput(f"question.payload_bytes must be a whole number from 1 on. Got {shown(size)}.")
    algorithm: Algorithm | None = (
        _one_of(question, "algorithm", get_args(Algorithm)) if "algorithm" in question else None
    )
    collective = Network(cluster, constants=constants).collective(kind, size, cluster.size, algorithm=algorithm)
    factor = float(f.ring_bytes.evaluate(M=PASSES[kind], n=cluster.size))
    return Collected(float(collective.seconds), float(size), factor)


def _one_of(question: Mapping[str, Any], name: str, known: tuple[str, ...]) -> Any:
    value = question.get(name)
    if value not in known:
        raise InvalidInput(f"question.{name} must be one of {', '.join(sorted(known))}. Got {shown(value)}.")
    return value


def _predicted(measured: Measured, row: Row, collective: Collected | None, constants: Links) -> Prediction:
    try:
        if measured.quantity in OF_LINKS:
            return _of_link(row, measured, constants)
        if collective is None:
            raise MissingDatum(f"{shown(measured.name)} needs question.collective")
        return _in_quantity(collective, measured, row.notes)
    except TonnageError as error:
        return Prediction(skipped=str(error))


def _in_quantity(collective: Collected, measured: Measured, notes: tuple[str, ...]) -> Prediction:
    if measured.quantity == "collective_time":
        return Prediction(value=collective.seconds * (1 / SECONDS[measured.unit]), notes=notes)
    factor = collective.factor if measured.quantity == "bus_bandwidth" else 1.0
    return Prediction(value=factor * collective.size / collective.seconds / measured.unit_size, notes=notes)


def _of_link(row: Row, measured: Measured, constants: Links) -> Prediction:
    """A copy over one link, or inside a memory."""
    question, unit = row.question, measured.unit_size
    if measured.quantity == "memory_copy_bandwidth":
        memory = machine_of(question).cluster.accelerator.memory.bytes_per_second
        if memory is None:
            raise MissingDatum("no source gives the memory's bandwidth")
        return Prediction(value=memory * constants.local / unit, notes=row.notes)
    try:
        link = msgspec.convert(question.get("link"), Link)
    except msgspec.ValidationError as error:
        raise InvalidInput("question.link: {error}", error=str(error)[:300]) from None
    kind = constants.of(link, inside=not question.get("between_nodes", False))
    share = kind.share if measured.quantity == "effective_bandwidth" else kind.direct
    ways = question.get("ways", 1)
    if ways not in (1, 2):
        raise InvalidInput("question.ways must be 1 or 2. Got {ways}.", ways=shown(ways))
    return Prediction(value=ways * link.bytes_per_second * share / unit, notes=(link.name, *row.notes))
