"""The options of torchrun, below `torchrun.`: how many machines there are."""

from collections.abc import Sequence
from typing import Any

from tonnage.interchange.parts.launching import programs
from tonnage.interchange.reading import Reading, options_of_command
from tonnage.interchange.shell import program_name
from tonnage.kernel.message import Message

PREFIX = "torchrun."
# In front of the program stand torchrun's words alone, and python's.
IGNORED = programs.TORCHRUN.harmless | {"u", "m", "module"}


def torchrun_values(words: Sequence[str]) -> dict[str, Any]:
    """The options of the launcher, each with `torchrun.` before its name; of other launchers, none."""
    names = [program_name(word) for word in words]
    at = next((at for at, name in enumerate(names) if name in ("torchrun", "torch.distributed.run")), -1)
    if at < 0:
        at = next((at for at, name in enumerate(names) if name == "torch.distributed.launch"), -1)
    if at < 0:
        return {}
    options, _ = options_of_command(words[at + 1 :], programs.TORCHRUN.switches | {"m", "module"})
    return {f"{PREFIX}{name}": value for name, value in options.items()}


def count_torchrun(r: Reading) -> None:
    """The machines that the launcher names: nodes, and processes of each."""
    nodes, per_node = _count(r, "nnodes"), _count(r, "nproc-per-node")
    r.count_machines(nodes=nodes, per_node=per_node)
    for name, count in (("nnodes", nodes), ("nproc-per-node", per_node)):
        key = PREFIX + name
        if r.has(key):
            r.put("on", None, key, why="" if count else Message("not a number here: --on says how many there are"))
    r.ignore({PREFIX + name for name in IGNORED})


def _count(r: Reading, name: str) -> int:
    """A number; 0 where it is left to a variable, or `gpu`. Of a range the most."""
    text = str(r.get(PREFIX + name, "")).rpartition(":")[2]
    return int(text) if text.isdecimal() and 0 < int(text) <= 10**6 else 0
