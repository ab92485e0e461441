"""SGLang: `python -m sglang.launch_server`, `sglang serve`, and files of their options."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import sglang_options, sglang_server
from tonnage.interchange.parts.engines.engine_options import put_version
from tonnage.interchange.parts.engines.servers import Found, Server, Size, commands_of, grouped, read_servers, signs
from tonnage.interchange.parts.engines.writing import SAID_BY_ENGINES, command_of, unnamed
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.interchange.written import Written

PROGRAM = sglang_server.PROGRAM


def recognises(source: Source) -> int:
    if source.tree:
        keys = {str(key).replace("_", "-") for key in source.tree}
        return len(keys & set(sglang_server.CONFIG_SIGNS.split()))
    return signs(source, PROGRAM)


def values(source: Source) -> dict[str, Any]:
    if source.tree:
        return sglang_server.config_values(source.tree, source.name)
    found = next((found for _, found in commands_of(source, PROGRAM)), None)
    return _values(found, source) if found is not None else {}


def _values(found: Found, source: Source) -> dict[str, Any]:
    return sglang_server.values_of(PROGRAM.values(found), source)


def read(r: Reading) -> None:
    r.verb = "serve"
    commands = [found for _, found in commands_of(r.source, PROGRAM)]
    put_version(r)
    version = r.question.get("engine_version")

    def one(inner: Reading) -> Size:
        if version and inner is not r:
            put_version(inner, version)
        return sglang_server.read(inner)

    if len(commands) < 2:
        read_servers(r, [Server(values=r.values, read=one, role=sglang_server.role_of(r.values))])
    else:
        read_servers(r, grouped([_values(found, r.source) for found in commands], one, sglang_server.role_of))


def write(w: Written) -> str:
    return command_of(w)


FORMATS.add(
    "sglang",
    Format(
        name="sglang",
        tool="SGLang",
        version="0.5.23",
        source="SGLang, sglang/srt/arg_groups/fields",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: sglang_options.TABLE.known | sglang_options.COMPUTED | sglang_options.SWITCHES,
        verbs=("serve",),
        sets={"serve": "sglang"},
        write=write,
        says=SAID_BY_ENGINES,
        unsaid=unnamed,
    ),
)
