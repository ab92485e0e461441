"""Ollama: a Modelfile, and scripts with `ollama run` and the variables of its server."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines.engine_options import (
    NO_OPTION,
    Options,
    count,
    facts_of,
    names,
    put_count,
    put_version,
)
from tonnage.interchange.parts.engines.gguf_names import put_file, put_library
from tonnage.interchange.parts.engines.servers import Program, Server, Size, commands_of, read_servers
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

PROGRAM = Program(
    starts=(("ollama", "run"), ("ollama", "serve"), ("ollama", "start"), ("ollama", "create"), ("ollama", "pull")),
    switches=names(
        "verbose insecure nowordwrap hidethinking experimental experimental-yolo truncate experimental-websearch"
    ),
    variables=("OLLAMA_",),
)
INSTRUCTION = re.compile(
    r"^\s*(FROM|PARAMETER|TEMPLATE|SYSTEM|ADAPTER|LICENSE|MESSAGE|REQUIRES|RENDERER|PARSER)\s+(.*)$", re.IGNORECASE
)
OF_CONTAINERS = re.compile(r"^\s*(RUN|CMD|ENTRYPOINT|COPY|ADD|WORKDIR|EXPOSE|ENV|ARG)\s", re.IGNORECASE | re.MULTILINE)
OWN = ("parameter", "template", "system", "adapter", "license", "message", "requires", "renderer", "parser")
SAYS = names("""
    engine context concurrency max_num_batched_tokens kv_cache layers_on_accelerator lora_adapters
""")
IGNORED = names("""
    template system license message requires renderer parser num_keep seed num_predict top_k top_p min_p typical_p tfs_z
    repeat_last_n temperature repeat_penalty presence_penalty frequency_penalty mirostat mirostat_eta mirostat_tau
    penalize_newline stop num_thread numa main_gpu use_mmap use_mlock num_gqa rope_frequency_base rope_frequency_scale
    verbose insecure nowordwrap hidethinking keepalive format think experimental experimental-yolo
    experimental-websearch quantize q f file
    OLLAMA_HOST OLLAMA_MODELS OLLAMA_KEEP_ALIVE OLLAMA_DEBUG OLLAMA_DEBUG_LOG_REQUESTS OLLAMA_LOAD_TIMEOUT
    OLLAMA_MAX_QUEUE
    OLLAMA_NOHISTORY OLLAMA_NOPRUNE OLLAMA_ORIGINS OLLAMA_LLM_LIBRARY OLLAMA_MULTIUSER_CACHE OLLAMA_REMOTES
    OLLAMA_AUTH OLLAMA_EDITOR OLLAMA_NO_CLOUD OLLAMA_USE_AUTH OLLAMA_TMPDIR OLLAMA_RUNNERS_DIR OLLAMA_HOME
    OLLAMA_NEW_ESTIMATES OLLAMA_MAX_LOADED_MODELS OLLAMA_SCHED_SPREAD OLLAMA_API_KEY OLLAMA_LIBRARY_PATH
""")
TABLE = Options(
    ignored=IGNORED,
    harmless={
        "OLLAMA_FLASH_ATTENTION": (("1", "true"), "scores of attention are written"),
        "OLLAMA_VULKAN": (("0", "false"), "kernels of Vulkan take other times"),
        "OLLAMA_INTEL_GPU": (("0", "false"), NO_OPTION),
        "OLLAMA_NEW_ENGINE": (("0", "false"), "Ollama's own engine takes other amounts"),
        "low_vram": (("false",), NO_OPTION),
        "f16_kv": (("true",), NO_OPTION),
        "logits_all": (("false",), NO_OPTION),
        "vocab_only": (("false",), NO_OPTION),
        "embedding_only": (("false",), "a model that pools is not estimated"),
        "draft_num_predict": (("0",), "drafts are not estimated with Ollama"),
        "truncate": (("true",), "a model that pools is not estimated"),
        "dimensions": ((), "a model that pools is not estimated"),
    },
    unsure={"draft": "drafts are not estimated with Ollama", "OLLAMA_MAX_VRAM": NO_OPTION},
)
COMPUTED = names("""
    from adapter num_ctx num_batch num_gpu OLLAMA_CONTEXT_LENGTH OLLAMA_NUM_PARALLEL OLLAMA_KV_CACHE_TYPE
    OLLAMA_GPU_OVERHEAD
""")
CACHES = {"f16": "fp16", "q8_0": "q8_0", "q4_0": "q4_0", "": None}


def recognises(source: Source) -> int:
    if source.tree or source.kind in ("json", "yaml", "toml"):
        return 0
    if any(True for _ in commands_of(source, PROGRAM)):
        return 10
    if source.words or OF_CONTAINERS.search(source.text):
        return 0
    instructions = {name for name, _ in _instructions(source.text)}
    if "from" not in instructions:
        return 0
    named = PurePath(source.name).name.lower().startswith("modelfile") or source.name.lower().endswith(".modelfile")
    return 10 if named or instructions & set(OWN) else 0


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Modelfile, without what stands between triple quotes."""
    quoted = False
    for line in text.splitlines():
        begins = not quoted
        if line.count('"""') % 2:
            quoted = not quoted
        if begins and (match := INSTRUCTION.match(line)):
            yield match[1].lower(), match[2].strip()


def values(source: Source) -> dict[str, Any]:
    commands = [command for _, command in commands_of(source, PROGRAM)]
    options: dict[str, Any] = {}
    text = "" if source.words else source.text
    for command in commands:
        arguments = PROGRAM.values(command)
        alone = arguments.pop("alone", [])
        options |= arguments
        if alone and "run" in _verb(source, command.words):
            options["from"] = alone[0]
        file = arguments.get("f", arguments.get("file"))
        if isinstance(file, str) and not any(True for _ in _instructions(text)):
            text = source.sibling(file).text
    written = _of_modelfile(text)
    return {**options, **written} if written.get("from") else {**written, **options}


def _verb(source: Source, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words before the options of a command."""
    for command in source.commands:
        if command.words[-len(words) :] == words if words else True:
            return command.words[: len(command.words) - len(words)]
    return ()


def _of_modelfile(text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in _instructions(text):
        if name == "parameter":
            key, _, rest = value.partition(" ")
            values[key.lower()] = rest.strip().strip('"')
        elif name == "adapter":
            values["adapter"] = [*values.get("adapter", []), value]
        else:
            values[name] = value
    return values


def read(r: Reading) -> None:
    r.verb = "serve"
    put_version(r)
    read_servers(r, [Server(values=r.values, read=_read)])


def _read(r: Reading) -> Size:
    r.put("engine", "ollama")
    if r.has("from"):
        name = r.text("from").strip()
        if name.endswith(".gguf") or name[:1] in ("/", ".", "~"):
            put_file(r, "from", name)
        else:
            put_library(r, "from", name)
    _context(r)
    _layers(r)
    _cache(r)
    put_count(r, "num_batch", "max_num_batched_tokens")
    if r.has("OLLAMA_GPU_OVERHEAD"):
        r.put("reserve", count(r, "OLLAMA_GPU_OVERHEAD", 0, 0) or None, "OLLAMA_GPU_OVERHEAD")
    if r.has("adapter"):
        adapters = r.get("adapter")
        r.put("lora_adapters", len(adapters) if isinstance(adapters, list) else 1, "adapter")
        if "--lora-rank" not in (r.source.mark or ()):
            r.unsure("adapter", "the rank is that of the file")
    for key in r.under("OLLAMA_"):
        if key not in COMPUTED and key not in TABLE.known and not r.get(key):
            r.ignore([key])
    TABLE.read(r)
    return Size(accelerators=0)


def _context(r: Reading) -> None:
    """Tokens of a request, which its slots have each."""
    key = "num_ctx" if r.has("num_ctx") else "OLLAMA_CONTEXT_LENGTH"
    if r.has(key) and (key == "num_ctx" or count(r, key, 0, 0)):
        put_count(r, key, "context")
    else:
        r.assume("num_ctx", "4096, 32768 or 262144", why="by the memory of all accelerators, at most the model's")
        if count(r, "OLLAMA_NUM_PARALLEL", 0, 0):
            _put_default_context(r)
    r.ignore(["OLLAMA_CONTEXT_LENGTH"], why="num_ctx is stronger" if r.has("num_ctx") else "0: by the memory")
    slots = count(r, "OLLAMA_NUM_PARALLEL", 0, 0)
    if slots:
        r.put("concurrency", slots, "OLLAMA_NUM_PARALLEL")
    r.ignore(["OLLAMA_NUM_PARALLEL"])
    r.assume("OLLAMA_NUM_PARALLEL", 1)


def _put_default_context(r: Reading) -> None:
    """Slots are made for the whole context, also where nobody says it: of a number of users alone, less is asked."""
    from tonnage.catalogue import cluster
    from tonnage.runtimes import serving_runtime

    try:
        machines, facts = cluster(r.on), facts_of(r)
    except InvalidInput:  # no accelerators are named, as the answer says
        return
    total = machines.accelerator.memory.usable_bytes * machines.accelerators_per_node
    tokens = next(tokens for least, tokens in serving_runtime("ollama").context_steps if total >= least)
    r.question["context"] = min(tokens, facts.context) if facts and facts.context else tokens


def _layers(r: Reading) -> None:
    """num_gpu is a number of layers, not of accelerators."""
    key = "num_gpu"
    if not r.has(key):
        r.assume(key, -1, why="all layers, fewer where they do not fit")
        return
    layers = r.integer(key)
    facts = facts_of(r)
    if layers < 0 or (layers > facts.layers if facts else layers >= 99):
        r.ignore([key], why="all layers")
    else:
        r.put("layers_on_accelerator", layers, key, why="layers, not accelerators")


def _cache(r: Reading) -> None:
    key = "OLLAMA_KV_CACHE_TYPE"
    if not r.has(key):
        return
    kind = r.choice(key, CACHES)
    flash = r.text("OLLAMA_FLASH_ATTENTION").lower() if r.has("OLLAMA_FLASH_ATTENTION") else ""
    if kind in (None, "fp16"):
        r.ignore([key], why="as wide as without it")
    elif flash in ("0", "false"):
        r.ignore([key], why="it takes flash attention, which is off")
    else:
        r.put("kv_cache", kind, key)


def write(w: PlannedRun) -> str:
    return f"{w.answer.serving.launch if w.answer.serving is not None else ''}\n"


FORMATS.add(
    "ollama",
    Format(
        name="ollama",
        tool="Ollama",
        version="0.33.2",
        source="Ollama, docs/modelfile.mdx; Ollama, envconfig/config.go; Ollama, api/types.go: Options",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: TABLE.known | COMPUTED,
        verbs=("serve",),
        sets={"serve": "ollama"},
        write=write,
        says=SAYS,
    ),
)
