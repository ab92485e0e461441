"""Servers that a script, a command or a manifest starts: found by their program, and put together to one question."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.interchange.parts.engines.engine_options import names
from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Command, Source
from tonnage.interchange.source import commands_of as commands_of_script
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message, listed

PREFILL, DECODE = "prefill", "decode"
PROGRAM, IMAGE = 10, 9  # signs: the program itself; a container whose entry point it is


class Program(Struct, frozen=True, kw_only=True):
    """How a tool is started.

    starts: the words that begin it, such as `vllm serve`; `images`: names of containers that start it by themselves
    switches: options without a value, also with `no-` before them; `several`: those with many
    short: other names of options -> the names that the format knows
    variables: how variables of its environment begin, or their names
    negates: whether `--no-x` is x that is false, and no option of its own
    """

    starts: tuple[tuple[str, ...], ...]
    images: tuple[str, ...] = ()
    switches: frozenset[str] = frozenset()
    several: frozenset[str] = frozenset()
    short: Mapping[str, str] = {}
    variables: tuple[str, ...] = ()
    negates: bool = True

    def match(self, command: Command) -> "EngineCommand | None":
        """The options of a command that starts the tool, also behind words of other programs; None where it does
        not.
        """
        words = command.words
        for at in range(len(words)):
            for start in self.starts:
                part = words[at : at + len(start)]
                if part and (program_name(part[0]), *part[1:]) == start:
                    return EngineCommand(words=words[at + len(start) :], environment=self._own(command), signs=PROGRAM)
        if words[:1] and program_name(words[0]) in ("docker", "podman", "nerdctl") and self.images:
            for at, word in enumerate(words):
                image, _, tag = word.partition(":")
                if image.rpartition("docker.io/")[2] in self.images:
                    environment = {**self._own(command), **_environment(words[:at], self.variables)}
                    return EngineCommand(words=words[at + 1 :], environment=environment, signs=IMAGE, tag=tag)
        return None

    def _own(self, command: Command) -> dict[str, str]:
        return {name: value for name, value in command.environment.items() if name.startswith(self.variables or " ")}

    def values(self, command: "EngineCommand") -> dict[str, Any]:
        """Options and variables by name, `--no-x` as x that is false; the words that stand alone are `alone`."""
        switches = self.switches | {f"no-{name}" for name in self.switches} | {f"no-{name}" for name in self.short}
        options, alone = options_of_command(command.words, switches | self._short_switches, self.several)
        for name in [name for name in options if name.startswith("no-")]:
            plain = self.short.get(name.removeprefix("no-"), name.removeprefix("no-"))
            if self.negates and plain in self.switches and options[name] is True:
                options[plain] = not options.pop(name)
        return {**command.environment, **options, **({"alone": alone} if alone else {})}

    @property
    def _short_switches(self) -> frozenset[str]:
        return frozenset(short for short, name in self.short.items() if name in self.switches)

    def rename(self, r: Reading) -> None:
        """Read short names by their long ones."""
        r.rename({name: long for name, long in self.short.items() if name != long})

    def merged(self, options: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
        """Options of a command, and those of its file that it does not say itself, by whatever name."""
        in_command = {self.short.get(name, name).partition(".")[0] for name in options}
        left = {
            key: value for key, value in file.items() if self.short.get(key, key).partition(".")[0] not in in_command
        }
        return {**left, **options}

    def completed(
        self,
        options: dict[str, Any],
        alone: Sequence[str],
        model: str,
        source: Source,
        config_values: Callable[[Mapping[str, Any], str], dict[str, Any]],
    ) -> dict[str, Any]:
        """Options of a command, with those of the file that `config` names, and the words that stand alone: the first
        is the `model`.
        """
        if isinstance(options.get("config"), str):
            file = source.sibling(options["config"])
            options = self.merged(options, config_values(file.tree, file.name))
        if alone:
            options[model] = alone[0]
            options |= {f"word {number}": word for number, word in enumerate(alone[1:], 2)}
        return options


class EngineCommand(Struct, frozen=True, kw_only=True):
    """A command of the tool: its options, its variables, how sure that is, and the tag of its image."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    signs: int
    tag: str = ""


def _environment(words: Sequence[str], variables: tuple[str, ...]) -> dict[str, str]:
    """Variables that a container is started with."""
    pairs = [
        word.removeprefix("--env=") if word.startswith("--env=") else after
        for word, after in zip(words, [*words[1:], ""], strict=True)
        if word in ("-e", "--env") or word.startswith("--env=")
    ]
    split = [pair.partition("=") for pair in pairs]
    return {name: value for name, equals, value in split if equals and name.startswith(variables or " ")}


def commands_of(source: Source, *programs: Program) -> Iterator[tuple[Program, EngineCommand]]:
    """Commands of a source that start one of the tools."""
    for command in _opened(source.commands):
        for program in programs:
            if engine_command := program.match(command):
                yield program, engine_command
                break


SHELLS = ("sh", "bash", "zsh", "dash")
OPENED = 100  # commands inside commands of one source that are looked at


def _opened(commands: Iterable[Command]) -> Iterator[Command]:
    """The commands, with those of a text that a shell is given: `bash -c "vllm serve ..."`."""
    waiting, left = list(commands), OPENED
    while waiting:
        command = waiting.pop(0)
        yield command
        words = command.words
        for at, word in enumerate(words[:-2]):
            flag = words[at + 1]
            if left and program_name(word) in SHELLS and flag.startswith("-") and flag.endswith("c"):
                left -= 1
                inner = list(commands_of_script(words[at + 2]))
                environment = command.environment
                waiting[:0] = [
                    replace(script_command, environment={**environment, **script_command.environment})
                    for script_command in inner
                ]
                break


def program_score(source: Source, *programs: Program) -> int:
    return max((command.signs for _, command in commands_of(source, *programs)), default=0)


class Server(Struct, frozen=True, kw_only=True):
    """Servers that are alike: their options, what part of the work they do, and how many there are."""

    values: Mapping[str, Any]
    read: Callable[[Reading], "Size"]
    role: str = ""
    replicas: int = 1


class Size(Struct, frozen=True, kw_only=True):
    """Accelerators of a server (0: all there are), the nodes that it says it runs on (0: none), and the copies of the
    model that it has. `keys` decide them.
    """

    accelerators: int = 1
    nodes: int = 0
    copies: int = 1
    keys: tuple[str, ...] = ()


def read_servers(r: Reading, servers: Sequence[Server]) -> None:
    """The question that all servers together ask."""
    if len(servers) == 1 and servers[0].replicas == 1 and servers[0].role not in (PREFILL, DECODE):
        only_size = servers[0].read(r)
        count(r, only_size.accelerators, only_size.nodes, only_size.keys)
        return
    inner = [(server, *_read(r, server)) for server in servers]
    models = {str(entry.question.get("model", "")) for _, entry, _ in inner} - {""}
    if len(models) > 1 and not r.asker.model:
        raise InvalidInput(
            "{file} starts several models: {models}. Give the command of one, or name it with --model.",
            file=r.source.name,
            models=listed(sorted(models)),
        )
    decoding = [entry for entry in inner if entry[0].role != PREFILL]
    server, reading, size = (decoding or inner)[0]
    r.values.clear()
    r.take_over(reading)
    others = [entry for entry in inner if entry[1] is not reading]
    for other, another, its_size in others:
        _compare(r, reading, another, other.role)
        if its_size.accelerators != size.accelerators:
            _not_alike(r, other.role, its_size, size)
    prefill = sum(entry.replicas * its.copies for entry, _, its in inner if entry.role == PREFILL)
    replicas = sum(entry.replicas for entry, _, _ in inner)
    if prefill and decoding:
        r.put("prefill_replicas", prefill, *(key for key in ROLE_KEYS if key in reading.values))
    elif server.role in (PREFILL, DECODE):
        _half(r, reading, server.role)
    count(r, size.accelerators * replicas, size.nodes * replicas if size.nodes > 1 else 0, size.keys)


# Options that say what part of the work a server does.
ROLE_KEYS = ("disaggregation-mode", "kv-transfer-config.kv_role", "is-prefill-worker", "is-decode-worker")


def _read(r: Reading, server: Server) -> tuple[Reading, Size]:
    inner = Reading(r.source, server.values, r.asker, r.machines)
    inner.tool, inner.version, inner.verb = r.tool, r.version, r.verb
    return inner, server.read(inner)


def _half(r: Reading, reading: Reading, role: str) -> None:
    """One part alone of servers that share the work."""
    key = next((key for key in ROLE_KEYS if key in reading.values), "server")
    r.values[key] = reading.values.get(key, role)
    why = Message("it does {role} alone: give a file with all servers, those of prefill and of decode", role=role)
    r.unsure(key, why)


def _compare(r: Reading, reading: Reading, other: Reading, role: str) -> None:
    """What another server has otherwise: here all replicas are alike."""
    who = role or "another server"
    for option in sorted({*reading.question, *other.question} - {"model", "engine", "engine_version"}):
        own, its = reading.question.get(option), other.question.get(option)
        if own == its:
            continue
        keys = other.origins.get(option) or reading.origins.get(option) or (option.replace("_", "-"),)
        name = f"{who}: {keys[0]}"
        r.values[name] = its
        r.unsure(name, Message("{mine} of the others: here all replicas are alike", mine=own))
    for key in other.document().keys:
        if key.status == "not understood" and key.key not in r.values:
            r.values[f"{who}: {key.key}"] = key.value
            r.unsure(f"{who}: {key.key}", key.why)


def _not_alike(r: Reading, role: str, its: Size, size: Size) -> None:
    name = f"{role or 'another server'}: accelerators"
    r.values[name] = its.accelerators
    r.unsure(name, Message("{mine} of the others: here all replicas are alike", mine=size.accelerators))


def count(r: Reading, accelerators: int, nodes: int, keys: tuple[str, ...] = ()) -> None:
    """The accelerators that all servers take: those of the machine, where it says no number; else not more than it
    has.
    """
    if not accelerators:
        return
    if not (r.machines.nodes or r.machines.per_node):
        if nodes > 1 and accelerators % nodes == 0:
            r.count_machines(nodes=nodes, per_node=accelerators // nodes)
        else:
            r.count_machines(per_node=accelerators)
    for key in keys:
        r.put("on", None, key)
    try:
        there = r.num_accelerators
    except TonnageError:
        return  # what no machine says, or is none, is refused where it is used
    if accelerators > there:
        raise InvalidInput(
            "{file} takes {accelerators:,} accelerators ({keys}), and {on} has {there:,}.",
            file=r.source.name,
            accelerators=accelerators,
            keys=listed(keys) or "all servers together",
            on=r.on,
            there=there,
        )
    if accelerators < there:
        r.notes.append(
            Message(
                "{file} takes {accelerators:,} of the {there:,} accelerators of {on}: the answer is for as many "
                "servers of it as there is room for.",
                file=r.source.name,
                accelerators=accelerators,
                there=there,
                on=r.on,
            )
        )


# What differs between servers that are alike: their rank, and where they listen.
RANK_KEYS = names("""
    node-rank r data-parallel-rank dpn data-parallel-start-rank dpr headless port host base-gpu-id
    kv-transfer-config.kv_rank kv-transfer-config.kv_port kv-transfer-config.engine_id VLLM_NIXL_SIDE_CHANNEL_PORT
    VLLM_NIXL_SIDE_CHANNEL_HOST disaggregation-bootstrap-port dist-init-addr nccl-port master-port mp
    CUDA_VISIBLE_DEVICES VLLM_HOST_IP VLLM_PORT served-model-name a alias
""")


def grouped(
    commands: Sequence[Mapping[str, Any]], read: Callable[[Reading], Size], role_of: Callable[[Mapping[str, Any]], str]
) -> list[Server]:
    """The servers that commands start. Commands that are alike but for rank and place are one server on several nodes,
    or several servers.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for values in commands:
        alike = {key: value for key, value in values.items() if key not in RANK_KEYS}
        groups.setdefault(repr(sorted(alike.items(), key=lambda item: item[0])), []).append(values)
    servers = []
    for alike_commands in groups.values():
        first = alike_commands[0]
        servers.append(
            Server(
                values=first,
                read=read,
                role=role_of(first),
                replicas=max(len(alike_commands) // _commands_of_one(first), 1),
            )
        )
    return servers


def _commands_of_one(values: Mapping[str, Any]) -> int:
    """Commands that start one server together: one on each of its nodes, or one for each of its data-parallel ranks."""

    def number(*names: str) -> int:
        text = next((str(values[name]) for name in names if name in values), "1")
        return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) < 5 else 1

    data = number("data-parallel-size", "dp")
    if "data-parallel-rank" in values or "dpn" in values:
        return data
    if local := number("data-parallel-size-local", "dpl") * any(key in values for key in LOCAL):
        return max(data // local, 1)
    return number("nnodes", "n")


LOCAL = ("data-parallel-size-local", "dpl")
