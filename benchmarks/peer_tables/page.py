"""docs/peers.md: the tables, in lines that a terminal shows as well."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import yaml

import tonnage
from peer_tables import cache_sizes, serving
from peer_tables.cases import TABLES, measured
from peer_tables.live import COUNTED, INSTALLED
from peer_tables.speed import section
from tonnage.catalogue import model_file
from tonnage.estimate.serving.memory import serving_memory
from tonnage.spec import ServingPlan

FIGURES = Path(__file__).parent / "figures.yaml"
PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
Rows = Mapping[str, Mapping[str, float]]  # by what a line of the table says, then by run

INTRODUCTION = """# Other tools on the same questions

Generated. `make peers` installs the tools that PyPI has into .venv-peers, asks them and tonnage, and writes this page; `make docs` takes
their answers of the last time ({asked}) and asks tonnage alone, without network. Each line says where it comes from:

- computed: tonnage, when the page was written
- live: a tool from PyPI, asked on {asked} by the program that wrote this page
- quoted: benchmarks/peer_tables/figures.yaml, with version and day; the tool needs a checkout, a web page or a GPU

Training comes first, then serving. Memory of training is in GiB of one GPU and counts tensors alone: no CUDA context, no NCCL buffers,
no memory that the allocator reserves beyond them. A dash: not asked, or the tool cannot say.
"""
TEXTS = {
    "measured": """## Eight runs that somebody measured

Megatron-LM (core 0.14) on eight B200s: Llama-3-70B cut to 12 layers, Llama-3.1-405B cut to 4 (with 16 heads of keys and values), sequences of 4,096,
one a micro-batch, four micro-batches, sequence parallelism, flash attention, fused cross entropy, distributed optimizer, nothing
recomputed. Measured: `torch.cuda.max_memory_allocated` of the fullest rank, as SimuMax published it (validation/allocator_reserve.yaml).
""",
    "zero1": """## ZeRO-1: optimizer sharded

No measurement exists of these. A: Llama-2-7B, sequences of 4,096, eight A100-80GB, data parallel. B: the same with Llama-3-8B and 8,192. C: GPT-3 175B, sequences
of 2,048, tensor parallel 8, pipeline parallel 8, 64 micro-batches; eager: scores written out, as in C selective and full, elsewhere flash attention.
One sequence a micro-batch, bf16 with fp32 master weights and AdamW. tonnage: runtime `megatron`, no dropout.
""",
    "zero3": """## ZeRO-3: weights, gradients and optimizer sharded

A and B on eight GPUs, by recomputation. tonnage: runtime `fsdp2` with torchtitan's recipe, whose loss holds fewer copies of the logits than
that of transformers, which FSDPMemTracker runs (docs/traced_and_analytic.md has the difference part by part).
""",
    "counts": """## Parameters, and bytes of keys and values for a token

tonnage: computed, beside the published count and beside what the architecture keeps. llm-analysis: live, told the dimensions.
""",
}
SOURCES = """- **tonnage** {version}, computed: `tonnage.train(...)`, memory at the peak of the fullest rank without its `runtime overhead`.
- **llm-analysis**, live on {asked} ({llm_analysis}): the newest on PyPI, older than the commit that is quoted. It counts two matrices in each
  feed-forward layer, and one table for tied and untied embeddings. Sum: weights, gradients, optimizer and activations.
- **accelerate**, live on {asked} ({accelerate}): `estimate-memory` takes names on the Hub alone, so the functions that it calls are
  given the catalogue's config. "Training using Adam": four times the weights. No parallelism, no activations, no head.
- **aiconfigurator**, live on {asked} ({aiconfigurator}, with the aiconfigurator-core of the same version): `cli_estimate`, in process and without the Hub; a model by the config that it ships. It has
  kernels of newer engines than those of the rows: all figures are of the version that it takes where none is named.
- **GenZ**, live on {asked} ({genz}): the models of its list that rows have, the datasheet's peak, bandwidth and link, its efficiency left at 1.
- **roofline**, computed: chapter 7 of jax-ml.github.io/scaling-book as it is published (benchmarks/peer_tables/scaling_book.py).
- **hf-mem**, live on {asked} ({hf_mem}): it takes names on the Hub alone, so its own function is given the catalogue's config, and told bf16.
"""


def page(answers: Mapping[str, Any]) -> str:
    """The whole page: tonnage's figures as they are today, the others as `answers` and figures.yaml have them."""
    figures = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    parts = [INTRODUCTION.format(asked=answers["asked"])]
    for name in TABLES:
        rows = _rows(name, figures, answers)
        lines = _errors(rows) if name == "measured" else _gib(name, rows)
        parts += [TEXTS[name], table(lines)]
    about, times, cost = section(answers)
    parts += [about, table(times), cost]
    parts += [TEXTS["counts"], table(_counts(answers["llm-analysis"]["counts"]))]
    about, times, cost = serving.section(answers["serving"])
    parts += [about, table(times), cost, cache_sizes.TEXT, table(cache_sizes.section(answers["hf-mem"]))]
    parts += ["## Who was asked, and how\n", _sources(figures["tools"], answers["asked"])]
    commands = [f"- {case.name}: `{case.command}`" for cases in TABLES.values() for case in cases]
    parts += ["## The same questions on the command line\n", "\n".join(commands) + "\n"]
    return "\n".join(parts)


def _rows(name: str, figures: Mapping[str, Any], answers: Mapping[str, Any]) -> Rows:
    """What each tool answered, by run."""
    rows = {"tonnage (computed)": {case.name: case.allocated() for case in TABLES[name]}}
    rows |= {f"{figures['tools'][tool]['name']} (quoted)": found for tool, found in figures[name].items()}
    rows[f"{INSTALLED['llm-analysis'][0].replace('==', ' ')}, sum (live)"] = answers["llm-analysis"][name]
    if name == "zero3":
        for kind in ("float16", "float32"):
            known = {case.name: answers["accelerate"][case.name[0]][kind] for case in TABLES[name]}
            rows[f"accelerate, {kind} (live)"] = known
    return rows


def _gib(name: str, rows: Rows) -> list[Sequence[str]]:
    """One line a tool, one column a run."""
    runs = [case.name for case in TABLES[name]]
    lines = [(tool, *(f"{found[run]:.1f}" if run in found else "-" for run in runs)) for tool, found in rows.items()]
    return [("GiB", *runs), *lines]


def _errors(rows: Rows) -> list[Sequence[str]]:
    """One line a run, one column a tool: its answer and what that is off by."""
    truth = measured()
    lines: list[Sequence[str]] = [("GiB", "measured", *rows)]
    errors = {tool: [found[run] / truth[run] - 1 for run in truth] for tool, found in rows.items()}
    for i, (run, value) in enumerate(truth.items()):
        lines.append(
            (run, f"{value:.2f}", *(f"{found[run]:.2f} ({errors[tool][i]:+.1%})" for tool, found in rows.items()))
        )
    lines.append(("mean error", "", *(f"{mean(one):+.1%}" for one in errors.values())))
    lines.append(("mean of absolute errors", "", *(f"{mean(map(abs, one)):.1%}" for one in errors.values())))
    return lines


def _counts(theirs: Mapping[str, Mapping[str, float]]) -> list[Sequence[str]]:
    lines: list[Sequence[str]] = [
        ("model", "published", "tonnage", "llm-analysis", "keys and values, tonnage", "llm-analysis")
    ]
    for name in COUNTED:
        model, found = tonnage.read(name, offline=True), theirs[name]
        kept = serving_memory(model, ServingPlan(context=1024)).fullest.kept_per_token.value
        # exact counts say whether they hold the layers that predict several tokens ahead
        published, all_layers = next(
            (one.parameters, one.counts == "all")
            for one in model_file(name).published
            if isinstance(one.parameters, int)
        )
        ours, other = model.num_parameters(all_layers) / published - 1, found["parameters"] / published - 1
        lines.append(
            (
                name,
                f"{published:,}",
                f"{ours:+.1%}",
                f"{other:+.1%}",
                f"{kept:,.0f}",
                f"{found['kv_bytes_per_token'] / kept:.2f} x",
            )
        )
    return lines


def _sources(tools: Mapping[str, Mapping[str, str]], asked: str) -> str:
    installed = {tool.replace("-", "_"): ", ".join(packages) for tool, packages in INSTALLED.items()}
    lines = [SOURCES.format(version=tonnage.__version__, asked=asked, **installed).rstrip()]
    lines += [
        f"- **{tool['name']}**, quoted: {tool['how']}. {tool['where']}, {tool['version']}; read on {tool['read']}."
        for tool in tools.values()
    ]
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table of markdown with aligned columns, whose numbers stand right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))) + " |" for row in rows]
    rule = "|" + "|".join(("-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]))) + "|"
    return "\n".join((lines[0], rule, *lines[1:])) + "\n"
