"""vLLM: `vllm serve`, its server as a module of Python, and files of its options."""

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import vllm_options, vllm_server
from tonnage.interchange.parts.engines.command_format import CommandFormat
from tonnage.interchange.parts.engines.writing import ENGINE_OPTIONS, check_experts, command_of, unnamed
from tonnage.interchange.planned_run import PlannedRun

COMMANDS = CommandFormat(
    program=vllm_server.PROGRAM,
    config_keys=frozenset(vllm_server.CONFIG_KEYS.split()),
    config_values=vllm_server.config_values,
    options=vllm_server.values_of,
    read_server=vllm_server.read,
    role=vllm_server.role_of,
)


def write(w: PlannedRun) -> str:
    check_experts(w)
    return command_of(w)


FORMATS.add(
    "vllm",
    Format(
        name="vllm",
        tool="vLLM",
        version="0.33",
        source="vLLM, vllm/engine/arg_utils.py",
        recognises=COMMANDS.recognises,
        values=COMMANDS.values,
        read=COMMANDS.read,
        known=lambda: vllm_options.TABLE.known | vllm_options.COMPUTED | vllm_options.SWITCHES,
        verbs=("serve",),
        sets={"serve": "vllm"},
        write=write,
        says=ENGINE_OPTIONS,
        omits=unnamed,
    ),
)
