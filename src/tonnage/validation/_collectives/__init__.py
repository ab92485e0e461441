"""Rows of kind `collective`: bandwidth and time of collectives and of single links, beside what the network model gives."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.catalogue import accelerator, accelerator_names
from tonnage.estimate.hardware.links import Links, links
from tonnage.estimate.hardware.network import PASSES, Algorithm, Collective, Network
from tonnage.formulas import network as f
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, shown
from tonnage.spec import Link
from tonnage.validation._collectives._machines import machine_of, named_accelerator
from tonnage.validation._predictions import Prediction
from tonnage.validation._rows import Measured, Row
from tonnage.validation._training._config import Config

LARGE = 8 << 30  # bytes of a message whose row names no size: what such tests end with
ALGORITHMS: Mapping[str, Algorithm] = {"ring": "ring", "tree": "tree", "nvls": "in_network", "collnet": "in_network"}
KINDS: Mapping[str, Collective] = {
    "all_reduce": "all_reduce", "allreduce": "all_reduce", "all_gather": "all_gather", "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter", "reducescatter": "reduce_scatter", "all_to_all": "all_to_all", "alltoall": "all_to_all",
}  # fmt: skip
_INFINIBAND = re.compile(r"\b(?:edr|hdr|ndr|xdr)(\d+)")
_NVLINK = re.compile(r"nvlink\s*(\d)")


class Timed(Struct, frozen=True, eq=False):
    """Seconds of a collective of `size` bytes, and what busbw multiplies size over seconds with."""

    seconds: float
    size: float
    factor: float
    notes: tuple[str, ...] = ()


def predict(row: Row, references: Mapping[str, Row]) -> list[Prediction]:
    """A prediction for the row's metric, and one for each of those under `also`."""
    return predict_with(row, links())


def predict_with(row: Row, constants: Links) -> list[Prediction]:
    """The same, with these constants."""
    config = Config(row.config)
    every = (row.measured, *row.also)
    try:
        if _kind(config) is None:
            return [_of_link(config, measured, constants) for measured in every]
        made = timed(config, constants)
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [_in_metric(made, measured) for measured in every]


def is_link(row: Row) -> bool:
    """Whether a row is about a link alone, not about a collective."""
    return row.config.get("collective", "p2p") == "p2p"


def source_of(row: Row) -> str:
    """The document that a row's figure is from, without the place inside it; of logs that stand somewhere on GitHub, the machine."""
    document = re.split(r"[,;(]| nccl_perf| network/| SHARP| issue", row.source_name)[0].strip()
    return f"log of {row.config.get('hardware')}" if document.startswith("GitHub") else document


def _kind(config: Config) -> Collective | None:
    """The collective, None for a row about a link alone."""
    said = config.text("collective", "op").lower().replace("-", "_")
    if said in ("", "p2p"):
        return None
    if said not in KINDS:
        raise InvalidInput(f"config.collective must be one of {', '.join(sorted(PASSES))} or p2p. Got {shown(said)}.")
    return KINDS[said]


def timed(config: Config, constants: Links) -> Timed:
    """What the network model gives for a row."""
    kind, machine = _kind(config), machine_of(config)
    assert kind is not None
    if machine.ranks < 2:
        raise InvalidInput("config.gpus must be 2 or more: one rank sends nothing to others.")
    size = config.size("payload_bytes", "bytes", "size") or LARGE
    said = f"a message of {LARGE} bytes" if not config.has("payload_bytes", "bytes", "size") else ""
    network = Network(machine.cluster, constants=constants)
    algorithm = ALGORITHMS.get(config.text("algo", "algorithm").lower())
    made = network.collective(kind, size, machine.ranks, algorithm=algorithm)
    factor = float(f.ring_bytes.evaluate(M=PASSES[kind], n=machine.ranks))
    return Timed(float(made.seconds), float(size), factor, (*machine.notes, *([said] if said else [])))


def _in_metric(made: Timed, measured: Measured) -> Prediction:
    """busbw and algbw in the unit's bytes a second, time and latency in its seconds."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    if metric in ("time", "latency"):
        scale = {"us": 1e6, "ms": 1e3, "s": 1.0, "": 1e6}.get(unit.partition(" ")[0])
        if scale is None:
            return Prediction(skipped=f"unit must be us, ms or s. Got {shown(measured.unit)}.")
        return Prediction(value=made.seconds * scale, notes=made.notes)
    factor = {"busbw": made.factor, "bandwidth": made.factor, "algbw": 1.0}.get(metric)
    if factor is None:
        return Prediction(skipped=f"metric must be busbw, algbw, bandwidth, time or latency. Got {shown(metric)}.")
    notes = made.notes if metric != "bandwidth" else (*made.notes, "bandwidth is taken for busbw")
    return Prediction(value=factor * made.size / made.seconds / _bytes(measured), notes=notes)


def _bytes(measured: Measured) -> float:
    return float(1 << 30) if "gib" in measured.unit.lower() else 1e9


def _of_link(config: Config, measured: Measured, constants: Links) -> Prediction:
    """A copy over one link, or inside of a memory."""
    text = config.text("hardware").lower().replace("-", " ")
    said = f"{text} {measured.unit.lower()}"
    if measured.metric.lower() != "bandwidth":
        return Prediction(skipped=f"metric of a link must be bandwidth. Got {shown(measured.metric)}.")
    if "local copy" in said:
        memory = named_accelerator(text).memory.bytes_per_second
        if memory is None:
            raise MissingDatum("no source gives the memory's bandwidth")
        return Prediction(value=memory * constants.local / _bytes(measured))
    link, inside = _link(text)
    kind = constants.of(link, inside=inside)
    share = kind.share if "effective" in said else kind.direct
    ways = 2 if "duplex" in said else 1
    return Prediction(value=ways * link.bytes_per_second * share / _bytes(measured), notes=(link.name,))


def _link(text: str) -> tuple[Link, bool]:
    """The link that a text names, and whether it is inside of a node."""
    if found := _INFINIBAND.search(text):
        return Link(name="InfiniBand", bytes_per_second=int(found[1]) * 1e9 / 8), False
    if "host" in text or "h2d" in text or "d2h" in text:
        link = named_accelerator(text).host_link
    else:
        link = _scale_up(text)
    if link is None:
        raise MissingDatum(f"no source gives the link of {shown(text)}")
    return link, True


def _scale_up(text: str) -> Link | None:
    """The link of the accelerator that is named; of a generation alone, the widest that was sold."""
    try:
        return named_accelerator(text).scale_up
    except MissingDatum:
        found = _NVLINK.search(text)
        if not found:
            raise
    every: list[Any] = [accelerator(name).scale_up for name in accelerator_names()]
    return max(
        (link for link in every if link and link.name == f"NVLink {found[1]}"),
        key=lambda link: link.bytes_per_second,
        default=None,
    )
