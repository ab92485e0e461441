"""The section of docs/accuracy_details.md on the time of a step: errors by source, precision, generation and kind,
errors of rows that the fit has not seen (from the header of rates.toml), and the rows that lie farthest, with why where
it is known.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median

from _speed_cases import CORPUS, LEFT_OUT, ROOT, SHARED, Case, cases
from tonnage.documents.document import builtins
from tonnage.estimate.hardware.rates import rates
from tonnage.validation import read, validate

RATES = ROOT / "src" / "tonnage" / "estimate" / "hardware" / "rates.toml"
WORST = 25
WHOLE_RUNS = ("published-run", "pythia")
HEADER = ("rows", "mean", "median", "p90", "bias", "in band")
# Why rows of a kind lie far, where that is known: words of an id, and the cause.
CAUSES = (
    (
        r"gpt-oss-120b-gb300-g64-mxfp8-gbs1280",
        "the same layout is published with 2.47 s and, in the container between, with 4.04 s",
    ),
    (
        r"qwen3-30b-a3b-h100-g16-fp8.*gbs(512|1024)",
        "the same layout is published with 51.3 s in 26.02 and with 28.9 s in 26.02.01",
    ),
    (
        r"qwen3-235b-a22b-b300",
        "as slow with half the tokens in the container before: the host, or an overlap that is on",
    ),
    (r"mlm-h100", "micro-batch, interleaving and recomputation are not on the page"),
    (
        r"llama3-70b-gb300-g64-(mxfp8|nvfp4)",
        "the page's layout needs more memory than the GPU has: it cannot be what ran",
    ),
    (r"run-llama3", "interleaving and the real sharding are not published"),
    (r"run-opt", "wall clock of 34 days, restarts among it; its logbook says 56"),
    (r"run-mpt-7b", "on 40 GB, in a run whose batch is not said"),
    (r"torchtune", "rates of an early table; recomputation is not said"),
    (r"mt-nlg|mtnlg", "micro-batch and interleaving are not published"),
    (r"megascale", "micro-batch, recomputation and precision are not in the table"),
    (r"fp8-default|ampfp8", "Transformer Engine of 2023"),
)


def speed() -> list[str]:
    """The lines of the section."""
    found = cases()
    with_rates = rates()
    errors = {case.id: case.seconds(with_rates) / case.measured - 1 for case in found}
    every = cases(everything=True)
    return [
        "## Time of a step",
        "",
        (
            "Rows that say all (`full`), by the rates that ship, which were fitted on them; predicted over "
            "measured seconds of a step, less one. How far"
        ),
        "rows lie that the fit has not seen comes after. Left out of both: "
        + "; ".join(f"{name} ({why})" for name, why in LEFT_OUT.items())
        + f"; nanotron's runs on more than {SHARED} accelerators of a cluster that others use too.",
        "",
        _covered(),
        "",
        "### Rows that the fit has not seen",
        "",
        *_seen(),
        "### With and without rows that say less than they seem to",
        "",
        *_honest(found, every),
        "### Rates that few rows decide",
        "",
        *_few(found),
        "### By source",
        "",
        *_table("source", found, errors, lambda case: case.source),
        "### By precision",
        "",
        *_table("precision", found, errors, lambda case: case.question.plan.precision),
        "### By generation",
        "",
        *_table("generation", found, errors, lambda case: case.question.cluster.accelerator.generation),
        "### Dense models, and models with experts",
        "",
        *_table("kind", found, errors, lambda case: case.kind),
        "### What no fit counts",
        "",
        *_uncounted(every, {case.id for case in found}),
        "### Whole published runs",
        "",
        (
            "Hours or days, of which layouts, batches and sometimes the number of accelerators are guessed as "
            "such runs were laid out"
        ),
        (
            "(scripts/rows/speed/published.py, whose rules were written with these rows in sight). Nothing but "
            "steps is counted: no failures, no evaluation, no checkpoints."
        ),
        "",
        *_whole_runs(),
        "### The rows that lie farthest",
        "",
        *_worst(found, errors),
    ]


def _covered() -> str:
    lines = [line for line in builtins(validate(read([str(CORPUS)])))["rows"] if line["main"]]
    full = [line for line in lines if line["completeness"] == "full"]
    covered = sum(line["relative_error"] is not None for line in full)
    reasons = sorted({re.sub(r"\. (Got|Nearest).*", "", str(line["skipped"])) for line in full if line["skipped"]})
    return (
        f"Of {len(full)} rows that say all, {covered} are predicted ({100 * covered / len(full):.1f} %). Of the "
        f"others: {'; '.join(reasons)}."
    )


def _seen() -> list[str]:
    """The table in the header of rates.toml."""
    rows = []
    for line in RATES.read_text(encoding="utf-8").splitlines():
        found = re.match(r"# (.*): n (\d+) median ([\d.]+) mean ([\d.]+) p90 ([\d.]+) bias ([-+\d.]+)", line)
        if found:
            name, count, middle, average, most, bias = found.groups()
            rows.append(f"| {name} | {count} | {average} % | {middle} % | {most} % | {bias} % |")
    return ["| left out | rows | mean | median | p90 | bias |", "|---|---:|---:|---:|---:|---:|", *rows, ""]


def _table(what: str, found: Sequence[Case], errors: dict[str, float], of: Callable[[Case], str]) -> list[str]:
    groups: dict[str, list[Case]] = {}
    for case in found:
        groups.setdefault(of(case), []).append(case)
    rows = [f"| {name} | {' | '.join(_figures(members, errors))} |" for name, members in sorted(groups.items())]
    return [f"| {what} | {' | '.join(HEADER)} |", f"|---|{'---:|' * len(HEADER)}", *rows, ""]


def _honest(found: Sequence[Case], every: Sequence[Case]) -> list[str]:
    """Errors of the rows that count, without guesses and recipes, and with those of the shared cluster and of whole
    runs.
    """
    shared = [case for case in every if case.on_shared_network]
    whole = [case for case in every if case.source in WHOLE_RUNS]
    recipes = [case for case in found if case.source == "megatron-bridge"]
    groups = {
        "rows that count": found,
        "without rows with guessed inputs (half weight in the fit)": [c for c in found if not c.question.is_guessed],
        "without megatron-bridge": [case for case in found if case.source != "megatron-bridge"],
        "megatron-bridge, recipes of the row's release and sizes": [c for c in recipes if not c.question.is_guessed],
        "megatron-bridge, recipes guessed": [c for c in recipes if c.question.is_guessed],
        f"with nanotron's {len(shared)} runs on more than {SHARED} accelerators": [*found, *shared],
        "with these and whole published runs": [*found, *shared, *whole],
    }
    with_rates = rates()
    errors = {case.id: case.seconds(with_rates) / case.measured - 1 for case in every}
    rows = [f"| {name} | {' | '.join(_figures(members, errors))} |" for name, members in groups.items()]
    return [f"| rows | {' | '.join(HEADER)} |", f"|---|{'---:|' * len(HEADER)}", *rows, ""]


def _few(found: Sequence[Case]) -> list[str]:
    """The rate of one kernel of one release, runtimes whose own rows widen their band, and rates at a bound."""
    held = rates()
    fused = sum(case.step.framework.fuses_experts for case in found)
    bound = re.search(r"^# At a bound.*: (.*)$", RATES.read_text(encoding="utf-8"), re.MULTILINE)
    widened = ", ".join(
        f"{name} {band.low:.2f} to {band.high:.2f} ({band.rows} rows)" for name, band in held.runtimes.items()
    )
    return [
        "- DeepSpeed has no factor of its own: Pythia's rows are hours of whole runs, which no fit sees.",
        f"- The few rows of these runtimes, unseen by the fit, widen the runtime's band: {widened}.",
        (
            f"- `fused_experts` {held.fused_experts:.3f}, on {fused} rows: permutations and casts around experts' "
            "products where Transformer Engine's fused grouped MLP does them (MXFP8 on Blackwell, steps that CUDA "
            "graphs replay)."
        ),
        f"- At a bound of the fit: {bound[1] if bound else 'unknown'}.",
        "",
    ]


def _figures(found: Sequence[Case], errors: dict[str, float]) -> list[str]:
    signed = [errors[case.id] for case in found]
    sizes = sorted(map(abs, signed))
    return [
        str(len(sizes)),
        _percent(mean(sizes)),
        _percent(median(sizes)),
        _percent(sizes[-(-9 * len(sizes) // 10) - 1]),
        f"{100 * median(signed):+.1f} %",
        f"{sum(_inside(case, errors[case.id]) for case in found)}",
    ]


def _inside(case: Case, error: float) -> bool:
    band = rates().band(case.kind, case.runtime)
    return band is not None and band.low <= 1 / (1 + error) <= band.high


def _uncounted(every: Sequence[Case], counted: set[str]) -> list[str]:
    others = [case for case in every if case.id not in counted]
    with_rates = rates()
    errors = {case.id: case.seconds(with_rates) / case.measured - 1 for case in others}
    return _table("source", others, errors, lambda case: case.source)


def _whole_runs() -> list[str]:
    found = [
        case
        for kind in ("full", "partial")
        for case in cases(kind, everything=True)
        if re.search(r"hours|days|time$", f"{case.row.measured.metric} {case.row.measured.unit}")
        and case.source in ("published-run", "pythia", "llm-foundry")
    ]
    rows = []
    for case in found:
        ratio = case.seconds(rates()) / case.measured
        inside = "yes" if _inside(case, ratio - 1) else "no"
        measured = case.row.measured
        rows.append(
            f"| {case.id} | {_plain(measured.value)} | {_plain(measured.value * ratio)} | {measured.unit} | "
            f"{100 * (ratio - 1):+.0f} % | {inside} | {_cause(case.id)} |"
        )
    return [
        "| run | published | predicted | unit | error | in the band | cause, where known |",
        "|---|---:|---:|---|---:|---|---|",
        *rows,
        "",
    ]


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _worst(found: Iterable[Case], errors: dict[str, float]) -> list[str]:
    ordered = sorted(found, key=lambda case: -abs(errors[case.id]))[:WORST]
    rows = [
        (
            f"| {case.id} | {case.measured:.2f} | {case.measured * (1 + errors[case.id]):.2f} | "
            f"{100 * errors[case.id]:+.0f} % | {_cause(case.id)} |"
        )
        for case in ordered
    ]
    return ["| row | measured, s | predicted, s | error | cause, where known |", "|---|---:|---:|---:|---|", *rows, ""]


def _cause(name: str) -> str:
    return next((why for pattern, why in CAUSES if re.search(pattern, name)), "")


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
