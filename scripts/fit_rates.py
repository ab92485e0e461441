"""Write src/tonnage/estimate/hardware/rates.toml: what kernels, links and hosts reach of their datasheets, from
published speeds of training.

Each rate lies between physical bounds; those that measured kernels or collectives give are fixed and name their source.
Rows that say all are used, with a robust loss (soft L1 of the logarithm of predicted over measured) and a weak pull to
the middle of each bound. Errors are of rows that the fit has not seen: left out by cells (source x model x
accelerator), by source, by generation, and by source with one factor fitted on a quarter of its rows. Needs scipy, for
development alone.

PYTHONPATH=src python scripts/fit_rates.py [--no-validation | --bands] [--recent]

--bands: the rates stay as they are, and only the error bands are made again.
--recent: rows of new sources (validation/recent) count too, all but those that are left out for good.
"""

import re
import sys
from collections import Counter
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


SIMUMAX = "SimuMax, configs/system/b200_bf16_ceperm.json at e691807"
AICONF = "aiconfigurator-core 0.12.0, systems/data"
TURBO = "AMD-AGI/Primus-Turbo"
MAXTEXT = "MaxText, MaxText/configs"
KITTENS = "HipKittens (arXiv 2511.08083), analysis"
FIXED = (
    Fixed("bf16.Ampere", 0.834, f"{AICONF}/a100_sxm gemm_perf: share of peak of large bf16 products"),
    Fixed("fp8.Blackwell", 0.725, f"{AICONF} of four Blackwells, gemm_perf: share of peak of large fp8 products"),
    Fixed("fp4.Blackwell", 0.725, "as in 8 bit: the 4-bit tables of the same source have the casts in them"),
    # AMD: of tables of kernels alone, by the formulas here. The clock that less power leaves is taken off (WATTS); both
    # passes of attention together take what they were measured to.
    Fixed("bf16.CDNA 3", 0.522, f"{TURBO}, gemm_turbo_bf16_20260309_MI300X.csv: 28 shapes of both passes"),
    Fixed("fp8.CDNA 3", 0.402, f"{TURBO}, gemm_turbo_fp8_tensorwise_20260309_MI300X.csv: the same, without the casts"),
    Fixed("attention.CDNA 3", 0.402, f"{TURBO}, output/baseline_attention.csv: AITER, causal, 128 numbers a head"),
    Fixed(
        "flash2.CDNA 3",
        0.244,
        "AOTriton: forward 1/1.4 of AITER (midiareshadi.github.io, attn-dsl-bench), backward 200 TFLOP/s, as on MI350X "
        f"({KITTENS}/attn/bkwd/plot.py)",
    ),
    Fixed("bf16.CDNA 4", 0.70, f"{KITTENS}/bf16_gemm/plot.py: hipBLASLt on MI355X, 8,192 and 16,384 a side"),
    Fixed("attention.CDNA 4", 0.546, f"{KITTENS}/attn: AITER forward, Composable Kernel backward, causal"),
    Fixed("flash2.CDNA 4", 0.131, f"{KITTENS}/attn: Triton forward, PyTorch backward, causal, 4,096 and 8,192 tokens"),
    Fixed("bf16.TPU v5e", 0.91, f"{MAXTEXT}/v5e/README.md: three quarters of its rows, scripts/fit_tpu.py"),
    Fixed("bf16.TPU v5p", 0.84, f"{MAXTEXT}/v5p/README.md: three quarters of its rows, scripts/fit_tpu.py"),
    Fixed("attention.TPU v5e", 0.45, "as the mean of the generations that were measured, like v5p's"),
    Fixed("attention.TPU v5p", 0.45, "as the mean of the generations that were measured, like v5e's"),
    Fixed("row_moves", 0.506, f"{SIMUMAX}: mean of permute_fwd and permute_bwd"),
    Fixed(
        "cast",
        1.0,
        "Transformer Engine, docs/features/low_precision_training/performance_considerations: an operand is read in 16 "
        "bit and written twice in 8, by rows and by columns; as many bytes as operand and result have",
    ),
    Fixed("launch", 2e-6, f"{AICONF}, gemm_perf: bf16 products take 1.8 to 2.9 us at the least"),
)
# Factors of whole runtimes over Megatron: none. DeepSpeed had 1.306, of the hours of Pythia's whole runs; Llama 7B on
# eight A800s in 2023 had eager attention, which explains it, and ms-swift's runs with FlashAttention show none
# (docs/decisions/0068-recipes-and-runtimes-of-2026.md).
FRAMEWORKS: dict[str, float] = {}
FITTED = (
    Fitted("bf16.Hopper", 0.70, 0.1, 0.45, 0.80, "large bf16 products on Hopper"),
    Fitted("bf16.Blackwell", 0.68, 0.05, 0.40, 0.75, "large bf16 products on Blackwell"),
    Fitted("fp8.Hopper", 0.70, 0.05, 0.30, 0.80, "large fp8 products on Hopper"),
    Fitted("attention.Ampere", 0.60, 0.2, 0.30, 0.80, "fused attention, forward"),
    Fitted("attention.Hopper", 0.60, 0.2, 0.25, 0.80, "fused attention, forward"),
    Fitted("flash2.Hopper", 0.35, 0.15, 0.2, 0.6, "FlashAttention-2, of which Shah2024 saw 0.35"),
    Fitted("attention.Blackwell", 0.50, 0.2, 0.20, 0.80, "fused attention, forward"),
    Fitted("attention_backward", 0.85, 0.15, 0.50, 1.05, "of attention's share"),
    Fitted("memory", 0.80, 0.1, 0.60, 0.93, "of the memory's bandwidth"),
    Fitted("host", 6e-6, 0.15, 3e-6, 9e-6, "seconds to ask for a kernel"),
    Fitted("router_kernels", 60, 0.5, 10, 400, "kernels of a router and its dispatcher"),
    Fitted("alltoall", 2, 0.25, 0.5, 8, "times that, where sizes come from other ranks"),
    Fitted("expert_kernels", 4, 0.3, 1, 40, "kernels of one product of one expert: casts, scales, the product"),
    Fitted("fused_experts", 0.5, 0.5, 0.05, 1.0, "of the time around experts' products in a fused grouped MLP"),
    Fitted("half_side", 60, 0.5, 5, 800, "rows or columns at which a product reaches half of its share"),
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
FEWEST = 5  # sources whose rows make a band of their own
FARTHER = "new generation"  # where no row is near
INSIDE = "inside the bands that other sources make, nominal 90 %: "
# Watts for each TFLOP/s of the 16-bit peak, of datasheets: the least of a generation's accelerators that rows are of,
# H100 SXM (700 W) and B200 (1000 W). AMD's: of the accelerator with most watts, MI325X (1000 W; its products are 1.19
# times as fast as MI300X's with 750 W, the root of the watts is 1.155: rocm.blogs.amd.com,
# measuring-max-achievable-flops-part2) and MI355X (1400 W).
WATTS = {"Hopper": 700 / 989.4, "Blackwell": 1000 / 2250, "CDNA 3": 1000 / 1307.4, "CDNA 4": 1400 / 2516.6}
OF_KERNELS = ("CDNA 3", "CDNA 4", "TPU v5e", "TPU v5p")


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
        generations={name: Generation(**made, of_kernels=name in OF_KERNELS) for name, made in generations.items()},
        watts=WATTS,
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
    lines.append(INSIDE + held(found, made["sources"]))
    return lines, made


def bands(
    found: Sequence[Case], made: dict[str, np.ndarray], beside: Sequence[Case], x: np.ndarray
) -> dict[str, tuple[float, float, int]]:
    """Factors of measured over predicted between which nine of ten rows of a source lie that was left out, by the
    table of the file; a band holds the estimate itself.

    A user's machine is a source of its own: cells left out share the harness, the cluster and the software with rows
    that the fit has seen. A kind that few sources measured has the band of all rows, widened to its own. `beside`:
    rows of runtimes in WIDENED that no fit counts, by rates `x`.
    """
    sources = [case.source for case in found]
    ends = {f"bands.{_key(kind)}": (*_around(found, made["sources"], kind), count) for kind, count in _kinds(found)}
    if "generations" in made:
        table = f"bands.{_key(FARTHER)}"
        ends[table] = (*_union([_ends(made["generations"], sources), *(e[:2] for e in ends.values())]), len(found))
    for runtime in WIDENED:
        own = np.array([case.runtime == runtime for case in found])
        uncounted = [case for case in beside if case.runtime == runtime]
        if own.any() or uncounted:
            errors = np.concatenate([made["sources"][own], logs(uncounted, np.exp(x))])
            if runtime in FRAMEWORKS:  # as if there were no factor, too
                errors = np.append(errors, np.log(FRAMEWORKS[runtime]))
            low, high = np.percentile(-errors, (5, 95))
            ends[f"runtimes.{runtime}"] = (low, high, len(errors))
    return {
        table: (min(float(np.exp(low)), 1.0), max(float(np.exp(high)), 1.0), count)
        for table, (low, high, count) in ends.items()
    }


def _kinds(found: Sequence[Case]) -> list[tuple[str, int]]:
    return [(kind, sum(case.kind == kind for case in found)) for kind in ("dense", "moe")]


def _around(found: Sequence[Case], errors: np.ndarray, kind: str) -> tuple[float, float]:
    """Logarithms of a kind's band: of all rows, and of its own where fewer sources than FEWEST measured it."""
    sources = [case.source for case in found]
    own = np.array([case.kind == kind for case in found])
    of_kind = [source for source, is_own in zip(sources, own, strict=True) if is_own]
    every = _ends(errors, sources)
    return every if not of_kind or len(set(of_kind)) >= FEWEST else _union([every, _ends(errors[own], of_kind)])


def _union(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in found), max(high for _, high in found)


def _ends(errors: np.ndarray, sources: Sequence[str]) -> tuple[float, float]:
    """5th and 95th percentile of measured over predicted, in logarithms. A source counts as the root of its rows: they
    are alike, so that a hundred of them tell less than a hundred sources, and more than one.
    """
    counts = Counter(sources)
    weights = np.array([counts[source] ** -0.5 for source in sources])
    order = np.argsort(-errors)
    share = weights[order] / weights.sum()
    low, high = np.interp((0.05, 0.95), np.cumsum(share) - share / 2, -errors[order])
    return min(float(low), 0.0), max(float(high), 0.0)


def held(found: Sequence[Case], errors: np.ndarray) -> str:
    """The share of rows that lie inside the bands which the other sources' rows make, and the mean score of these
    intervals (their width, and 20 times what rows miss them by: Gneiting2007), in logarithms.
    """
    inside, scores = np.empty(len(found)), np.empty(len(found))
    for source in {case.source for case in found}:
        rest = [index for index, case in enumerate(found) if case.source != source]
        others = [found[index] for index in rest]
        around = {kind: _around(others, errors[rest], kind) for kind in ("dense", "moe")}
        for index in set(range(len(found))) - set(rest):
            low, high = around[found[index].kind]
            missed = max(low + errors[index], -errors[index] - high, 0.0)
            inside[index], scores[index] = missed == 0, high - low + 20 * missed
    return "; ".join(
        f"{kind} {100 * inside[own].mean():.0f} % of rows, {100 * _by_source(found, inside, own):.0f} % of a mean "
        f"source, score {scores[own].mean():.2f}"
        for kind in ("dense", "moe")
        for own in [np.array([case.kind == kind for case in found])]
    )


def _by_source(found: Sequence[Case], values: np.ndarray, own: np.ndarray) -> float:
    means = [
        values[own & np.array([case.source == source for case in found])].mean()
        for source in {case.source for case, is_own in zip(found, own, strict=True) if is_own}
    ]
    return float(np.mean(means))


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


def text(
    x: np.ndarray,
    lines: Sequence[str],
    around: dict[str, tuple[float, float, int]],
    count: int,
    measured: Sequence[str],
) -> str:
    """The file. `measured`: runtimes with rows."""
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
        "measured = [" + ", ".join(f'"{name}"' for name in measured) + "]  # runtimes with rows",
    ]
    notes = {each.name: each.what for each in FITTED}
    for name in rates.__struct_fields__:
        value = getattr(rates, name)
        if isinstance(value, float):
            made.append(f"{name} = {_number(value)}" + (f"  # {notes[name]}" if name in notes else ""))
    tables = {f"generations.{_key(name)}": each for name, each in rates.generations.items()}
    for name, each in tables.items():
        matrix = ", ".join(f"{peak} = {_number(share)}" for peak, share in each.matrix.items())
        made += ["", f"[{name}]", f"attention = {_number(each.attention)}"]
        made += [f"flash2 = {_number(each.flash2)}"] if each.flash2 else []
        made += ["of_kernels = true"] if each.of_kernels else []
        made += [f"matrix = {{ {matrix} }}"]
    made += ["", "[watts]", *(f"{_key(name)} = {_number(value)}" for name, value in rates.watts.items())]
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
    recent = "--recent" in sys.argv
    rows = cases(recent=recent)
    counted = {case.id for case in rows}
    every = cases(everything=True, recent=recent)
    beside = [case for case in every if case.id not in counted and case.runtime in WIDENED]
    if "--bands" in sys.argv:
        known = shipped()
        errors = {
            "sources": left_out(rows, lambda case: case.source, known, slopes(rows, known)),
            "generations": left_out(rows, lambda case: case.generation, known, None),
        }
        toml = with_bands(OUT.read_text(encoding="utf-8"), bands(rows, errors, beside, known))
        toml = re.sub(rf"^# {INSIDE}.*", f"# {INSIDE}{held(rows, errors['sources'])}", toml, flags=re.MULTILINE)
        OUT.write_text(toml, encoding="utf-8")
        print(toml)
        sys.exit()
    fitted = fit(rows)
    lines, errors = (
        validation(rows, fitted) if "--no-validation" not in sys.argv else ([summary(logs(rows, np.exp(fitted)))], {})
    )
    OUT.write_text(
        text(
            fitted,
            lines,
            bands(rows, errors, beside, fitted) if errors else {},
            len(rows),
            sorted({case.runtime for case in (*rows, *beside)}),
        ),
        encoding="utf-8",
    )
    print(OUT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
