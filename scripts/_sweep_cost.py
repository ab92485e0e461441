"""What a sweep of many plans would take, from what small ones took: for docs/sweeps.md."""

import json
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import NamedTuple

from tonnage.formulas.cost import rent_usd
from tonnage.kernel.units import HOUR, counted, human

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results_sweep.json"
PLANS, CHUNK = 10**10, 65_536
NODES = (1, 10, 100)


class Node(NamedTuple):
    """A machine for rent: cores (not threads), dollars an hour, and who says so."""

    name: str
    cores: int
    usd_per_hour: float
    source: str


# AWS counts threads: 96 vCPU are 48 cores.
NODE = Node(
    "c5.24xlarge",
    48,
    4.08,
    (
        "AWS, EC2 Auto Scaling User Guide, Spot price per unit hour example: On-Demand, US East (N. Virginia); "
        "an example, not an offer"
    ),
)


class Cost(NamedTuple):
    core_hours: float
    wall_seconds: float
    usd: float
    bytes: float


def cost(plans: float, nodes: int, node: Node, rates: Mapping[str, float]) -> Cost:
    """Of so many plans on so many nodes, at the rate of a worker on Ray."""
    core_seconds = plans / rate(rates)
    wall = core_seconds / (nodes * node.cores)
    usd = float(rent_usd.evaluate(nodes=nodes, tau=wall, USD_hour=node.usd_per_hour))
    return Cost(core_seconds / HOUR, wall, usd, plans * rates["Parquet of a plan"])


def rate(rates: Mapping[str, float]) -> float:
    """Plans a second of one core: those of its processor time in chunks, for the share of the time that it is in
    one.
    """
    outside = rates["Ray, two workers: time outside of chunks, of all workers' time"]
    return rates["Ray, two workers: plans a second of processor time in chunks"] * (1 - outside)


def measured(path: Path = RESULTS) -> dict[str, float]:
    """Figures by their names."""
    return {each["name"]: each["value"] for each in json.loads(path.read_text(encoding="utf-8"))}


def measured_lines(path: Path = RESULTS) -> list[str]:
    """The figures as a table."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    shown = [f"| {each['name']} | {_shown(each['value'], each['unit'])} |" for each in rows]
    return ["| figure | value |", "|---|---|", *shown]


def cost_lines(plans: int = PLANS, node: Node = NODE, path: Path = RESULTS) -> list[str]:
    """The cost of a large sweep on a few numbers of nodes."""
    rates = measured(path)
    chunks = ceil(plans / CHUNK)
    one = cost(plans, 1, node, rates)
    head = (
        f"At {rate(rates):,.0f} plans a second and core: {counted(round(one.core_hours), 'core-hours')}, "
        f"{human(one.bytes, 'bytes')} of Parquet in {chunks:,} parts if every plan is kept (`keep: {{best: "
        f"N}}` keeps a small share)."
    )
    summary = chunks * rates["summary of a chunk, by the driver"]
    lines = [
        head,
        (
            f"Then the driver alone goes over all parts for counts and best rows: {human(summary, 'seconds')}, "
            "whatever the number of nodes; less where `keep` leaves few rows."
        ),
        f"The node: {node.name}, {node.cores} cores, {node.usd_per_hour:g} USD an hour ({node.source}).",
        "",
        "| nodes | wall time | USD | written by all nodes |",
        "|---|---|---|---|",
    ]
    for nodes in NODES:
        found = cost(plans, nodes, node, rates)
        lines.append(
            f"| {nodes} | {human(found.wall_seconds, 'seconds')} | {found.usd:,.2f} | "
            f"{human(found.bytes / found.wall_seconds, 'bytes/s')} |"
        )
    return lines


def _shown(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.1%}".replace("%", " %")
    if unit == "ratio":
        return f"{value:.2f}"
    if unit == "bytes" and value < 1024:
        return f"{value:.1f} B"
    if unit in ("plans", "chunks"):
        return f"{value:,.0f}"
    return f"{value:,.0f} {unit}" if unit == "plans/s" else human(value, "seconds" if unit == "s" else unit)
