"""veRL: `python3 -m verl.trainer.main_ppo key=value ...`, and the YAML of its trainers."""

import re
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hydra import assigned
from tonnage.interchange.parts.launching.torchrun import torchrun_values
from tonnage.interchange.parts.launching.training import OWN_PROGRAM, started_program
from tonnage.interchange.parts.verl import sft
from tonnage.interchange.parts.verl.names import KNOWN
from tonnage.interchange.parts.verl.read import read_run
from tonnage.interchange.parts.verl.values import ARM, MODEL, ROLLOUT
from tonnage.interchange.parts.verl.write import SAYS, write
from tonnage.interchange.reading import Reading, flattened, options_of_command
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

PROGRAM = re.compile(r"(?:(?:verl|recipe)[./])(?:[\w./]*[./])?main_(?:ppo|dapo|ppo_sync|prime|sppo|spin)\w*(?:\.py)?")
SFT = re.compile(r"verl[./](?:[\w./]*[./])?(?:fsdp_)?sft_trainer(?:_ray)?(?:\.py)?")
MEGATRON_CONFIG = "ppo_megatron_trainer"
# Mappings that hold names of another tool.
UNFLATTENED = frozenset((f"{MODEL}override_config", f"{ROLLOUT}engine_kwargs", "data.apply_chat_template_kwargs"))


def recognises(source: Source) -> int:
    if source.kind in ("yaml", "json"):
        of_sft = {"engine", "optim", "model", "data", "trainer"} <= set(source.tree)
        return 10 * (ARM.rstrip(".") in source.tree or of_sft)
    if started_program(source, _is_program):
        return OWN_PROGRAM
    return 5 * any(sum(word.lstrip("+").startswith(ARM) for word in one.words) >= 3 for one in source.commands)


def _is_program(word: str) -> bool:
    return PROGRAM.fullmatch(word.lstrip("./")) is not None or _is_sft(word)


def _is_sft(word: str) -> bool:
    return SFT.fullmatch(word.lstrip("./")) is not None


def values(source: Source) -> dict[str, Any]:
    if source.kind in ("yaml", "json"):
        return {key: _plain(value) for key, value in flattened(source.tree, UNFLATTENED).items()}
    start = started_program(source, _is_program)
    words = (
        start[2]
        if start
        else next((list(one.words) for one in source.commands if any(ARM in word for word in one.words)), None)
    )
    if words is None:
        raise InvalidInput("{file} starts no verl.trainer.main_ppo.", file=source.name)
    options, alone = options_of_command(words)
    overrides = assigned(alone)
    if start and _is_sft(start[1]):
        return {**torchrun_values(start[0]), **overrides}
    if MEGATRON_CONFIG in str(options.get("config-name", "")):
        overrides.setdefault(f"{ARM}actor.strategy", "megatron")
    hydra = {f"hydra.{name}": value for name, value in options.items() if name.startswith("config") or name == "cn"}
    other = {name: value for name, value in options.items() if f"hydra.{name}" not in hydra}
    return {**overrides, **hydra, **other}


def _plain(value: Any) -> Any:
    """A value; none where it is one that another key gives, or that must be given."""
    is_reference = isinstance(value, str) and (value.startswith("${") or value == "???")
    return None if is_reference else value


def read(r: Reading) -> None:
    if sft.is_run(r):
        sft.read_run(r)
    else:
        read_run(r)
    r.forget_unused()


FORMATS.add(
    "verl",
    Format(
        name="verl",
        tool="veRL",
        version="0.9.1",
        source="verl 0.9.1, verl/trainer/config",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: KNOWN | sft.KNOWN,
        verbs=("train",),
        sets={"train": "fsdp2"},
        write=write,
        says=SAYS,
    ),
)
