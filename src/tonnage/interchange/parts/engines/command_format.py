"""The format of an engine whose servers are commands of one program, and files of its options: vLLM and SGLang."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.engines.engine_options import put_version
from tonnage.interchange.parts.engines.servers import (
    EngineCommand,
    Program,
    Server,
    Size,
    commands_of,
    grouped,
    program_score,
    read_servers,
)
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source


class CommandFormat(Struct, frozen=True, kw_only=True):
    """How an engine's commands and files are read.

    program: what its commands start; config_keys: names that a file of its options has, and hardly another tool's
    config_values: the options of such a file, by its tree and name
    options: the options of a command, with those of the file that it names
    read_server: says of each option of one server what it means; role: what part of the work a server does
    """

    program: Program
    config_keys: frozenset[str]
    config_values: Callable[[Mapping[str, Any], str], dict[str, Any]]
    options: Callable[[Mapping[str, Any], Source], dict[str, Any]]
    read_server: Callable[[Reading], Size]
    role: Callable[[Mapping[str, Any]], str]

    def recognises(self, source: Source) -> int:
        """Points of a source, as `Format.recognises` has them. Ray Serve's files have options of engines too."""
        if source.tree:
            keys = {str(key).replace("_", "-") for key in source.tree}
            return len(keys & self.config_keys) if "engine-kwargs" not in keys else 0
        return program_score(source, self.program)

    def values(self, source: Source) -> dict[str, Any]:
        """The options of a file, or of the first command of the engine."""
        if source.tree:
            return self.config_values(source.tree, source.name)
        command = next((command for _, command in commands_of(source, self.program)), None)
        return self._values(command, source) if command is not None else {}

    def _values(self, command: EngineCommand, source: Source) -> dict[str, Any]:
        return self.options(self.program.values(command), source)

    def read(self, r: Reading) -> None:
        """Read all servers that a source starts."""
        r.verb = "serve"
        commands = [command for _, command in commands_of(r.source, self.program)]
        put_version(r, next((command.tag for command in commands if command.tag), ""))
        version = r.question.get("engine_version")

        def read_one(inner: Reading) -> Size:
            if version and inner is not r:
                put_version(inner, version)
            return self.read_server(inner)

        if len(commands) < 2:
            read_servers(r, [Server(values=r.values, read=read_one, role=self.role(r.values))])
        else:
            read_servers(r, grouped([self._values(one, r.source) for one in commands], read_one, self.role))
