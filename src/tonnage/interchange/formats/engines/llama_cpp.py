"""llama.cpp: `llama-server` and `llama-cli`, with their variables of the environment."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import llama_cpp_options
from tonnage.interchange.parts.engines.engine_options import (
    count,
    facts_of,
    names,
    needs,
    one_of,
    put_count,
    put_version,
)
from tonnage.interchange.parts.engines.gguf_names import parted, put_file, put_repository, put_url
from tonnage.interchange.parts.engines.servers import Program, Server, Size, commands_of, program_score, read_servers
from tonnage.interchange.parts.engines.writing import command_of
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.message import Message

PROGRAM = Program(
    starts=(("llama-server",), ("llama-cli",), ("llama-mtmd-cli",), ("llama-simple-chat",), ("llama-run",)),
    images=("ghcr.io/ggml-org/llama.cpp", "ghcr.io/ggerganov/llama.cpp", "local/llama.cpp"),
    switches=llama_cpp_options.SWITCHES,
    variables=("LLAMA_ARG_",),
    negates=False,
)
SAYS = names("""
    engine context concurrency max_num_batched_tokens kv_cache layers_on_accelerator expert_layers_on_host draft_tokens
    speculative lora_adapters
""")
CACHES = {"f16": None, "f32": "fp32", "bf16": "bf16"} | {
    name: name for name in ("q8_0", "q5_1", "q5_0", "iq4_nl", "q4_1", "q4_0")
}
WITHOUT_LAYERS = ("b4000", "b2900")  # builds that put no layer on the accelerator unless -ngl says one
BATCH, UBATCH = 2048, 512  # common/common.h: n_batch, n_ubatch
DRAFTS = 3  # tokens that are drafted: --spec-draft-n-max
EVERY_LAYER = 99  # more layers than most models have: what people write for all


def recognises(source: Source) -> int:
    return 0 if source.tree else program_score(source, PROGRAM)


def values(source: Source) -> dict[str, Any]:
    command = next((command for _, command in commands_of(source, PROGRAM)), None)
    if command is None:
        return {}
    options = PROGRAM.values(command)
    alone = options.pop("alone", [])
    for name in [name for name in options if name.startswith("LLAMA_ARG_")]:
        plain = llama_cpp_options.VARIABLES.get(name.removeprefix("LLAMA_ARG_"), "")
        short = [key for key, long in llama_cpp_options.SHORT.items() if long == plain]
        if plain and plain not in options and not any(key in options for key in short):
            options[plain] = options.pop(name)
        elif plain:
            del options[name]
    return {**options, **{f"word {number}": word for number, word in enumerate(alone, 1)}}


def read(r: Reading) -> None:
    r.verb = "serve"
    if r.asker.version:
        put_version(r)
    read_servers(r, [Server(values=r.values, read=_read)])


def _read(r: Reading) -> Size:
    r.rename(llama_cpp_options.SHORT)
    r.put("engine", "llama.cpp")
    _model(r)
    _passes(r)
    _cache(r)
    size = _machines(r)
    _layers(r)
    _slots(r)
    _drafts(r)
    _adapters(r)
    for key in r.under("LLAMA_ARG_"):
        name = key.removeprefix("LLAMA_ARG_").lower().replace("_", "-").removeprefix("endpoint-")
        if name in llama_cpp_options.IGNORED or name in ("think", "think-budget", "enable-props", "static-path"):
            r.ignore([key])
    llama_cpp_options.TABLE.read(r)
    r.assume("fit", "on", why="it lowers what is not said until it fits; here that stays as it is")
    return size


def _model(r: Reading) -> None:
    if r.has("model"):
        put_file(r, "model", r.text("model"))
    elif r.has("hf-repo"):
        more = ["hf-file"] if r.has("hf-file") else []
        put_repository(r, "hf-repo", r.text("hf-repo"), r.text("hf-file"), *more)
    elif r.has("model-url"):
        put_url(r, "model-url", r.text("model-url"))
    elif r.has("docker-repo"):
        r.put("model", r.text("docker-repo"), "docker-repo")
    r.ignore(["hf-repo", "hf-file", "model-url", "docker-repo"], why="the file is named otherwise")


def _passes(r: Reading) -> None:
    """Tokens of a pass: those of a physical batch, which is no larger than a logical one."""
    logical, physical = count(r, "batch-size", BATCH), count(r, "ubatch-size", UBATCH)
    keys = [key for key in ("ubatch-size", "batch-size") if r.has(key)]
    if r.has("ubatch-size") or logical < physical:
        r.put("max_num_batched_tokens", min(logical, physical), *keys)
    r.ignore(["batch-size"])


def _cache(r: Reading) -> None:
    keys, values = "cache-type-k", "cache-type-v"
    kinds = {key: one_of(r, key, CACHES, "") if r.has(key) else None for key in (keys, values)}
    present = [key for key in (keys, values) if r.has(key)]
    if not present:
        return
    if kinds[keys] == kinds[values]:
        r.put("kv_cache", kinds[keys] or "fp16", *present)
    else:
        for key in present:
            r.unsure(key, "keys and values have one type here")


def _machines(r: Reading) -> Size:
    """Accelerators that the command names, and whether they share layers or matrices."""
    split, devices, mode = "tensor-split", "device", "split-mode"
    number, keys = 0, []
    if r.has(split):
        parts = r.text(split).replace("/", ",").split(",") if not isinstance(r.get(split), list) else []
        try:
            shares = [float(part) for part in parts]
        except ValueError:
            raise r.wrong(split, "proportions such as 3,1") from None
        used = [share for share in shares if share > 0]
        number, keys = len(used), [split]
        if len(set(used)) > 1:
            r.unsure(split, "layers are shared evenly here")
    if r.has(devices) and r.text(devices).lower() != "none":
        number, keys = len(r.text(devices).split(",")), [devices]
    kind = r.choice(mode, {"none": "none", "layer": "layer", "row": "row", "tensor": "tensor"}, "")
    if kind == "none":
        number, keys = 1, [mode]
    if number:
        if not (r.machines.nodes or r.machines.per_node):
            r.count_machines(per_node=number)
        r.put("pipeline_parallel_size", 1 if kind in ("none", "row", "tensor") else number, *keys)
    if kind in ("row", "tensor"):
        ranks = number or r.num_accelerators
        r.put("tensor_parallel_size", ranks, mode)
        r.put("pipeline_parallel_size", 1, mode)
        if kind == "tensor":
            r.unsure(mode, "the cache is shared among the ranks too, which is not counted")
    elif kind == "layer":
        r.ignore([mode])
    return Size(accelerators=number, keys=tuple(keys))


def _layers(r: Reading) -> None:
    """Layers on the accelerator: a number that is none of all there are."""
    key = "gpu-layers"
    facts = facts_of(r) if r.has(key) or r.has("cpu-moe") else None
    if r.has("device") and r.text("device").lower() == "none":
        r.put("layers_on_accelerator", 0, "device")
    elif r.has(key) and r.text(key).lower() in ("all", "auto", "-1", "-2"):
        r.ignore([key], why="all layers, fewer where they do not fit" if r.text(key) != "all" else "all layers")
    elif r.has(key):
        layers = count(r, key, least=0)
        if layers > facts.layers if facts else layers >= EVERY_LAYER:
            r.ignore([key], why="all layers")
        else:
            r.put("layers_on_accelerator", layers, key)
    elif r.version in WITHOUT_LAYERS:
        r.assume(key, 0, "layers_on_accelerator")
    else:
        r.assume(key, "auto", why="all layers, fewer where they do not fit")
    if r.has("cpu-moe") and r.flag("cpu-moe"):
        if facts is None:
            r.unsure("cpu-moe", "the number of layers is that of the model, which could not be read")
        else:
            r.put("expert_layers_on_host", facts.layers, "cpu-moe")
    elif r.has("n-cpu-moe"):
        layers = count(r, "n-cpu-moe", least=0)
        r.put("expert_layers_on_host", layers or None, "n-cpu-moe")
    r.ignore(["cpu-moe"])


def _slots(r: Reading) -> None:
    """Slots and the context of each. `ctx-size` is that of all slots together; a unified cache shares it."""
    slots = count(r, "parallel") if r.has("parallel") and str(r.get("parallel")) != "-1" else 0
    total = count(r, "ctx-size", 0, 0)
    keys = ["ctx-size"] if r.has("ctx-size") else []
    unified = [key for key in ("kv-unified", "no-kv-unified") if r.has(key)]
    if slots:
        r.ignore(["no-kv-unified"])
        r.put("concurrency", slots, "parallel")
        facts = facts_of(r) if not total else None
        if facts is not None:
            total = facts.context
        if not total:
            r.unsure("parallel", "the context of the model, which slots share, could not be read")
        else:
            r.put("context", max(total // slots, 1), *keys, *(["parallel"] if slots > 1 else []))
        if "kv-unified" in unified and r.flag("kv-unified") and slots > 1:
            r.notes.append(
                Message(
                    "slots share one cache: one alone may have {total:,} tokens, all together no more.", total=total
                )
            )
        r.ignore(["kv-unified"])
        return
    if total:
        r.put("context", total, *keys)
    r.ignore(["parallel", "ctx-size"])
    r.assume("parallel", "auto", why="4 slots that share one cache of ctx-size tokens")
    for key in unified:
        needs(r, key, ("true",) if key == "kv-unified" else (), "each slot has a part of the context")


def _drafts(r: Reading) -> None:
    tokens, kind = "spec-draft-n-max", "spec-type"
    models = [key for key in ("spec-draft-model", "spec-draft-hf") if r.has(key)]
    name = r.text(kind).lower() if r.has(kind) else ""
    if models:
        draft = r.text(models[0])
        plain, weights = parted(draft.replace("\\", "/").rpartition("/")[2])
        r.put("draft_model", plain if models[0] == "spec-draft-model" else draft, models[0])
        if weights:
            r.unsure(models[0], "the weights of the model that drafts are taken as its checkpoint has them")
    if name == "draft-eagle3" or name.startswith("ngram"):
        r.put("speculative", "eagle3" if name == "draft-eagle3" else "ngram", kind)
    if models or name in ("draft-mtp", "ngram-simple", "ngram-cache", "ngram-map-k", "ngram-mod"):
        r.ignore([kind], why="the model's own layers draft" if name == "draft-mtp" else "n-grams need no memory")
        put_count(r, tokens, "draft_tokens")
        r.assume(tokens, DRAFTS, "draft_tokens")
    elif name and name != "none":
        r.unsure(kind, "a way to draft that is not estimated")
    r.ignore([tokens, kind], why="nothing is drafted")


def _adapters(r: Reading) -> None:
    keys = [key for key in ("lora", "lora-scaled") if r.has(key)]
    if not keys:
        return
    files = [file for key in keys for entry in _listed(r.get(key)) for file in str(entry).split(",") if file]
    r.put("lora_adapters", len(files), *keys)
    if "--lora-rank" not in (r.source.mark or ()):
        r.unsure(keys[0], "the rank is that of the file: the comment of the file, or --lora-rank, can say it")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def write(w: PlannedRun) -> str:
    return command_of(w)


FORMATS.add(
    "llama-cpp",
    Format(
        name="llama-cpp",
        tool="llama.cpp",
        version="b10481",
        source="llama.cpp, tools/server/README.md",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: llama_cpp_options.TABLE.known | llama_cpp_options.COMPUTED | frozenset(llama_cpp_options.SHORT),
        verbs=("serve",),
        sets={"serve": "llama.cpp"},
        write=write,
        says=SAYS,
    ),
)
