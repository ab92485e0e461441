"""Megatron-LM: the arguments of pretrain_gpt.py, in a command, a script, or a file of YAML."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.launching.torchrun import count_torchrun, torchrun_values
from tonnage.interchange.parts.launching.training import OWN_PROGRAM, last_values, started_program
from tonnage.interchange.parts.megatron.effects import KNOWN
from tonnage.interchange.parts.megatron.files import by_argument, is_file, read_fields, tree_values
from tonnage.interchange.parts.megatron.names import SEVERAL, SWITCHES
from tonnage.interchange.parts.megatron.run import read_arguments
from tonnage.interchange.parts.megatron.write import SAYS, write
from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput, shown

PROGRAMS = ("pretrain_gpt.py", "pretrain_gpt", "pretrain_mamba.py", "pretrain_hybrid.py", "train_rl.py")
OTHERS = ("pretrain_bert.py", "pretrain_t5.py", "pretrain_ict.py", "pretrain_retro.py", "pretrain_vlm.py")
# Of another program with Megatron's arguments, such as a fork's, these say whose they are.
ITS_OWN = ("--tensor-model-parallel-size", "--num-attention-heads", "--micro-batch-size", "--seq-length")


def recognises(source: Source) -> int:
    if source.kind in ("yaml", "json"):
        return 10 * is_file(source.tree)
    if started_program(source, _is_program):
        return OWN_PROGRAM
    return 5 * any(sum(_has(command.words, name) for name in ITS_OWN) >= 3 for command in source.commands)


def _is_program(word: str) -> bool:
    return program_name(word) in (*PROGRAMS, *OTHERS)


def _has(words: tuple[str, ...], name: str) -> bool:
    return any(word.replace("_", "-") == name or word.replace("_", "-").startswith(f"{name}=") for word in words)


def values(source: Source) -> dict[str, Any]:
    if source.kind in ("yaml", "json"):
        return tree_values(source)
    start = started_program(source, _is_program) or _of_fork(source)
    if start is None:
        raise InvalidInput("{file} starts no pretrain_gpt.py.", file=source.name)
    before, program, after = start
    if program_name(program) in OTHERS:
        raise InvalidInput(
            "{file} starts {program}: of Megatron-LM's programs only {known} is read here.",
            file=source.name,
            program=shown(program),
            known=PROGRAMS[0],
        )
    options, alone = options_of_command(after, SWITCHES, SEVERAL)
    arguments = last_values(options, SEVERAL)
    named = arguments.get("yaml-cfg")
    file: Mapping[str, Any] = tree_values(source.sibling(str(named))) if named else {}
    left = {f"word {at + 1}": word for at, word in enumerate(alone) if not _is_of_shell(word)}
    return {**torchrun_values(before), **file, **arguments, **left}


def _is_of_shell(word: str) -> bool:
    """Words of the shell: further arguments, and where the output goes."""
    return word.startswith(("$@", "$*", ">", "2>", "&>", "<")) or word in (")", "}")


def _of_fork(source: Source) -> tuple[list[str], str, list[str]] | None:
    """The command of another program that has Megatron's arguments."""
    for command in source.commands:
        at = next((at for at, word in enumerate(command.words) if word.startswith("--") and _ours(word)), None)
        if at is not None and sum(_has(command.words, name) for name in ITS_OWN) >= 2:
            script = next((place for place, word in enumerate(command.words[:at]) if word.endswith(".py")), None)
            if script is None:
                return list(command.words[:at]), "", list(command.words[at:])
            return list(command.words[:script]), command.words[script], list(command.words[script + 1 :])
    return None


def _ours(word: str) -> bool:
    return word.lstrip("-").partition("=")[0].replace("_", "-") in KNOWN


def read(r: Reading) -> None:
    count_torchrun(r)
    by_argument(r)
    read_arguments(r)
    read_fields(r)


FORMATS.add(
    "megatron",
    Format(
        name="megatron",
        tool="Megatron-LM",
        version="0.19",
        source="megatron-core 0.19.2, megatron/training/arguments.py",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: KNOWN,
        verbs=("train",),
        sets={"train": "megatron"},
        write=write,
        says=SAYS,
    ),
)
