"""Commands behind launchers: srun, mpirun, torchrun, uv run and others, in scripts without a scheduler's options."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.launching.carried import carried_commands, read_carried
from tonnage.interchange.parts.launching.programs import LAUNCHERS, SHELLS
from tonnage.interchange.reading import Reading
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Source

SIGNS = 30
LEAST = 1  # where tools may know their launcher themselves
OF_TOOLS = ("torchrun", "deepspeed")
_FIRST = frozenset(start[0] for launcher in LAUNCHERS for start in launcher.starts if start[0] != "time") | set(SHELLS)


def recognises(source: Source) -> int:
    """Whether the command that trains or serves stands behind a launcher."""
    if source.kind not in ("text", "command"):
        return 0
    if not any(command.words and program_name(command.words[0]) in _FIRST for command in source.commands):
        return 0
    behind = [one for one in carried_commands(source) if one.is_behind]
    if not behind:
        return 0
    return LEAST if all(one.layers and one.layers[0].name in OF_TOOLS for one in behind) else SIGNS


def values(source: Source) -> dict[str, Any]:
    return {}


def read(r: Reading) -> None:
    read_carried(r, carried_commands(r.source))


FORMATS.add(
    "launcher",
    Format(
        name="launcher",
        tool="launchers",
        version="",
        source="man pages of srun, mpirun and apptainer; torch/distributed/run.py; deepspeed/launcher/runner.py",
        recognises=recognises,
        values=values,
        read=read,
        verbs=("train", "serve"),
    ),
)
