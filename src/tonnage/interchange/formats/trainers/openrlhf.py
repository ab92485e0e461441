"""OpenRLHF: `python3 -m openrlhf.cli.train_ppo_ray`, `train_sft`, `train_dpo` and `train_rm` with their flags."""

import re
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.launching.programs import DEEPSPEED
from tonnage.interchange.parts.launching.training import OWN_PROGRAM, last_values, started_program
from tonnage.interchange.parts.openrlhf.names import KNOWN, SEVERAL, SWITCHES
from tonnage.interchange.parts.openrlhf.read import PROGRAM, RENAMED, read_run
from tonnage.interchange.parts.openrlhf.write import SAYS, write
from tonnage.interchange.reading import options_of_command
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

_PROGRAM = re.compile(r"openrlhf[./]cli[./](train_\w+?)(?:\.py)?")
# Names of switches before 0.11.
OLD_SWITCHES = frozenset(
    (
        *(old for old, new in RENAMED.items() if new in SWITCHES),
        *("flash-attn", "bf16", "gradient-checkpointing", "apply-chat-template", "normalize-reward", "save-hf-ckpt"),
        *("load-checkpoint", "disable-fast-tokenizer", "gradient-checkpointing-use-reentrant", "disable-ds-ckpt"),
        *("dynamic-filtering", "multiturn", "pretrain-mode", "ipo", "use-ms", "save-value-network"),
    )
)
OLD_SEVERAL = frozenset(("target-modules", "adam-betas", "eps-clip-low-high", "dynamic-filtering-reward-range"))


def recognises(source: Source) -> int:
    return OWN_PROGRAM * (started_program(source, _is_program) is not None)


def _is_program(word: str) -> bool:
    return _PROGRAM.fullmatch(word.lstrip("./")) is not None


def values(source: Source) -> dict[str, Any]:
    start = started_program(source, _is_program)
    match = _PROGRAM.fullmatch(start[1].lstrip("./")) if start else None
    if start is None or match is None:
        raise InvalidInput("{file} starts no program of openrlhf.cli.", file=source.name)
    options, alone = options_of_command(start[2], SWITCHES | OLD_SWITCHES, SEVERAL | OLD_SEVERAL)
    left = {
        f"word {at + 1}": word
        for at, word in enumerate(alone)
        if not word.startswith(("$@", ">", "2>", "&>", "{")) and word not in (")", "}")
    }
    return {PROGRAM: match[1], **_launcher(start[0]), **last_values(options, SEVERAL | OLD_SEVERAL), **left}


def _launcher(words: list[str]) -> dict[str, Any]:
    """Options of the launcher of DeepSpeed."""
    at = next((at for at, word in enumerate(words) if program_name(word) == "deepspeed"), -1)
    if at < 0:
        return {}
    options, _ = options_of_command(words[at + 1 :], DEEPSPEED.switches | {"module"})
    return {f"deepspeed.{name}": value for name, value in options.items()}


FORMATS.add(
    "openrlhf",
    Format(
        name="openrlhf",
        tool="OpenRLHF",
        version="0.11.2",
        source="openrlhf 0.11.2, openrlhf/cli",
        recognises=recognises,
        values=values,
        read=read_run,
        known=lambda: KNOWN,
        verbs=("train",),
        sets={"train": "deepspeed"},
        write=write,
        says=SAYS,
    ),
)
