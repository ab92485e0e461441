"""A pool as its owner writes it down: nodes, what others hold of them, and jobs. YAML, TOML or JSON, read strictly."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tonnage.catalogue import accelerator as accelerator_named
from tonnage.kernel.errors import InvalidInput, UnknownName, shown
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.reach import allowed_file, called
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import counted, human, parse_bytes, parse_rate
from tonnage.user_files import read_text

MAX_FILE_BYTES = 10**7  # bytes
MOST_NODES, MOST_EACH, MOST_JOBS = 10_000, 1024, 1000
ENDINGS = (".yaml", ".yml", ".json", ".toml")


class Held(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What others hold and keep: whole accelerators, or `memory` of each of them. `node`: of a group the node that
    is meant, None: every one.
    """

    accelerators: int
    job: str = ""
    node: str | None = None
    memory: int | str | None = None


class NodeForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Equal nodes. `count`: accelerators of each; `inside`, `outside`: bytes a second of an accelerator in one
    direction, None: the catalogue's;
    `price`: US dollars of an accelerator and hour, None: the cheapest offer known; `free_memory`: of each
    accelerator, None: all of it.
    """

    name: str
    accelerator: str
    count: int = 1
    nodes: int = 1
    inside: int | str | None = None
    outside: int | str | None = None
    price: float | None = None
    free_memory: int | str | None = None
    host_memory: int | str | None = None
    held: tuple[Held, ...] = ()


class Job(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to place. `options`: as of `tonnage train` or `tonnage serve`; `accelerators`: of a replica, one number or
    those to choose from;
    `runs_on`: the nodes on which its replicas run now; `shares`: a replica on one accelerator may have others beside
    it, as far as memory goes;
    `offload`: host memory may be used where that makes it fit."""

    name: str
    model: str
    kind: Literal["serve", "train"] = "serve"
    replicas: int = 1
    priority: float = 1.0
    accelerators: int | tuple[int, ...] | None = None
    runs_on: tuple[str, ...] = ()
    shares: bool = False
    offload: bool = False
    options: dict[str, Any] = {}


class Inventory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pool: its nodes, `spare` ones that can join, and jobs."""

    nodes: tuple[NodeForm, ...]
    pool: str = "pool"
    spare: tuple[NodeForm, ...] = ()
    jobs: tuple[Job, ...] = ()


def read_inventory(path: str | Path) -> Inventory:
    """The file of a pool; an error names the path inside it, the value, and the nearest valid name."""
    where = allowed_file(str(path), "give what the inventory holds, as an object")
    if where.suffix.lower() not in ENDINGS:
        raise InvalidInput(
            "an inventory is a file that ends in {endings}. Got {path}.",
            endings=listed(ENDINGS),
            path=shown(str(path), 300),
        )
    return inventory_of(_parsed(read_text(where, MAX_FILE_BYTES), where), called(where))


def inventory_of(fields: Any, where: str = "inventory") -> Inventory:
    """The same of what was read already: a mapping with `nodes`."""
    if isinstance(fields, Inventory):
        _check(fields, where)
        return fields
    if not isinstance(fields, Mapping) or not fields.get("nodes"):
        raise InvalidInput(
            "{where} has no nodes: list at least one, such as {{name: a, accelerator: H100-SXM-80GB, "
            "count: 8}}. Got {fields}.",
            where=where,
            fields=shown(fields, 60),
        )
    _check_names(fields, Inventory, where)
    listed = {key: value for key in ("nodes", "spare", "jobs") if isinstance(value := fields.get(key), list | tuple)}
    _check_counts(len(listed.get("nodes", ())) + len(listed.get("spare", ())), len(listed.get("jobs", ())), where)
    for key, values in listed.items():
        for number, entry in enumerate(values):
            _check_names(entry, Job if key == "jobs" else NodeForm, f"{where}: {key}[{number}]")
    try:
        inventory = msgspec.convert(fields, Inventory)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(joined(": ", (where, error))) from None
    _check(inventory, where)
    return inventory


def _parsed(text: str, path: Path) -> Any:
    """What the text of a file holds, in the form that its ending names."""
    from tonnage.user_files import json_text, toml_text, yaml_text

    ending = path.suffix.lower()
    if ending == ".json":
        return json_text.parse(text.encode(), called(path))
    return (toml_text if ending == ".toml" else yaml_text).parse(text, called(path))


def _check_names(fields: Any, form: type[Struct], where: str) -> None:
    """A field that the form does not have, with the nearest that it has."""
    if isinstance(fields, Mapping):
        for name in fields:
            if name not in form.__struct_fields__:
                raise InvalidInput(joined(": ", (where, unknown("field", str(name), form.__struct_fields__))))


# ---- what must hold ----


def _check_counts(nodes: int, jobs: int, where: str) -> None:
    """Raise InvalidInput for too many nodes or jobs, before any node is read."""
    if nodes > MOST_NODES:
        raise InvalidInput(
            "{where}: a pool has at most {most_nodes:,} nodes. Got {nodes:,}.",
            where=where,
            most_nodes=MOST_NODES,
            nodes=nodes,
        )
    if jobs > MOST_JOBS:
        raise InvalidInput(
            "{where}: at most {most_jobs:,} jobs are placed at once. Got {jobs:,}.",
            where=where,
            most_jobs=MOST_JOBS,
            jobs=jobs,
        )


def _check(inventory: Inventory, where: str) -> None:
    groups = [(key, number, form) for key in ("nodes", "spare") for number, form in enumerate(getattr(inventory, key))]
    for key, number, form in groups:
        _check_node(form, f"{where}: {key}[{number}] ({form.name})")
    _check_counts(sum(form.nodes for _, _, form in groups), len(inventory.jobs), where)
    seen: set[str] = set()
    for key, number, form in groups:
        for name in node_names(form):
            if name in seen:
                raise InvalidInput(
                    "{where}: {key}[{number}]: two nodes are called {name}: names must differ.",
                    where=where,
                    key=key,
                    number=number,
                    name=shown(name),
                )
            seen.add(name)
    names = [job.name for job in inventory.jobs]
    for number, job in enumerate(inventory.jobs):
        at = Message("{where}: jobs[{number}] ({job})", where=where, number=number, job=job.name)
        if names.count(job.name) > 1:
            raise InvalidInput("{at}: two jobs are called {job}: names must differ.", at=at, job=shown(job.name))
        _check_job(job, at, seen)


def _check_node(form: NodeForm, where: str) -> None:
    if not re.fullmatch(r"[\w.:+-]{1,80}", form.name):
        raise InvalidInput(
            "{where}: name must be of letters, digits and . _ : + -, at most 80. Got {form}.",
            where=where,
            form=shown(form.name),
        )
    for name, most in (("count", MOST_EACH), ("nodes", MOST_NODES)):
        if not 1 <= getattr(form, name) <= most:
            raise InvalidInput(
                "{where}.{name} must be from 1 to {most:,}. Got {value}.",
                where=where,
                name=name,
                most=most,
                value=shown(getattr(form, name)),
            )
    try:
        chip = accelerator_named(form.accelerator)
    except UnknownName as error:
        raise InvalidInput("{where}.accelerator: {error}", where=where, error=error) from None
    if form.price is not None and not 0 <= form.price <= 1e6:
        raise InvalidInput(
            "{where}.price must be from 0 to 1,000,000 USD an accelerator and hour. Got {price}.",
            where=where,
            price=shown(form.price),
        )
    for name in ("inside", "outside"):
        if getattr(form, name) is not None and not rate_of(getattr(form, name), f"{where}.{name}") > 0:
            raise InvalidInput(
                "{where}.{name} must be above 0, such as 25GB/s. Got {value}.",
                where=where,
                name=name,
                value=shown(getattr(form, name)),
            )
    if form.free_memory is not None:
        free, usable = bytes_of(form.free_memory, f"{where}.free_memory"), chip.memory.usable_bytes
        if not 0 < free <= usable:
            raise InvalidInput(
                "{where}.free_memory must be above 0 and at most the {whole} that {chip} has. Got {free_memory}.",
                where=where,
                whole=human(usable, "bytes"),
                chip=chip.name,
                free_memory=shown(form.free_memory),
            )
    if form.host_memory is not None:
        bytes_of(form.host_memory, f"{where}.host_memory")
    names = set(node_names(form)) if form.held else set()
    for number, held in enumerate(form.held):
        _check_held(held, form, names, f"{where}.held[{number}]")


def _check_held(held: Held, form: NodeForm, names: set[str], where: str) -> None:
    if held.node is not None and held.node not in names:
        raise InvalidInput("{where}.node: {unknown}", where=where, unknown=unknown("node", held.node, node_names(form)))
    if not 1 <= held.accelerators <= form.count:
        raise InvalidInput(
            "{where}.accelerators must be from 1 to the {count} of the node. Got {accelerators}.",
            where=where,
            count=counted(form.count, "accelerators"),
            accelerators=held.accelerators,
        )
    if held.memory is not None and bytes_of(held.memory, f"{where}.memory") <= 0:
        raise InvalidInput("{where}.memory must be above 0. Got {memory}.", where=where, memory=shown(held.memory))


def _check_job(job: Job, where: str, nodes: set[str]) -> None:
    if not 1 <= job.replicas <= MOST_NODES:
        raise InvalidInput(
            "{where}.replicas must be from 1 to {most_nodes:,}. Got {replicas}.",
            where=where,
            most_nodes=MOST_NODES,
            replicas=job.replicas,
        )
    if not 0 < job.priority <= 1e6:
        raise InvalidInput(
            "{where}.priority must be above 0 and at most 1,000,000. Got {priority}.",
            where=where,
            priority=shown(job.priority),
        )
    for size in widths_of(job):
        if not 1 <= size <= MOST_EACH * MOST_NODES:
            raise InvalidInput("{where}.accelerators must be at least 1. Got {size}.", where=where, size=size)
    for name in job.runs_on:
        if name not in nodes:
            raise InvalidInput("{where}.runs_on: {unknown}", where=where, unknown=unknown("node", name, sorted(nodes)))
    if len(job.runs_on) > job.replicas:
        raise InvalidInput(
            "{where}.runs_on names the node of each replica that runs: at most {replicas}. Got {count}.",
            where=where,
            replicas=job.replicas,
            count=len(job.runs_on),
        )
    if job.kind == "train" and job.replicas > 1:
        raise InvalidInput(
            "{where}.replicas is of serving: a training job is one. Got {replicas}.", where=where, replicas=job.replicas
        )
    if job.kind == "train" and job.shares:
        raise InvalidInput("{where}.shares is of serving: a training job has its accelerators to itself.", where=where)


# ---- readings ----


def widths_of(job: Job) -> tuple[int, ...]:
    """Accelerators of a replica that the job names; nothing: all that there are."""
    named = job.accelerators
    return () if named is None else (named,) if isinstance(named, int) else tuple(named)


def node_names(form: NodeForm) -> list[str]:
    """The nodes of a group: its own name, or that with a number."""
    return [form.name] if form.nodes == 1 else [f"{form.name}-{number}" for number in range(1, form.nodes + 1)]


def bytes_of(value: int | str, where: str) -> int:
    """Bytes as a number, or as people write them: 70GiB."""
    if isinstance(value, str):
        return parse_bytes(value, where)
    if value < 0:
        raise InvalidInput("{where} must be at least 0. Got {value}.", where=where, value=value)
    return value


def rate_of(value: int | str, where: str) -> int:
    """Bytes a second, as a number or such as 25GB/s."""
    return parse_rate(value, where) if isinstance(value, str) else value
