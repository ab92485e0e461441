"""Counts what fixed questions cost, with no clock: the modules that a process imports, and the calls of Python
functions and the blocks of memory of one answer, its imports apart.

    python scripts/counts.py                # today's figures beside those of tests/counts.toml
    python scripts/counts.py --write        # records them: after an answer became cheaper, or dearer for a reason
    python scripts/counts.py --modules train    # which modules this question imports

tests/test_counts.py fails where a figure is more than a tenth above its record, or a module is there that the question
does not need. Counts are those of a fresh process with the hash seed 0, no configuration of a user, and fresh packs of
`kernel.prepared`; each Python has its own, so the table names the one that it was made with.
"""

import argparse
import ast
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tonnage.kernel import prepared

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "counts.toml"
ABOVE = 1.1  # times the record: the limit
FIGURES = ("modules", "calls", "blocks")

# What a plain answer never needs. Of the standard library: what reads sources, archives, tables, installed packages.
NEVER = (
    *("numpy", "torch", "transformers", "rich", "yaml", "huggingface_hub", "plotly", "pyarrow", "highspy"),
    *("tomllib", "csv", "difflib", "email", "importlib.metadata", "shutil", "subprocess", "threading", "zipfile"),
    *("tonnage.api", "tonnage.mcp_server", "tonnage.measure", "tonnage.rules", "tonnage.search", "tonnage.trace"),
    *("tonnage.validation", "tonnage.web", "tonnage.language.catalogues", "tonnage.user_files.toml_text"),
)
SERVING = (
    *("tonnage.estimate.serving", "tonnage.estimate.serving_time", "tonnage.estimate.load"),
    *("tonnage.estimate.answer.serving", "tonnage.numerics.quantization", "tonnage.question.subjects.serving"),
)
TRAINING = (
    *("tonnage.estimate.answer.training", "tonnage.estimate.frameworks", "tonnage.estimate.memory"),
    *("tonnage.estimate.layers", "tonnage.estimate.run.run", "tonnage.estimate.step.stage"),
    *("tonnage.estimate.step_time", "tonnage.question.subjects.training"),
)
OWNING = ("tonnage.estimate.money.ownership",)
WHOLE_RUNS = ("tonnage.estimate.run.run", "tonnage.estimate.run.scaling", "tonnage.formulas.rules")
OF_JSON = ("json", "tonnage.render")  # msgspec writes it


class Asked(NamedTuple):
    """A question, and the modules that must not be there when it is answered."""

    words: tuple[str, ...]
    absent: tuple[str, ...]


TRAINED = ("train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB")
SERVED = ("serve", "llama-3.1-8b", "--on", "1xH100-SXM-80GB")
TOO_LARGE = ("train", "llama-3.1-70b", "--on", "8xH100-SXM-80GB", "--json")
QUESTIONS = {
    "train": Asked((*TRAINED, "--json"), (*NEVER, *SERVING, *WHOLE_RUNS, *OWNING, *OF_JSON)),
    "train as text": Asked(TRAINED, (*NEVER, *SERVING, *WHOLE_RUNS, "json")),
    "train without advice": Asked((*TRAINED, "--no-advice", "--json"), (*NEVER, *SERVING, "tonnage.estimate.advice")),
    "train that does not fit": Asked(TOO_LARGE, (*NEVER, *SERVING, *WHOLE_RUNS, *OWNING, *OF_JSON)),
    "serve": Asked((*SERVED, "--json"), (*NEVER, *TRAINING, *OWNING, *OF_JSON)),
    "serve as text": Asked(SERVED, (*NEVER, *TRAINING, "json")),
    "help of train": Asked(("train", "--help"), (*NEVER, *SERVING, "json", "tonnage.estimate", "tonnage.catalogue")),
    "help of serve": Asked(("serve", "--help"), (*NEVER, *TRAINING, "json", "tonnage.estimate", "tonnage.catalogue")),
}


@cache
def imported(name: str) -> tuple[str, ...]:
    """The modules of a process that answers this question."""
    return tuple(_counted(QUESTIONS[name].words)["modules"])


@cache
def counts(name: str) -> dict[str, int]:
    """Today's figures of a question."""
    return {"modules": len(imported(name)), **_counted(QUESTIONS[name].words, imported(name))}


def unneeded(name: str) -> list[str]:
    """The modules of a question's process that it does not need."""
    absent = QUESTIONS[name].absent
    return [module for module in imported(name) if any(f"{module}.".startswith(f"{one}.") for one in absent)]


def recorded() -> dict[str, dict[str, int]]:
    """The figures of the table, by question."""
    tables: dict[str, dict[str, int]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["questions"]
    return tables


def table() -> str:
    """The table with today's figures."""
    lines = [
        "# Counts of fixed questions, by `python scripts/counts.py --write`: never by hand. Limits are a tenth above.",
        f'python = "{sys.version_info.major}.{sys.version_info.minor}"',
    ]
    for name in QUESTIONS:
        figures = counts(name)
        lines += ["", f'[questions."{name}"]', *(f"{figure} = {figures[figure]}" for figure in FIGURES)]
    return "\n".join(lines) + "\n"


def _counted(words: tuple[str, ...], before: tuple[str, ...] = ()) -> dict:
    """What scripts/_counted.py counts, in a process that nothing of the machine's user changes."""
    with tempfile.TemporaryDirectory() as home:
        plain = {"PATH": os.environ.get("PATH", ""), "HOME": home, "COLUMNS": "100", "PYTHONHASHSEED": "0"}
        command = [sys.executable, ROOT / "scripts" / "_counted.py", _packs(), ",".join(before), *words]
        done = subprocess.run(command, env=plain, capture_output=True, check=True)
    found: dict = ast.literal_eval(done.stdout.decode())
    return found


@cache
def _packs() -> str:
    """Packs that are not older than their sources, whatever this checkout has; they go with this process."""
    folder = tempfile.TemporaryDirectory()
    _kept.append(folder)
    prepared.prepare(packs=folder.name)
    return folder.name


_kept: list[tempfile.TemporaryDirectory[str]] = []


def rows() -> Iterator[str]:
    """Today's figures beside the recorded ones."""
    known = recorded()
    for name in QUESTIONS:
        figures = (f"{counts(name)[figure]:>8,} of {known[name][figure]:>8,} {figure}" for figure in FIGURES)
        yield f"{name:<24} {'   '.join(figures)}"
        yield from (f"    needs no {module}" for module in unneeded(name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record today's figures")
    parser.add_argument("--modules", metavar="QUESTION", choices=QUESTIONS, help="list the modules of a question")
    given = parser.parse_args()
    if given.modules:
        print("\n".join(imported(given.modules)))
    else:
        if given.write:
            TABLE.write_text(table(), encoding="utf-8")
        print("\n".join(rows()))
