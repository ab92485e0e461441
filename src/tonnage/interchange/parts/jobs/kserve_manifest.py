"""Writes an LLMInferenceService of KServe."""

import shlex
from typing import Any

from tonnage.interchange.parts.jobs.carried_command import (
    comments,
    engine_image,
    image_notes,
    job_name,
    one_command,
    words_of,
)
from tonnage.interchange.parts.jobs.manifest import container, pod
from tonnage.interchange.parts.jobs.yaml_writing import dump
from tonnage.interchange.parts.words import names
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import options_of_command
from tonnage.kernel.errors import InvalidInput

# Options that the object has words of its own for, or sets by itself.
_OWN = frozenset(
    names("""
    tensor-parallel-size pipeline-parallel-size data-parallel-size data-parallel-size-local
    data-parallel-address enable-expert-parallel nnodes node-rank master-addr headless
""")
)


def write(w: PlannedRun) -> str:
    one = one_command(w, "kserve")
    split = words_of(one.command)
    if split is None or split[0][:2] != ["vllm", "serve"]:
        raise InvalidInput("kserve starts vllm: leave {@engine} out.")
    line, variables = split
    options, _ = options_of_command(line[3:], frozenset({"enable-expert-parallel"}))
    image = engine_image(w)
    main = container(w, "main", image, "vllm serve", one.per_node)
    for name in ("command", "args"):
        main.pop(name, None)
    more = _others(line[3:])
    known = {**variables, **({"VLLM_ADDITIONAL_ARGS": shlex.join(more)} if more else {})}
    main = {
        "name": "main",
        "image": image,
        **({"env": [{"name": name, "value": value} for name, value in known.items()]} if known else {}),
        **{name: value for name, value in main.items() if name not in ("name", "image")},
    }
    spec: dict[str, Any] = {"model": {"uri": f"hf://{line[2]}", "name": line[2]}, "replicas": one.copies}
    parallel = {
        name: int(options[flag])
        for name, flag in (
            ("tensor", "tensor-parallel-size"),
            ("pipeline", "pipeline-parallel-size"),
            ("data", "data-parallel-size"),
            ("dataLocal", "data-parallel-size-local"),
        )
        if flag in options
    }
    if "enable-expert-parallel" in options:
        parallel["expert"] = True
    if parallel:
        spec["parallelism"] = parallel
    spec["router"] = {"route": {}, "gateway": {}, "scheduler": {}}
    spec["template"] = pod(w, [main], one.per_node)
    if one.nodes > 1:
        spec["worker"] = pod(w, [main], one.per_node)
    document = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": job_name(w)},
        "spec": spec,
    }
    return comments([*one.notes, *image_notes(w, image)]) + dump(document)


def _others(words: list[str]) -> list[str]:
    """The options that the object has no words for."""
    arguments: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name = word.lstrip("-").partition("=")[0]
        values = []
        while left and not left[0].startswith("--"):
            values.append(left.pop(0))
        if name not in _OWN:
            arguments += [word, *values]
    return arguments
