"""Accelerate: its config as YAML, and `accelerate launch`."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face import (
    accelerate_settings,
    accelerate_writing,
    hf_run,
    training_arguments,
)
from tonnage.interchange.parts.launching.training import ACCELERATE, training_launch
from tonnage.interchange.source import Command, Source

SIGNS = frozenset(
    (
        "compute_environment",
        "distributed_type",
        "downcast_bf16",
        "main_training_function",
        "machine_rank",
        "rdzv_backend",
        "same_network",
        "tpu_use_cluster",
        "dynamo_config",
        "megatron_lm_config",
        "num_machines",
        "num_processes",
    )
)


def recognises(source: Source) -> int:
    if commands := _commands(source):
        return max(map(hf_run.signs_of_command, commands))
    there = set(source.tree)
    return len(there & SIGNS) if "distributed_type" in there else 0


def _commands(source: Source) -> list[Command]:
    return [one for one in source.commands if training_launch(one.words).launcher == ACCELERATE]


def values(source: Source) -> dict[str, Any]:
    if commands := _commands(source):
        return hf_run.values_of_command(commands[-1], source)
    return hf_run.values_of_tree(source)


def known() -> list[str]:
    return [*accelerate_settings.known(), *training_arguments.known()]


FORMATS.add(
    "accelerate",
    Format(
        name="accelerate",
        tool="Accelerate",
        version=accelerate_settings.VERSION,
        source="accelerate, accelerate/commands/launch.py; accelerate/utils/dataclasses.py",
        recognises=recognises,
        values=values,
        read=hf_run.read_run,
        known=known,
        verbs=("train",),
        fills=accelerate_writing.fills,
        write=accelerate_writing.write,
        ending=".yaml",
        says=accelerate_writing.SAYS,
    ),
)
