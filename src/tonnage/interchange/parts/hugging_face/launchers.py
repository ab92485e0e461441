"""Commands that start a Python script on several accelerators: python, torchrun, deepspeed, accelerate launch, trl.

Sources: torch 2.13, torch/distributed/run.py; DeepSpeed 0.19, deepspeed/launcher/runner.py; accelerate 1.15,
accelerate/commands/launch.py.
"""

import re
from collections.abc import Container, Sequence
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.hugging_face.keys import names
from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Command
from tonnage.kernel.errors import InvalidInput

PYTHON, TORCHRUN, DEEPSPEED, ACCELERATE, TRL = "python", "torchrun", "deepspeed", "accelerate", "trl"
# Options that take no value, so that the word behind them may be the script.
SWITCHES = {
    PYTHON: frozenset(names("u O OO B E I s S v q x i m")),
    TORCHRUN: frozenset(names("standalone m module no-python run-path use-env virtual-local-rank")),
    DEEPSPEED: frozenset(
        names("module no-python no-local-rank no-ssh no-ssh-check force-multi save-pid bind-cores-to-rank quiet")
    ),
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
# What decides the machines; everything else of a launcher is addresses, logs and restarts.
MACHINES = ("nproc_per_node", "nnodes", "num_gpus", "num_accelerators", "num_nodes", "include", "hostfile")
HARMLESS = names(
    "master_addr master_port rdzv_id rdzv_backend rdzv_endpoint rdzv_conf node_rank max_restarts monitor_interval "
    "start_method role log_dir redirects tee local_ranks_filter standalone module no_python run_path local_addr "
    "logs_specs use_env m r t virtual_local_rank event_log_handler duplicate_stdout_filters signals_to_handle "
    "numa_binding duplicate_stderr_filters H launcher launcher_args no_local_rank no_ssh no_ssh_check force_multi "
    "save_pid enable_each_rank_log bind_cores_to_rank bind_core_list ssh_port venv_script log_level quiet u O OO B E"
)
ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", *ALLOCATOR)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")


class Launched(Struct, frozen=True, kw_only=True):
    """A command taken apart. `program`: the launcher, "" where it is none of them; `options`: of the launcher;
    `script`: what it starts; `arguments`: the script's own words.
    """

    program: str
    options: dict[str, Any] = {}
    script: str = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}


def launched(command: Command) -> Launched:
    """A command as launcher, script and the script's arguments."""
    words = without_runner(command.words)
    program, rest = program_of(words)
    if not program:
        return Launched(program="")
    environment = {name: command.environment[name] for name in ENVIRONMENT if name in command.environment}
    if program == TRL:
        return Launched(program=TRL, script=rest[0] if rest else "", arguments=tuple(rest[1:]), environment=environment)
    own, script, arguments = split(rest, SWITCHES[program])
    options, _ = options_of_command(own, SWITCHES[program])
    return Launched(
        program=program,
        options={
            name.replace("-", "_"): value[-1] if isinstance(value, list) else value for name, value in options.items()
        },
        script=script,
        arguments=tuple(arguments),
        environment=environment,
    )


def without_runner(words: Sequence[str]) -> list[str]:
    """The words behind `uv run` and its like."""
    left = list(words)
    for runner in RUNNERS:
        if tuple(left[: len(runner)]) == runner:
            left = left[len(runner) :]
            while left and left[0].startswith("-"):
                left = left[1:]
    return left


def program_of(words: Sequence[str]) -> tuple[str, list[str]]:
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


def split(words: Sequence[str], switches: Container[str]) -> tuple[list[str], str, list[str]]:
    """The launcher's words, the script, and the words behind it."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or len(word) == 1:
            break
        name = word.lstrip("-").replace("_", "-")
        at += 1 if "=" in word or name in switches else 2
    own = list(words[:at])
    return own, words[at] if at < len(words) else "", list(words[at + 1 :])


def count_machines(r: Reading) -> None:
    """The machines that torchrun or deepspeed is told of, or that the environment leaves visible."""
    nodes, per_node = _nodes(r), 0
    for key in ("nproc_per_node", "num_gpus", "num_accelerators"):
        if r.has(key) and r.text(key) not in ("gpu", "auto", "-1"):
            per_node = r.positive(key)
        r.put("on", None, key)
    if r.has("include") and r.text("include"):
        hosts, slots = _included(r)
        nodes, per_node = nodes or hosts, per_node or slots
        r.put("on", None, "include")
    if r.has("hostfile"):
        nodes, per_node = _hosts(r, nodes, per_node)
    visible = r.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        per_node = per_node or len([one for one in str(visible).split(",") if one.strip()])
        r.put("on", None, "CUDA_VISIBLE_DEVICES")
    if r.text("program") == TORCHRUN and not r.has("nproc_per_node"):
        per_node = 1
        r.assume("nproc_per_node", 1, why="default of torchrun: one process")
    r.needs_default("exclude", "", why="which accelerators are left is not known: say them with --on")
    r.ignore(HARMLESS)
    put_machines(r, nodes, per_node)


def expands_segments(r: Reading) -> bool | None:
    """Whether the environment says that the allocator has expandable segments; None where it says nothing. Other
    settings of the allocator are not estimated.
    """
    expands = None
    for key in ALLOCATOR:
        if not r.has(key):
            continue
        parts = [part for part in r.text(key).replace(" ", "").lower().split(",") if part]
        expands = "expandable_segments:true" in parts
        if all(part.startswith("expandable_segments:") for part in parts):
            r.put("expandable_segments", None, key)
        else:
            r.unsure(key, "how it changes the allocator is not estimated")
    return expands


def put_machines(r: Reading, nodes: int, per_node: int) -> None:
    """Count the machines. InvalidInput for several nodes of which nobody says how many accelerators each has."""
    said = r.asker.on or r.machines.accelerator
    if nodes > 1 and not (per_node or r.machines.per_node or said.partition("x")[0].isdecimal()):
        raise InvalidInput(
            "{file} names {nodes} nodes, and not how many accelerators each has: say it with --on, such as --on "
            "{nodes}x8xh100.",
            file=r.source.name,
            nodes=nodes,
        )
    if nodes or per_node:
        r.count_machines(nodes=nodes, per_node=per_node)


def _nodes(r: Reading) -> int:
    nodes = 0
    if r.has("nnodes"):
        least, colon, _ = r.text("nnodes").partition(":")
        if colon:
            r.values["nnodes"] = least
            nodes = r.positive("nnodes")
            r.unsure("nnodes", "the number of nodes may change: the least is estimated")
        else:
            nodes = r.positive("nnodes")
            r.put("on", None, "nnodes")
    if r.has("num_nodes"):
        nodes = nodes if r.text("num_nodes") == "-1" else r.positive("num_nodes")
        r.put("on", None, "num_nodes")
    return nodes


def _included(r: Reading) -> tuple[int, int]:
    """Nodes and accelerators of each: `worker-0@worker-1:0,2`. Zero accelerators: all of a node."""
    slots = []
    for host in r.text("include").split("@"):
        _, colon, listed = host.partition(":")
        slots.append(len([one for one in listed.split(",") if one.strip()]) if colon else 0)
    if len(set(slots)) > 1:
        raise r.wrong("include", "the same number of accelerators on every node")
    return len(slots), slots[0]


def _hosts(r: Reading, nodes: int, per_node: int) -> tuple[int, int]:
    """Nodes and accelerators of each, where the hostfile can be read: `worker-1 slots=8`."""
    try:
        text = r.source.beside(r.text("hostfile")).text
    except InvalidInput:
        if nodes and per_node:
            r.put("on", None, "hostfile")
        else:
            r.unsure("hostfile", "the file cannot be read here: say the machines with --on")
        return nodes, per_node
    slots = [int(number) for number in re.findall(r"^\s*[^#\s]\S*\s+slots\s*=\s*(\d{1,4})", text, re.MULTILINE)]
    if len(set(slots)) > 1:
        raise InvalidInput("{file}: every node must have as many slots.", file=r.text("hostfile"))
    r.put("on", None, "hostfile")
    return (nodes or len(slots), per_node or slots[0]) if slots else (nodes, per_node)
