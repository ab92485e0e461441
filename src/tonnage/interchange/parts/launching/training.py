"""Commands that start a training script on several accelerators: python, torchrun, deepspeed, accelerate launch, trl.

Sources: torch 2.13, torch/distributed/run.py; DeepSpeed 0.19, deepspeed/launcher/runner.py; accelerate 1.15,
accelerate/commands/launch.py.
"""

import re
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.launching import programs
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import options_of_command
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Source

PYTHON, TORCHRUN, DEEPSPEED, ACCELERATE, TRL = "python", "torchrun", "deepspeed", "accelerate", "trl"
# Options that take no value, so that the word behind them may be the script.
SWITCHES = {
    PYTHON: frozenset(names("u O OO B E I s S v q x i m")),
    TORCHRUN: programs.TORCHRUN.switches | {"m", "module"},
    DEEPSPEED: programs.DEEPSPEED.switches | {"module"},
    ACCELERATE: frozenset(
        names(
            "quiet q cpu multi-gpu tpu enable-cpu-affinity dynamo-use-fullgraph dynamo-use-dynamic "
            "dynamo-use-regional-compilation use-deepspeed use-fsdp use-parallelism-config use-megatron-lm "
            "same-network m module no-python tpu-cluster no-tpu-cluster tpu-use-sudo downcast-bf16 "
            "fp8-use-autocast-during-eval debug"
        )
    ),
    TRL: frozenset(),
}
MODULES = {
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "accelerate.commands.launch": ACCELERATE,
    "deepspeed.launcher.runner": DEEPSPEED,
    "trl": TRL,
}
RUNNERS = (("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("nohup",), ("time",))
# Options of torchrun, deepspeed and python that change neither memory nor time, nor the number of processes.
HARMLESS = frozenset(
    name.replace("-", "_")
    for name in (*programs.TORCHRUN.harmless, *programs.DEEPSPEED.harmless, *names("m module H u O OO B E"))
)
OWN_PROGRAM = 12  # points for a program that is one tool's alone: more than for the launcher before it
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")


class TrainingLaunch(Struct, frozen=True, kw_only=True):
    """A command taken apart. launcher: `python`, `torchrun`, `deepspeed`, `accelerate`, `trl`, or nothing; options: of
    the launcher; words: what it starts, a program or a module's name first.
    """

    launcher: str = ""
    options: Mapping[str, Any] = {}
    words: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        """The script, module or program that is started; "" where there is none."""
        return self.words[0] if self.words else ""

    @property
    def settings(self) -> dict[str, Any]:
        """The options by names with underscores, as files of settings have them; of one given twice the last."""
        return {name.replace("-", "_"): value for name, value in last_values(self.options).items()}

    @property
    def program(self) -> str:
        """The name of what is started, without its folder."""
        return program_name(self.script)


def training_launch(command: Sequence[str]) -> TrainingLaunch:
    """The launcher of a command with its options, and what it starts."""
    words = without_runner(command)
    launcher, rest = launcher_of(words)
    if not launcher:
        return TrainingLaunch(words=tuple(words))
    if launcher == TRL:
        return TrainingLaunch(launcher=TRL, words=tuple(rest))
    own, started = split(rest, SWITCHES[launcher])
    options, _ = options_of_command(own, SWITCHES[launcher])
    return TrainingLaunch(launcher=launcher, options=options, words=tuple(started))


def without_runner(words: Sequence[str]) -> list[str]:
    """The words behind `uv run` and its like."""
    left = list(words)
    for runner in RUNNERS:
        if tuple(left[: len(runner)]) == runner:
            left = left[len(runner) :]
            while left and left[0].startswith("-"):
                left = left[1:]
    return left


def launcher_of(words: Sequence[str]) -> tuple[str, list[str]]:
    """The launcher and the words behind it."""
    if not words:
        return "", []
    name, rest = program_name(words[0]), list(words[1:])
    if name in (TORCHRUN, DEEPSPEED, TRL):
        return name, rest
    if name == ACCELERATE and rest[:1] == ["launch"]:
        return ACCELERATE, rest[1:]
    if name == "accelerate-launch":
        return ACCELERATE, rest
    if _PYTHON.fullmatch(name):
        before = next((at for at, word in enumerate(rest) if not word.startswith("-") or word == "-m"), len(rest))
        if rest[before : before + 1] == ["-m"] and (module := MODULES.get("".join(rest[before + 1 : before + 2]))):
            return module, rest[before + 2 :]
        return PYTHON, rest
    return "", []


def split(words: Sequence[str], switches: Container[str]) -> tuple[list[str], list[str]]:
    """The launcher's own words, and those from the script on."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or len(word) == 1:
            break
        name = word.lstrip("-").replace("_", "-")
        at += 1 if "=" in word or name in switches else 2
    return list(words[:at]), list(words[at:])


def started_program(source: Source, is_program: Callable[[str], bool]) -> tuple[list[str], str, list[str]] | None:
    """Of the last command of a source that starts such a program: the words before it, it, and those behind it. A
    command that is itself a word, as of bash -c, is looked into.
    """
    start = None
    for command in source.commands:
        start = _program_in(list(command.words), is_program, 0) or start
    return start


def _program_in(
    words: list[str], is_program: Callable[[str], bool], depth: int
) -> tuple[list[str], str, list[str]] | None:
    for at, word in enumerate(words):
        if is_program(word):
            return words[:at], word, words[at + 1 :]
        is_command = at > 0 and words[at - 1] in ("-c", "-lc", "-xc")  # bash -c "python pretrain_gpt.py ..."
        if is_command and depth < 2 and any(is_program(part) for part in word.split()):
            inner = _program_in(_words(word), is_program, depth + 1)
            if inner is not None:
                return [*words[:at], *inner[0]], inner[1], inner[2]
    return None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return text.split()


def last_values(options: Mapping[str, Any], several: Container[str] = frozenset()) -> dict[str, Any]:
    """Of an option that is given twice, the last counts, as argparse has it."""
    return {
        name: value[-1] if isinstance(value, list) and name not in several and value else value
        for name, value in options.items()
    }
