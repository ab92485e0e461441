"""Rows of kind `collective`: bandwidth and time of collectives and of single links, as logs and tables write them."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from rows.collectives.machines import machine_of, named_accelerator
from rows.describe import machine
from rows.reading import Reading
from rows.source import Measured, Row
from rows.training.config import Config
from tonnage.catalogue import accelerator, accelerator_names
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.spec import Cluster, Link

LARGE = 8 << 30  # bytes of a message whose row names no size: what such tests end with
ALGORITHMS = {"ring": "ring", "tree": "tree", "nvls": "in_network", "collnet": "in_network"}
KINDS = {
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "alltoall": "all_to_all",
}
_INFINIBAND = re.compile(r"\b(?:edr|hdr|ndr|xdr)(\d+)")
_NVLINK = re.compile(r"nvlink\s*(\d)")


def read(row: Row, references: Mapping[str, Row]) -> Reading:
    """What a row asks; a TonnageError that names what is in the way."""
    config = Config(row.config)
    labels = {"hardware": str(row.config.get("hardware"))}
    kind = _kind(config)
    if kind is None:
        return _of_link(row, config, labels)
    made = machine_of(config)
    if made.ranks < 2:
        raise InvalidInput("config.gpus must be 2 or more: one rank sends nothing to others.")
    size = config.size("payload_bytes", "bytes", "size")
    algorithm = ALGORITHMS.get(config.text("algo", "algorithm").lower())
    question = {
        "on": machine(made.cluster),
        "collective": kind,
        "payload_bytes": size or LARGE,
        **({"algorithm": algorithm} if algorithm else {}),
    }
    remarks = ("bandwidth is taken for busbw",) if row.measured.metric.lower() == "bandwidth" else ()
    guessed = {} if size else {"payload_bytes": "the row names no size of the message"}
    return Reading(
        verb="collectives",
        question=question,
        guessed=guessed,
        implied={"on": "; ".join(made.notes)} if made.notes else {},
        labels=labels,
        remarks=remarks,
        figure=_figure,
    )


def _kind(config: Config) -> str | None:
    """The collective, None for a row about a link alone."""
    said = config.text("collective", "op").lower().replace("-", "_")
    if said in ("", "p2p"):
        return None
    if said not in KINDS:
        raise InvalidInput(
            f"config.collective must be one of {', '.join(sorted(set(KINDS.values())))} or p2p. Got {shown(said)}."
        )
    return KINDS[said]


def _figure(measured: Measured) -> dict[str, Any]:
    """busbw and algbw in the unit's bytes a second, time and latency in its seconds."""
    metric, unit = measured.metric.lower(), measured.unit.lower()
    if metric in ("time", "latency"):
        word = unit.partition(" ")[0] or "us"
        if word not in ("us", "ms", "s"):
            raise MissingDatum(f"unit must be us, ms or s. Got {shown(measured.unit)}.")
        return {"quantity": "collective_time", "unit": word}
    names = {"busbw": "bus_bandwidth", "bandwidth": "bus_bandwidth", "algbw": "algorithm_bandwidth"}
    if metric not in names:
        raise MissingDatum(f"metric must be busbw, algbw, bandwidth, time or latency. Got {shown(metric)}.")
    return {"quantity": names[metric], "unit": _bandwidth(measured)}


def _bandwidth(measured: Measured) -> str:
    return "GiB/s" if "gib" in measured.unit.lower() else "GB/s"


def _of_link(row: Row, config: Config, labels: Mapping[str, str]) -> Reading:
    """A copy over one link, or inside a memory."""
    text = config.text("hardware").lower().replace("-", " ")
    said = f"{text} {row.measured.unit.lower()}"
    if row.measured.metric.lower() != "bandwidth":
        raise MissingDatum(f"metric of a link must be bandwidth. Got {shown(row.measured.metric)}.")
    ways = {"ways": 2} if "duplex" in said else {}
    if "local copy" in said:
        question: dict[str, Any] = {"on": machine(Cluster(accelerator=named_accelerator(text)), any_node=True)}
        name = "memory_copy_bandwidth"
    else:
        link, inside = _link(text)
        fields = {key: value for key, value in msgspec.to_builtins(link).items() if value or key == "bytes_per_second"}
        question = {"link": fields, **({} if inside else {"between_nodes": True}), **ways}
        name = "effective_bandwidth" if "effective" in said else "copy_bandwidth"

    def figure(measured: Measured) -> dict[str, Any]:
        if measured.metric.lower() != "bandwidth":
            raise MissingDatum(f"metric of a link must be bandwidth. Got {shown(measured.metric)}.")
        return {"quantity": name, "unit": _bandwidth(measured)}

    return Reading(verb="collectives", question=question, labels=labels, figure=figure)


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
