"""What somebody may mean who types an option that there is not: by the words that people have for it, else by its
spelling.
"""

from collections.abc import Container, Iterable, Mapping
from functools import cache

from msgspec import Struct

from tonnage.kernel import prepared
from tonnage.kernel.errors import InvalidInput, UnknownName, shown
from tonnage.kernel.message import Message, joined, option_name
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
    "concurrency": (
        "batch",
        "batch_size",
        "bs",
        "clients",
        "concurrent_requests",
        "concurrent_users",
        "max_batch_size",
        "num_users",
        "parallel",
        "requests",
        "user",
    ),
    "cached_tokens": (
        "cache_hit_rate",
        "prefix_cache",
        "prefix_caching",
        "prefix_len",
        "prefix_tokens",
        "shared_prefix",
        "shared_prefix_tokens",
        "system_prompt_tokens",
    ),
    "speculative": ("eagle", "eagle3", "speculation", "speculative_decoding", "speculative_method", "speculator"),
    "draft_model": ("speculative_model", "speculator"),
    "draft_tokens": (
        "mtp",
        "num_draft_tokens",
        "speculative_num_steps",
        "speculative_tokens",
    ),
    "acceptance": ("acceptance_rate", "accept_rate"),
    "prefill_replicas": ("disagg", "disaggregated", "disaggregation", "pd_disaggregation", "prefill_workers"),
    "ttft": ("first_token", "latency", "max_ttft", "target_ttft", "time_to_first_token", "ttft_slo"),
    "tpot": ("itl", "latency", "max_tpot", "target_tpot", "time_per_output_token", "tpot_slo"),
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
    "objective": ("alignment", "dpo", "grpo", "ppo", "preference", "rlhf", "stage"),
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


def meant(word: str, names: Iterable[str], *, alike: bool = True) -> list[str]:
    """Of the names of options, with underscores, those that `word` may stand for, the likeliest first. `alike`: also
    those that are only spelled alike.
    """
    known, plain = list(names), letters_of(word)
    theirs = f"--{word.replace('_', '-')}"
    others = [tool.same[theirs].removeprefix("--").replace("-", "_") for tool in tools() if theirs in tool.same]
    by_word = [
        name for table in (short_names(), SAID) for name, words in table.items() if plain in map(letters_of, words)
    ]
    candidates = [name for name in (*others, *by_word) if name in known]
    if not candidates and alike:
        parts = _parts(word)
        candidates = [name for name in known if len(parts) > 1 and _parts(name) == parts]
        candidates = candidates or nearest(word, known) or _spelled_like(word, known)
    return list(dict.fromkeys(candidates))[:MOST]


def _parts(name: str) -> frozenset[str]:
    """The words of a name in any order, in the singular."""
    return frozenset(part.removesuffix("s") for part in name.lower().replace("-", "_").split("_"))


def _spelled_like(word: str, known: Iterable[str]) -> list[str]:
    """Of the options, those whose other words are spelled like `word`."""
    options: dict[str, str] = {}
    for table in (short_names(), SAID):
        for name in known:
            options |= dict.fromkeys(table.get(name, ()), name)
    return [options[near] for near in nearest(word, options)]


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
    numbers: dict[str, str] = {}
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
        return Message(f"{{flag}} of {{names}} {text}", flag=option_name(flag), names=of, value=number)
    return Message(
        "{flag} is an option of {names}. {text}", flag=option_name(flag), names=of, text=Message(text, value=number)
    )
