"""What somebody may mean who types an option that there is not: by the words that people have for it, else by its
spelling.
"""

from collections.abc import Container, Iterable, Mapping
from functools import cache

from msgspec import Struct

from tonnage.kernel import prepared
from tonnage.kernel.errors import InvalidInput, UnknownName, shown
from tonnage.kernel.message import Message, joined
from tonnage.kernel.registry import letters_of, nearest, unknown

MOST = 3
# Option -> other words for it, or for what it decides; of those that a verb has. Options of other tools stand in
# flags.toml.
SAID: Mapping[str, tuple[str, ...]] = {
    "on": (
        "accelerator",
        "accelerators",
        "cluster",
        "device",
        "devices",
        "gpu",
        "gpus",
        "gpu_count",
        "gpu_type",
        "hardware",
        "machine",
        "machines",
        "n_gpus",
        "nnodes",
        "nodes",
        "nproc_per_node",
        "num_accelerators",
        "num_gpus",
        "num_nodes",
        "world_size",
    ),
    "sequence_length": (
        "block_size",
        "context",
        "context_length",
        "ctx",
        "max_length",
        "max_model_len",
        "max_seq_len",
        "max_seq_length",
        "n_ctx",
        "seq_len",
        "seqlen",
    ),
    "context": (
        "context_len",
        "context_length",
        "context_window",
        "ctx_len",
        "max_context",
        "max_length",
        "max_model_len",
        "max_seq_len",
        "n_ctx",
        "num_ctx",
        "seq",
        "seq_len",
        "seq_length",
        "seqlen",
        "sequence_length",
    ),
    "input_tokens": ("isl", "prompt", "prompt_length", "prompt_tokens", "seq", "seq_len", "sequence_length"),
    "output_tokens": ("completion_tokens", "max_new_tokens", "max_tokens", "new_tokens", "osl"),
    "concurrency": ("batch", "batch_size", "bs", "clients", "max_batch_size", "parallel", "requests", "user"),
    "micro_batch_size": ("batch", "batch_size", "bs", "micro_batch", "per_device_batch_size"),
    "global_batch_size": ("batch", "batch_size", "bs", "global_batch"),
    "num_microbatches": ("accumulation", "ga", "grad_accum", "gradient_accumulation"),
    "tensor_parallel_size": ("tensor_parallel", "tp_degree", "tp_size"),
    "pipeline_parallel_size": ("pipeline_parallel", "pp_degree", "pp_size", "stages"),
    "expert_parallel_size": ("ep_degree", "ep_size", "expert_parallel"),
    "context_parallel_size": ("context_parallel", "cp_size", "sequence_parallel_size", "sp", "ulysses"),
    "data_parallel_size": ("data_parallel", "dp_size", "replicas"),
    "recompute": ("activation_checkpointing", "checkpointing", "gradient_checkpointing", "remat"),
    "precision": ("bf16", "dtype", "fp16", "mixed_precision", "quantization", "weights"),
    "weights": ("bits", "dtype", "precision", "quant", "quantisation", "weight_dtype"),
    "kv_cache": ("cache_dtype", "kv_cache_type", "kv_dtype", "kv_quant"),
    "engine": ("backend", "framework", "runtime", "server"),
    "runtime": ("backend", "engine", "framework", "trainer"),
    "tokens": ("num_tokens", "total_tokens", "train_tokens", "training_tokens"),
    "max_steps": ("iterations", "num_steps", "steps", "train_steps"),
    "epochs": ("num_epochs", "num_train_epochs"),
    "method": ("finetuning_type", "lora", "peft", "qlora"),
    "lora_rank": ("lora_dim", "lora_r", "r", "rank"),
    "request_rate": ("arrival_rate", "qps", "rps"),
    "price_per_accelerator_hour": (
        "cost",
        "cost_per_hour",
        "gpu_price",
        "hourly_price",
        "price",
        "price_per_gpu_hour",
        "price_per_hour",
    ),
    "model": ("checkpoint", "model_id", "model_name", "model_name_or_path", "model_path"),
    "inventory": ("pool",),
    "name": ("formula", "symbol", "term", "topic", "what", "word"),
    "names": ("name", "rule"),
    "what": ("name", "quantity"),
}


@cache
def short_names() -> dict[str, tuple[str, ...]]:
    """Option -> its other names of ours, with underscores, of every verb."""
    from tonnage.question.verbs import FORMS, form_of

    found: dict[str, tuple[str, ...]] = {}
    for verb, forms in FORMS.items():
        for kind in forms:
            for option in form_of(verb, kind).options.values():
                names = tuple(flag.lstrip("-").replace("-", "_") for flag in option.short)
                found[option.name] = tuple(dict.fromkeys((*found.get(option.name, ()), *names)))
    return found


def meant(word: str, names: Iterable[str]) -> list[str]:
    """Of the names of options, with underscores, those that `word` may stand for, the likeliest first."""
    known, plain = list(names), letters_of(word)
    theirs = f"--{word.replace('_', '-')}"
    others = [tool.same[theirs].removeprefix("--").replace("-", "_") for tool in tools() if theirs in tool.same]
    by_word = [
        name for table in (short_names(), SAID) for name, words in table.items() if plain in map(letters_of, words)
    ]
    candidates = [name for name in (*others, *by_word) if name in known]
    return list(dict.fromkeys(candidates or nearest(word, known)))[:MOST]


def no_option(name: str, known: Iterable[str]) -> UnknownName:
    """The error for an option that there is not, with what may be meant."""
    names = list(known)
    near = meant(name, names)
    if not near:
        return unknown("option", name, names)
    return UnknownName(
        Message(
            "no option is called {name}. Did you mean {near}?", name=shown(name), near=joined(" or ", map(repr, near))
        )
    )


# ---- Options of other tools, read from flags.toml when somebody types one that is not ours.

NOTHING = "has no option here: it does not change memory."
FILE = __file__.replace("__init__.py", "flags.toml")


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of one tool for one verb; flags.toml says what each table holds. `of_engine`: its option -> ours, which
    means the same with `engine`.
    """

    name: str
    source: str
    verb: str
    same: dict[str, str]
    differs: dict[str, str]
    reads: dict[str, str] = {}
    values: dict[str, dict[str, str]] = {}
    alone: dict[str, str] = {}
    ignored: dict[str, int] = {}
    thousands: tuple[str, ...] = ()
    fields: dict[str, dict[str, str]] = {}
    model: tuple[str, ...] = ()
    engine: str = ""
    of_engine: dict[str, str] = {}


@cache
def tools() -> tuple[Tool, ...]:
    """All of flags.toml."""
    said: dict[str, tuple[Tool, ...]] = prepared.tables(FILE, dict[str, tuple[Tool, ...]])
    return said["tool"]


def ours(words: list[str], known: Container[str], verb: str) -> list[str]:
    """The words with options spelled as here; InvalidInput for an option of another tool that means something else."""
    translated: list[str] = []
    for position, word in enumerate(words):
        if word == "--":
            return translated + words[position:]
        flag, equals, value = word.partition("=")
        following = value or next(iter(words[position + 1 :]), "")
        translated.append(f"{_flag(flag, known, verb, following)}{equals}{value}" if flag.startswith("-") else word)
    return translated


def assignment(word: str, verb: str) -> tuple[str, ...]:
    """What to say of `key=value`, as torchtune and Hydra write options; nothing where no tool has such a key."""
    key, equals, _ = word.partition("=")
    if not equals:
        return ()
    try:
        flag = _flag(f"--{key}", (), verb)
    except InvalidInput as error:
        return (str(error),)
    return (Message("Write {option}.", option=flag),) if _underscored(flag) != _underscored(f"--{key}") else ()


def instead_of(flag: str, verb: str) -> str:
    """The option of ours that another tool's means, or nothing where no tool has it. InvalidInput where it means
    something else.
    """
    ours = _flag(flag, (), verb)
    return "" if ours == flag else ours


def _flag(flag: str, known: Container[str], verb: str, value: str = "") -> str:
    dashed = flag.replace("_", "-")
    for spelled in (flag, dashed):
        if spelled in known:
            return spelled
    mine = [tool for tool in tools() if tool.verb == verb]
    for theirs in (dashed, dashed[1:]):  # a field of a question has no dashes: dp is -dp
        for tool in mine:
            if theirs in tool.same:
                return tool.same[theirs]
        spellings: dict[str, list[str]] = {}
        for tool in mine:
            if text := instead(tool, theirs):
                spellings.setdefault(text, []).append(tool.name)
        if spellings:
            number = value if value.isascii() and value.replace(".", "", 1).isdigit() and len(value) < 10 else "4"
            name = flag if theirs == dashed else theirs
            raise InvalidInput(joined(" ", (_sentence(name, names, text, number) for text, names in spellings.items())))
    return flag


def instead(tool: Tool, theirs: str) -> str:
    """What to say of an option of another tool that is not read here: where its words cannot be put in its place."""
    if theirs in tool.differs:
        return tool.differs[theirs]
    if theirs in tool.reads:
        return f"Write {_in_places(tool.reads[theirs])}."
    if theirs in tool.values:
        return f"Write {' or '.join(map(_in_places, tool.values[theirs].values()))}."
    if theirs in tool.model:
        return f"The model is the first word here: tonnage {tool.verb} MODEL."
    return NOTHING if theirs in tool.ignored else ""


def _in_places(words: str) -> str:
    """Words of ours with each option in a place of its own, which every face spells its own way."""
    return " ".join(f"{{{word}}}" if word.startswith("--") else word for word in words.split())


def _underscored(flag: str) -> str:
    return flag.replace("-", "_")


def _sentence(flag: str, names: list[str], text: str, number: str) -> str:
    """`text` of flags.toml as a sentence about the tools' option; {value} in it is the number that was typed."""
    of = joined(" and ", names)
    if text[0].islower():
        return Message(f"{{flag}} of {{names}} {text}", flag=flag, names=of, value=number)
    return Message("{flag} is an option of {names}. {text}", flag=flag, names=of, text=Message(text, value=number))
