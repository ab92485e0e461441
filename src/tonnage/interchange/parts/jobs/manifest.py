"""Writes manifests of Kubernetes: a Deployment or a LeaderWorkerSet that serves, a Job that trains."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.jobs.carried_command import (
    PORT,
    Carried,
    comments,
    engine_image,
    image_notes,
    job_name,
    one_command,
    with_places,
    words_of,
)
from tonnage.interchange.parts.jobs.yaml_writing import Block, dump
from tonnage.interchange.parts.launching.accelerators import product_label, resource_of
from tonnage.interchange.parts.launching.images import entry_point
from tonnage.interchange.planned_run import PlannedRun

LEADER, GROUP_RANK = "$(LWS_LEADER_ADDRESS)", "$(LWS_WORKER_INDEX)"


def write(w: PlannedRun) -> str:
    one = one_command(w, "kubernetes")
    image = engine_image(w)
    notes = comments([*one.notes, *image_notes(w, image)])
    if w.verb == "train":
        documents = training_job(w, one, image)
    elif one.nodes > 1:
        documents = [leader_worker_set(w, one, image)]
    else:
        documents = [deployment(w, one, image)]
    return notes + "---\n".join(dump(document) for document in documents)


def container(w: PlannedRun, name: str, image: str, command: str, per_node: int) -> dict[str, Any]:
    """A container that runs a command, with its accelerators."""
    split = words_of(command)
    fields: dict[str, Any] = {"name": name, "image": image}
    if split is None or "$" in command.replace("$(", ""):
        fields |= {"command": ["bash", "-c"], "args": [Block(command)]}
    else:
        words, variables = split
        if variables:
            fields["env"] = [{"name": key, "value": value} for key, value in variables.items()]
        starts = tuple(words[:1]) == entry_point(image, words[1:])
        fields |= {"args": words[1:]} if starts else {"command": words}
    accelerator = w.cluster.accelerator
    fields["resources"] = {"limits": {resource_of(accelerator.vendor, accelerator.name): per_node}}
    if per_node > 1:
        fields["volumeMounts"] = [{"name": "shm", "mountPath": "/dev/shm"}]
    return fields


def pod(w: PlannedRun, containers: list[dict[str, Any]], per_node: int) -> dict[str, Any]:
    """The spec of a pod on nodes with the accelerator."""
    spec: dict[str, Any] = {}
    if selector := node_selector(w):
        spec["nodeSelector"] = selector
    spec["containers"] = containers
    if per_node > 1:
        spec["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    return spec


def node_selector(w: PlannedRun) -> Mapping[str, str]:
    label = product_label(w.cluster.accelerator.name)
    if not label:
        return {}
    return {"amd.com/gpu.product-name" if w.cluster.accelerator.vendor == "AMD" else "nvidia.com/gpu.product": label}


def deployment(w: PlannedRun, one: Carried, image: str) -> dict[str, Any]:
    name = job_name(w)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": one.copies,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": pod(w, [container(w, "server", image, one.command, one.per_node)], one.per_node),
            },
        },
    }


def leader_worker_set(w: PlannedRun, one: Carried, image: str) -> dict[str, Any]:
    """One server on several nodes: a leader and its workers."""
    command = with_places(one.command, LEADER, GROUP_RANK)
    behind = f"{command} {one.behind}" if one.behind else command
    leader = pod(w, [container(w, "leader", image, command, one.per_node)], one.per_node)
    worker = pod(w, [container(w, "worker", image, behind, one.per_node)], one.per_node)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": job_name(w)},
        "spec": {
            "replicas": one.copies,
            "leaderWorkerTemplate": {
                "size": one.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {"spec": leader},
                "workerTemplate": {"spec": worker},
            },
        },
    }


def training_job(w: PlannedRun, one: Carried, image: str) -> list[dict[str, Any]]:
    """A job with a pod on each node; the first is found by its name."""
    name = job_name(w)
    first = f"{name}-0.{name}" if one.nodes > 1 else "localhost"
    command = with_places(one.command, first, "$JOB_COMPLETION_INDEX")
    spec = pod(w, [container(w, "trainer", image, command, one.per_node)], one.per_node)
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    template = {"restartPolicy": "Never", **({"subdomain": name} if one.nodes > 1 else {}), **spec}
    several = {"completionMode": "Indexed", "completions": one.nodes, "parallelism": one.nodes}
    job["spec"] = {**(several if one.nodes > 1 else {}), "backoffLimit": 0, "template": {"spec": template}}
    if one.nodes == 1:
        return [job]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            "selector": {"job-name": name},
            "publishNotReadyAddresses": True,
            "ports": [{"port": PORT}],
        },
    }
    return [service, job]
