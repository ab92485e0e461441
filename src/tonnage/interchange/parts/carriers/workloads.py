"""Kinds of Kubernetes that run pods: where the pods of each stand, and how many there are."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.carriers.pods import Pods, mapping, name_of, sections
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput, shown

# Kinds with `template.spec` and `replicas`.
REPLICATED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "DaemonSet", "Rollout")
# Kubeflow's kinds -> the section with their roles.
OPERATED = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
CONFIG = "serveConfigV2"  # of a RayService
MOST_PODS = 1_000_000


class Workload(Struct, frozen=True, kw_only=True):
    """One object that runs pods. `place`: what its keys begin with; `entry`: a command of its own, beside the pods;
    `config`: a config of Ray Serve.
    """

    kind: str
    name: str
    place: str
    tree: Mapping[str, Any]
    pods: tuple[Pods, ...]
    entry: str = ""
    config: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind} {self.name}".strip()


def objects(source: Source) -> Iterator[Mapping[str, Any]]:
    """The objects of all documents, those of lists too."""
    for document in source.documents:
        if not isinstance(document, Mapping):
            continue
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from (item for item in items if isinstance(item, Mapping))
        else:
            yield document


def workloads(source: Source) -> list[Workload]:
    """The objects that run pods. Where there are several, their keys begin with kind and name."""
    manifests = [one for one in objects(source) if str(one.get("kind")) in READERS]
    several = len(manifests) > 1
    result = []
    for at, tree in enumerate(manifests):
        kind, meta = str(tree["kind"]), mapping(tree.get("metadata"), source.name, "metadata")
        name = str(meta.get("name") or meta.get("generateName") or "")
        place = f"{kind}/{name or at}." if several else ""
        spec = mapping(tree.get("spec"), source.name, f"{place}spec")
        reader = READERS[kind]
        pods = tuple(reader(kind, spec, f"{place}spec", source.name))
        entry, config = spec.get("entrypoint"), spec.get(CONFIG)
        result.append(
            Workload(
                kind=kind,
                name=name,
                place=place,
                tree=tree,
                pods=pods,
                entry=entry if kind == "RayJob" and isinstance(entry, str) else "",
                config=config if kind == "RayService" and isinstance(config, str) else "",
            )
        )
    return result


def _count(value: Any, default: int, file: str, key: str) -> int:
    if value is None:
        return default
    text = str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal()) or len(text) > 7:
        raise InvalidInput(
            "{file}: {key} must be a number of pods. Got {value}.", file=file, key=key, value=shown(value)
        )
    return min(int(text), MOST_PODS)


def _template(owner: Mapping[str, Any], place: str, file: str, name: str = "template") -> tuple[str, Mapping[str, Any]]:
    where = f"{place}.{name}"
    return f"{where}.spec", mapping(mapping(owner.get(name), file, where).get("spec"), file, f"{where}.spec")


def _pod(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    yield Pods(place=place, spec=spec)


def _replicated(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    where, inner = _template(spec, place, file)
    yield Pods(place=where, spec=inner, replicas=_count(spec.get("replicas"), 1, file, f"{place}.replicas"))


def _job(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    if "tasks" in spec:  # Volcano's
        yield from _job_set(kind, spec, place, file)
        return
    where, inner = _template(spec, place, file)
    yield Pods(place=where, spec=inner, replicas=_count(spec.get("parallelism"), 1, file, f"{place}.parallelism"))


def _cron(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    where, inner = _template(spec, place, file, "jobTemplate")
    yield from _job(kind, inner, where, file)


def _operated(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    section = OPERATED[kind]
    for role, group in mapping(spec.get(section), file, f"{place}.{section}").items():
        at = f"{place}.{section}.{role}"
        owner = mapping(group, file, at)
        where, inner = _template(owner, at, file)
        replicas = _count(owner.get("replicas"), 1, file, f"{at}.replicas")
        yield Pods(place=where, spec=inner, replicas=replicas, role=str(role).lower())


def _job_set(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    name = "replicatedJobs" if kind == "JobSet" else "tasks"
    for at, group in enumerate(sections(spec.get(name), file, f"{place}.{name}")):
        where = f"{place}.{name}.{name_of(group, at)}"
        jobs = _count(group.get("replicas"), 1, file, f"{where}.replicas")
        if kind == "JobSet":
            inner_at, inner = _template(group, where, file)
            for pods in _job(kind, inner, inner_at, file):
                yield Pods(place=pods.place, spec=pods.spec, replicas=jobs * pods.replicas, role=name_of(group, at))
        else:
            inner_at, inner = _template(group, where, file)
            yield Pods(place=inner_at, spec=inner, replicas=jobs, role=name_of(group, at))


def _leader_worker_set(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    at = f"{place}.leaderWorkerTemplate"
    owner = mapping(spec.get("leaderWorkerTemplate"), file, at)
    replicas = _count(spec.get("replicas"), 1, file, f"{place}.replicas")
    size = _count(owner.get("size"), 1, file, f"{at}.size")
    if size < 1:
        raise InvalidInput("{file}: {key} must be a number of pods from 1 on. Got 0.", file=file, key=f"{at}.size")
    has_leader = owner.get("leaderTemplate") is not None
    if has_leader:
        where, inner = _template(owner, at, file, "leaderTemplate")
        yield Pods(place=where, spec=inner, replicas=replicas, role="leader", size=size)
    where, inner = _template(owner, at, file, "workerTemplate")
    workers = replicas * (size - 1 if has_leader else size)
    yield Pods(place=where, spec=inner, replicas=workers, role="worker" if has_leader else "leader", size=size)


def _ray(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    name = {"RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}.get(kind, "")
    at = f"{place}.{name}" if name else place
    owner = mapping(spec.get(name), file, at) if name else spec
    head_at = f"{at}.headGroupSpec"
    where, inner = _template(mapping(owner.get("headGroupSpec"), file, head_at), head_at, file)
    yield Pods(place=where, spec=inner, role="head")
    for number, group in enumerate(sections(owner.get("workerGroupSpecs"), file, f"{at}.workerGroupSpecs")):
        group_at = f"{at}.workerGroupSpecs.{name_of(group, number)}"
        replicas = _count(group.get("replicas", group.get("minReplicas")), 1, file, f"{group_at}.replicas")
        hosts = _count(group.get("numOfHosts"), 1, file, f"{group_at}.numOfHosts")
        where, inner = _template(group, group_at, file)
        yield Pods(place=where, spec=inner, replicas=replicas * hosts, role="worker")


def _train_job(kind: str, spec: Mapping[str, Any], place: str, file: str) -> Iterator[Pods]:
    """Kubeflow Trainer's: one container, which stands in `trainer`."""
    at = f"{place}.trainer"
    trainer = mapping(spec.get("trainer"), file, at)
    container = {
        "name": "trainer",
        "image": trainer.get("image"),
        "command": trainer.get("command"),
        "args": trainer.get("args"),
        "env": trainer.get("env"),
        "resources": trainer.get("resourcesPerNode"),
    }
    pods = {"containers": [{name: value for name, value in container.items() if value is not None}]}
    yield Pods(place=at, spec=pods, replicas=_count(trainer.get("numNodes"), 1, file, f"{at}.numNodes"))


Reader = Callable[[str, Mapping[str, Any], str, str], Iterator[Pods]]
READERS: Mapping[str, Reader] = {
    "Pod": _pod,
    **dict.fromkeys(REPLICATED, _replicated),
    "Job": _job,
    "CronJob": _cron,
    **dict.fromkeys(OPERATED, _operated),
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_worker_set,
    **dict.fromkeys(("RayJob", "RayService", "RayCluster"), _ray),
    "TrainJob": _train_job,
}
