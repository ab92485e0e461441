"""The command that a job, a manifest or a service carries: found by the formats of the tools, and read by one."""

import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tonnage.interchange.formats import Format, formats
from tonnage.interchange.parts.launching.counting import count
from tonnage.interchange.parts.launching.images import engine_version
from tonnage.interchange.parts.launching.launchers import OF_SCHEDULERS, Launched, Layer, launched
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import OR, listed

CARRIERS = ("compose", "kserve", "launcher", "kubernetes", "ray-serve", "sbatch", "skypilot")
ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
SWITCHED_OFF = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NVLS_DISABLE")
MOST_COMMANDS = 500  # of one script; the longest of published recipes has some hundreds
KEYWORDS = ("then", "else", "do", "{", "(", "!")  # of a shell, in front of a command
# Words that begin a line of a script, of which none is a program of a tool.
PLAIN_WORDS = frozenset(
    names("""
    if elif fi for while until do done case esac function echo printf cd export set unset source . module mkdir
    rm cp mv ls cat pip pip3 sleep wait trap exit return read local declare test [ [[ { } true false wget curl
    git apt apt-get nvidia-smi date hostname scontrol ulimit eval let shift tar unzip huggingface-cli hf touch
    chmod chown ln find grep sed awk sort head tail tee kill pkill ray scancel squeue
""")
)


class CarriedCommand(Struct, frozen=True, kw_only=True):
    """A command that a tool's format reads. `where`: which container or service has it; `is_behind`: whether another
    program starts it.
    """

    command: Command
    form: Format
    layers: tuple[Layer, ...] = ()
    image: str = ""
    where: str = ""
    is_behind: bool = False


def carried_commands(
    source: Source, where: str = "", image: str = "", commands: Sequence[Command] = ()
) -> list[CarriedCommand]:
    """The commands of a source that formats read, each once."""
    carried: dict[tuple[str, ...], CarriedCommand] = {}
    looked_at = 0
    for command in commands or source.commands:
        plain = _behind_keywords(command)
        if not plain.words or (plain.words[0] in PLAIN_WORDS and plain.words[:3] != ("ray", "job", "submit")):
            continue
        looked_at += 1
        if looked_at > MOST_COMMANDS:
            raise InvalidInput(
                "{file} has more than {most:,} commands: give the one that trains or serves.",
                file=source.name,
                most=MOST_COMMANDS,
            )
        for one in launched(plain, source):
            if (read := _carried_command(one, source, where, image)) is not None:
                carried.setdefault(
                    (*read.command.words, *(f"{k}={v}" for k, v in read.command.environment.items())), read
                )
    return list(carried.values())


def _behind_keywords(command: Command) -> Command:
    """A command of a condition or a loop in one line, without the word of the shell in front of it."""
    words = list(command.words)
    while words and words[0] in KEYWORDS:
        words.pop(0)
    return command if len(words) == len(command.words) else Command(words=tuple(words), environment=command.environment)


def _carried_command(one: Launched, source: Source, where: str, image: str) -> CarriedCommand | None:
    """The command as the format reads it that knows it with the fewest launchers in front."""
    for at in range(len(one.stages) - 1, -1, -1):
        stage = one.stages[at]
        if stage.words and (form := form_that_reads(_source_of(stage, source))) is not None:
            return CarriedCommand(
                command=stage,
                form=form,
                layers=one.layers,
                image=one.image or image,
                where=where,
                is_behind=at > 0 or bool(one.layers),
            )
    return None


def form_that_reads(source: Source) -> Format | None:
    """The format with the most signs, of those that carry nothing; None where there is none, or several."""
    signs = [(form.recognises(source), form) for form in formats() if form.name not in CARRIERS]
    most = max((count for count, _ in signs), default=0)
    best = [form for count, form in signs if count == most]
    return best[0] if most > 0 and len(best) == 1 else None


def _source_of(command: Command, outer: Source) -> Source:
    words = _words(command)
    return Source(
        name=outer.name, text=shlex.join(words), folder=outer.folder, words=tuple(words), script=outer.whole_script
    )


def _words(command: Command) -> list[str]:
    own = {name: value for name, value in command.environment.items() if not name.startswith(OF_SCHEDULERS)}
    return [*(f"{name}={value}" for name, value in own.items()), *command.words]


def read_carried(r: Reading, commands: Sequence[CarriedCommand], own: Layer | None = None) -> CarriedCommand:
    """Read the one command there is, and take its question over. InvalidInput where there is none, or several could be
    the one. `own`: what the file says itself of nodes and accelerators, as options of a launcher.
    """
    from tonnage.interchange.check import read_as

    one, source = the_one(r, commands)
    count(r, [own, *one.layers] if own else one.layers, one.command.environment)
    asker = r.asker
    if one.image and not asker.version and (version := engine_version(one.image)):
        r.asker = replace(asker, version=version)
    inner = read_as(one.form, source, replace(r.asker, tool=""), r.machines)
    r.asker = asker
    r.take_over(inner)
    _take_allocator(r, one.command.environment)
    for name in SWITCHED_OFF:
        if one.command.environment.get(name, "0").lower() not in ("0", "", "false"):
            r.values[name] = one.command.environment[name]
            r.unsure(name, "a transport of NCCL that is switched off")
    return one


def _take_allocator(r: Reading, environment: Mapping[str, str]) -> None:
    """PyTorch's allocator, as the environment of the command sets it up."""
    from tonnage.runtimes import training_runtime

    name = next((name for name in ALLOCATOR if name in environment), "")
    if r.verb != "train" or not name or "expandable_segments" in r.question:
        return
    words = [word for word in environment[name].replace(" ", "").lower().split(",") if word]
    runtime = training_runtime(str(r.question.get("runtime") or "fsdp2"))
    r.values[name] = environment[name]
    if any(not word.startswith("expandable_segments:") for word in words):
        r.unsure(name, "only expandable_segments of it is estimated")
    elif runtime.classic_allocator or runtime.shards_units:
        r.put("expandable_segments", "expandable_segments:true" in words, name)
    else:
        r.ignore([name])


def the_one(r: Reading, commands: Sequence[CarriedCommand]) -> tuple[CarriedCommand, Source]:
    """The command, and the source that its format reads: all commands of one engine together, which may be servers
    that share the work.
    """
    if not commands:
        raise InvalidInput(
            "{file} carries no command that a tool known here trains or serves with: give the config or the command of "
            "the tool itself.",
            file=r.source.name,
        )
    first = commands[0]
    if len(commands) == 1:
        return first, _source_of(first.command, r.source)
    places = {(one.where, one.form.name) for one in commands}
    if len(places) == 1 and first.form.verbs == ("serve",):
        text = "\n".join(shlex.join(_words(one.command)) for one in commands)
        return first, Source(
            name=f"{r.source.name}, its commands", text=text, folder=r.source.folder, script=r.source.whole_script
        )
    names = [one.where or shlex.join(one.command.words[:4]) for one in commands]
    raise InvalidInput(
        "{file} carries several commands that train or serve: {names}. Give the one that you mean.",
        file=r.source.name,
        names=listed(dict.fromkeys(names), OR),
    )
