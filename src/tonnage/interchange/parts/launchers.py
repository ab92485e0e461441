"""What starts the processes of a training run: torchrun, python, srun and the like, and the program that they start."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.shell import program_name
from tonnage.interchange.source import Source
from tonnage.kernel.message import Message

# torchrun's own options, and those of python -m torch.distributed.launch: they decide how many machines there are.
TORCHRUN_SWITCHES = frozenset(("standalone", "no-python", "run-path", "use-env", "m", "module", "numa-binding"))
LAUNCHER = "torchrun."
SIGNS = 12  # of a program that is one tool's alone: more than of the launcher before it, such as deepspeed
IGNORED = (
    "node-rank",
    "master-addr",
    "master-port",
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "rdzv-conf",
    "standalone",
    "max-restarts",
    "monitor-interval",
    "start-method",
    "role",
    "log-dir",
    "redirects",
    "tee",
    "local-addr",
    "local-ranks-filter",
    "logs-specs",
    "no-python",
    "run-path",
    "use-env",
    "module",
    "numa-binding",
    "u",
    "m",
)


def started(source: Source, is_program: Callable[[str], bool]) -> tuple[list[str], str, list[str]] | None:
    """Of the last command of a source that starts such a program: the words before it, it, and those behind it. A
    command that is itself a word, as of bash -c, is looked into.
    """
    found = None
    for command in source.commands:
        found = _split_at(list(command.words), is_program, 0) or found
    return found


def _split_at(
    words: list[str], is_program: Callable[[str], bool], depth: int
) -> tuple[list[str], str, list[str]] | None:
    for at, word in enumerate(words):
        if is_program(word):
            return words[:at], word, words[at + 1 :]
        is_command = at > 0 and words[at - 1] in ("-c", "-lc", "-xc")  # bash -c "python pretrain_gpt.py ..."
        if is_command and depth < 2 and any(is_program(part) for part in word.split()):
            inner = _split_at(_words(word), is_program, depth + 1)
            if inner is not None:
                return [*words[:at], *inner[0]], inner[1], inner[2]
    return None


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return text.split()


def launcher_values(words: Sequence[str]) -> dict[str, Any]:
    """The options of the launcher, each with `torchrun.` before its name; of other launchers, none."""
    programs = [program_name(word) for word in words]
    at = next((at for at, name in enumerate(programs) if name in ("torchrun", "torch.distributed.run")), -1)
    if at < 0:
        at = next((at for at, name in enumerate(programs) if name == "torch.distributed.launch"), -1)
    if at < 0:
        return {}
    options, _ = options_of_command(words[at + 1 :], TORCHRUN_SWITCHES)
    return {f"{LAUNCHER}{name}": value for name, value in options.items()}


def count_launched(r: Reading) -> None:
    """The machines that the launcher names: nodes, and processes of each."""
    nodes, per_node = _count(r, "nnodes"), _count(r, "nproc-per-node")
    r.count_machines(nodes=nodes, per_node=per_node)
    for name, count in (("nnodes", nodes), ("nproc-per-node", per_node)):
        key = LAUNCHER + name
        if r.has(key):
            r.put("on", None, key, why="" if count else Message("not a number here: --on says how many there are"))
    r.ignore([LAUNCHER + name for name in IGNORED])


def _count(r: Reading, name: str) -> int:
    """A number; 0 where it is left to a variable, or `gpu`. Of a range the most."""
    text = str(r.get(LAUNCHER + name, "")).rpartition(":")[2]
    return int(text) if text.isdecimal() and 0 < int(text) <= 10**6 else 0


def last_ones(options: Mapping[str, Any], several: frozenset[str]) -> dict[str, Any]:
    """Of an option that is given twice, the last counts, as argparse has it."""
    return {
        name: value[-1] if isinstance(value, list) and name not in several and value else value
        for name, value in options.items()
    }
