"""A DynamoGraphDeploymentRequest: it asks Dynamo to search a deployment, and names no workers.

Source: ai-dynamo 1.6.1, dynamo/profiler/utils/dgdr_v1beta1_types.py.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

KIND = "DynamoGraphDeploymentRequest"
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
INPUT, OUTPUT, TTFT, ITL = 4000, 1000, 2000, 30  # defaults of WorkloadSpec and SLASpec; the latter in milliseconds


def request(source: Source) -> Mapping[str, Any]:
    """The manifest of a request; nothing where there is none."""
    if source.kind not in ("yaml", "json"):
        return {}
    found = (one for one in source.documents if isinstance(one, Mapping) and one.get("kind") == KIND)
    return next(found, {})


def refused(tree: Mapping[str, Any], file: str) -> InvalidInput:
    """The error that says what to ask instead: the same search as a question here."""
    return InvalidInput(
        "{file} asks Dynamo to search a deployment, and names no workers: give the DynamoGraphDeployment that it "
        "makes, or search here with `{command}`.",
        file=file,
        command=command(tree),
    )


def command(tree: Mapping[str, Any]) -> str:
    """The question of a request, with the defaults of Dynamo."""
    spec = _section(tree, "spec")
    hardware, workload, goals = (_section(spec, name) for name in ("hardware", "workload", "sla"))
    each = hardware.get("numGpusPerNode") or hardware.get("totalGpus") or 1
    machine = str(hardware.get("gpuSku") or "ACCELERATOR").replace("_", "-")
    words: list[Any] = ["tonnage", "serve", str(spec.get("model") or "MODEL"), "--on", f"{each}x{machine}"]
    if engine := ENGINES.get(str(spec.get("backend"))):
        words += ["--engine", engine]
    words += ["--input-tokens", workload.get("isl") or INPUT, "--output-tokens", workload.get("osl") or OUTPUT]
    for key, option in (("concurrency", "--concurrency"), ("requestRate", "--request-rate")):
        if workload.get(key):
            words += [option, f"{workload[key]:g}" if isinstance(workload[key], float) else workload[key]]
    if not goals.get("e2eLatency"):
        for key, option, default in (("ttft", "--ttft", TTFT), ("itl", "--tpot", ITL)):
            value = goals.get(key) or default
            words += [option, f"{value:g}ms" if isinstance(value, int | float) else default]
    return shlex.join(map(str, words))


def _section(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name)
    return found if isinstance(found, Mapping) else {}
