"""Suggestions under a checked file in the words of its tool: its flags, or the keys that the file has."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from msgspec.structs import replace

from tonnage.documents.advice import Advice
from tonnage.documents.interchange.read import ReadDocument
from tonnage.documents.question import Entry
from tonnage.interchange.diagnose.fixes.estimated import option_in_words_of
from tonnage.interchange.diagnose.fixes.flags import FLAGS
from tonnage.interchange.formats import formats

DEEPSPEED, OLLAMA, ACCELERATE, TRAINER = "deepspeed", "ollama", "accelerate", "transformers"
NAMES = {"llama-factory": "llamafactory"}  # of a format, where `diagnose` calls the tool by another
ZERO = ("zero_stage", "offload_optimizer", "offload_parameters")  # options of DeepSpeed's config, whoever starts it
OF_BATCH = ("micro_batch_size", "num_microbatches", "data_parallel_size")  # whose product is the batch of a step
TREES = ("yaml", "toml", "json")
_KEY = re.compile(r"([A-Za-z]\w*): ([\w.+-]+)")
_FLAG = re.compile(r"--([A-Za-z][\w.-]*)(?: ([\w.+-]+))?")


def advised(
    moves: Sequence[Advice], read: ReadDocument, kind: str, question: Mapping[str, Entry] = {}
) -> tuple[Advice, ...]:
    """The moves, those with `in_tool` that the tool has words for. `kind`: of the source, as `Source.kind` has it;
    `question`: what was asked, resolved.
    """
    tool = next((form.name for form in formats() if form.tool == read.tool), "")
    tool = NAMES.get(tool, tool)
    batch = prod(question[name].value for name in OF_BATCH) if all(name in question for name in OF_BATCH) else 0
    found = [_in_tool(move, read, kind, tool, int(batch)) for move in moves]
    return tuple(replace(move, in_tool=text) if text else move for move, text in zip(moves, found, strict=True))


def _in_tool(move: Advice, read: ReadDocument, kind: str, tool: str, batch: int) -> str:
    """The change as it is written in the tool's file or command, the machine as `check` takes it; "" where one of its
    options has no such words.
    """
    machine = [f"--on {move.change['on']}"] if "on" in move.change else []
    # Users that the file does not say follow from its replicas: nothing to be written.
    own = ("on",) if len(move.change) == 1 or "concurrency" in read.asks else ("on", "concurrency")
    options = {name: value for name, value in move.change.items() if name not in own}
    if "num_microbatches" in options and batch and "global_batch_size" in FLAGS.get(tool, {}):
        del options["num_microbatches"]  # the tool counts them by the batch of a step, which stays
        options["global_batch_size"] = batch
    texts = [_option(name, value, read, kind, tool) for name, value in options.items()]
    if None in texts or not any(texts):
        return ""
    between = ", " if kind in TREES else " "
    return between.join(dict.fromkeys([*machine, *(text for text in texts if text)]))


def _option(name: str, value: Any, read: ReadDocument, kind: str, tool: str) -> str | None:
    """One option; "" where it follows from others, None where the tool has no words for it."""
    now = _number(read.asks.get(name))
    written = [_number(key.value) for key in read.keys if key.options == (name,)]
    if len(written) == 1 and None not in (*written, now) and written != [now]:
        return None  # the tool counts it in another unit, such as pairs of sequences
    of_zero = name in ZERO and read.asks.get("runtime") == DEEPSPEED and tool in (TRAINER, "trl", ACCELERATE)
    own = _as_key(name, value, read, OLLAMA) if tool == OLLAMA else None
    if own and "OLLAMA_" not in own:
        return own  # a Modelfile is stronger than the server's environment
    text, is_own = option_in_words_of(DEEPSPEED if of_zero else tool, name, value)
    if tool == ACCELERATE and kind not in TREES and not (text and is_own):  # the script's arguments
        text, is_own = option_in_words_of(TRAINER, name, value)
    if is_own and text:
        return _as_written(text, kind)
    return "" if is_own and read.asks.get(name) is None else _as_key(name, value, read, kind)


def _as_written(flag: str, kind: str) -> str | None:
    """A flag of a command as the key of a file, and a key of a file as the flag of a command."""
    if (key := _KEY.fullmatch(flag)) and kind not in TREES:
        return _entry(key[1], key[2], kind)
    found = _FLAG.fullmatch(flag)
    if found is not None and kind in TREES:
        return _entry(found[1], found[2] or "true", kind)
    return None if kind == "toml" else flag


def _as_key(name: str, value: Any, read: ReadDocument, kind: str) -> str | None:
    """The key of the file that alone has this option, with another number."""
    now = read.asks.get(name)
    keys = [key for key in read.keys if key.options == (name,) and _number(key.value) == _number(now)]
    if len(keys) != 1 or _number(now) is None or _number(value) is None or isinstance(value, bool):
        return None
    return _entry(keys[0].key, value, kind)


def _entry(key: str, value: Any, kind: str) -> str:
    """A key with its value as files of this kind have it, or commands."""
    if kind == OLLAMA:
        return f"PARAMETER {key} {value}"
    if kind == "yaml":
        return f"{key}: {value}"
    return f"{key} = {value}" if kind == "toml" else f'"{key}": {value}' if kind == "json" else f"--{key} {value}"


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
