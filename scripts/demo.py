"""Mend a training run that does not fit, serve a model, and say where to go on: core install, no GPU, no torch, no
network, at most 60 lines of 100 columns.

make demo
"""

import contextlib
import io
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import tonnage
from tonnage.cli import main

COLUMNS = "100"
AS_TYPED = "tonnage train qwen3-8b --on RTX-4090 --method lora --recompute none --no-liger"
RUN = {"model": "qwen3-8b", "on": "RTX-4090", "method": "lora"}
SERVED = "tonnage serve qwen3-14b --on RTX-4090 --weights awq --users 8 --input 1000 --output 300"
VERDICT, WHOLE, PART = 2, 24, 13  # lines of an answer that are shown
TELLING = ("memory", "time", "cost", "energy", "speed")  # how lines of a long answer begin that are shown of it
NEXT = """\
Where to go on:
  {tonnage} train MODEL --on MACHINE     your own run; `tonnage models` and `tonnage accelerators` list names
  {tonnage} serve MODEL --on MACHINE --users 16 --input 1000 --output 200
  {tonnage} plan MODEL --train           the best machines and layouts
  {tonnage} rules                        rules of thumb, each worked, with source and erratum
  {tonnage} web                          the same answers as a page (needs the extra `web`)
  --formulas shows each figure's formula with the numbers put in; docs/tutorial.md takes ten minutes."""


def answered(command: str, most: int) -> Iterator[str]:
    """A command and the first lines of what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(shlex.split(command)[1:])
    first, *lines = out.getvalue().rstrip("\n").splitlines()
    if len(lines) >= WHOLE:
        lines = [line for line in lines if line.startswith(TELLING)]
    yield from (f"$ {command}", first, *lines[: most - 1], "")


def mended() -> str:
    """The command of the run with what is not given chosen so that it fits, else with the first suggestion."""
    answer = tonnage.train(**RUN)
    return answer.command if answer.fits else tonnage.train(**RUN, **answer.advice[0].change).command


def lines() -> Iterator[str]:
    yield "A training run that does not fit:"
    yield from answered(AS_TYPED, VERDICT)
    yield "The same run, mended:"
    yield from answered(mended(), WHOLE)
    yield "A model served on the same card:"
    yield from answered(SERVED, PART)
    beside = Path(sys.executable).parent / "tonnage"
    yield NEXT.format(tonnage=".venv/bin/tonnage" if ".venv" in beside.parts else "tonnage")


if __name__ == "__main__":
    os.environ["COLUMNS"] = COLUMNS
    print("\n".join(lines()))
