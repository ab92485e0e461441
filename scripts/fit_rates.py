"""Write src/tonnage/estimate/hardware/rates.toml: what kernels, links and hosts reach of their datasheets, from
published speeds of training.

Each rate lies between physical bounds; those that measured kernels or collectives give are fixed and name their source.
Rows that say all are used, with a robust loss (soft L1 of the logarithm of predicted over measured) and a weak pull to
the middle of each bound. Errors are of rows that the fit has not seen: left out by cells (source x model x
accelerator), by source, by generation, and by source with one factor fitted on a quarter of its rows. Needs scipy, for
development alone.

PYTHONPATH=src python scripts/fit_rates.py [--no-validation | --bands]

--bands: the rates stay as they are, and only the error bands of dense models and mixtures are made again.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from _speed_cases import ROOT, Case, cases
from tonnage.estimate.hardware.rates import Generation, Rates, rates

OUT = ROOT / "src" / "tonnage" / "estimate" / "hardware" / "rates.toml"
SCALE = 0.06  # of an error in logarithms from which on it counts by its size, not its square
PULL = 0.3  # weight of what is known before: one row's


class Fitted(NamedTuple):
    """One rate: where it starts, the spread of its logarithm that is thought likely, and its bounds."""

    name: str
    start: float
    spread: float
    low: float
    high: float
    what: str


class Fixed(NamedTuple):
    """One rate that is measured elsewhere."""

    name: str
    value: float
    source: str


AICONF = "aiconfigurator-core 0.12.0, systems/data"
FIXED = (
    Fixed("bf16.Ampere", 0.834, f"{AICONF}/a100_sxm gemm_perf: share of peak of large bf16 products"),
    Fixed("launch", 2e-6, f"{AICONF}, gemm_perf: bf16 products take 1.8 to 2.9 us at the least"),
)
# DeepSpeed: the hours of Pythia's runs, which no fit counts, over those predicted; two runs of Llama 7B on eight A800s,
# of another publication, lie 5 and 12 % beyond it (tests/estimate/step_time).
FRAMEWORKS = {"deepspeed": 1.306}
FITTED = (
    Fitted("bf16.Hopper", 0.70, 0.1, 0.45, 0.80, "large bf16 products on Hopper"),
    Fitted("bf16.Blackwell", 0.68, 0.05, 0.40, 0.75, "large bf16 products on Blackwell"),
    Fitted("fp8.Hopper", 0.62, 0.15, 0.30, 0.75, "large fp8 products on Hopper"),
    Fitted("fp8.Blackwell", 0.62, 0.15, 0.30, 0.75, "large fp8 products on Blackwell"),
    Fitted("fp4.Blackwell", 0.65, 0.15, 0.30, 0.75, "large fp4 products on Blackwell"),
    Fitted("attention.Ampere", 0.60, 0.2, 0.30, 0.80, "fused attention, forward"),
    Fitted("attention.Hopper", 0.60, 0.2, 0.25, 0.80, "fused attention, forward"),
    Fitted("flash2.Hopper", 0.35, 0.15, 0.2, 0.6, "FlashAttention-2, of which Shah2024 saw 0.35"),
    Fitted("attention.Blackwell", 0.50, 0.2, 0.20, 0.80, "fused attention, forward"),
    Fitted("attention_backward", 0.85, 0.15, 0.50, 1.05, "of attention's share"),
    Fitted("memory", 0.80, 0.1, 0.60, 0.93, "of the memory's bandwidth"),
    Fitted("host", 6e-6, 0.15, 3e-6, 9e-6, "seconds to ask for a kernel"),
    Fitted("router_kernels", 60, 0.5, 10, 400, "kernels of a router and its dispatcher"),
    Fitted("alltoall", 2, 0.5, 0.5, 8, "times that, where sizes come from other ranks"),
    Fitted("expert_kernels", 12, 0.4, 1, 40, "kernels of one product of one expert: casts, scales, the product"),
    Fitted("row_moves", 1.8, 0.4, 1.0, 8.0, "times that bytes of rows of experts take: permutations, copies"),
    Fitted("fused_experts", 0.5, 0.5, 0.05, 1.0, "of the time around experts' products in a fused grouped MLP"),
    Fitted("half_side", 60, 0.5, 5, 800, "rows or columns at which a product reaches half of its share"),
    Fitted("cast", 0.5, 0.5, 0.02, 4, "passes over a narrow product's operands"),
    Fitted("scan", 0.1, 1.0, 0.0005, 0.5, "of the 16-bit peak, recurrences"),
    Fitted("scan_step", 1e-7, 0.7, 1e-9, 1e-6, "seconds a token of a sequence, recurrences"),
    Fitted("latency_inside", 2e-5, 0.5, 2e-6, 1e-4, "seconds of a collective's start in a node"),
    Fitted("latency_outside", 2e-5, 0.5, 3e-6, 3e-4, "and across nodes, times the root of their number"),
    Fitted("hidden", 0.8, 0.2, 0.2, 1.0, "of communication that can run beside compute"),
    Fitted("step", 1e-2, 0.7, 1e-3, 0.1, "seconds of a step besides"),
)  # fmt: skip
NAMES = [each.name for each in FITTED]
# Runtimes with few rows, which lie outside of the band of all: their own rows widen it.
WIDENED = ("torchtune", "deepspeed")
# Shares of the peak of large products, in 16 and in 8 bit: aiconfigurator-core 0.12.0, gemm_perf; the last of all
# Blackwells.
BLACKWELLS = {
    "B200-SXM-180GB": (0.693, 0.711),
    "B300-SXM-288GB": (0.738, 0.758),
    "GB200-186GB": (0.661, 0.697),
    "GB300-288GB": (0.769, 0.779),
}
ALL = (0.718, 0.725)
# Of one accelerator over those of its generation; 4-bit products as 8-bit ones: their table has the cast of the
# operands in it.
CHIPS = {
    name: {"bf16": wide / ALL[0], "fp8": narrow / ALL[1], "fp4": narrow / ALL[1]}
    for name, (wide, narrow) in BLACKWELLS.items()
}


def rates_of(values: Sequence[float]) -> Rates:
    """Rates of these fitted values."""
    plain: dict[str, Any] = {each.name: each.value for each in FIXED} | dict(
        zip(NAMES, map(float, values), strict=True)
    )
    generations: dict[str, dict[str, Any]] = {}
    for name in [name for name in plain if "." in name]:
        kind, _, which = name.partition(".")
        value = plain.pop(name)
        made = generations.setdefault(which, {"matrix": {}})
        if kind in ("attention", "flash2"):
            made[kind] = value
        else:
            made["matrix"][kind] = value
    return Rates(
        generations={name: Generation(**made) for name, made in generations.items()},
        chips=CHIPS,
        frameworks=FRAMEWORKS,
        **plain,
    )


def logs(found: Sequence[Case], values: Sequence[float]) -> np.ndarray:
    """Logarithms of predicted over measured."""
    rates = rates_of(values)
    return np.log([case.seconds(rates) / case.measured for case in found])


START = np.log([each.start for each in FITTED])
SPREAD = np.array([each.spread for each in FITTED])
LOW = np.log([each.low for each in FITTED]) - 1e-9
HIGH = np.log([each.high for each in FITTED]) + 1e-9


def slopes(found: Sequence[Case], x: np.ndarray, step: float = 2e-3) -> np.ndarray:
    """Of the logarithms of predictions by those of the rates: rows x rates."""
    base = logs(found, np.exp(x))
    columns = []
    for index in range(len(x)):
        way = step if x[index] + step < HIGH[index] else -step
        moved = x.copy()
        moved[index] += way
        columns.append((logs(found, np.exp(moved)) - base) / way)
    return np.array(columns).T


def fit(
    found: Sequence[Case], x: np.ndarray | None = None, rounds: int = 10, known: np.ndarray | None = None
) -> np.ndarray:
    """Logarithms of the rates: Gauss-Newton with reweighting inside the bounds. `known`: slopes to go on using."""
    from scipy.optimize import lsq_linear

    x = np.clip(START if x is None else x, LOW, HIGH)
    weights = np.sqrt([case.weight for case in found])
    best, best_loss = x, _loss(found, x, weights)
    for _ in range(rounds):
        errors = logs(found, np.exp(x))
        jacobian = slopes(found, x) if known is None else known
        robust = weights / np.sqrt(np.sqrt(1 + (errors / SCALE) ** 2)) / SCALE
        left = np.concatenate([jacobian * robust[:, None], np.diag(PULL / SPREAD)])
        right = np.concatenate([-errors * robust, -PULL * (x - START) / SPREAD])
        limit = 0.5  # of a logarithm: slopes do not hold further
        move = lsq_linear(left, right, (np.maximum(LOW - x, -limit) - 1e-9, np.minimum(HIGH - x, limit) + 1e-9)).x
        for shorter in (1.0, 0.5, 0.25):
            tried = np.clip(x + shorter * move, LOW, HIGH)
            loss = _loss(found, tried, weights)
            if loss < best_loss:
                break
        if loss >= best_loss * (1 - 1e-4):
            return tried if loss < best_loss else best
        best, best_loss, x = tried, loss, tried
    return best


def _loss(found: Sequence[Case], x: np.ndarray, weights: np.ndarray) -> float:
    errors = logs(found, np.exp(x)) / SCALE
    return float(np.sum(weights**2 * 2 * (np.sqrt(1 + errors**2) - 1)) + np.sum((PULL * (x - START) / SPREAD) ** 2))


# ---- errors of rows that a fit has not seen ----


def left_out(
    found: Sequence[Case], group: Callable[[Case], Any], x: np.ndarray, known: np.ndarray | None
) -> np.ndarray:
    """Logarithms of predicted over measured, each row by rates that were fitted without its group."""
    made = np.empty(len(found))
    groups = [group(case) for case in found]
    for one in sorted(set(groups), key=str):
        out = np.array([each == one for each in groups])
        rest = [case for case, is_out in zip(found, out, strict=True) if not is_out]
        fitted = fit(rest, x, rounds=4, known=None if known is None else known[~out])
        made[out] = logs([case for case, is_out in zip(found, out, strict=True) if is_out], np.exp(fitted))
    return made


def with_one_factor(found: Sequence[Case], errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of sources left out: what is left after the median error of a quarter of each source's rows is taken off, on
    its other rows.
    """
    made, counted = errors.copy(), np.zeros(len(found), bool)
    for source in {case.source for case in found}:
        rows = np.array([index for index, case in enumerate(found) if case.source == source])
        quarter = rows[::4] if len(rows) >= 4 else rows[:0]
        if len(quarter):
            made[rows] -= np.median(errors[quarter])
            counted[np.setdiff1d(rows, quarter)] = True
    return made, counted


def summary(errors: np.ndarray) -> str:
    """Median, mean and 90th percentile of sizes, and the median with its sign, in percent."""
    relative = np.expm1(errors)
    sizes = np.abs(relative)
    return (
        f"n {len(sizes)} median {100 * np.median(sizes):.1f} mean {100 * np.mean(sizes):.1f} "
        f"p90 {100 * np.percentile(sizes, 90):.1f} bias {100 * np.median(relative):+.1f}"
    )


def validation(found: Sequence[Case], x: np.ndarray) -> tuple[list[str], dict[str, np.ndarray]]:
    """Lines of errors, and the left-out errors by how they were left out."""
    known = slopes(found, x)
    lines, made = [f"all rows, seen: {summary(logs(found, np.exp(x)))}"], {}
    mixtures = np.array([case.kind == "moe" for case in found])
    for name, group, slope in (
        ("cells", lambda case: case.fold, known),
        ("sources", lambda case: case.source, known),
        ("generations", lambda case: case.generation, None),
    ):
        errors = made[name] = left_out(found, group, x, slope)
        lines.append(f"{name} left out: {summary(errors)}")
        lines += [
            f"{name} left out, {kind}: {summary(errors[chosen])}"
            for kind, chosen in (("dense", ~mixtures), ("moe", mixtures))
        ]
    factored, counted = with_one_factor(found, made["sources"])
    lines.append(f"sources left out, one factor from a quarter of each: {summary(factored[counted])}")
    return lines, made


def bands(
    found: Sequence[Case], made: dict[str, np.ndarray], beside: Sequence[Case], x: np.ndarray
) -> dict[str, tuple[float, float, int]]:
    """5th and 95th percentile of measured over predicted of rows whose source was left out, by the table of the file;
    a band holds the estimate itself.

    A user's machine is a source of its own: cells left out share the harness, the cluster and the software with rows
    that the fit has seen. `beside`: rows of runtimes in WIDENED that no fit counts, by rates `x`.
    """
    mixtures = np.array([case.kind == "moe" for case in found])
    kinds = {"dense": made["sources"][~mixtures], "moe": made["sources"][mixtures]}
    if "generations" in made:
        kinds["new generation"] = made["generations"]
    made_of = {f"bands.{_key(kind)}": errors for kind, errors in kinds.items()}
    for runtime in WIDENED:
        own = np.array([case.runtime == runtime for case in found])
        uncounted = [case for case in beside if case.runtime == runtime]
        if own.any() or uncounted:
            made_of[f"runtimes.{runtime}"] = np.concatenate([made["sources"][own], logs(uncounted, np.exp(x))])
        if runtime in FRAMEWORKS and f"runtimes.{runtime}" in made_of:  # as if there were no factor, too
            made_of[f"runtimes.{runtime}"] = np.append(made_of[f"runtimes.{runtime}"], np.log(FRAMEWORKS[runtime]))
    ends = {table: np.exp(np.percentile(-errors, (5, 95))) for table, errors in made_of.items()}
    return {table: (min(low, 1.0), max(high, 1.0), len(made_of[table])) for table, (low, high) in ends.items()}


def _key(kind: str) -> str:
    return f'"{kind}"' if " " in kind else kind


def shipped() -> np.ndarray:
    """Logarithms of the fitted rates as they are in rates.toml."""
    held, values = rates(), []
    for each in FITTED:
        kind, _, which = each.name.partition(".")
        if not which:
            values.append(getattr(held, kind))
        else:
            one = held.generations[which]
            values.append(getattr(one, kind) if kind in ("attention", "flash2") else one.matrix[kind])
    return np.log(values)


def with_bands(toml: str, around: dict[str, tuple[float, float, int]]) -> str:
    """The file's text with these bands; others of it stay."""
    for table, (low, high, count) in around.items():
        head, _, rest = toml.partition(f"[{table}]")
        _, mark, tail = rest.partition("\n\n")
        toml = f"{head}[{table}]\nlow = {low:.3f}\nhigh = {high:.3f}\nrows = {count}\n" + (f"\n{tail}" if mark else "")
    return toml


def text(x: np.ndarray, lines: Sequence[str], around: dict[str, tuple[float, float, int]], count: int) -> str:
    """The file."""
    rates = rates_of(np.exp(x))
    made = [
        "# Made by scripts/fit_rates.py from validation/train_speed.yaml. Errors in percent of the measured step time:",
        *(f"# {line}" for line in lines),
        "#",
        "# Fixed:",
        *(f"# {each.name}: {each.source}" for each in FIXED),
        "# At a bound, so that rows alone would go further: " + (", ".join(_at_bound(x)) or "none"),
        "",
        f'fitted = "{len(FITTED)} rates on {count} rows"',
    ]
    notes = {each.name: each.what for each in FITTED}
    for name in rates.__struct_fields__:
        value = getattr(rates, name)
        if isinstance(value, float):
            made.append(f"{name} = {_number(value)}" + (f"  # {notes[name]}" if name in notes else ""))
    for name, each in rates.generations.items():
        matrix = ", ".join(f"{peak} = {_number(share)}" for peak, share in each.matrix.items())
        made += ["", f"[generations.{name}]", f"attention = {_number(each.attention)}"]
        made += [f"flash2 = {_number(each.flash2)}"] if each.flash2 else []
        made += [f"matrix = {{ {matrix} }}"]
    for name, shares in rates.chips.items():
        made += ["", f"[chips.{name}]", *(f"{peak} = {_number(share)}" for peak, share in shares.items())]
    made += ["", "[frameworks]", *(f"{name} = {_number(value)}" for name, value in rates.frameworks.items())]
    for table, (low, high, rows) in around.items():
        made += ["", f"[{table}]", f"low = {low:.3f}", f"high = {high:.3f}", f"rows = {rows}"]
    return "\n".join([*made, ""])


def _at_bound(x: np.ndarray) -> list[str]:
    return [
        each.name
        for each, value in zip(FITTED, x, strict=True)
        if min(abs(value - np.log(each.low)), abs(value - np.log(each.high))) < 5e-3
    ]


def _number(value: float) -> str:
    return f"{value:.4g}"


def main() -> None:
    rows = cases()
    counted = {case.id for case in rows}
    beside = [case for case in cases(everything=True) if case.id not in counted and case.runtime in WIDENED]
    if "--bands" in sys.argv:
        known = shipped()
        seen = {"sources": left_out(rows, lambda case: case.source, known, slopes(rows, known))}
        OUT.write_text(with_bands(OUT.read_text(encoding="utf-8"), bands(rows, seen, beside, known)), encoding="utf-8")
        print(OUT.read_text(encoding="utf-8"))
        sys.exit()
    fitted = fit(rows)
    lines, errors = (
        validation(rows, fitted) if "--no-validation" not in sys.argv else ([summary(logs(rows, np.exp(fitted)))], {})
    )
    OUT.write_text(
        text(fitted, lines, bands(rows, errors, beside, fitted) if errors else {}, len(rows)), encoding="utf-8"
    )
    print(OUT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
