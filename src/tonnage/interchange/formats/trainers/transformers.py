"""Transformers: TrainingArguments as JSON or YAML, and scripts that take them, started by python or torchrun."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face import (
    hf_model,
    hf_run,
    script_arguments,
    training_arguments,
    trl_settings,
)
from tonnage.interchange.parts.launching.training import PYTHON, TORCHRUN, training_launch
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Command, Source

# Keys of other tools that take training arguments too.
OTHERS = frozenset(
    (
        *("finetuning_type", "cutoff_len", "stage", "template", "base_model", "adapter", "micro_batch_size"),
        *("distributed_type", "train_micro_batch_size_per_gpu", "zero_optimization", "recipe", "swift", "train_type"),
    )
)
LAUNCHERS = (PYTHON, TORCHRUN)


def recognises(source: Source) -> int:
    if commands := _commands(source):
        return max(map(_signs_of_command, commands))
    there = set(source.tree)
    return 0 if there & OTHERS else _signs(there)


def _signs(there: set[str]) -> int:
    count = training_arguments.signs(there)
    return count if count > 1 or "per_device_train_batch_size" in there else 0


def _signs_of_command(command: Command) -> int:
    """A script of TRL is another format's."""
    launch = training_launch(command.words)
    there = set(script_arguments.arguments_of(launch.words[1:]))
    if there & OTHERS or hf_run.is_trl_command(launch.script, there):
        return 0
    return 10 if script_arguments.is_example(launch.script) else _signs(there)


def _commands(source: Source) -> list[Command]:
    return [one for one in source.commands if training_launch(one.words).launcher in LAUNCHERS]


def values(source: Source) -> dict[str, Any]:
    if commands := _commands(source):
        return hf_run.values_of_command(max(commands, key=_signs_of_command), source)
    return hf_run.values_of_tree(source)


def read(r: Reading) -> None:
    hf_run.read_run(r)


def known() -> list[str]:
    return [*training_arguments.known(), *hf_model.KEYS, *script_arguments.LENGTHS, *trl_settings.KEYS]


FORMATS.add(
    "transformers",
    Format(
        name="transformers",
        tool="Transformers",
        version=training_arguments.VERSION,
        source="transformers, transformers/training_args.py; transformers, integrations/deepspeed.py",
        recognises=recognises,
        values=values,
        read=read,
        known=known,
        verbs=("train",),
    ),
)
