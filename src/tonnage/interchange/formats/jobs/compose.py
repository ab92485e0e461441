"""Docker: `docker run`, and services of Compose, with what their image starts by itself."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.carriers import compose
from tonnage.interchange.parts.launching.carried import carried_commands, read_carried
from tonnage.interchange.parts.launching.containers import PROGRAMS
from tonnage.interchange.reading import Reading
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Source

SIGNS = 40  # of a command: more than those of a launcher, which may stand in front


def recognises(source: Source) -> int:
    if source.kind == "yaml":
        return 20 if compose.services(source) else 0
    if source.kind not in ("text", "command"):
        return 0
    starts = [command for command in source.commands if command.words]
    return SIGNS * any(
        program_name(command.words[0]) in PROGRAMS and {"run", "create", "exec"} & set(command.words[1:3])
        for command in starts
    )


def values(source: Source) -> dict[str, Any]:
    return compose.values(source) if source.kind == "yaml" else {}


def read(r: Reading) -> None:
    r.inside = ("compose",)
    if r.source.kind != "yaml":
        read_carried(r, carried_commands(r.source))
        return
    compose.read(r)


FORMATS.add(
    "compose",
    Format(
        name="compose",
        tool="Docker",
        version="29",
        source="Docker, reference of `docker run`; compose-spec, schema/compose-spec.json",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: compose.KNOWN,
        verbs=("train", "serve"),
    ),
)
