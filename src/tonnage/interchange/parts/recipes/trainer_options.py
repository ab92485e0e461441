"""What trainers on top of transformers share: kernels, sizes of groups of ranks, and the words that a plan becomes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tonnage.interchange.parts.hugging_face.trainer_names import OPTIMIZERS
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.kernel.message import listed, option_name

FSDP, DEEPSPEED, PLAIN, UNSLOTH = "fsdp2", "deepspeed", "", "unsloth"
PEFT_CODE = "transformers"
ADAPTERS = ("lora", "dora", "qlora")
# What the framework takes from other runtimes, for sentences.
PARTS_ALONE = "only parts of Liger are on: it is estimated without"
NO_LIGER = "Liger's kernels are estimated on transformers and ddp alone"
NO_PARTS = "a loss in parts is estimated under FSDP alone: this one needs less memory than is said"


def facts_of(r: Reading) -> Any:
    """The facts of the runtime that was read."""
    from tonnage.runtimes import training_runtime

    return training_runtime(str(r.question["runtime"]))


def put_liger(r: Reading, keys: Sequence[str], *, all_kernels: bool) -> None:
    """Liger's kernels, where `keys` turn them on; `all_kernels`: norms, positions, feed-forward and loss."""
    if not keys:
        return
    if not facts_of(r).liger:
        _unsure(r, keys, NO_LIGER)
        if all_kernels and "chunked" in facts_of(r).losses:  # what of it needs most memory is its loss
            r.put("loss", "chunked")
    elif all_kernels:
        r.put("liger", True, *keys)
    else:
        _unsure(r, keys, PARTS_ALONE)


def put_chunked_loss(r: Reading, *keys: str) -> None:
    """A loss that never holds all logits."""
    if "chunked" in facts_of(r).losses:
        r.put("loss", "chunked", *keys, why="estimated in eight parts of the sequence")
    else:
        _unsure(r, keys, NO_PARTS)


def put_parallel(r: Reading, table: Mapping[str, str], why: str) -> None:
    """Sizes of groups of ranks: key -> option. Under a runtime that has no such groups they are not estimated."""
    facts = facts_of(r)
    able = {
        "tensor_parallel_size": facts.tensor_parallel,
        "context_parallel_size": facts.context_parallel,
        "expert_parallel_size": facts.expert_parallel,
        "replicate_size": facts.replicates,
    }
    for key, option in table.items():
        if not r.has(key):
            continue
        size = r.positive(key)
        if size > 1 and not able[option]:
            r.unsure(key, why)
        else:
            r.put(option, size if size > 1 else None, key)
    if r.question.get("tensor_parallel_size", 1) > 1:
        r.put("sequence_parallel", False)  # transformers' plans shard matrices alone


def keep_base_narrow(r: Reading) -> None:
    """Norms, embedding and head of a quantised base stay in 16 bit, where the runtime's users would widen them."""
    quantised = r.question.get("method") == "qlora" or r.question.get("base_weights")
    if quantised and facts_of(r).upcasts_base:
        r.put("upcast_base", False)


def ignore_names(r: Reading, names: Iterable[str]) -> None:
    """Keys and sections that change neither memory nor time."""
    for name in names:
        r.ignore([name, f"{name}."])


def ignore_empty(r: Reading, known: Iterable[str]) -> None:
    """Known keys without a value, and sections of them."""
    plain = {part for name in known for part in (name, name.partition(".")[0])}
    r.ignore(key for key, value in r.values.items() if value in (None, {}, []) and key in plain)


def _unsure(r: Reading, keys: Iterable[str], why: str) -> None:
    for key in keys:
        r.unsure(key, why)


# ---- From a plan to words.


def completed(
    question: Mapping[str, Any], own: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
) -> dict[str, Any]:
    """What a trainer on transformers sets where a question says nothing: its runtime on this cluster, the code of its
    layers, and what `own` says of the runtime.
    """
    from tonnage.catalogue import cluster

    try:
        size = cluster(str(question["on"])).size
    except (KeyError, InvalidInput, UnknownName):
        return {}  # the reader of the question says what is wrong
    runtime = str(question.get("runtime") or ("transformers" if size == 1 else FSDP))
    if runtime == "transformers" and size > 1:
        runtime = "ddp"
    options: dict[str, Any] = {"runtime": runtime}
    if runtime == FSDP:
        options["model_code"] = PEFT_CODE
        if question.get("tensor_parallel_size") not in (None, 1):
            options["sequence_parallel"] = False
    return {**options, **own(runtime, question)}


def is_quantised(question: Mapping[str, Any]) -> bool:
    return question.get("method") == "qlora" or question.get("base_weights") not in (None, "16 bit")


def optimizer_word(plan: Any, preferred: Sequence[str], tool: str) -> str:
    """A trainer's name of a plan's optimizer; `preferred`: names that are taken before others of the same."""
    same = [
        name
        for name, (ours, kind) in OPTIMIZERS.items()
        if ours == plan.optimizer and (kind or "fused") == plan.optimizer_implementation
    ]
    for name in preferred:
        if name in same:
            return name
    if not same:
        raise InvalidInput(
            "{tool} has no name for {option} {value}.",
            tool=tool,
            option=option_name("optimizer"),
            value=f"{plan.optimizer} ({plan.optimizer_implementation})",
        )
    return same[0]


def refuse(w: Any, tool: str, able: Mapping[str, Sequence[Any]]) -> None:
    """InvalidInput where a plan has values that a tool has no words for: option -> what it can say; "" is the runtime's
    own, and of a base 16 bit.
    """
    for name, values in able.items():
        value = w.training.field(name)
        if value not in values:
            own = "16 bit" if name == "base_weights" else ""
            raise InvalidInput(
                "{tool} has no words for {option} {value}: it must be {values}.",
                tool=tool,
                option=option_name(name),
                value=value or own,
                values=listed(filter(None, (str(one) or own for one in values)), "or"),
            )
