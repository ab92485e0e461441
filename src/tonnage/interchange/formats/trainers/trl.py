"""TRL: `trl sft|dpo|grpo ...`, its scripts, and the YAML files that they take."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.formats.trainers.transformers import OTHERS
from tonnage.interchange.parts.hugging_face import (
    accelerate_settings,
    hf_model,
    hf_run,
    script_arguments,
    training_arguments,
    trl_settings,
)
from tonnage.interchange.parts.launching.training import PYTHON, TORCHRUN, TRL, training_launch
from tonnage.interchange.source import Command, Source


def recognises(source: Source) -> int:
    if source.commands:
        return 10 * bool(_commands(source))
    there = set(source.tree)
    signs = len(there & set(trl_settings.SIGNS))
    count = training_arguments.signs(there)
    return 0 if there & OTHERS or not signs or signs + count < 3 else signs + count


def _commands(source: Source) -> list[Command]:
    return [one for one in source.commands if _is_trl(one)]


def _is_trl(command: Command) -> bool:
    launch = training_launch(command.words)
    if launch.launcher == TRL:
        return launch.script in trl_settings.TRAINERS
    if launch.launcher not in (PYTHON, TORCHRUN):
        return False
    there = set(script_arguments.arguments_of(launch.words[1:]))
    return hf_run.is_trl_command(launch.script, there) and not there & OTHERS


def values(source: Source) -> dict[str, Any]:
    if commands := _commands(source):
        return hf_run.values_of_command(commands[-1], source)
    return hf_run.values_of_tree(source)


def known() -> list[str]:
    return [
        *training_arguments.known(),
        *hf_model.KEYS,
        *trl_settings.KEYS,
        *trl_settings.HARMLESS,
        *accelerate_settings.TOP,
    ]


FORMATS.add(
    "trl",
    Format(
        name="trl",
        tool="TRL",
        version=trl_settings.VERSION,
        source=trl_settings.TOOL.source,
        recognises=recognises,
        values=values,
        read=hf_run.read_run,
        known=known,
        verbs=("train",),
    ),
)
