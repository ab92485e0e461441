"""Slurm: scripts for `sbatch`, with the command that they start."""

import re
import shlex
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.carriers import slurm
from tonnage.interchange.parts.jobs.carried_command import carries, counts, fills
from tonnage.interchange.parts.jobs.slurm_script import write
from tonnage.interchange.parts.launching.carried import carried_commands, read_carried
from tonnage.interchange.parts.launching.counting import NO_HOST_LIMIT
from tonnage.interchange.parts.launching.launchers import Layer
from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.source import Source

_DIRECTIVE = re.compile(r"#SBATCH\s+(.*)")
SIGNS = 50


def recognises(source: Source) -> int:
    if source.kind != "text":
        return 0
    return SIGNS if any(_DIRECTIVE.match(line) for line in source.text.splitlines()) else 0


def values(source: Source) -> dict[str, Any]:
    """Options of the lines that begin with #SBATCH, by their long names."""
    options: dict[str, Any] = {}
    for line in source.text.splitlines():
        if not (match := _DIRECTIVE.match(line)):
            continue
        try:
            words = shlex.split(match[1], comments=True)
        except ValueError:  # a quote that is not closed
            words = match[1].split()
        options |= {slurm.SHORT.get(name, name): value for name, value in _options(words).items()}
    return options


def _options(words: list[str]) -> dict[str, Any]:
    separate: list[str] = []
    for word in words:
        is_attached = re.fullmatch(r"-[A-Za-z]\S+", word) and word[1] in slurm.SHORT
        separate += [word[:2], word[2:].removeprefix("=")] if is_attached else [word]
    options, _ = options_of_command(separate, slurm.SWITCHES)
    return {name: value[-1] if isinstance(value, list) else value for name, value in options.items()}


def read(r: Reading) -> None:
    if "nodes" in r.values:
        slurm.check_range(r)
    slurm.put_machine(r)
    own = Layer(name="", values={name: r.values[name] for name in slurm.COUNTS if r.has(name)}, counts=slurm.COUNTS)
    script = slurm.with_variables(r, own)
    r.inside = ("sbatch",)
    read_carried(r, carried_commands(script), own)
    r.ignore(["array"], "each task of the array is a job of its own, as large as the others")
    r.ignore(slurm.IGNORED)
    r.ignore(slurm.HOST, NO_HOST_LIMIT)


FORMATS.add(
    "sbatch",
    Format(
        name="sbatch",
        tool="Slurm",
        version="25.11",
        source="Slurm, doc/man/man1/sbatch.1",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: slurm.KNOWN,
        verbs=("train", "serve"),
        fills=fills,
        write=write,
        ending=".sbatch",
        carries=carries,
        counts=counts,
    ),
)
