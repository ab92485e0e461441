"""Commands that start one process for each accelerator: torchrun, accelerate launch, deepspeed, and what they start."""

from collections.abc import Sequence
from typing import Any

from tonnage.interchange.parts.hugging_face import accelerate_settings as accelerate
from tonnage.interchange.parts.hugging_face.machines import ALLOCATOR
from tonnage.interchange.parts.launching import training
from tonnage.interchange.parts.launching.training import TrainingLaunch
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import FROM_ONE, Reading
from tonnage.interchange.source import Command

PREFIX = "launcher."  # before the names of a launcher's options, beside the keys of what it starts
LAUNCHERS = ("torchrun", "accelerate", "deepspeed")
NODES, PER_NODE = ("nnodes", "num-nodes", "num-machines"), ("nproc-per-node", "num-gpus")
# Options that say where processes meet and what is logged.
HARMLESS = frozenset((*training.HARMLESS, *accelerate.HARMLESS))
# Variables of the environment that a trainer's start reads.
COUNTS = ("NNODES", "NPROC_PER_NODE", "NGPU")
RENDEZVOUS = names(
    """
    NODE_RANK RANK MASTER_ADDR MASTER_PORT RDZV_ID MIN_NNODES MAX_NNODES LOG_RANK
    """
)


def command_signs(launch: TrainingLaunch) -> int:
    """How many signs a trainer's command is: more behind a launcher, which alone is a sign of other formats."""
    return 40 if launch.launcher in LAUNCHERS else 10


def launch_values(command: Command, launch: TrainingLaunch, variables: Sequence[str] = ()) -> dict[str, Any]:
    """Keys and values of a start: a launcher's options behind `launcher.`, and variables of the environment."""
    wanted = (*COUNTS, *RENDEZVOUS, *ALLOCATOR, "CUDA_VISIBLE_DEVICES", *variables)
    environment = {name: command.environment[name] for name in wanted if name in command.environment}
    options = {name: value for name, value in launch.options.items() if (launch.launcher, name) != ("python", "m")}
    return {**{f"{PREFIX}{name}": value for name, value in options.items()}, **environment}


def read_launch(r: Reading) -> None:
    """Count the machines that a start says, and note what of it changes nothing. What accelerate's own file says is
    read with `--config_file`.
    """
    nodes = _count(r, (*(f"{PREFIX}{name}" for name in NODES), "NNODES"))
    per_node = _count(r, (*(f"{PREFIX}{name}" for name in PER_NODE), "NPROC_PER_NODE", "NGPU"))
    total = _count(r, (f"{PREFIX}num-processes",))
    if total and not per_node:
        per_node = max(total // max(nodes, 1), 1)
    if not per_node and r.has("CUDA_VISIBLE_DEVICES"):
        per_node = len([one for one in r.text("CUDA_VISIBLE_DEVICES").split(",") if one.strip()])
        r.put("on", "", "CUDA_VISIBLE_DEVICES")
    r.count_machines(nodes=nodes, per_node=per_node)
    r.ignore({f"{PREFIX}{name.replace('_', '-')}" for name in HARMLESS})
    r.ignore((*RENDEZVOUS, "CUDA_VISIBLE_DEVICES"))


def _count(r: Reading, keys: Sequence[str]) -> int:
    """The first of these numbers; 0 where it is left to the machine that runs it. `1:4` is up to four nodes."""
    for key in keys:
        if not r.has(key):
            continue
        text = r.text(key)
        if text in ("auto", "gpu") or "$" in text:
            r.ignore([key], why="left to the machine that runs it")
            return 0
        r.put("on", "", key)
        last = text.rpartition(":")[2]
        if not (last.isascii() and last.isdecimal() and 0 < int(last) < 10**6):
            raise r.wrong(key, FROM_ONE)
        return int(last)
    return 0
