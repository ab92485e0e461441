"""How many nodes and accelerators launchers and schedulers say, and the names that they have for accelerators."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.interchange.parts.launching.containers import number_of_gpus
from tonnage.interchange.parts.launching.launchers import Layer, accelerators_of, number_of
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message

HOST_LIMITS = ("mem", "mem-per-cpu", "mem-per-gpu", "memory", "memory-swap")
NO_HOST_LIMIT = "a limit of the host's memory, which is not compared with what the run needs"
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class Counter:
    """What is counted, the outermost first.

    nodes, per_node, total, tasks, tasks_per_node: 0 where nothing says them
    accelerator: the type, as the scheduler calls it
    """

    def __init__(self, reading: Reading):
        self.reading = reading
        self.nodes = self.per_node = self.total = self.tasks = self.tasks_per_node = self.per_task = 0
        self.accelerator = ""

    def take(self, layer: Layer) -> None:
        """Count what a launcher says, and say of each of its options what it means."""
        for option, meaning in layer.counts.items():
            if option in layer.values:
                self._take(layer, option, meaning, layer.values[option])
        for option, value in layer.values.items():
            key = _key(layer, option)
            self.reading.values.setdefault(key, value)
            if option in layer.counts and _may_change(layer.counts[option], value):
                self.reading.unsure(key, "a number of nodes that may change: the largest is taken")
            elif option in layer.counts:
                self.reading.put("on", None, key)
            elif option in HOST_LIMITS:
                self.reading.ignore([key], NO_HOST_LIMIT)
            elif option not in layer.unknown:
                self.reading.ignore([key])

    def _take(self, layer: Layer, option: str, meaning: str, value: Any) -> None:
        where = _key(layer, option)
        if meaning == "nodes":
            self._lower_nodes(number_of(value), where, "nodelist" in layer.values)
        elif meaning == "tasks":
            self.tasks = number_of(value)
        elif meaning == "tasks per node":
            self.tasks_per_node = number_of(value)
        elif meaning == "per task":
            self.per_task = accelerators_of(value)[1] if number_of(value) or ":" in str(value) else 0
        elif layer.name.partition(" ")[0] in ("docker", "podman", "nerdctl"):
            self._lower_per_node(number_of_gpus(value), where)
        elif meaning == "per node" and option != "gres" and not str(value)[:1].isdecimal() and ":" not in str(value):
            return  # gpu, auto, or a variable
        else:
            kind, number = accelerators_of(value)
            self.accelerator = kind or self.accelerator
            if meaning == "accelerators":
                self.total = number
            else:
                self._lower_per_node(number, where)

    def _lower_nodes(self, number: int, where: str, is_placed: bool) -> None:
        if number and self.nodes and number > self.nodes:
            raise self._more(where, number, "nodes", self.nodes)
        if number and not (is_placed and self.nodes):  # the first of several steps that start one server, such as Ray's
            self.nodes = number

    def _lower_per_node(self, number: int, where: str) -> None:
        if number and self.per_node and number > self.per_node:
            raise self._more(where, number, "accelerators of a node", self.per_node)
        self.per_node = number or self.per_node

    def _more(self, where: str, number: int, of: str, there: int) -> InvalidInput:
        return InvalidInput(
            "{file}: {where} asks for {number:,} {of}, and the job has {there:,}.",
            file=self.reading.source.name,
            where=where,
            number=number,
            of=Message(of),
            there=there,
        )

    def take_environment(self, environment: Mapping[str, str]) -> None:
        """Devices that a program is shown."""
        for name in VISIBLE:
            listed = [part for part in environment.get(name, "").split(",") if part.strip()]
            if listed and all(part.strip().isalnum() or part.startswith(("GPU-", "MIG-")) for part in listed):
                self.per_node = min(self.per_node or len(listed), len(listed))

    def finish(self) -> None:
        """Tell the reading how many machines there are."""
        nodes, tasks = self.nodes, self.tasks_per_node
        if not tasks and self.tasks and nodes:
            tasks = -(-self.tasks // nodes)
        per_node = self.per_node or self.per_task * max(tasks, 1 if nodes else self.tasks or 1)
        if not per_node and self.total and nodes:
            if self.total % nodes:
                raise InvalidInput(
                    "{file}: {total:,} accelerators are not the same number on each of {nodes:,} nodes.",
                    file=self.reading.source.name,
                    total=self.total,
                    nodes=nodes,
                )
            per_node = self.total // nodes
        per_node = per_node or self.total or (tasks or self.tasks if tasks > 1 or self.tasks > 1 else 0)
        self.reading.count_machines(nodes=nodes, per_node=per_node, accelerator=named(self.accelerator))
        if nodes > 1 and not per_node:
            _full_nodes(self.reading, nodes)


def _may_change(meaning: str, value: Any) -> bool:
    """Whether it is a range of nodes, as torchrun has it."""
    fewest, colon, most = str(value).partition(":")
    return meaning == "nodes" and bool(colon) and fewest != most


def _key(layer: Layer, option: str) -> str:
    """`srun --nodes`; options of a file itself have no launcher."""
    return f"{layer.name} --{option}" if layer.name else option


def count(r: Reading, layers: Sequence[Layer], environment: Mapping[str, str]) -> None:
    """Count the machines that all launchers of a command say."""
    counter = Counter(r)
    machines = r.machines
    counter.nodes, counter.per_node = machines.nodes, machines.per_node
    for layer in layers:
        counter.take(layer)
    counter.take_environment(environment)
    counter.finish()


def _full_nodes(r: Reading, nodes: int) -> None:
    """Nodes of which nothing says how many accelerators are used: all of the usual ones."""
    from tonnage.catalogue.clusters import parts
    from tonnage.catalogue.nodes import node
    from tonnage.kernel.errors import TonnageError

    named = r.asker.on or r.machines.accelerator
    try:
        counts, accelerator, box = parts(named)
        full_node = box or (node(accelerator.default_node) if accelerator.default_node else None)
    except TonnageError:
        return
    if counts or full_node is None:
        return
    r.count_machines(per_node=full_node.accelerators)
    why = Message("all accelerators of {nodes:,} nodes such as {node}", nodes=nodes, node=full_node.name)
    r.assume("accelerators per node", full_node.accelerators, "on", why)
    r.question.pop("on", None)


def number(r: Reading, key: str, default: int = 0) -> int:
    """A whole number from 0 to a million."""
    value = r.integer(key, default)
    if not 0 <= value <= 1_000_000:
        raise r.wrong(key, "a number from 0 to 1,000,000")
    return value


def named(name: str) -> str:
    """The accelerator of our catalogue that a scheduler's name means; "" for a name that means none."""
    from tonnage.interchange.parts.launching.accelerators import accelerator_named

    return accelerator_named(name)


def text_of(value: Any, file: str, key: str) -> str:
    """A text, also a number that is written without quotes."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput("{file}: {key} must be a text. Got {value}.", file=file, key=key, value=shown(value))
    return str(value)
