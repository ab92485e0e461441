"""The section of docs/accuracy_details.md on TTFT, TPOT and throughput of served models: errors by source, engine,
generation and model, errors of rows that the fit has not seen (from the header of rates.toml), and the rows that lie
farthest.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from _serving_bounds import at_bounds, count
from tonnage.documents.document import builtins
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.validation import read, validate
from tonnage.validation.serving import ServingRow, time_figure

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "validation" / "infer_speed.yaml"
RATES = ROOT / "src" / "tonnage" / "estimate" / "serving_time" / "rates.toml"
WORST = 25
HEADER = ("figures", "mean", "median", "p90", "bias", "in band")
FIGURES = {
    "tpot_seconds": "TPOT",
    "ttft_seconds": "TTFT",
    "end_to_end_seconds": "end to end",
    "output_tokens_per_second": "throughput",
}

Line = Mapping[str, Any]


class Found:
    """Every figure of a row that is predicted, with what the row asks."""

    def __init__(self) -> None:
        self.rows = {row.id: row for row in read([str(CORPUS)])}
        every = builtins(validate(list(self.rows.values())))["rows"]
        self.lines = [line for line in every if line["relative_error"] is not None]
        self.questions: dict[str, ServingRow] = {line["id"]: ServingRow(self.rows[line["id"]]) for line in self.lines}
        self.skipped = {line["id"]: line["skipped"] for line in every if line["main"] and line["skipped"]}

    def figure(self, line: Line) -> str:
        row = self.rows[line["id"]]
        measured = next(each for each in (row.measured, *row.also) if each.metric == line["metric"])
        return FIGURES[time_figure(measured, self.questions[line["id"]]).of]


def serving_speed() -> list[str]:
    """The lines of the section."""
    found = Found()
    full = [line for line in found.lines if found.rows[line["id"]].completeness_class == "full"]
    lines = [line for line in found.lines if found.rows[line["id"]].completeness_class != "indicative"]
    mains = [row for row in found.rows.values() if row.completeness_class == "full"]
    return [
        "## Latency and throughput of served models",
        "",
        (
            "Predicted over measured, less one, by the rates that ship; the fit saw the rows of vLLM, SGLang and "
            "TensorRT-LLM whose load is said, and the rows of other engines in a second step"
        ),
        (
            f"(scripts/fit_serving.py; {serving_rates().fitted}). "
            f"{sum(row.id not in found.skipped for row in mains)} of {len(mains)} full rows are predicted."
        ),
        "",
        "### Rows that the fit has not seen",
        "",
        *_head(),
        "### Rates at a bound of the fit",
        "",
        (
            f"Of {count(serving_rates())} fitted rates these lie at a bound, so that rows alone would go further: "
            f"{', '.join(at_bounds(serving_rates())) or 'none'}."
        ),
        "",
        "### Full rows with and without those that say less than they seem to",
        "",
        (
            "From what was measured: rows of which an input was taken from their own figures (`from_measured` in "
            "[rows.md](rows.md)). Drafts: rows of which nobody says"
        ),
        (
            "whether tokens were drafted, predicted without. Neither counts in any other table, in a fit or in a band. "
            "Guessed inputs: `guessed`, half weight in the fit."
        ),
        "",
        *_table_of(_honest(found, full)),
        "### Figures of full rows",
        "",
        *_table(full, found.figure),
        "### The silicon sample (InferenceX and NVIDIA's own runs), all aggregated rows",
        "",
        *_table([line for line in lines if _is_sample(found, line)], found.figure),
        "Its Llama rows:",
        "",
        *_table(
            [line for line in lines if _is_sample(found, line) and "llama" in found.questions[line["id"]].name],
            found.figure,
        ),
        "### By source",
        "",
        *_table(full, lambda line: f"{found.questions[line['id']].publication}, {found.figure(line)}"),
        "### By engine",
        "",
        *_table(full, lambda line: f"{found.questions[line['id']].plan.engine}, {found.figure(line)}"),
        "### By generation",
        "",
        *_table(
            full, lambda line: f"{found.questions[line['id']].cluster.accelerator.generation}, {found.figure(line)}"
        ),
        "### By model",
        "",
        *_table(full, lambda line: f"{found.questions[line['id']].name}, {found.figure(line)}"),
        "### Rows without a prediction",
        "",
        *_reasons(found),
        "### The figures that lie farthest",
        "",
        *_worst(full, found),
    ]


def _honest(found: Found, full: Iterable[Line]) -> dict[str, list[Line]]:
    """Lines by figure: all full rows, without those with guessed inputs, with those with inputs from what was measured,
    and with possible drafts.
    """
    measured = [
        line for line in found.lines if found.rows[line["id"]].from_measured and line["completeness"].startswith("full")
    ]
    drafts = [line for line in found.lines if "drafted" in line["completeness"]]
    groups: dict[str, list[Line]] = {}
    for line in full:
        figure, row = found.figure(line), found.rows[line["id"]]
        groups.setdefault(f"{figure}, all full rows", []).append(line)
        if not row.guessed:
            groups.setdefault(f"{figure}, without guessed inputs", []).append(line)
    for name, lines in (("possible drafts", drafts), ("inputs from what was measured", measured)):
        apart: dict[str, list[Line]] = {}
        for line in lines:
            apart.setdefault(found.figure(line), []).append(line)
        for figure, own in apart.items():
            groups[f"{figure}, {name} alone"] = own
            groups[f"{figure}, all full rows and {name}"] = [*groups.get(f"{figure}, all full rows", ()), *own]
    return groups


def _is_sample(found: Found, line: Line) -> bool:
    return found.questions[line["id"]].publication == "silicon-sample"


def _head() -> list[str]:
    """What the fit wrote into the head of its rates."""
    lines = [
        line.removeprefix("# ")
        for line in RATES.read_text().splitlines()
        if line.startswith("# ") and "left out" in line
    ]
    return [*(f"- {line}" for line in lines), ""]


def _table(lines: Iterable[Line], of: Callable[[Line], str]) -> list[str]:
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(of(line), []).append(line)
    return _table_of(groups)


def _table_of(groups: Mapping[str, list[Line]]) -> list[str]:
    out = ["| | " + " | ".join(HEADER) + " |", "|---" * (len(HEADER) + 1) + "|"]
    for name, own in sorted(groups.items()):
        errors = [line["relative_error"] for line in own]
        sizes = sorted(abs(error) for error in errors)
        inside = [line["band"][0] <= line["measured"] <= line["band"][1] for line in own if line["band"]]
        share = f"{100 * sum(inside) / len(inside):.0f} %" if inside else ""
        figures = (mean(sizes), median(sizes), sizes[max(-(-9 * len(sizes) // 10) - 1, 0)])
        out.append(
            f"| {name} | {len(own)} | "
            + " | ".join(f"{100 * value:.1f} %" for value in figures)
            + f" | {100 * mean(errors):+.1f} % | {share} |"
        )
    return [*out, ""]


def _reasons(found: Found) -> list[str]:
    counts: dict[str, int] = {}
    for reason in found.skipped.values():
        counts[reason] = counts.get(reason, 0) + 1
    return [*(f"- {count}: {reason}" for reason, count in sorted(counts.items(), key=lambda pair: -pair[1])), ""]


def _worst(lines: Iterable[Line], found: Found) -> list[str]:
    far = sorted(lines, key=lambda line: -abs(line["relative_error"]))[:WORST]
    out = ["| row | figure | measured | predicted | error |", "|---|---|---|---|---|"]
    out += [
        (
            f"| {line['id']} | {found.figure(line)} | {line['measured']:.4g} {line['unit']} | "
            f"{line['predicted']:.4g} | {100 * line['relative_error']:+.0f} % |"
        )
        for line in far
    ]
    return [*out, ""]
