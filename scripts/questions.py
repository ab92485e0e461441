"""Answer the questions of docs/questions.toml and write docs/questions.md: the command, the first line of the answer,
and the figure that the answer is compared with.

make docs
"""

import contextlib
import io
import json
import os
import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from tonnage.cli import main
from tonnage.documents.document import builtins
from tonnage.validation import Row, read, validate

ROOT = Path(__file__).parents[1]
QUESTIONS = ROOT / "docs" / "questions.toml"
PAGE = ROOT / "docs" / "questions.md"
# What one of a unit is in the unit of the document.
UNITS = {
    **dict.fromkeys(("tokens", "bytes", "count", "s", "tokens/s", "GPU-hours", "USD", "h"), 1.0),
    "ms": 1e-3, "min": 60.0, "B": 1e9, "MiB": 2.0**20, "GiB": 2.0**30, "MB": 1e6, "GB": 1e9, "%": 0.01,
}  # fmt: skip
HEAD = """# Questions of practice

{count} questions, from the simplest to the hardest, each answered by one command. {compared} are compared with a
figure: a published one, or a product worked by hand. `make docs` runs all of them; they stand in `docs/questions.toml`.
"""


@dataclass(frozen=True)
class Compared:
    """An answer beside its figure, both in `unit`, and where the figure is from."""

    estimated: float
    figure: float
    unit: str
    source: str

    @property
    def off(self) -> float:
        """How far the estimate is off, as a fraction of the figure."""
        return self.estimated / self.figure - 1


def questions() -> list[dict[str, Any]]:
    """The questions as docs/questions.toml has them, each with the heading (`part`) that stands above it."""
    text = QUESTIONS.read_text(encoding="utf-8")
    listed = tomllib.loads(text)["question"]
    headings = re.findall(r"^# (.+)$|^(\[\[question\]\])$", text.partition("\n\n")[2], re.M)
    part, parts = "", []
    for heading, question in headings:
        part = heading or part
        parts += [part] * bool(question)
    return [{"part": part, **question} for part, question in zip(parts, listed, strict=True)]


def run(command: str, *more: str) -> tuple[int, str]:
    """The exit status of a command, and what it prints, without a network."""
    os.environ["HF_HUB_OFFLINE"], os.environ["COLUMNS"] = "1", "240"  # a first line stays one line
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = main([*shlex.split(command)[1:], *more])
    return status, out.getvalue()


@cache
def rows() -> dict[str, Row]:
    """The rows of validation/ by their ids."""
    plans = ROOT / "validation" / "published_plans.yaml"  # has a form of its own
    files = [
        *sorted(path for path in (ROOT / "validation").glob("*.yaml") if path != plans),
        ROOT / "validation" / "recent",
    ]
    return {row.id: row for row in read(files)}


def compared(question: dict[str, Any]) -> Compared | None:
    """The answer beside the figure of a question; None where it has none."""
    if "row" in question and "answer" not in question:
        row = next(row for row in builtins(validate([rows()[question["row"]]]))["rows"] if row["main"])
        return Compared(row["predicted"], row["measured"], row["unit"], _row_source(question["row"]))
    if "answer" not in question:
        return None
    document = json.loads(run(question["command"], "--json")[1])
    found: Any = document
    for name in question["answer"].split("."):
        found = found[int(name)] if name.isdigit() else found[name]
    estimated = float(found["value"] if isinstance(found, dict) else found)
    if "by_hand" in question:
        return Compared(estimated, worked(question["by_hand"]), "", " x ".join(question["by_hand"]).replace("x /", "/"))
    if "row" in question:
        row = rows()[question["row"]]
        return _in_unit(document, estimated, float(row.measured.value), row.measured.unit, _row_source(row.id))
    source = f"{question['source']}, {question['date']}"
    return _in_unit(document, estimated, question["published"], question["unit"], source)


def worked(factors: list[str]) -> float:
    """The product of factors such as "80 layers"; those after a / divide."""
    numbers = [(factor.startswith("/"), float(factor.lstrip("/ ").split()[0])) for factor in factors]
    return prod(1 / number if divides else number for divides, number in numbers)


def _in_unit(document: dict[str, Any], estimated: float, figure: float, unit: str, source: str) -> Compared:
    """The estimate in the unit of the figure; what is published by the GPU is of one GPU."""
    if unit.endswith("/GPU"):
        estimated /= document["question"]["accelerators"]["value"]
    return Compared(estimated / UNITS[unit.removesuffix("/GPU")], figure, unit, source)


def _row_source(name: str) -> str:
    return f"{rows()[name].source} (row {name})"


def page() -> str:
    """docs/questions.md as it is to be."""
    listed = questions()
    figures = [compared(question) for question in listed]
    text = [HEAD.format(count=len(listed), compared=sum(figure is not None for figure in figures))]
    part = ""
    for number, (question, figure) in enumerate(zip(listed, figures, strict=True), 1):
        if question["part"] != part:
            part = question["part"]
            text.append(f"## {part}\n")
        first = run(question["command"])[1].split("\n\n")[0].splitlines()[0]
        text.append(f"**{number}. {question['ask']}**\n\n```sh\n{question['command']}\n```\n\n> {first}\n")
        if figure is not None:
            text.append(_sentence(question, figure))
    return "\n".join(text)


def _sentence(question: dict[str, Any], figure: Compared) -> str:
    """The estimate beside its figure, with the source."""
    unit = "" if figure.unit in ("", "count") else f" {figure.unit}"
    kind = "By hand" if "by_hand" in question else "Published"
    off = "equal" if abs(figure.off) < 0.0005 else f"{100 * figure.off:+.1f} %"
    return f"Estimated {figure.estimated:,.6g}{unit}. {kind}: {figure.figure:,.6g}{unit} ({off}). {figure.source}.\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
