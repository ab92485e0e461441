"""Tasks of SkyPilot: their resources in all forms, and their script."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.launching.accelerators import accelerator_named, accelerator_of_instance
from tonnage.interchange.parts.launching.launchers import opened
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed

# SkyPilot 0.14.1, sky/utils/schemas.py: get_task_schema
KEYS = frozenset(
    names("""
    name workdir event_callback num_nodes resources file_mounts service pool setup run envs secrets
    managed_secrets inputs outputs file_mounts_mapping config volumes volume_mounts api_server_access _metadata
    experimental
""")
)
UNFLATTENED = frozenset(
    ("envs", "secrets", "file_mounts", "resources.accelerators", "resources.labels", "workdir", "volumes")
)
# The same: _get_single_resources_schema
OF_RESOURCES = names("""
    cloud region zone infra cpus memory accelerators instance_type use_spot job_recovery volumes disk_size
    ephemeral_storage disk_tier network_tier local_disk max_hourly_cost ports labels accelerator_args image_id
    autostop priority priority_class spot_recovery
""")
IGNORED = (
    "name", "workdir", "event_callback", "file_mounts", "setup", "envs", "secrets", "managed_secrets", "inputs.",
    "outputs.", "file_mounts_mapping.", "config.", "config", "volumes", "volume_mounts", "api_server_access",
    "_metadata.", "experimental.", "pool.", "service.", "service", "resources", "resources.job_recovery.",
    "resources.autostop.", "resources.accelerator_args.", "resources.infra",
    *(f"resources.{name}" for name in OF_RESOURCES if name not in ("accelerators", "memory", "instance_type")),
)  # fmt: skip
KNOWN = (*KEYS, *(f"resources.{name}" for name in (*OF_RESOURCES, "any_of", "ordered")))
REPLICAS = ("service.replicas", "service.replica_policy.min_replicas")
OF_SKYPILOT = {"a100": "A100-SXM-40GB"}  # its A100 is the one of 40 GB; A100-80GB is a name of its own
_MEMORY = re.compile(r"\d+\s*[GMT]B\+?", re.IGNORECASE)
_SLICE = re.compile(r"(tpu-v\w+)-(\d{1,6})")


def tasks(source: Source) -> list[Mapping[str, Any]]:
    """The tasks of a file: its documents with `run` beside other keys of SkyPilot, and no others."""
    documents = []
    for document in source.documents:
        if isinstance(document, Mapping) and "run" in document:
            signs = {"resources", "num_nodes", "setup", "envs", "file_mounts", "workdir", "service", "secrets"} & set(
                document
            )
            if signs and not isinstance(document.get("run"), Mapping) and "jobs" not in document:
                documents.append(document)
    return documents


def put_machine(r: Reading) -> int:
    """The accelerator that the resources name, and how many of it a node has; 0 where they do not say."""
    key, several = _choices(r)
    if not several:
        return _of_instance(r, "resources.instance_type")
    named = [_parted(r, key, one) for one in several]
    names, numbers = {name for name, _ in named}, {number for _, number in named}
    is_ordered = key == "resources.ordered" or isinstance(r.get("resources.accelerators"), list)
    r.put("on", None, key)
    if len(names) > 1 and is_ordered and named[0][0] and not r.asker.on:
        r.notes.append(
            Message("{file}: the first of its accelerators, {name}, is taken.", file=r.source.name, name=named[0][0])
        )
        names, numbers = {named[0][0]}, {named[0][1]}
    if (len(names) > 1 or "" in names) and not r.asker.on:
        raise InvalidInput(
            "{file}: {key} leaves the accelerator open: say which with --on. Got {names}.",
            file=r.source.name,
            key=key,
            names=listed(shown(one) for one in several[:8]),
        )
    if len(numbers) > 1:
        raise InvalidInput(
            "{file}: {key} leaves the number of accelerators open: {numbers}. Give one.",
            file=r.source.name,
            key=key,
            numbers=listed(sorted(numbers)),
        )
    if len(names) == 1:
        r.count_machines(accelerator=names.pop())
    return numbers.pop()


def _choices(r: Reading) -> tuple[str, list[Any]]:
    """The key with accelerators, and each that may be taken, as it is written."""
    for name in ("ordered", "any_of"):
        key = f"resources.{name}"
        if r.has(key):
            choices = [one for item in _sections(r, key) for one in _forms(r, key, item.get("accelerators"))]
            own = _forms(r, "resources.accelerators", r.get("resources.accelerators"))
            r.put("on", None, "resources.accelerators")
            return key, choices or own
    return "resources.accelerators", _forms(r, "resources.accelerators", r.get("resources.accelerators"))


def _sections(r: Reading, key: str) -> list[Mapping[str, Any]]:
    value = r.get(key)
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise r.wrong(key, "a list of resources")
    return value


def _forms(r: Reading, key: str, value: Any) -> list[Any]:
    """`H100:8`, [H100:8, A100:8], {H100: 8, A100: 8} -> each as NAME:COUNT."""
    if value is None:
        return []
    if isinstance(value, str):
        return [value.strip("{} ")]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return list(value)
    if isinstance(value, Mapping):
        return [f"{name}:{1 if count is None else count}" for name, count in value.items()]
    raise r.wrong(key, "accelerators such as H100:8")


def _parted(r: Reading, key: str, text: str) -> tuple[str, int]:
    """The name in our catalogue, "" where a memory size stands for it, and the number."""
    words = [word.strip() for word in text.split(":")]
    number = words.pop() if len(words) > 1 and re.fullmatch(r"\d{1,6}(\.0+)?", words[-1]) else "1"
    if any(_MEMORY.fullmatch(word) for word in words):
        return "", int(float(number))
    if len(words) != 1 or not words[0] or float(number) < 1:
        raise InvalidInput(
            "{file}: {key} must be accelerators such as H100:8. Got {text}.",
            file=r.source.name,
            key=key,
            text=shown(text),
        )
    name = words[0]
    if (match := _SLICE.fullmatch(name)) and (chip := _of_slice(match[1])):
        return chip[0], int(float(number)) * max(int(match[2]) // chip[1], 1)
    accelerator = OF_SKYPILOT.get(name.lower()) or accelerator_named(name)
    if not accelerator and not r.asker.on:
        raise InvalidInput(
            "{file}: {key} is no accelerator that is known here: say one with --on. Got {name}.",
            file=r.source.name,
            key=key,
            name=shown(name),
        )
    return accelerator, int(float(number))


def _of_slice(name: str) -> tuple[str, int] | None:
    from tonnage.catalogue.skypilot import names

    wanted = {"tpu-v5e": "tpu-v5litepod"}.get(name, name)
    return next(((one.accelerator, one.per_chip) for one in names().slice if one.skypilot == wanted), None)


def _of_instance(r: Reading, key: str) -> int:
    if not r.has(key):
        return 0
    accelerator, number = accelerator_of_instance(r.text(key))
    r.count_machines(accelerator=accelerator)
    r.put("on", None, key)
    return number


def script(r: Reading, nodes: int, per_node: int) -> Source:
    """The script of `run`, with the variables of the task and those that SkyPilot sets."""
    known: dict[str, str] = {}
    for section in ("secrets", "envs"):
        value = r.get(section)
        if value is not None and not isinstance(value, Mapping | list):
            raise r.wrong(section, "names with values")
        for name, text in value.items() if isinstance(value, Mapping) else ():
            if text is not None and re.fullmatch(r"[A-Za-z_]\w*", str(name)) and isinstance(text, str | int | float):
                known[str(name)] = str(text).lower() if isinstance(text, bool) else str(text)
    known |= {"SKYPILOT_NUM_NODES": str(nodes), "SKYPILOT_NODE_RANK": "0"}
    if per_node:
        known["SKYPILOT_NUM_GPUS_PER_NODE"] = str(per_node)
    lines = [f"export {name}={shlex.quote(value)}" for name, value in known.items() if "\n" not in value]
    return Source(name=f"{r.source.name}, run", text="\n".join([*lines, opened(r.text("run"))]), folder=r.source.folder)


def name_of(accelerator: str) -> str:
    """SkyPilot's name of an accelerator; ours where it has none."""
    from tonnage.catalogue.skypilot import names

    for one in names().name:
        own = OF_SKYPILOT.get(one.skypilot.lower()) or accelerator_named(one.skypilot)
        if one.accelerator == accelerator and own == accelerator:
            return one.skypilot
    return accelerator
