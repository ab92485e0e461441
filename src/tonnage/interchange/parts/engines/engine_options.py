"""What the options of an engine's command have in common: tables of what they mean, and facts of the model that some of
them depend on.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from tonnage.interchange.reading import Reading, flattened
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import nearest
from tonnage.spelling import Tool, tools

THOUSANDS: Mapping[str, int] = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
NO_OPTION = "not estimated yet"
MOVED = "weights that move between ranks are not timed"
LIMITED = "a limit: images, video_seconds and audio_seconds say what each request holds"
KERNELS = "its kernels take other times than those that are estimated"


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


class Options(Struct, frozen=True, kw_only=True, dict=True):
    """The options of a tool that mean the same whatever else is said. What `read` of its format computes is not here.

    counts, shares: option -> ours, which takes the same number
    ignored: those that change neither memory nor time
    harmless: option -> the values that change nothing, in small letters, and why others may
    unsure: option -> why it may change something
    tool: its name in spelling/flags.toml, whose rows count beside these; `joined`: what joins words of its options
    """

    counts: Mapping[str, str] = {}
    shares: Mapping[str, str] = {}
    ignored: frozenset[str] = frozenset()
    harmless: Mapping[str, tuple[tuple[str, ...], str]] = {}
    unsure: Mapping[str, str] = {}
    tool: str = ""
    joined: str = "-"

    @cached_property
    def spelled(self) -> Tool | None:
        """What flags.toml has of the tool."""
        return next((tool for tool in tools() if tool.verb == "serve" and tool.name == self.tool), None)

    @cached_property
    def all_counts(self) -> Mapping[str, str]:
        """`counts`, with those of flags.toml that are named otherwise than ours and take a whole number."""
        same = self.spelled.same if self.spelled else {}
        counts = {
            self._plain(theirs): _option(ours) for theirs, ours in same.items() if _option(ours) not in _NO_COUNTS
        }
        return {**counts, **self.counts}

    @cached_property
    def all_ignored(self) -> frozenset[str]:
        return self.ignored | {self._plain(name) for name in (self.spelled.ignored if self.spelled else ())}

    def _plain(self, flag: str) -> str:
        return flag.lstrip("-").replace("-", self.joined)

    @property
    def known(self) -> frozenset[str]:
        """Every name."""
        return frozenset({*self.all_counts, *self.shares, *self.all_ignored, *self.harmless, *self.unsure})

    def read(self, r: Reading) -> None:
        """Say of each option what it means; those that were said already stay."""
        for key, option in self.all_counts.items():
            if not r.is_explained(key):
                put_count(r, key, option)
        for key, option in self.shares.items():
            if r.has(key) and not r.is_explained(key):
                r.put(option, r.number(key), key)
        r.ignore(self.all_ignored)
        for key, (values, why) in self.harmless.items():
            for below in with_section(r, key):
                needs(r, below, values, why)
        for key, why in self.unsure.items():
            for below in with_section(r, key):
                r.needs_default(below, [], why=why)
        r.ignore([f"{name}." for name in self.all_ignored])


_NO_COUNTS = frozenset({"kv_cache", "context"})


def _option(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def with_section(r: Reading, key: str) -> list[str]:
    """The key, where it has a value, and all keys below it."""
    return [*([key] if key in r.values else []), *r.under(f"{key}.")]


def needs(r: Reading, key: str, values: tuple[str, ...], why: str) -> None:
    """A key that changes nothing where its text is one of these, in small letters, or it is null; false changes
    something only where true is one of them.
    """
    if r.is_explained(key):
        return
    value = r.values[key]
    text = "" if isinstance(value, list | Mapping) else str(value).lower()
    if text in (*values, "none", "null"):
        r.ignore([key])
    elif value is False and "true" in values:
        r.unsure(key, why)
    else:
        r.needs_default(key, why=why)


def put_count(r: Reading, key: str, option: str) -> int:
    """An option that is a whole number from 1 on; the number, 0 where the key has none."""
    if not r.has(key):
        return 0
    number = count(r, key)
    r.put(option, number, key)
    return number


def count(r: Reading, key: str, default: int = 1, least: int = 1) -> int:
    """A whole number from `least` on."""
    if not r.has(key):
        return default
    number = size(r, key, default)
    if number < least:
        raise r.wrong(key, Message("a whole number from {least} on", least=least))
    return number


def size(r: Reading, key: str, default: int = 0) -> int:
    """A whole number that may be written with a letter: 8k is 8000 and 8K is 8192, as vLLM and SGLang read them."""
    value = r.get(key)
    if isinstance(value, str) and value[-1:] in THOUSANDS and value[-1:]:
        try:
            number = float(value[:-1]) * THOUSANDS[value[-1]]
        except ValueError:
            raise r.wrong(key, "a whole number") from None
        if not 0 <= number < 1e15:
            raise r.wrong(key, "a whole number of usual size")
        return round(number)
    return r.integer(key, default)


def json_fields(options: Mapping[str, Any], keys: frozenset[str], file: str) -> dict[str, Any]:
    """The options with the fields of those whose value is an object of JSON, or a mapping, as keys of a section."""
    fields_by_key: dict[str, Any] = {}
    for key, value in options.items():
        head, dot, tail = key.partition(".")
        name = f"{head}.{tail.replace('-', '_')}" if dot else key
        fields = _parsed(value, file) if key in keys else value
        if isinstance(fields, Mapping):
            fields_by_key |= {f"{name}.{inner}": field for inner, field in flattened(fields).items() if inner}
        else:
            fields_by_key[name] = value
    return fields_by_key


def _parsed(value: Any, file: str) -> Any:
    """The object that a text of JSON holds; the value itself where it is no such text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    from tonnage.user_files import json_text

    return json_text.parse(value.encode(), file)


def one_of(r: Reading, key: str, table: Mapping[str, str | None], why: str) -> str | None:
    """What a value is called here; None where it decides nothing. One that is only the tool's (`""` in the table) is
    one that was not understood, and another is wrong.
    """
    name = r.text(key).lower()
    if name not in table:
        raise r.wrong(key, Message("one of {names}", names=listed(nearest(name, table)[:5] or list(table)[:8])))
    if table[name] == "":
        r.unsure(key, why)
        return None
    return table[name]


class Facts(Struct, frozen=True, kw_only=True):
    """Facts of a model: whether it has experts, whether its weights are quantised, or in 32 bits, and
    whether it keeps recurrent states; its layers, and the
    tokens that it was made for."""

    is_mixture: bool
    is_quantised: bool
    is_wide: bool
    has_states: bool
    layers: int
    context: int


def facts_of(r: Reading) -> Facts | None:
    """Facts of the model; None where it cannot be read: the answer then says why."""
    from tonnage.estimate.plan.rule import expert_counts
    from tonnage.models import read
    from tonnage.ops import StateCache

    name = r.asker.model or r.question.get("model")
    if not isinstance(name, str) or not name:
        return None
    try:
        model = read(name)
    except TonnageError:
        return None
    return Facts(
        is_mixture=bool(expert_counts(model)),
        is_quantised=bool(model.quantization),
        is_wide=str(model.dtype) == "float32" and not model.quantization,
        has_states=any(
            isinstance(cache, StateCache) for block in model.decoder.blocks for op in block.ops for cache in op.caches()
        ),
        layers=int(model.num_layers),
        context=int(model.context or 0),
    )


def put_weights(r: Reading, key: str, weights: str) -> None:
    """Weights that the engine makes of a checkpoint in 16 bits. One that is quantised stays as it is."""
    facts = facts_of(r)
    if facts is not None and facts.is_quantised:
        r.ignore([key], why="the checkpoint is quantised already")
    else:
        r.put("weights", weights, key)


TYPES: Mapping[str, str | None] = {
    "auto": None,
    **dict.fromkeys(("half", "float16", "fp16"), "fp16"),
    **dict.fromkeys(("bfloat16", "bf16"), "bf16"),
    **dict.fromkeys(("float", "float32"), "fp32"),
}


def put_dtype(r: Reading, key: str = "dtype", halved: str = "bf16") -> None:
    """The type of weights and activations. `halved`: what `auto` makes of a checkpoint in 32 bits."""
    kind = one_of(r, key, TYPES, "") if r.has(key) else None
    if kind is None:
        _halve(r, key, halved)
    elif "weights" not in r.question:
        put_weights(r, key, kind)
        if kind == "fp32":
            r.unsure(key, "keys, values and activations of 32 bits are not estimated")
        elif (facts := facts_of(r)) is not None and facts.is_wide:
            r.question.setdefault("kv_cache", kind)
    else:
        r.ignore([key], why="the weights are quantised")


def _halve(r: Reading, key: str, halved: str) -> None:
    facts = facts_of(r)
    if facts is not None and facts.is_wide and "weights" not in r.question:
        r.assume(key, "auto", why="a checkpoint in 32 bits is loaded in 16")
        r.put("weights", halved, key)
        r.question.setdefault("kv_cache", halved)
    r.ignore([key], why="the type of the checkpoint")


DIMENSIONS = names(
    "hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim intermediate_size vocab_size "
    "max_position_embeddings tie_word_embeddings num_experts num_experts_per_tok moe_intermediate_size"
)
POSITIONS = ("rope_scaling", "rope_parameters", "rope_theta", "rope_type", "factor", "original_max_position_embeddings")


def put_quantization(r: Reading, kinds: Mapping[str, str | None], key: str = "quantization") -> None:
    """How weights are quantised. `kinds`: name -> our weights; None where the checkpoint says it, "" where unknown."""
    if not r.has(key):
        return
    weights = one_of(r, key, kinds, "the weights that it makes are not described")
    if weights:
        put_weights(r, key, weights)
    elif kinds[r.text(key).lower()] is None:
        r.ignore([key], why="the checkpoint says how it is quantised")


def put_cache(r: Reading, kinds: Mapping[str, str | None], key: str = "kv-cache-dtype") -> None:
    """The type of the KV cache. `kinds`: name -> ours; None where it is the activations' own, "" where unknown."""
    if not r.has(key):
        return
    kind = one_of(r, key, kinds, "a type of cache that is not described")
    if kind:
        r.put("kv_cache", kind, key)
    elif kinds[r.text(key).lower()] is None:
        r.ignore([key], why="as wide as the activations")


def put_offload(r: Reading, key: str = "cpu-offload-gb") -> None:
    """GiB of each accelerator's weights that lie in host memory."""
    if not r.has(key):
        return
    gigabytes = r.number(key)
    if gigabytes < 0:
        raise r.wrong(key, "GiB of each accelerator from 0 on")
    if gigabytes:
        r.put("weights_on_host", f"{gigabytes:g}GiB", key)
    r.ignore([key])


def check_even(r: Reading, accelerators: int, nodes: int, key: str) -> None:
    """InvalidInput where the accelerators of a server are not shared evenly by its nodes, which `key` says."""
    if accelerators % max(nodes, 1):
        raise InvalidInput(
            "{file}: {accelerators:,} accelerators (tensor x pipeline x data parallel) are not shared evenly by the "
            "{nodes:,} nodes of {key}.",
            file=r.source.name,
            accelerators=accelerators,
            nodes=nodes,
            key=key,
        )


def put_overrides(r: Reading, section: str) -> None:
    """Fields of the model's config that are given another value."""
    if section in r.values and not r.has(section):
        r.ignore([section])
    elif section in r.values:
        if r.values[section] in ({}, "{}", ""):
            r.ignore([section])
        else:
            raise r.wrong(section, "an object of JSON")
    for key in r.under(f"{section}."):
        field = key.removeprefix(f"{section}.")
        if field in DIMENSIONS:
            r.put(field, r.get(key), key)
        elif field.partition(".")[0] in POSITIONS:
            r.ignore([key], why="positions take no memory")
        elif field in ("architectures", "model_type", "torch_dtype", "dtype") or r.get(key) is not None:
            r.unsure(key, "a change of the model that is not estimated")
        else:
            r.ignore([key])


RELEASE = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)(?:[.-].*)?")


def put_no_prefixes(r: Reading, key: str) -> None:
    """The prefix cache is off. In a model with recurrent states it would keep the state at the end of each prefix; in
    others, `cached_tokens` of the user says how many tokens are shared.
    """
    facts = facts_of(r)
    if facts is None or facts.has_states:
        r.unsure(key, "recurrent states are counted as with a cache of prefixes")
    else:
        r.ignore([key])


def put_version(r: Reading, tag: str = "") -> None:
    """The release, where the asker or an image's tag says one."""
    release = RELEASE.fullmatch(tag)
    version = r.asker.version or (release[1] if release else "")
    if version:
        r.version = version
        r.put("engine_version", version)


def no_object(r: Reading, key: str) -> InvalidInput:
    return r.wrong(key, "an object of JSON")
