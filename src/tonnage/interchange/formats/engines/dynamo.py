"""NVIDIA Dynamo: commands of its workers, `dynamo run`, and manifests of graphs for Kubernetes."""

from typing import Any

from msgspec.structs import replace

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines import (
    dynamo_requests,
    dynamo_workers,
    sglang_options,
    trtllm_server,
    vllm_options,
)
from tonnage.interchange.parts.engines.dynamo_workers import (
    Worker,
    components,
    container_of,
    role_of,
    worker_in,
    workers_of,
)
from tonnage.interchange.parts.engines.dynamo_writing import manifest
from tonnage.interchange.parts.engines.servers import DECODE, PREFILL, Server, Size, commands_of, grouped, read_servers
from tonnage.interchange.parts.engines.writing import ENGINE_OPTIONS, unnamed
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

PROGRAMS = (*(backend.program for backend in dynamo_workers.BACKENDS.values()), dynamo_workers.RUN)
SURE = 45  # signs of a manifest: more than any of Kubernetes alone has
# Keys of a component that may change how many workers there are.
UNSURE = ("autoscaling", "scalingAdapter")


def recognises(source: Source) -> int:
    if source.kind in ("yaml", "json"):
        return SURE if dynamo_workers.manifest(source) or dynamo_requests.request(source) else 0
    return 11 if any(True for _ in commands_of(source, *PROGRAMS)) else 0


def values(source: Source) -> dict[str, Any]:
    if asked := dynamo_requests.request(source):
        raise dynamo_requests.refused(asked, source.name)
    tree = dynamo_workers.manifest(source)
    fields_by_key: dict[str, Any] = {key: value for key, value in flattened(tree).items() if key} if tree else {}
    for place, _, fields in components(tree):
        fields_by_key = {key: value for key, value in fields_by_key.items() if key != "spec.components"}
        fields_by_key |= {f"{place}.{key}": value for key, value in flattened(fields).items() if key}
    return fields_by_key


def read(r: Reading) -> None:
    r.verb = "serve"
    if r.asker.version:
        r.version = r.asker.version
    tree = dynamo_workers.manifest(r.source)
    workers = list(_of_manifest(r, tree)) if tree else list(workers_of(r.source))
    if not workers:
        raise InvalidInput("{file} has no worker of dynamo.vllm, dynamo.sglang or dynamo.trtllm.", file=r.source.name)
    if any(worker.role == PREFILL for worker in workers):
        workers = [replace(worker, role=worker.role or DECODE) for worker in workers]
    servers = [_server(r, worker) for worker in workers] if tree else _of_commands(r, workers)
    inner = Reading(r.source, servers[0].values, r.asker, r.machines)
    inner.tool, inner.version, inner.verb = r.tool, r.version, r.verb
    read_servers(inner, servers)
    r.take_over(inner)


def _of_manifest(r: Reading, tree: Any) -> Any:
    """The workers of a manifest, with what its own keys mean."""
    for place, name, fields in components(tree):
        worker = worker_in(r.source, name, fields)
        counts = [f"{place}.replicas", f"{place}.multinode.nodeCount"]
        if worker is not None and worker.replicas:
            for key in (*counts, *r.under(f"{place}.resources."), *r.under(f"{place}.podTemplate.")):
                if key in r.values and (key in counts or "gpu" in key):
                    r.put("on", None, key)
            yield worker
        for key in UNSURE:
            for below in (f"{place}.{key}", *r.under(f"{place}.{key}.")):
                if worker is not None and below in r.values:
                    r.unsure(below, "the number of workers is that of replicas here")
        if image := str(container_of(fields).get("image", "")):
            tag = image.rpartition(":")[2]
            if not r.asker.version and tag[:1].isdigit() and "ai-dynamo" in image:
                r.version = tag
    r.ignore(["apiVersion", "kind", "metadata.", "spec."])


def _server(r: Reading, worker: Worker) -> Server:
    return Server(
        values=worker.values,
        read=lambda inner: _read(inner, worker, worker.role),
        role=worker.role,
        replicas=worker.replicas,
    )


def _of_commands(r: Reading, workers: list[Worker]) -> list[Server]:
    """Commands of the same backend: those that are alike but for rank and place are one server, or several."""
    parted = any(worker.role == PREFILL for worker in workers)
    engines = {worker.backend.engine for worker in workers}
    if len(engines) > 1:
        raise InvalidInput("{file} starts workers of several engines: give one of them.", file=r.source.name)

    def role(values: Any) -> str:
        return role_of(values) or (DECODE if parted else "")

    def read_one(inner: Reading) -> Size:
        return _read(inner, workers[0], role(inner.values))

    return grouped([worker.values for worker in workers], read_one, role)


def _read(r: Reading, worker: Worker, role: str) -> Size:
    size = worker.backend.read(r, role)
    accelerators = worker.accelerators
    if accelerators and accelerators != size.accelerators:
        name = f"{worker.component}: gpu"
        r.values[name] = accelerators
        r.unsure(name, Message("its command takes {ranks} accelerators", ranks=size.accelerators))
    return size


def write(w: PlannedRun) -> str:
    return manifest(w)


def _known() -> frozenset[str]:
    engines = vllm_options.TABLE.known | sglang_options.TABLE.known | trtllm_server.TABLE.known
    computed = vllm_options.COMPUTED | sglang_options.COMPUTED | trtllm_server.COMPUTED
    return engines | computed | dynamo_workers.TABLE.known | dynamo_workers.SWITCHES


FORMATS.add(
    "dynamo",
    Format(
        name="dynamo",
        tool="NVIDIA Dynamo",
        version="1.6.1",
        source="Dynamo, dynamo/vllm/backend_args.py, dynamo/sglang/backend_args.py, dynamo/trtllm/backend_args.py",
        recognises=recognises,
        values=values,
        read=read,
        known=_known,
        verbs=("serve",),
        write=write,
        ending=".yaml",
        says=ENGINE_OPTIONS | {"prefill_replicas"},
        omits=unnamed,
    ),
)
