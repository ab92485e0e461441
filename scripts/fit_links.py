"""Write src/tonnage/estimate/hardware/links.toml: what links reach of their datasheets, and what starting a collective
takes.

Fitted to validation/collectives.yaml: the absolute logarithm of predicted over measured, softened near zero, every
machine counting by the root of its rows, and rows that leave something out by half. Each constant is drawn a little to
where it starts (CENTRES: NCCL's own tables, or a generic share), which decides what no row knows. Shares of one copy
over one link are the medians of the rows that measured them. Judged by leaving out: the rows of each source by the
constants of the others'.

PYTHONPATH=src python scripts/fit_links.py [--check]      (needs scipy; --check prints errors and writes nothing)
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
from msgspec import Struct
from msgspec.structs import fields, replace
from scipy.optimize import least_squares

from tonnage.estimate.hardware.network import LinkKind, Links
from tonnage.validation import Row, read
from tonnage.validation.collectives import is_link, predict_with, source_of

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "validation" / "collectives.yaml"
OUT = ROOT / "src" / "tonnage" / "estimate" / "hardware" / "links.toml"
SOFT = 0.05  # errors below it count by their square
PARTIAL = {"full": 1.0, "partial": 0.5, "indicative": 0.0}
PULL, PULL_SHARE = (
    0.05,
    2.0,
)  # of a constant that is off its centre by a factor of e, against an error of that size; of shares

# Where each constant starts, and is drawn to. Seconds are NCCL's (src/graph/tuning.cc): 6.6 us to start, a step of a
# ring from 0.6 to 3.4 us
# over NVLink and from 1 to 5.7 over PCIe, of a tree over a network from 5 to 14.
CENTRES = {
    "start": 6.6e-6,
    "peer": 0.5e-6,
    "pipelining": 0.25,
    "copy": 1.5,
    "NVLink 3.share": 0.8,
    "NVLink 3.step": 1e-6,
    "NVLink 4.share": 0.8,
    "NVLink 4.step": 1e-6,
    "NVLink 4.in_network": 0.65,
    "NVLink 5.share": 0.8,
    "NVLink 5.step": 1e-6,
    "NVLink 5.in_network": 0.65,
    "Infinity Fabric.share": 0.8,
    "PCIe.share": 0.6,
    "PCIe.step": 1e-6,
    "network.share": 0.92,
    "network.step": 1e-5,
    "EFA.gap": 1e-5,
}
NETWORKS = ("InfiniBand", "RoCE", "EFA", "ConnectX", "Slingshot", "Ethernet")
DIRECT = 0.88  # of one copy over one link, where nobody measured it


def constants(values: Mapping[str, float], direct: Mapping[str, float], local: float) -> Links:
    """The constants of these values. What nobody measured takes the mean of what was."""
    kinds: dict[str, LinkKind] = {}
    for name in ("NVLink 3", "NVLink 4", "NVLink 5", "Infinity Fabric", "PCIe"):
        kinds[name] = LinkKind(
            share=values[f"{name}.share"],
            direct=direct.get(name, DIRECT),
            step=values.get(f"{name}.step", 1e-6),
            in_network=values.get(f"{name}.in_network", 0.0),
        )
    between = LinkKind(
        share=values["network.share"],
        direct=direct.get("InfiniBand", values["network.share"]),
        step=values["network.step"],
    )
    for name in NETWORKS:
        kinds[name] = replace(between, gap=values["EFA.gap"]) if name == "EFA" else between
    shares = [kinds[f"NVLink {i}"].share for i in (3, 4, 5)]
    inside = LinkKind(share=sum(shares) / 3, direct=DIRECT, step=1e-6, is_measured=False)
    return Links(
        start=values["start"],
        peer=values["peer"],
        pipelining=values["pipelining"],
        copy=values["copy"],
        local=local,
        kinds=kinds,
        inside=inside,
        outside=replace(between, is_measured=False),
    )


def errors(rows: Sequence[Row], made: Links) -> np.ndarray:
    """Logarithms of predicted over measured bandwidth, nan where nothing is predicted."""
    found = []
    for row in rows:
        value = predict_with(row, made)[0].value
        sign = -1 if row.measured.quantity == "collective_time" else 1
        found.append(sign * np.log(value / float(row.measured.value)) if value else np.nan)
    return np.array(found)


def fit(rows: Sequence[Row], start: Mapping[str, float] | None = None) -> Links:
    """The constants of these rows."""
    links = [row for row in rows if is_link(row)]
    base = constants(CENTRES, {}, 0.73)
    collectives = [row for row in rows if not is_link(row) and predict_with(row, base)[0].value]
    direct, local = _direct(links, base)
    counts: dict[str, int] = {}
    for row in collectives:
        counts[machine(row)] = counts.get(machine(row), 0) + 1
    weights = np.array([counts[machine(row)] ** -0.25 * PARTIAL[row.completeness_class] for row in collectives])
    centres = np.log(list(CENTRES.values()))
    pulls = np.array(
        [PULL_SHARE if name.startswith(("NVLink", "network")) and name.endswith("share") else PULL for name in CENTRES]
    )

    def residuals(x: np.ndarray) -> np.ndarray:
        made = constants(dict(zip(CENTRES, np.exp(x), strict=True)), direct, local)
        wrong = errors(collectives, made)
        softened = np.sign(wrong) * (2 * SOFT * (np.sqrt(SOFT**2 + wrong**2) - SOFT)) ** 0.5
        return np.concatenate([weights * softened, pulls * (x - centres)])

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


def judged(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Errors of each source's rows by the constants of the other sources' rows."""
    found = {}
    for source in sorted({source_of(row) for row in rows}):
        others = [row for row in rows if source_of(row) != source]
        wrong = errors([row for row in rows if source_of(row) == source], fit(others))
        found[source] = wrong[~np.isnan(wrong)]
        _print(source, found[source])
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


def main() -> None:
    rows = [row for row in read([str(CORPUS)]) if not isinstance(row.measured.value, str)]
    made = fit(rows)
    print("fitted to all rows:")
    for source in sorted({source_of(row) for row in rows}):
        wrong = errors([row for row in rows if source_of(row) == source], made)
        _print(source, wrong[~np.isnan(wrong)])
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
