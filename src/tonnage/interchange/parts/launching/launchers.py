"""The command behind the programs that start it: srun, mpirun, torchrun, uv run, bash -c, containers and others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.launching.containers import run_of
from tonnage.interchange.parts.launching.images import entry_point
from tonnage.interchange.parts.launching.programs import LAUNCHERS, SHELLS, Launcher
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Command, Source, commands_of
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import is_there

_CONDITION = re.compile(r"\s*(?:if|elif)\s.*;\s*then\s+\S")
_THEN = re.compile(r";\s*then\b[ \t]*")
_ENDS = re.compile(r";\s*(else|fi)\b;?[ \t]*")
MOST_LAYERS = 12  # programs in front of one command
MOST_SCRIPTS = 3  # scripts that start each other
# Variables that a scheduler sets, which no tool of ours reads.
OF_SCHEDULERS = ("SLURM_", "SKYPILOT_", "PET_", "LWS_", "JOB_COMPLETION_INDEX")


class Layer(Struct, frozen=True, kw_only=True):
    """One launcher: its name, its options by our names of them, and those of them that it does not have."""

    name: str
    values: Mapping[str, Any]
    counts: Mapping[str, str] = {}
    unknown: tuple[str, ...] = ()


class Launched(Struct, frozen=True, kw_only=True):
    """A command and what stands in front of it.

    stages: the command, first with all launchers, last with none; one of a shell's script without that shell
    layers: the launchers, the outermost first
    image: the container that holds the program
    """

    stages: tuple[Command, ...]
    layers: tuple[Layer, ...] = ()
    image: str = ""


def launched(command: Command, source: Source, scripts: int = 0) -> Iterator[Launched]:
    """The command behind its launchers; all commands of a script that it starts."""
    stages, image = [command], ""
    layers: list[Layer] = []
    for _ in range(MOST_LAYERS):
        words = stages[-1].words
        script = _script(stages[-1], source) if scripts < MOST_SCRIPTS else None
        if script is not None:
            shell = Layer(name="bash", values={})
            for inner in commands_of(_with_environment(script, stages[-1].environment)):
                for one in launched(inner, source, scripts + 1):
                    yield Launched(stages=one.stages, layers=(*layers, shell, *one.layers), image=one.image or image)
            return
        step = _container(words) or _step(words)
        if step is None:
            break
        layer, rest, held, environment = step
        if not rest:
            break
        layers.append(layer)
        image = held or image
        stages.append(_command(rest, {**stages[-1].environment, **environment}))
    yield Launched(stages=tuple(stages), layers=tuple(layers), image=image)


def _command(words: Sequence[str], environment: Mapping[str, str]) -> Command:
    """The command of these words, whose first ones may set variables."""
    own = Source(name="", text="", words=tuple(words)).commands[0]
    return Command(words=own.words, environment={**environment, **own.environment})


def _script(command: Command, source: Source) -> str | None:
    """The script that a shell is given, or the text of the one that it is told to run; None of other commands."""
    program, *words = [*command.words, ""]
    if program_name(program) in SHELLS:
        for at, word in enumerate(words[:-1]):
            if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word):
                rest = [word for word in words[at + 1 : -1] if word != "--"]
                return rest[0] if rest else ""
        files = [word for word in words[:-1] if not word.startswith("-") and word != "pipefail"]
        return _text_of(files[0], source) if files else None
    is_script = program.endswith(".sh") and ("/" in program or not source.words)
    return _text_of(program, source) if is_script else None


def _text_of(path: str, source: Source) -> str | None:
    """A script that stands beside the file, where it may be read."""
    if source.folder is None or "$" in path or not path.endswith((".sh", ".bash", ".slurm", ".sbatch")):
        return None
    if not is_there(str(source.folder / path)):
        return None
    return source.sibling(path).text


def _with_environment(script: str, environment: Mapping[str, str]) -> str:
    exports = (f"export {name}={quote(value)}\n" for name, value in environment.items())
    return "".join([*exports, opened(script)])


def opened(script: str) -> str:
    """The script with conditions and loops that stand in one line over several: `if a; then b; fi; c`."""
    if "; then" not in script and ";then" not in script:
        return script
    return "\n".join(_opened(line) if _CONDITION.match(line) else line for line in script.split("\n"))


def _opened(line: str) -> str:
    return _ENDS.sub(r"\n\1\n", _THEN.sub("; then\n", line))


Step = tuple[Layer, list[str], str, Mapping[str, str]]


def _container(words: Sequence[str]) -> Step | None:
    """`docker run IMAGE`: the words behind the image, in front of them the program that it starts by itself."""
    run = run_of(words)
    if run is None:
        return None
    layer = Layer(name=run.name, values=run.values, counts={"gpus": "per node"}, unknown=run.unknown)
    return layer, list(run.words), run.image, run.environment


def _step(words: Sequence[str]) -> Step | None:
    launcher, start = next(
        (
            (launcher, start)
            for launcher in LAUNCHERS
            for start in launcher.starts
            if words and (program_name(words[0]), *words[1 : len(start)]) == start
        ),
        (None, ()),
    )
    if launcher is None:
        return None
    values, rest, unknown, is_module = options_before(launcher, list(words[len(start) :]))
    held, program = "", rest
    if launcher.skips:
        held = rest[0] if launcher.name.startswith("apptainer") and rest else ""
        program = rest[launcher.skips :]
    elif launcher.name == "taskset" and "cpu-list" not in values and "c" not in values:
        program = rest[1:]
    held = held or str(values.get("container-image", ""))
    if is_module:
        program = ["python", "-m", *program]
    elif program and program[0].endswith(".py") and launcher.is_module:
        program = ["python", *program]
    elif held and program and program[0].startswith("-"):
        program = [*entry_point(held, program), *program]
    layer = Layer(name=launcher.name, values=values, counts=launcher.counts, unknown=tuple(unknown))
    return layer, program, held, {}


def options_before(launcher: Launcher, words: list[str]) -> tuple[dict[str, Any], list[str], list[str], bool]:
    """The options that stand before the program, the words from the program on, options that the launcher has not, and
    whether the program is a module of Python.
    """
    values: dict[str, Any] = {}
    unknown: list[str] = []
    takes = launcher.valued | frozenset(launcher.counts)
    left = list(words)
    while left and left[0].startswith("-") and len(left[0]) > 1:
        word = left.pop(0)
        if word == "--":
            break
        name, equals, value = word.lstrip("-").partition("=")
        plain = name.replace("_", "-")
        plain = launcher.short.get(plain, plain)
        if launcher.is_module and plain in ("m", "module") and not equals:
            return values, left, unknown, True
        short = launcher.short.get(name[:1], name[:1])
        if equals:
            values[plain] = value
        elif plain in launcher.switches:
            values[plain] = True
        elif plain in launcher.twice:
            values[plain] = " ".join(left[:2])
            left = left[2:]
        elif plain in takes:
            values[plain] = left.pop(0) if left else ""
        elif not word.startswith("--") and short in takes:
            plain, values[short] = short, name[1:]
        else:
            values[plain] = left.pop(0) if len(left) > 1 and left[0][:1].isdigit() else True
        if plain not in takes | launcher.switches | launcher.twice:
            unknown.append(plain)
    return values, left, unknown, False


def number_of(text: Any) -> int:
    """The number that a word of a launcher says; 0 where it is none, such as `gpu`, or a variable that is not known."""
    match = re.fullmatch(r"(?:\d{1,7}:)?(\d{1,7})", str(text).strip())
    return int(match[1]) if match else 0


def accelerators_of(text: Any) -> tuple[str, int]:
    """The type and the number of `gpu:h100:8`, `h100:8`, `8`, or `gpu`; of several of them the sum of those that are
    accelerators. InvalidInput where there is no number to be read.
    """
    kind, total = "", 0
    for part in str(text).split(","):
        plain = re.sub(r"\(.*?\)", "", part).strip()
        words = [word for word in plain.split(":") if word]
        if not words or (len(words) > 1 and words[0] not in ("gpu", "gres/gpu") and not words[-1].isdecimal()):
            continue
        if words[0] in ("gpu", "gres/gpu"):
            words = words[1:] or ["1"]
        elif "gpu" in text and words[0] != "gpu":
            continue  # another resource beside accelerators
        number = words.pop() if words[-1].isascii() and words[-1].isdecimal() else "1"
        if len(number) > 6:
            raise InvalidInput("a machine has up to 999,999 accelerators. Got {text}.", text=number[:20])
        kind = words[0] if words else kind
        total += int(number)
    return kind, total
