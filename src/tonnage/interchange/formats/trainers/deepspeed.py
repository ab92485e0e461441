"""DeepSpeed: its config as JSON, and the commands of its launcher."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face import hf_run, training_arguments, zero_settings, zero_writing
from tonnage.interchange.parts.hugging_face.keys import tree_of
from tonnage.interchange.parts.launching.training import DEEPSPEED, training_launch
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Command, Source

# Keys of its config's top level that hardly any other tool has.
SIGNS = frozenset(
    ("zero_optimization", "train_micro_batch_size_per_gpu", "wall_clock_breakdown", "zero_allow_untested_optimizer")
)
WEAK = frozenset(("train_batch_size", "gradient_clipping", "steps_per_print", "activation_checkpointing"))


def recognises(source: Source) -> int:
    if commands := _commands(source):
        return max(map(hf_run.signs_of_command, commands))
    there = set(source.tree)
    count = len(there & SIGNS)
    return (3 * count + len(there & WEAK)) if count else 0


def _commands(source: Source) -> list[Command]:
    return [one for one in source.commands if training_launch(one.words).launcher == DEEPSPEED]


def values(source: Source) -> dict[str, Any]:
    if commands := _commands(source):
        return hf_run.values_of_command(commands[-1], source)
    return flattened(tree_of(source))


def read(r: Reading) -> None:
    if r.has(hf_run.PROGRAM):
        hf_run.read_run(r)
    else:
        zero_settings.read_zero(r)


def known() -> list[str]:
    return [*zero_settings.known(), *training_arguments.known()]


FORMATS.add(
    "deepspeed",
    Format(
        name="deepspeed",
        tool="DeepSpeed",
        version=zero_settings.VERSION,
        source="DeepSpeed, deepspeed/runtime/config.py; deepspeed/runtime/zero/config.py; deepspeed/launcher/runner.py",
        recognises=recognises,
        values=values,
        read=read,
        known=known,
        verbs=("train",),
        sets={"train": "deepspeed"},
        fills=zero_writing.fills,
        write=zero_writing.write,
        ending=".json",
        has_comments=False,
        says=zero_writing.SAYS,
    ),
)
