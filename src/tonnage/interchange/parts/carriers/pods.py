"""Pods of Kubernetes: their containers, accelerators and commands."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.interchange.parts.launching.accelerators import COUNTED, MIG, accelerator_named, accelerator_of_instance
from tonnage.interchange.parts.launching.carried import CarriedCommand, carried_commands
from tonnage.interchange.parts.launching.images import entry_point
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput, shown

# Labels of nodes that name an accelerator, and those that name a cloud's machine.
PRODUCTS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "gpu.nvidia.com/class",
    "gpu.nvidia.com/model",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "k8s.amazonaws.com/accelerator",
    "skypilot.co/accelerator",
    "accelerator",
    "gpu",
)
INSTANCES = (
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-type",
)
LISTS = ("containers", "initContainers", "env", "replicatedJobs", "tasks", "workerGroupSpecs")  # of things with names
_REFERENCE = re.compile(r"\$\(([A-Za-z_][\w.-]*)\)")
MOST_KEYS = 20_000


class Pods(Struct, frozen=True, kw_only=True):
    """Pods that are alike: where their spec stands among the keys, the spec, how many there are.

    role: `leader`, `worker`, `launcher` or none; `size`: pods of one server, where they are grouped
    """

    place: str
    spec: Mapping[str, Any]
    replicas: int = 1
    role: str = ""
    size: int = 1


def flat(tree: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The keys and values of a manifest. Lists of containers and their like are named by their names, others stay
    lists.
    """
    waiting: list[tuple[str, Any]] = [(place, tree)]
    done = 0
    while waiting:
        where, value = waiting.pop()
        done += 1
        if done > MOST_KEYS:
            raise InvalidInput("a manifest has more than {most:,} keys. Got {where}.", most=MOST_KEYS, where=where)
        if isinstance(value, Mapping) and value:
            waiting += [(f"{where}.{name}" if where else str(name), inner) for name, inner in value.items()]
        elif (
            isinstance(value, list) and where.rpartition(".")[2] in LISTS and all(isinstance(v, Mapping) for v in value)
        ):
            waiting += [(f"{where}.{name_of(inner, at)}", _unnamed(inner, where)) for at, inner in enumerate(value)]
        else:
            yield where, value


def name_of(item: Mapping[str, Any], at: int) -> str:
    name = item.get("name", item.get("groupName"))
    return str(name) if isinstance(name, str | int) and name != "" else str(at)


def _unnamed(item: Mapping[str, Any], where: str) -> Any:
    """A variable's value; other things without their names."""
    rest = {key: value for key, value in item.items() if key not in ("name", "groupName")}
    return rest.get("value", "") if where.endswith(".env") and set(rest) <= {"value"} else rest or ""


def mapping(value: Any, file: str, key: str) -> Mapping[str, Any]:
    """A section, empty where there is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput("{file}: {key} must be a section. Got {value}.", file=file, key=key, value=shown(value))
    return value


def sections(value: Any, file: str, key: str) -> list[Mapping[str, Any]]:
    """A list of sections, empty where there is none."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise InvalidInput(
            "{file}: {key} must be a list of sections. Got {value}.", file=file, key=key, value=shown(value)
        )
    return value


def words(value: Any, file: str, key: str) -> list[str]:
    """A command, or its arguments."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(word, str | int | float) for word in value):
        raise InvalidInput(
            "{file}: {key} must be a list of words. Got {value}.", file=file, key=key, value=shown(value)
        )
    return [str(word).lower() if isinstance(word, bool) else str(word) for word in value]


def containers(r: Reading, pods: Pods) -> list[tuple[str, Mapping[str, Any]]]:
    """The containers of pods, with the place of each."""
    file, place = r.source.name, f"{pods.place}.containers"
    listed = sections(pods.spec.get("containers"), file, place)
    return [(f"{place}.{name_of(one, at)}", one) for at, one in enumerate(listed)]


def accelerators_in(r: Reading, place: str, container: Mapping[str, Any]) -> tuple[int, str]:
    """How many accelerators a container asks for, and which slice (MIG) of them; 0 and "" of others."""
    file = r.source.name
    resources = mapping(container.get("resources"), file, f"{place}.resources")
    number_in_pod, part = 0, ""
    for section in ("requests", "limits"):
        where = f"{place}.resources.{section}"
        for name, value in mapping(resources.get(section), file, where).items():
            if str(name) not in COUNTED and not str(name).startswith(MIG):
                continue
            key = f"{where}.{name}"
            number = _number(value, file, key)
            r.put("on", None, key)
            number_in_pod = number or number_in_pod
            if number and str(name).startswith(MIG):
                part = str(name).removeprefix(MIG).removesuffix(".me").lower()
            if number and str(name).endswith(".shared"):
                r.unsure(key, "accelerators that several pods share")
    return number_in_pod, part


def _number(value: Any, file: str, key: str) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise InvalidInput(
            "{file}: {key} must be a number of accelerators. Got {value}.", file=file, key=key, value=shown(value)
        )
    return int(text)


def take_slice(r: Reading, part: str) -> None:
    """The slice of whichever accelerator the nodes have."""
    if part and r.machines.accelerator and ":" not in r.machines.accelerator:
        r.count_machines(accelerator=f"{r.machines.accelerator}:{part}")
    if part and r.asker.on and ":" not in r.asker.on:
        r.asker = replace(r.asker, on=f"{r.asker.on}:{part}")


def environment_of(r: Reading, place: str, container: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, str]:
    """Variables with values of a container; those of secrets and maps have none here."""
    environment = dict(more)
    for variable in sections(container.get("env"), r.source.name, f"{place}.env"):
        name, value = variable.get("name"), variable.get("value")
        if isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name) and isinstance(value, str | int | float):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            environment[name] = _expanded(text, environment)
    return environment


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Kubernetes puts variables in where a text has $(NAME)."""
    return _REFERENCE.sub(lambda match: known.get(match[1], match[0]), text)


def commands_in(r: Reading, pods: Pods, more: Mapping[str, str]) -> list[tuple[str, CarriedCommand]]:
    """The commands of all containers of pods that formats read, with the place of their container."""
    commands: list[tuple[str, CarriedCommand]] = []
    for place, container in containers(r, pods):
        image = container.get("image")
        image = image if isinstance(image, str) else ""
        known = environment_of(r, place, container, more)
        command = words(container.get("command"), r.source.name, f"{place}.command")
        args = words(container.get("args"), r.source.name, f"{place}.args")
        line = [_expanded(word, known) for word in [*(command or entry_point(image, args)), *args]]
        if not line:
            continue
        full_command = (*(f"{name}={value}" for name, value in known.items()), *line)
        source = Source(name=r.source.name, text=shlex.join(full_command), folder=r.source.folder, words=full_command)
        commands += [(place, one) for one in carried_commands(source, where=place, image=image)]
    return commands


def put_nodes(r: Reading, pods: Pods) -> None:
    """The accelerator that labels of nodes name."""
    selector = mapping(pods.spec.get("nodeSelector"), r.source.name, f"{pods.place}.nodeSelector")
    labels = [(str(name), value, f"{pods.place}.nodeSelector.{name}") for name, value in selector.items()]
    labels += [(name, value, f"{pods.place}.affinity") for name, value in _required(pods.spec)]
    for name, value, key in labels:
        if name in PRODUCTS and isinstance(value, str) and (accelerator := accelerator_named(value)):
            r.count_machines(accelerator=accelerator)
            r.put("on", None, _there(r, key))
            if value.endswith("-SHARED"):
                r.unsure(_there(r, key), "accelerators that several pods share")
        elif name in INSTANCES and isinstance(value, str) and not r.machines.accelerator:
            accelerator, _ = accelerator_of_instance(value)
            r.count_machines(accelerator=accelerator)
            if accelerator:
                r.put("on", None, _there(r, key))


def _there(r: Reading, key: str) -> str:
    """The key, or the first one under it."""
    return key if key in r.values else next(iter(r.under(f"{key}.")), key)


def _required(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Labels with one value that affinity requires of nodes."""
    value: Any = spec
    for name in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"):
        value = value.get(name) if isinstance(value, Mapping) else None
    for term in value if isinstance(value, list) else []:
        expressions = term.get("matchExpressions") if isinstance(term, Mapping) else None
        for one in expressions if isinstance(expressions, list) else []:
            if isinstance(one, Mapping) and one.get("operator") == "In":
                values = one.get("values")
                if isinstance(values, list) and len(values) == 1:
                    yield str(one.get("key")), values[0]
