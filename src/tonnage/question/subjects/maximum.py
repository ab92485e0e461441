"""What can be asked for the most of: its name, the option that it turns, its unit, and what else people call it."""

from typing import Literal

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed
from tonnage.kernel.registry import unknown
from tonnage.question.option import Option

Verb = Literal["serve", "train"]


class What(Struct, frozen=True, kw_only=True):
    """`option`: of `verb`, which is looked for and cannot be given; `also`: other names that are understood."""

    name: str
    verb: Verb
    option: str
    unit: str
    about: str
    also: tuple[str, ...] = ()


WHATS = (
    What(
        name="context",
        verb="serve",
        option="context",
        unit="tokens",
        about="the longest context of the requests",
        also=("ctx", "max-model-len"),
    ),
    What(
        name="input",
        verb="serve",
        option="input_tokens",
        unit="tokens",
        about="the longest prompt beside its answer",
        also=("input-tokens", "prompt"),
    ),
    What(
        name="users",
        verb="serve",
        option="concurrency",
        unit="requests",
        about="the most requests at the same time; with --ttft or --tpot the most within them",
        also=("concurrency", "requests", "max-num-seqs"),
    ),
    What(
        name="layers",
        verb="serve",
        option="layers_on_accelerator",
        unit="layers",
        about="the most layers on the accelerator (llama.cpp), the head counted as one",
        also=("layers-on-accelerator", "ngl", "n-gpu-layers", "gpu-layers"),
    ),
    What(
        name="expert-layers",
        verb="serve",
        option="expert_layers_on_host",
        unit="layers",
        about="the most layers whose experts are on the accelerator too (llama.cpp)",
        also=("expert-layers-on-host", "n-cpu-moe"),
    ),
    What(
        name="adapters",
        verb="serve",
        option="lora_adapters",
        unit="adapters",
        about="the most LoRA adapters held at the same time",
        also=("lora-adapters", "max-loras"),
    ),
    What(
        name="model",
        verb="serve",
        option="model",
        unit="parameters",
        about="the largest model of the catalogue that is served",
    ),
    What(
        name="sequence",
        verb="train",
        option="sequence_length",
        unit="tokens",
        about="the longest sequence",
        also=("sequence-length", "seq", "seq-length"),
    ),
    What(
        name="micro-batch",
        verb="train",
        option="micro_batch_size",
        unit="sequences",
        about="the most sequences of a forward pass of a replica",
        also=("micro-batch-size", "mbs", "batch", "batch-size"),
    ),
    What(
        name="lora-rank",
        verb="train",
        option="lora_rank",
        unit="rank",
        about="the highest rank of the adapters (method lora unless another is said)",
        also=("rank", "lora"),
    ),
    What(
        name="layers",
        verb="train",
        option="trainable_layers",
        unit="layers",
        about="the most layers that train, from the last (method freeze)",
        also=("trainable-layers",),
    ),
    What(
        name="model",
        verb="train",
        option="model",
        unit="parameters",
        about="the largest model of the catalogue that trains",
    ),
)
WHOSE = (
    Option("serve", "of serving, where both have it: layers, model", negatable=False),
    Option("train", "of training, where both have it: layers, model", negatable=False),
)
NAMES = tuple(dict.fromkeys(what.name for what in WHATS))
TWINS = {("context", "train"): "sequence", ("sequence", "serve"): "context"}  # the same question of the other verb


def what_of(name: str, verb: Verb | None = None) -> What:
    """The quantity of this name; where serving and training both have it, serving's unless `verb` says."""
    plain = name.strip().lower().replace("_", "-")
    quantities = [what for what in WHATS if plain in (what.name, *what.also)]
    if not quantities:
        raise unknown("maximum", name, NAMES)
    if verb is None:
        return quantities[0]
    if verb not in ("serve", "train"):
        raise unknown("verb of max", str(verb), ("serve", "train"))
    twin = TWINS.get((quantities[0].name, verb))
    for what in (*quantities, *(other for other in WHATS if other.name == twin)):
        if what.verb == verb:
            return what
    able = listed(what.name for what in WHATS if what.verb == verb)
    raise InvalidInput(
        "max {name} is of {verb}, not of {verb2}: leave out --{verb2}. Of {verb2} there are {able}.",
        name=name,
        verb=quantities[0].verb,
        verb2=verb,
        able=able,
    )


def is_what(word: str) -> bool:
    """Whether a word names a quantity."""
    plain = word.strip().lower().replace("_", "-")
    return any(plain in (what.name, *what.also) for what in WHATS)
