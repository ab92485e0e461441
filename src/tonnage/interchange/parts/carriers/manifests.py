"""Reads the objects of a manifest: the one that trains or serves, its machines and its command."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.carriers.pods import (
    Pods,
    accelerators_in,
    commands_in,
    containers,
    put_nodes,
    take_slice,
)
from tonnage.interchange.parts.carriers.workloads import CONFIG, Workload
from tonnage.interchange.parts.launching.carried import CarriedCommand, carried_commands, read_carried
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source, command_source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import OR, Message, listed

SHM = "/dev/shm"


class Candidate(Struct, frozen=True, kw_only=True):
    """A command of a container. `asks`: whether that asks for accelerators, or starts those that do."""

    work: Workload
    place: str
    carried: CarriedCommand
    asks: bool


def read_workloads(r: Reading, work: Sequence[Workload]) -> None:
    """Read the one object that trains or serves."""
    limits = {place: number for one in work for place, number in _limits(r, one).items()}
    if len(work) == 1 and work[0].config:
        _read_config(r, work[0], limits)
        return
    candidates = [one for workload in work for one in _candidates(r, workload, limits)]
    chosen = _chosen(r, candidates)
    for one in work:
        if one is not chosen[0].work:
            r.ignore([key for key in r.values if key.startswith(one.place)], "another object")
    _count(r, chosen[0].work, limits)
    for key in (f"{chosen[0].place}.command", f"{chosen[0].place}.args", chosen[0].place):
        r.values.pop(key, None)  # their words are keys of what is read inside
    read_carried(r, [one.carried for one in chosen])


def _read_config(r: Reading, work: Workload, limits: dict[str, int]) -> None:
    """A RayService: the config of Serve in it, on the pods of its cluster."""
    from tonnage.interchange.check import read_as

    _count(r, work, limits)
    r.values.pop(f"{work.place}spec.{CONFIG}", None)
    source = Source(name=f"{r.source.name}: {CONFIG}.yaml", text=work.config, folder=r.source.folder)
    r.take_over(read_as(format_of("ray-serve"), source, replace(r.asker, tool=""), r.machines))


def _limits(r: Reading, work: Workload) -> dict[str, int]:
    """Accelerators that each container asks for."""
    limits = {}
    for pods in work.pods:
        put_nodes(r, pods)
        for place, container in containers(r, pods):
            number, part = accelerators_in(r, place, container)
            take_slice(r, part)
            limits[place] = number
    return limits


def _candidates(r: Reading, work: Workload, limits: dict[str, int]) -> list[Candidate]:
    """The commands that formats read; of servers in groups those of the leaders."""
    candidates = []
    starts_others = any(limits.get(place) for pods in work.pods for place, _ in containers(r, pods))
    for pods in work.pods:
        more = {"LWS_GROUP_SIZE": str(pods.size), "LWS_WORKER_INDEX": "0"} if pods.role in ("leader", "worker") else {}
        for place, one in commands_in(r, pods, {**more, **_variables(work)}):
            asks = bool(limits.get(place)) or (pods.role in ("launcher", "head") and starts_others)
            candidates.append((pods, Candidate(work=work, place=place, carried=one, asks=asks)))
    if work.entry:
        source = command_source([work.entry], r.source.folder)
        candidates += [
            (
                Pods(place="", spec={}),
                Candidate(work=work, place=f"{work.place}spec.entrypoint", carried=one, asks=starts_others),
            )
            for one in carried_commands(source, where="entrypoint")
        ]
    if any(pods.role == "leader" for pods, _ in candidates):
        return [one for pods, one in candidates if pods.role == "leader"]
    return [one for _, one in candidates]


def _variables(work: Workload) -> dict[str, str]:
    """Variables that operators set in each pod."""
    if work.kind != "PyTorchJob":
        return {}
    nodes = sum(pods.replicas for pods in work.pods)
    return {"PET_NNODES": str(nodes), "WORLD_SIZE": str(nodes), "RANK": "0"}


def _chosen(r: Reading, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The commands of the one container that trains or serves."""
    asking = [one for one in candidates if one.asks] or list(candidates)
    alike: dict[tuple[str, ...], Candidate] = {}
    for one in asking:
        alike.setdefault(one.carried.command.words, one)
    places = {one.place for one in alike.values()}
    if len(places) > 1:
        raise InvalidInput(
            "{file} has several containers that train or serve: {names}. Give the object of one.",
            file=r.source.name,
            names=listed(sorted(places), OR),
        )
    if not alike:
        raise InvalidInput(
            "{file} has no container with a command that a tool known here trains or serves with: give the config or "
            "the command of the tool itself.",
            file=r.source.name,
        )
    return list(alike.values())


def _count(r: Reading, work: Workload, limits: dict[str, int]) -> None:
    """The pods with accelerators are the nodes."""
    groups = [
        (pods, sum(limits.get(place, 0) for place, _ in containers(r, pods))) for pods in work.pods if pods.replicas
    ]
    with_some = [(pods, number) for pods, number in groups if number]
    numbers = {number for _, number in with_some}
    if len(numbers) > 1:
        raise InvalidInput(
            "{file}: pods of {work} ask for different numbers of accelerators: {numbers}.",
            file=r.source.name,
            work=work.label,
            numbers=listed(sorted(numbers)),
        )
    nodes = sum(pods.replicas for pods, _ in with_some or groups)
    r.count_machines(nodes=nodes, per_node=max(numbers, default=0))
    if max(numbers, default=0) > 1 and not any(_has_shm(pods) for pods, _ in with_some):
        r.notes.append(
            Message(
                "{file}: {place} mounts no volume at {shm}, which then has 64 MiB: NCCL may need more.",
                file=r.source.name,
                place=with_some[0][0].place,
                shm=SHM,
            )
        )


def _has_shm(pods: Pods) -> bool:
    if pods.spec.get("hostIPC") is True:
        return True
    mounts = [
        mount
        for container in pods.spec.get("containers") or []
        for mount in (container.get("volumeMounts") if isinstance(container.get("volumeMounts"), list) else [])
    ]
    return any(isinstance(mount, dict) and mount.get("mountPath") == SHM for mount in mounts)
