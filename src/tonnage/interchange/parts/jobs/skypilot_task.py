"""Writes a task of SkyPilot."""

from typing import Any

from tonnage.interchange.parts.carriers.skypilot import OF_SKYPILOT, name_of
from tonnage.interchange.parts.jobs.carried_command import (
    Carried,
    carries,
    comments,
    counts,
    job_name,
    one_command,
    with_places,
)
from tonnage.interchange.parts.jobs.yaml_writing import Block, dump
from tonnage.interchange.parts.launching.accelerators import accelerator_named
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput

RANK, FIRST = "$SKYPILOT_NODE_RANK", "$FIRST_NODE"
MEET = 'FIRST_NODE=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)\n'
PACKAGES = {"vllm": "vllm", "sglang": "sglang[all]", "tensorrt-llm": "tensorrt_llm"}


def says(w: PlannedRun) -> frozenset[str]:
    """With the machine, where its name there means the same accelerator."""
    name = name_of(w.cluster.accelerator.name)
    own = OF_SKYPILOT.get(name.lower()) or accelerator_named(name)
    return carries(w) | ({"on"} if own == w.cluster.accelerator.name and counts(w) else frozenset())


def write(w: PlannedRun) -> str:
    one = one_command(w, "skypilot")
    if ":" in w.cluster.accelerator.name:
        raise InvalidInput("SkyPilot asks for whole accelerators. Got {name}.", name=w.cluster.accelerator.name)
    task: dict[str, Any] = {"name": job_name(w)}
    if one.nodes > 1:
        task["num_nodes"] = one.nodes
    task["resources"] = {"accelerators": f"{name_of(w.cluster.accelerator.name)}:{one.per_node}"}
    if setup := _setup(w):
        task["setup"] = Block(setup)
    if one.copies > 1:
        task["service"] = {"readiness_probe": "/v1/models", "replicas": one.copies}
    task["run"] = Block(_run(one))
    return comments(one.notes) + dump(task)


def _setup(w: PlannedRun) -> str:
    """The package with the engine, in the release that was asked."""
    from tonnage.runtimes import serving_runtime

    if w.serving is None or w.serving.engine not in PACKAGES:
        return ""
    version = serving_runtime(w.serving.engine, w.serving.engine_version).version.rpartition(" ")[2]
    return f"pip install '{PACKAGES[w.serving.engine]}=={version}.*'"


def _run(one: Carried) -> str:
    if one.nodes == 1:
        return with_places(one.command, "localhost", "0")
    command = with_places(one.command, FIRST, RANK)
    if not one.behind:
        return f"{MEET}{command}"
    head = f'if [ "{RANK}" -gt 0 ]; then MORE={one.behind}; fi\n'
    return f"{MEET}{head}{command} ${{MORE:-}}"
