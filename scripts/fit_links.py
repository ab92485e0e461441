"""Write src/tonnage/estimate/hardware/links.toml: what links reach of their datasheets, and what starting a collective
takes.

Fitted to validation/collectives.yaml: the absolute logarithm of predicted over measured, softened near zero, every
machine counting by the root of its rows, and rows that leave something out by half. Each constant is drawn a little to
where it starts (CENTRES: NCCL's own tables, or a generic share), which decides what no row knows. Shares of one copy
over one link are the medians of the rows that measured them. Judged by leaving out: the rows of each source by the
constants of the others'.

PYTHONPATH=src python scripts/fit_links.py [--check] [--recent]      (needs scipy; --check prints errors and writes
nothing; --recent counts rows of new sources too, all but those that are left out for good)
"""

import sys
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import fields, replace
from scipy.optimize import least_squares

from _rows_for_fits import rows_for_fits
from tonnage.estimate.hardware.links import LinkKind, Links, links
from tonnage.estimate.hardware.network import Algorithm, Collective, Network
from tonnage.spec import Cluster
from tonnage.validation import Row
from tonnage.validation.collectives import collected, is_link, predict_with, source_of
from tonnage.validation.subjects import machine_of

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "validation" / "collectives.yaml"
OUT = ROOT / "src" / "tonnage" / "estimate" / "hardware" / "links.toml"
SOFT = 0.05  # errors below it count by their square
PARTIAL = {"full": 1.0, "partial": 0.5, "indicative": 0.0}
PULL, PULL_SHARE = (
    0.05,
    2.0,
)  # of a constant that is off its centre by a factor of e, against an error of that size; of shares

# Where each constant starts, and is drawn to: NCCL's own tables as they are (src/tonnage/estimate/hardware/nccl.py), or
# a generic share.
CENTRES = {
    "peer": 0.5e-6,
    "base": 1.0,
    "ramp": 0.7,
    "copy": 1.5,
    "tree": 0.85,
    "trees": 0.6,
    **{
        f"{kind}.{name}": value
        for kind in ("NVLink 3", "NVLink 4", "NVLink 5")
        for name, value in (("share", 0.82), ("latency", 1.0), ("chunks", 1.0), ("copy", 1.5))
    },
    "NVLink 4.in_network": 0.7,
    "NVLink 5.in_network": 0.65,
    "Infinity Fabric.share": 0.8,
    "PCIe.share": 0.5,
    "PCIe.pair": 0.7,
    "PCIe.latency": 1.0,
    "PCIe.chunks": 1.0,
    "PCIe.copy": 1.5,
    "network.share": 0.92,
    "RoCE.delay": 2e-6,
    "EFA.delay": 2e-5,
    "EFA.gap": 1e-5,
}
NETWORKS = ("InfiniBand", "RoCE", "EFA", "ConnectX", "Slingshot", "Ethernet")
NVLINKS = ("NVLink 3", "NVLink 4", "NVLink 5")
INSIDE = (*NVLINKS, "Infinity Fabric", "PCIe")
DIRECT = 0.88  # of one copy over one link, where nobody measured it
# Libraries other than NCCL have no rows but one of RCCL's: their start, steps and chunks, and the share of links that
# nobody measured, are those that one ring and one tree were fitted with to NCCL's rows until 2026-11.
OTHERS = {"start": 6.73e-6, "pipelining": 0.3167}
STEP_INSIDE, STEP_OUTSIDE, UNKNOWN_SHARE = 1e-6, 1.445e-5, 0.8078


def constants(values: Mapping[str, float], direct: Mapping[str, float], local: float) -> Links:
    """The constants of these values. What nobody measured takes the mean of what was."""
    kinds: dict[str, LinkKind] = {}
    for name in INSIDE:
        own = {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{name}.")}
        kinds[name] = LinkKind(direct=direct.get(name, DIRECT), step=STEP_INSIDE, **own)
    share = values["network.share"]
    between = LinkKind(share=share, direct=direct.get("InfiniBand", share), step=STEP_OUTSIDE)
    for name in NETWORKS:
        kinds[name] = between
    kinds["RoCE"] = replace(between, delay=values["RoCE.delay"])
    kinds["EFA"] = replace(between, delay=values["EFA.delay"], gap=values["EFA.gap"])
    latency, chunks = (mean(values[f"NVLink {i}.{name}"] for i in (3, 4, 5)) for name in ("latency", "chunks"))
    inside = LinkKind(
        share=UNKNOWN_SHARE, direct=DIRECT, step=STEP_INSIDE, latency=latency, chunks=chunks, is_measured=False
    )
    return Links(
        **{name: values[name] for name in ("base", "ramp", "tree", "trees", "peer", "copy")},
        **OTHERS,
        local=local,
        kinds=kinds,
        inside=inside,
        outside=replace(between, is_measured=False),
    )


class Asked(NamedTuple):
    """What a row asks of the network between its accelerators. `measured`: seconds."""

    machine: str
    cluster: Cluster
    kind: Collective
    size: int
    algorithm: Algorithm | None
    measured: float


KNOWN: dict[str, Asked | None] = {}  # by the row's id


def asked(row: Row) -> Asked | None:
    """The question of a row, read once; None where it has no answer."""
    if row.id not in KNOWN:
        KNOWN[row.id] = _asked(row)
    return KNOWN[row.id]


def _asked(row: Row) -> Asked | None:
    predicted = predict_with(row, links())[0].value
    if not predicted:
        return None
    cluster, seconds = machine_of(row.question).cluster, collected(row.question, links()).seconds
    sign = -1 if row.measured.quantity == "collective_time" else 1
    return Asked(
        dumps(row.question["on"], sort_keys=True),
        cluster,
        row.question["collective"],
        row.question["payload_bytes"],
        row.question.get("algorithm"),
        seconds * (float(predicted) / float(row.measured.value)) ** sign,
    )


def errors(rows: Sequence[Row], made: Links) -> np.ndarray:
    """Logarithms of predicted over measured bandwidth, nan where nothing is predicted; one network a machine."""
    networks: dict[str, Network] = {}
    found = []
    for row in rows:
        if is_link(row):
            value = predict_with(row, made)[0].value
            found.append(np.log(value / float(row.measured.value)) if value else np.nan)
            continue
        one = asked(row)
        if one is None:
            found.append(np.nan)
            continue
        if one.machine not in networks:
            networks[one.machine] = Network(one.cluster, constants=made)
        network = networks[one.machine]
        sending = network.collective(one.kind, one.size, one.cluster.size, algorithm=one.algorithm)
        found.append(np.log(one.measured / float(sending.seconds)))
    return np.array(found)


def fit(rows: Sequence[Row], start: Mapping[str, float] | None = None) -> Links:
    """The constants of these rows."""
    of_links = [row for row in rows if is_link(row)]
    base = constants(CENTRES, {}, 0.73)
    collectives = [row for row in rows if not is_link(row) and asked(row)]
    direct, local = _direct(of_links, base)
    counts: dict[str, int] = {}
    for row in collectives:
        counts[machine(row)] = counts.get(machine(row), 0) + 1
    weights = np.array([counts[machine(row)] ** -0.25 * PARTIAL[row.completeness_class] for row in collectives])
    centres = np.log(list(CENTRES.values()))
    pulls = np.array(
        [PULL_SHARE if name.startswith(("NVLink", "network")) and name.endswith("share") else PULL for name in CENTRES]
    )

    names = list(CENTRES)
    alike = [[names.index(f"{kind}.{of}") for kind in NVLINKS] for of in ("latency", "chunks")]

    def residuals(x: np.ndarray) -> np.ndarray:
        made = constants(dict(zip(CENTRES, np.exp(x), strict=True)), direct, local)
        wrong = errors(collectives, made)
        softened = np.sign(wrong) * (2 * SOFT * (np.sqrt(SOFT**2 + wrong**2) - SOFT)) ** 0.5
        drawn_to = centres.copy()
        for one in alike:  # a generation of links that no row knows is like the others
            drawn_to[one] = x[one].mean()
        return np.concatenate([weights * softened, pulls * (x - drawn_to)])

    begin = centres if start is None else np.log([start[name] for name in CENTRES])
    found = least_squares(residuals, begin, diff_step=1e-4, max_nfev=25)
    return constants(dict(zip(CENTRES, np.exp(found.x), strict=True)), direct, local)


def _direct(rows: Sequence[Row], base: Links) -> tuple[dict[str, float], float]:
    """Shares of a single copy, the medians by kind of link, and of a copy inside of a memory."""
    shares: dict[str, list[float]] = {}
    for row in rows:
        made = predict_with(row, base)[0]
        if made.value:
            name = next((kind for kind in base.kinds if made.notes and made.notes[0].startswith(kind)), "local")
            reference = base.local if name == "local" else base.kinds[name].direct
            if row.measured.quantity != "effective_bandwidth":
                shares.setdefault(name, []).append(float(row.measured.value) / made.value * reference)
    found = {name: median(each) for name, each in shares.items()}
    return {name: share for name, share in found.items() if name != "local"}, found.get("local", base.local)


def machine(row: Row) -> str:
    """Rows that one machine or cluster made."""
    return f"{source_of(row)}, {row.labels.get('hardware')}"


SIZES = (("<= 1 MiB", 0, 1 << 20), ("2 to 32 MiB", (1 << 20) + 1, (64 << 20) - 1), (">= 64 MiB", 64 << 20, 1 << 62))


def by_size(rows: Sequence[Row], wrong: np.ndarray, name: str) -> None:
    """Print the errors of collectives by the sizes of their messages."""
    for size, low, high in SIZES:
        chosen = [not is_link(row) and low <= row.question.get("payload_bytes", 0) <= high for row in rows]
        kept = wrong[np.array(chosen)]
        _print(f"{name}, {size}", kept[~np.isnan(kept)])


def judged(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Errors of each source's rows by the constants of the other sources' rows."""
    found, asked_of, all_wrong = {}, [], []
    for source in sorted({source_of(row) for row in rows}):
        others = [row for row in rows if source_of(row) != source]
        wrong = errors([row for row in rows if source_of(row) == source], fit(others))
        found[source] = wrong[~np.isnan(wrong)]
        asked_of += [row for row in rows if source_of(row) == source]
        all_wrong.append(wrong)
        _print(source, found[source])
    by_size(asked_of, np.concatenate(all_wrong), "sources left out")
    return found


def _print(name: str, wrong: np.ndarray) -> None:
    sizes = 100 * np.abs(np.expm1(wrong))
    if len(sizes):
        print(
            f"{name[:70]:70s} {len(sizes):4d} rows, median {np.median(sizes):5.1f} %, p90 "
            f"{np.quantile(sizes, 0.9):6.1f} %, "
            f"bias {100 * np.expm1(np.median(wrong)):+5.1f} %",
            flush=True,
        )


def text(made: Links, note: str) -> str:
    """The file, each number to four digits."""
    lines = [f"# Made by scripts/fit_links.py from validation/collectives.yaml: {note}", *_fields(made)]
    for title, kind in (
        ("inside", made.inside),
        ("outside", made.outside),
        *((f'kinds."{name}"', kind) for name, kind in made.kinds.items()),
    ):
        lines += ["", f"[{title}]", *_fields(kind)]
    return "\n".join(lines) + "\n"


def _fields(of: Struct) -> list[str]:
    """Numbers and flags that are not their defaults."""
    defaults = {field.name: field.default for field in fields(of)}
    found = {name: getattr(of, name) for name in of.__struct_fields__}
    return [
        f"{name} = {str(value).lower() if isinstance(value, bool) else format(float(value), '.4g')}"
        for name, value in found.items()
        if isinstance(value, (bool, float)) and value != defaults[name]
    ]


def cases(recent: bool = False) -> list[Row]:
    """The rows that the constants are fitted to. `recent`: also those of new sources that are not left out for good."""
    rows = rows_for_fits([CORPUS], "collective", recent=recent)
    return [row for row in rows if not isinstance(row.measured.value, str)]


def main() -> None:
    rows = cases("--recent" in sys.argv)
    made = fit(rows)
    print("fitted to all rows:")
    for source in sorted({source_of(row) for row in rows}):
        wrong = errors([row for row in rows if source_of(row) == source], made)
        _print(source, wrong[~np.isnan(wrong)])
    by_size(rows, errors(rows, made), "shown")
    if "--check" not in sys.argv:
        OUT.write_text(text(made, f"{len(rows)} rows, {len(CENTRES)} constants and the shares of single copies."))
    print("\neach source by the others:")
    found = judged(rows)
    _print("published logs", np.concatenate([each for name, each in found.items() if "aiconfigurator" not in name]))
    _print(
        "tables of aiconfigurator", np.concatenate([each for name, each in found.items() if "aiconfigurator" in name])
    )


if __name__ == "__main__":
    main()
