"""TensorRT-LLM: `trtllm-serve` and the files of settings beside it, also of servers that share the work."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import trtllm_server
from tonnage.interchange.parts.engines.engine_options import put_version
from tonnage.interchange.parts.engines.servers import (
    DECODE,
    PREFILL,
    Server,
    Size,
    commands_of,
    program_score,
    read_servers,
)
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

PROGRAM = trtllm_server.PROGRAM
PARTS = {"context_servers": PREFILL, "generation_servers": DECODE}


def recognises(source: Source) -> int:
    if source.tree:
        keys = set(map(str, source.tree)) & set(trtllm_server.FILE_SIGNS.split())
        own = keys & {"kv_cache_config", "cuda_graph_config", "moe_config", "context_servers", "generation_servers"}
        return len(keys) + len(own)
    return program_score(source, PROGRAM)


def values(source: Source) -> dict[str, Any]:
    if source.tree:
        return trtllm_server.file_values(source.tree)
    command = next((command for _, command in commands_of(source, PROGRAM)), None)
    if command is None:
        return {}
    words = PROGRAM.values(command)
    if words.get("alone", [])[:1] == ["disaggregated"]:
        file = words.get("config-file", words.get("c"))
        if not isinstance(file, str):
            raise InvalidInput("{file}: trtllm-serve disaggregated needs -c FILE.yaml.", file=source.name)
        return trtllm_server.file_values(source.sibling(file).tree)
    return trtllm_server.values_of(words, source)


def read(r: Reading) -> None:
    r.verb = "serve"
    put_version(r)
    version = r.question.get("engine_version")

    def one(inner: Reading) -> Size:
        if version and inner is not r:
            put_version(inner, version)
        return trtllm_server.read(inner)

    read_servers(r, _servers(r.values, one) or [Server(values=r.values, read=one)])


def _servers(values: Mapping[str, Any], read_one: Any) -> list[Server]:
    """The servers of a file with context and generation servers."""
    parts: dict[str, dict[str, Any]] = {"": {}, **{part: {} for part in PARTS}}
    for key, value in values.items():
        section, _, name = key.partition(".")
        if section in PARTS and name:
            parts[section][name] = value
        else:
            parts[""][key] = value
    if not any(parts[part] for part in PARTS):
        return []
    servers = []
    for part, role in PARTS.items():
        own = parts[part]
        number = own.get("num_instances", 1)
        replicas = number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 10**6 else 1
        if own and replicas:
            servers.append(Server(values={**parts[""], **own}, read=read_one, role=role, replicas=replicas))
    return servers


FORMATS.add(
    "tensorrt-llm",
    Format(
        name="tensorrt-llm",
        tool="TensorRT-LLM",
        version="1.3",
        source="TensorRT-LLM, tensorrt_llm/commands/serve.py; TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: trtllm_server.TABLE.known | trtllm_server.COMPUTED | frozenset(trtllm_server.SHORT),
        verbs=("serve",),
    ),
)
