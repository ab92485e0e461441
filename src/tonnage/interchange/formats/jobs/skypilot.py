"""SkyPilot: tasks and services, with the command of `run`."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.carriers import skypilot
from tonnage.interchange.parts.jobs.carried_command import counts, fills
from tonnage.interchange.parts.jobs.skypilot_task import says, write
from tonnage.interchange.parts.launching.carried import carried_commands, read_carried
from tonnage.interchange.parts.launching.counting import NO_HOST_LIMIT
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

SIGNS = 20


def recognises(source: Source) -> int:
    if source.kind != "yaml":
        return 0
    return SIGNS if skypilot.tasks(source) else 0


def values(source: Source) -> dict[str, Any]:
    tasks = skypilot.tasks(source)
    return flattened(tasks[0], skypilot.UNFLATTENED) if tasks else {}


def read(r: Reading) -> None:
    tasks = skypilot.tasks(r.source)
    if len(tasks) != 1:
        raise InvalidInput(
            "{file} must have one task with `run`. Got {count}: give one of them.", file=r.source.name, count=len(tasks)
        )
    if not isinstance(r.get("run", ""), str):
        raise r.wrong("run", "a text with commands")
    nodes = _nodes(r)
    per_node = skypilot.put_machine(r)
    r.count_machines(nodes=nodes * _replicas(r), per_node=per_node)
    script = skypilot.script(r, nodes, per_node)
    r.inside = ("skypilot",)
    r.values.pop("run", None)
    read_carried(r, carried_commands(script))
    r.ignore(skypilot.IGNORED)
    r.ignore(["resources.memory"], NO_HOST_LIMIT)


def _nodes(r: Reading) -> int:
    nodes = r.integer("num_nodes", 1)
    if not 1 <= nodes <= 1_000_000:
        raise r.wrong("num_nodes", "a number from 1 on")
    r.put("on", None, "num_nodes")
    return nodes


def _replicas(r: Reading) -> int:
    """Replicas of a service; of one that scales its fewest."""
    key = next((key for key in skypilot.REPLICAS if r.has(key)), "")
    if not key:
        return 1
    replicas = r.integer(key)
    if not 0 <= replicas <= 1_000_000:
        raise r.wrong(key, "a number of replicas")
    r.put("on", None, key)
    return max(replicas, 1)


def _known() -> tuple[str, ...]:
    return (*skypilot.KNOWN, *skypilot.REPLICAS)


FORMATS.add(
    "skypilot",
    Format(
        name="skypilot",
        tool="SkyPilot",
        version="0.14.1",
        source="SkyPilot, sky/utils/schemas.py and sky/resources.py",
        recognises=recognises,
        values=values,
        read=read,
        known=_known,
        verbs=("train", "serve"),
        fills=fills,
        write=write,
        ending=".yaml",
        carries=says,
        counts=counts,
    ),
)
