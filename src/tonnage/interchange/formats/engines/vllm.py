"""vLLM: `vllm serve`, its server as a module of Python, and files of its options."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import vllm_options, vllm_server
from tonnage.interchange.parts.engines.engine_options import put_version
from tonnage.interchange.parts.engines.servers import Found, Server, Size, commands_of, grouped, read_servers, signs
from tonnage.interchange.parts.engines.writing import SAID_BY_ENGINES, check_experts, command_of, unnamed
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.interchange.written import Written

PROGRAM = vllm_server.PROGRAM


def recognises(source: Source) -> int:
    if source.tree:
        keys = {str(key).replace("_", "-") for key in source.tree}
        return len(keys & set(vllm_server.CONFIG_SIGNS.split())) if "engine-kwargs" not in keys else 0
    return signs(source, PROGRAM)


def values(source: Source) -> dict[str, Any]:
    if source.tree:
        return vllm_server.config_values(source.tree, source.name)
    found = next((found for _, found in commands_of(source, PROGRAM)), None)
    return _values(found, source) if found is not None else {}


def _values(found: Found, source: Source) -> dict[str, Any]:
    return vllm_server.values_of(PROGRAM.values(found), source)


def read(r: Reading) -> None:
    r.verb = "serve"
    commands = [found for _, found in commands_of(r.source, PROGRAM)]
    put_version(r, next((found.tag for found in commands if found.tag), ""))
    version = r.question.get("engine_version")

    def one(inner: Reading) -> Size:
        if version and inner is not r:
            put_version(inner, version)
        return vllm_server.read(inner)

    if len(commands) < 2:
        read_servers(r, [Server(values=r.values, read=one, role=vllm_server.role_of(r.values))])
    else:
        read_servers(r, grouped([_values(found, r.source) for found in commands], one, vllm_server.role_of))


def write(w: Written) -> str:
    check_experts(w)
    return command_of(w)


FORMATS.add(
    "vllm",
    Format(
        name="vllm",
        tool="vLLM",
        version="0.33",
        source="vLLM, vllm/engine/arg_utils.py",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: vllm_options.TABLE.known | vllm_options.COMPUTED | vllm_options.SWITCHES,
        verbs=("serve",),
        sets={"serve": "vllm"},
        write=write,
        says=SAID_BY_ENGINES,
        unsaid=unnamed,
    ),
)
