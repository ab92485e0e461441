"""SGLang: `python -m sglang.launch_server`, `sglang serve`, and files of their options."""

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import sglang_options, sglang_server
from tonnage.interchange.parts.engines.command_format import CommandFormat
from tonnage.interchange.parts.engines.writing import ENGINE_OPTIONS, command_of, unnamed

COMMANDS = CommandFormat(
    program=sglang_server.PROGRAM,
    config_keys=frozenset(sglang_server.CONFIG_KEYS.split()),
    config_values=sglang_server.config_values,
    options=sglang_server.values_of,
    read_server=sglang_server.read,
    role=sglang_server.role_of,
)


FORMATS.add(
    "sglang",
    Format(
        name="sglang",
        tool="SGLang",
        version="0.5.23",
        source="SGLang, sglang/srt/arg_groups/fields",
        recognises=COMMANDS.recognises,
        values=COMMANDS.values,
        read=COMMANDS.read,
        known=lambda: sglang_options.TABLE.known | sglang_options.COMPUTED | sglang_options.SWITCHES,
        verbs=("serve",),
        sets={"serve": "sglang"},
        write=command_of,
        says=ENGINE_OPTIONS,
        omits=unnamed,
    ),
)
