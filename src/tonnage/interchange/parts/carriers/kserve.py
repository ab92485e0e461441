"""Reads services of KServe: the model, how it is spread, and the arguments of vLLM."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.carriers.manifest_keys import POD, classify_container
from tonnage.interchange.parts.carriers.pods import (
    Pods,
    accelerators_in,
    commands_in,
    containers,
    environment_of,
    mapping,
    put_nodes,
    sections,
    take_slice,
    words,
)
from tonnage.interchange.parts.carriers.workloads import objects
from tonnage.interchange.parts.launching.carried import CarriedCommand, carried_commands, form_that_reads, read_carried
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput, shown

PREDICTIVE, GENERATIVE = "InferenceService", "LLMInferenceService"
# Options of vLLM that `parallelism` of a service decides, and options of ours behind them.
PARALLEL = {
    "tensor": ("--tensor-parallel-size", "tensor_parallel_size"),
    "pipeline": ("--pipeline-parallel-size", "pipeline_parallel_size"),
    "data": ("--data-parallel-size", ""),
}
WORKER_SPEC = {"tensorParallelSize": "tensor", "pipelineParallelSize": "pipeline"}
ADDITIONAL = "VLLM_ADDITIONAL_ARGS"
KEYS = names("""
    spec.model.uri spec.model.name spec.model.criticality spec.model.lora.maxRank spec.model.lora.maxAdapters
    spec.model.lora.maxCpuAdapters spec.model.lora.adapters spec.parallelism.tensor spec.parallelism.pipeline
    spec.parallelism.data spec.parallelism.dataLocal spec.parallelism.dataRPCPort spec.parallelism.expert
    spec.replicas spec.scaling spec.template spec.worker spec.prefill spec.router spec.tracing spec.baseRefs
    spec.storageInitializer spec.runtime spec.trustRemoteCode spec.labels spec.annotations spec.rolloutStrategy
    spec.predictor.model spec.predictor.minReplicas spec.predictor.maxReplicas
    spec.predictor.workerSpec.tensorParallelSize spec.predictor.workerSpec.pipelineParallelSize
    spec.predictor.model.modelFormat.name spec.predictor.model.args spec.predictor.model.storageUri
    spec.predictor.model.runtime spec.predictor.model.resources
""")
IGNORED = ("apiVersion", "kind", "metadata.", "status.", "spec.router.", "spec.router", "spec.tracing.", "spec.tracing",
    "spec.labels.", "spec.annotations.", "spec.rolloutStrategy.", "spec.scaling.", "spec.storageInitializer.",
    "spec.model.name", "spec.model.criticality", "spec.parallelism.dataRPCPort", "spec.trustRemoteCode",
    "spec.model.lora.maxCpuAdapters", "spec.transformer.", "spec.explainer.", "spec.model.lora.adapters")  # fmt: skip
OF_PREDICTOR = frozenset(
    names("""
    minReplicas maxReplicas scaleTarget scaleMetric scaleMetricType autoScaling containerConcurrency timeout
    canaryTrafficPercent logger batcher labels annotations deploymentStrategy model workerSpec multiNode
""")
)
OF_MODEL = frozenset(
    names("""
    modelFormat storageUri storage runtime runtimeVersion protocolVersion name args command env image ports
    volumeMounts imagePullPolicy livenessProbe readinessProbe startupProbe securityContext lifecycle workingDir
    envFrom terminationMessagePath terminationMessagePolicy stdin tty storageUris
""")
)
LLM_FORMATS = ("huggingface", "vllm", "pytorch", "safetensors", "transformers", "custom")


def kinds() -> tuple[str, ...]:
    return (PREDICTIVE, GENERATIVE)


def services(source: Source) -> list[Mapping[str, Any]]:
    return [one for one in objects(source) if one.get("kind") in kinds()]


def read_service(r: Reading, tree: Mapping[str, Any]) -> None:
    spec = mapping(tree.get("spec"), r.source.name, "spec")
    if tree["kind"] == GENERATIVE:
        _read_generative(r, spec)
    else:
        _read_predictive(r, mapping(spec.get("predictor"), r.source.name, "spec.predictor"))


def _read_generative(r: Reading, spec: Mapping[str, Any]) -> None:
    file = r.source.name
    parallel = mapping(spec.get("parallelism"), file, "spec.parallelism")
    sizes = {name: _size(r, f"spec.parallelism.{name}", parallel.get(name)) for name in (*PARALLEL, "dataLocal")}
    template = Pods(place="spec.template", spec=mapping(spec.get("template"), file, "spec.template"))
    line = ["vllm", "serve", *_model(r, "spec.model.uri"), *_parallel(sizes)]
    if r.flag("spec.parallelism.expert"):
        line.append("--enable-expert-parallel")
    line += _adapters(r)
    per_node = _machines(r, template)
    ranks = max(sizes["tensor"], 1) * max(sizes["pipeline"], 1) * max(sizes["data"], 1)
    nodes = -(-ranks // per_node) if per_node and r.under("spec.worker.") else 1
    if sizes["dataLocal"] and sizes["data"] > sizes["dataLocal"]:
        nodes = max(nodes, -(-sizes["data"] // sizes["dataLocal"]))
    _count(r, "spec.replicas", "spec.scaling.minReplicas", nodes, per_node or (ranks if nodes == 1 else 0))
    _read_command(r, template, line)
    for name, (_, option) in PARALLEL.items():
        r.put(option, r.question.get(option), f"spec.parallelism.{name}") if option else r.put(
            "on", None, f"spec.parallelism.{name}"
        )
    r.put("expert_parallel_size", r.question.get("expert_parallel_size"), "spec.parallelism.expert")
    r.put("on", None, "spec.parallelism.dataLocal")
    r.put("model", r.question.get("model"), "spec.model.uri")
    if r.under("spec.prefill."):
        r.ignore(r.under("spec.prefill.")[1:], "see the first of spec.prefill")
        r.unsure(r.under("spec.prefill.")[0], "servers of their own for prefill")
    for name in ("spec.baseRefs", "spec.runtime"):
        if r.has(name):
            r.unsure(name, "what another object sets")


def _read_predictive(r: Reading, predictor: Mapping[str, Any]) -> None:
    file, place = r.source.name, "spec.predictor"
    model = mapping(predictor.get("model"), file, f"{place}.model")
    worker = mapping(predictor.get("workerSpec"), file, f"{place}.workerSpec")
    sizes = {ours: _size(r, f"{place}.workerSpec.{name}", worker.get(name)) for name, ours in WORKER_SPEC.items()}
    own = Pods(place=place, spec=predictor)
    if model:
        _check_format(r, model)
        own = Pods(place=place, spec={**predictor, "containers": [{**model, "name": "kserve-container"}]})
    put_nodes(r, own)
    per_node = _in_model(r, model) if model else _machines(r, own)
    ranks = max(sizes["tensor"], 1) * max(sizes["pipeline"], 1)
    per_node = per_node or max(sizes["tensor"], 1)
    _count(r, f"{place}.minReplicas", "", -(-ranks // per_node) if worker else 1, per_node)
    if model:
        arguments = _of_server(r, words(model.get("args"), file, f"{place}.model.args"))
        uri = [] if arguments[:1] and not arguments[0].startswith("-") else _model(r, f"{place}.model.storageUri")
        r.values.pop(f"{place}.model.args", None)
        _read_line(
            r, own, ["vllm", "serve", *uri, *arguments, *_parallel(sizes)], _image(r, model, f"{place}.model.image")
        )
    else:
        _read_command(r, own, ["vllm", "serve", *_parallel(sizes)])
    for name, ours in WORKER_SPEC.items():
        option = PARALLEL[ours][1]
        r.put(option, r.question.get(option), f"{place}.workerSpec.{name}")
    r.put("model", r.question.get("model"), f"{place}.model.storageUri")


def _check_format(r: Reading, model: Mapping[str, Any]) -> None:
    key = "spec.predictor.model.modelFormat.name"
    name = r.text(key) if r.has(key) else ""
    if name and name.lower() not in LLM_FORMATS:
        raise InvalidInput(
            "{file}: {key} is no format of language models that is known here. Got {name}.",
            file=r.source.name,
            key=key,
            name=shown(name),
        )


def _size(r: Reading, key: str, value: Any) -> int:
    if value is None:
        return 0
    size = r.integer(key)
    if not 1 <= size <= 100_000:
        raise r.wrong(key, "a number from 1 on")
    return size


def _parallel(sizes: Mapping[str, int]) -> list[str]:
    return [word for name, (flag, _) in PARALLEL.items() if sizes.get(name) for word in (flag, str(sizes[name]))]


def _model(r: Reading, key: str) -> list[str]:
    """The model of an address; none of one that is a place of the cluster."""
    if not r.has(key):
        return []
    address = r.text(key)
    scheme, _, rest = address.partition("://")
    if scheme == "hf" and rest:
        return [rest.partition(":")[0].strip("/")]
    r.ignore([key], "a place of the cluster: say the model with --model")
    return []


def _adapters(r: Reading) -> list[str]:
    adapters = r.get("spec.model.lora.adapters")
    if adapters is None:
        return []
    listed = sections(adapters, r.source.name, "spec.model.lora.adapters")
    line = ["--enable-lora"]
    for key, flag, default in (
        ("spec.model.lora.maxAdapters", "--max-loras", len(listed)),
        ("spec.model.lora.maxRank", "--max-lora-rank", 0),
    ):
        number = _size(r, key, r.get(key)) or default
        line += [flag, str(number)] if number else []
    r.put("lora_adapters", None, "spec.model.lora.maxAdapters")
    r.put("lora_rank", None, "spec.model.lora.maxRank")
    return line


def _machines(r: Reading, pods: Pods) -> int:
    """Accelerators of one pod."""
    put_nodes(r, pods)
    total = 0
    for place, container in containers(r, pods):
        number, part = accelerators_in(r, place, container)
        take_slice(r, part)
        total += number
    return total


def _in_model(r: Reading, model: Mapping[str, Any]) -> int:
    number, part = accelerators_in(r, "spec.predictor.model", model)
    take_slice(r, part)
    return number


def _count(r: Reading, key: str, fewest: str, nodes: int, per_node: int) -> None:
    """Replicas, each of these nodes. Those of a service that scales are its fewest."""
    where = key if r.has(key) else fewest
    replicas = _size(r, where, r.get(where) or None) if where else 0
    r.put("on", None, where)
    r.count_machines(nodes=max(replicas, 1) * max(nodes, 1), per_node=per_node)


def _of_server(r: Reading, arguments: list[str]) -> list[str]:
    """Arguments of KServe's server for Hugging Face models as those of vLLM, the model first."""
    line = " ".join(shlex.quote(word) for word in arguments)
    renamed = re.sub(r"--model[_-]name(=|\s+)", r"--served-model-name\1", line)
    left, model = shlex.split(renamed), ""
    result: list[str] = []
    while left:
        name, equals, value = left.pop(0).partition("=")
        plain = name.replace("_", "-")
        if plain in ("--model-id", "--model-dir", "--backend", "--model-revision", "--tokenizer-revision"):
            value = value if equals else left.pop(0) if left else ""
            model = value if plain == "--model-id" else model
        else:
            result.append(f"{plain if name.startswith('--') else name}{equals}{value}")
    return [model, *result] if model else result


def _image(r: Reading, container: Mapping[str, Any], key: str) -> str:
    image = container.get("image")
    r.ignore([key])
    return image if isinstance(image, str) else ""


def _read_command(r: Reading, pods: Pods, line: list[str]) -> None:
    """The command of the container where it has one that a format reads, else vLLM with these words."""
    commands = [one for _, one in commands_in(r, pods, {})]
    owned = [one for one in commands if one.command.words[:2] != ("vllm", "serve")]
    if owned:
        for place, _ in containers(r, pods):
            for name in ("command", "args"):
                r.values.pop(f"{place}.{name}", None)
        read_carried(r, owned)
        return
    image = ""
    for place, container in containers(r, pods):
        if container.get("name") in ("main", "kserve-container", None) or len(containers(r, pods)) == 1:
            image = _image(r, container, f"{place}.image") or image
            arguments = [
                *words(container.get("command"), r.source.name, f"{place}.command"),
                *words(container.get("args"), r.source.name, f"{place}.args"),
            ]
            known = environment_of(r, place, container, {})
            line = [*_with_options(line, _options_of(r, arguments)), *_split(r, known.get(ADDITIONAL, ""), place)]
            for name in (f"{place}.command", f"{place}.args", f"{place}.env.{ADDITIONAL}"):
                r.values.pop(name, None)
    _read_line(r, pods, line, image)


def _options_of(r: Reading, words: list[str]) -> list[str]:
    """The options in a container's own words: those behind `vllm serve`, also in a script."""
    if words[:1] and words[0].rpartition("/")[2] in ("bash", "sh"):
        commands = carried_commands(Source(name=r.source.name, text="", words=tuple(words)))
        words = list(commands[0].command.words) if commands else []
    return words[2:] if words[:2] == ["vllm", "serve"] else words


def _with_options(line: list[str], more: list[str]) -> list[str]:
    """The command with a container's options. The object's model counts before the container's, which is where the
    object's is mounted.
    """
    if more[:1] and not more[0].startswith("-"):
        has_model = bool(line[2:3]) and not line[2].startswith("-")
        return [*line, *more[1:]] if has_model else [*line[:2], more[0], *line[2:], *more[1:]]
    return [*line, *more]


def _split(r: Reading, text: str, place: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidInput(
            "{file}: {key} is no list of options: {error}. Got {text}.",
            file=r.source.name,
            key=f"{place}.env.{ADDITIONAL}",
            error=error,
            text=shown(text),
        ) from None


def _read_line(r: Reading, pods: Pods, line: list[str], image: str) -> None:
    environment: dict[str, str] = {}
    for place, container in containers(r, pods):
        known = environment_of(r, place, container, {})
        environment |= {name: value for name, value in known.items() if name != ADDITIONAL}
    command = Command(words=tuple(line), environment=environment)
    form = form_that_reads(Source(name=r.source.name, text=shlex.join(line), words=tuple(line)))
    read_carried(r, [CarriedCommand(command=command, form=form, image=image)] if form is not None else [])


def classify(r: Reading) -> None:
    r.ignore(IGNORED)
    for key in list(r.values):
        parts = key.split(".")
        if parts[:2] in (["spec", "template"], ["spec", "worker"]):
            _classify_pod(r, key, parts[2:])
        elif parts[:2] == ["spec", "predictor"]:
            _classify_predictor(r, key, parts[2:])


def _classify_pod(r: Reading, key: str, parts: list[str]) -> None:
    if parts[:1] == ["containers"] and len(parts) > 2:
        classify_container(r, key, ".".join(parts[2:]))
    elif not parts or parts[0] in (*POD, "containers"):
        r.ignore([key])


def _classify_predictor(r: Reading, key: str, parts: list[str]) -> None:
    if parts[:1] == ["model"] and len(parts) > 1 and parts[1] == "resources":
        classify_container(r, key, ".".join(parts[1:]))
    elif (parts[:1] == ["model"] and len(parts) > 1 and parts[1] in OF_MODEL) or (parts[:1] == ["workerSpec"]):
        r.ignore([key])
    elif parts[:1] == ["model"] and len(parts) > 1:
        return
    elif parts and parts[0] in OF_PREDICTOR:
        r.ignore([key])
    else:
        _classify_pod(r, key, parts)
