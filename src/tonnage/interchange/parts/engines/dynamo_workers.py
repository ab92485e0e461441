"""Workers of NVIDIA Dynamo: commands of its backends, and the components of its manifests that carry them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.engines import sglang_server, trtllm_server, vllm_server
from tonnage.interchange.parts.engines.engine_options import NO_OPTION, Options, names
from tonnage.interchange.parts.engines.servers import DECODE, PREFILL, Program, Size, commands_of
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source, text_source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import is_there

SWITCHES = names("""
    use-vllm-tokenizer use-sglang-tokenizer route-to-encoder enable-multimodal enable-rl embedding-worker
    embedding-frontend-tokenization realtime classify-worker headless gms-shadow-mode benchmark-randomize-kda-state
    benchmark-hybrid-live-state benchmark-collect-imbalanced fpm-trace exclude-tools-when-tool-choice-none
    multimodal-embedding-cache-publisher tcp-tls-insecure nats-tls-insecure is-prefill-worker is-decode-worker
    dedicated-mm-encoder rerank-worker image-diffusion-worker video-generation-worker publish-events-and-metrics
    publish-kv-events publish-metrics enable-attention-dp multimodal-worker multimodal-encode-worker
    multimodal-processor multimodal-decode-worker frontend-decoding dyn-enable-structural-tag
""")
IGNORED = names("""
    use-vllm-tokenizer use-sglang-tokenizer enable-rl model-express-url headless namespace endpoint kv-state-endpoint
    discovery-backend request-plane response-plane event-plane fpm-trace connector dyn-tool-call-parser
    dyn-reasoning-parser dyn-default-thinking-mode exclude-tools-when-tool-choice-none dyn-structural-tag
    dyn-enable-structural-tag custom-jinja-template endpoint-types dump-config-to output-modalities
    media-output-fs-url media-output-http-url health-check-payload engine-request-limit tcp-tls-cert-path
    tcp-tls-key-path tcp-tls-ca-cert-path tcp-tls-insecure tcp-tls-server-name tcp-tls-handshake-timeout
    tcp-tls-client-cert-path tcp-tls-client-key-path tcp-tls-client-ca-cert-path nats-tls-ca-cert-path
    nats-tls-insecure nats-tls-client-cert-path nats-tls-client-key-path frontend-decoding mm-prompt-template
    embedding-transfer-mode embedding-worker-processes embedding-frontend-tokenization benchmark-output-path
    benchmark-timeout benchmark-points-file benchmark-warmup-iterations benchmark-collect-imbalanced store-kv
    migration-limit dyn-endpoint-types publish-events-and-metrics publish-kv-events publish-metrics
    conversation-affinity conversation-affinity-dp-rank-source disaggregation-strategy model-name router-mode
    router-replica-sync kv-cache-block-size kv-overlap-score-weight leader-addr http-port http-host
    request-template in sglang-trace-level engine-route gateway-workers disagg-config disagg-config-key
    max-file-size-mb kv-block-size served-model-name guided-decoding-backend allowed-local-media-path
""")
MULTIMODAL = "images and sounds are not estimated yet"
TABLE = Options(
    ignored=IGNORED,
    harmless={
        "disaggregation-mode": (("agg", "aggregated", "pd", "prefill_and_decode", "null"), NO_OPTION),
        "benchmark-mode": (("none",), NO_OPTION),
        "multimodal-embedding-cache-capacity-gb": (("0", "0.0"), MULTIMODAL),
        "modality": (("text",), MULTIMODAL),
    },
    unsure={
        **dict.fromkeys(names("enable-multimodal route-to-encoder custom-encoder-class encode-endpoint"), MULTIMODAL),
        **dict.fromkeys(names("multimodal-worker multimodal-encode-worker multimodal-processor"), MULTIMODAL),
        **dict.fromkeys(names("multimodal-decode-worker dedicated-mm-encoder realtime"), MULTIMODAL),
        **dict.fromkeys(names("embedding-worker classify-worker rerank-worker"), "a model that pools is not estimated"),
        **dict.fromkeys(names("image-diffusion-worker video-generation-worker"), MULTIMODAL),
        "gms-shadow-mode": NO_OPTION,
    },
)
ROLES = {"prefill": PREFILL, "decode": DECODE}


class Backend(Struct, frozen=True, kw_only=True):
    """A backend of Dynamo: the engine, the release of it whose options are known, its program, and how its options are
    read.
    """

    engine: str
    tool: str
    version: str
    program: Program
    module: Any

    def values(self, words: Mapping[str, Any], source: Source) -> dict[str, Any]:
        """Options of a worker. Files that lie in its container stay as they are."""
        options = dict(words)
        held = {}
        for key in ("config", "extra-engine-args"):
            path = options.get(key)
            if isinstance(path, str) and not (source.folder is not None and is_there(str(Path(source.folder) / path))):
                held[key] = options.pop(key)
        named = self.engine == "tensorrt-llm"
        if named:
            options = {
                key.replace("-", "_") if key not in TABLE.known else key: value for key, value in options.items()
            }
            if isinstance(model := options.pop("model_path", None), str):
                options["model"] = model
            if isinstance(more := options.pop("override_engine_args", None), str):
                options |= _object(more, source)
        return {**self.module.values_of(options, source), **held}

    def read(self, r: Reading, role: str) -> Size:
        if self.engine == "tensorrt-llm":
            r.rename({key.replace("-", "_"): key for key in (*TABLE.known, *ROLE_NAMES) if "-" in key})
        for key in ROLE_NAMES:
            if role and key in r.values:
                r.put("prefill_replicas", None, key)
        r.ignore(["is-prefill-worker", "is-decode-worker"])
        if role:
            r.ignore(["kv-transfer-config", "kv-transfer-config."], why="caches go from prefill to decode workers")
        for key in ("config", "extra-engine-args"):
            if key in r.values and self._is_elsewhere(r, key):
                r.unsure(key, "a file in the container: its keys are not read")
        tool, version = r.tool, r.version
        r.tool, r.version = self.tool, self.version
        size: Size = self.module.read(r, TABLE)
        r.tool, r.version = tool, version
        return size

    def _is_elsewhere(self, r: Reading, key: str) -> bool:
        folder = r.source.folder
        return folder is None or not is_there(str(Path(folder) / str(r.values[key])))


ROLE_NAMES = ("disaggregation-mode", "is-prefill-worker", "is-decode-worker")


def _object(text: str, source: Source) -> dict[str, Any]:
    from tonnage.user_files import json_text

    tree = json_text.parse(text.encode(), source.name)
    if not isinstance(tree, Mapping):
        raise InvalidInput("{file}: override-engine-args must be an object of JSON.", file=source.name)
    return trtllm_server.file_values(tree)


def _program(name: str, program: Program) -> Program:
    return Program(
        starts=(("-m", f"dynamo.{name}"), ("-m", f"dynamo.{name}.unified_main")),
        switches=program.switches | SWITCHES,
        several=program.several,
        short=program.short,
        variables=program.variables,
    )


BACKENDS = {
    "vllm": Backend(
        engine="vllm",
        tool="vLLM",
        version="0.33",
        program=_program("vllm", vllm_server.PROGRAM),
        module=vllm_server,
    ),
    "sglang": Backend(
        engine="sglang",
        tool="SGLang",
        version="0.5.23",
        program=_program("sglang", sglang_server.PROGRAM),
        module=sglang_server,
    ),
    "trtllm": Backend(
        engine="tensorrt-llm",
        tool="TensorRT-LLM",
        version="1.3",
        program=_program("trtllm", trtllm_server.PROGRAM),
        module=trtllm_server,
    ),
}
RUN = Program(starts=(("dynamo", "run"), ("dynamo-run",)), switches=vllm_server.PROGRAM.switches | SWITCHES)


class Worker(Struct, frozen=True, kw_only=True):
    """A worker: its backend and options, what part of the work it does, and how many there are of it. `component`: its
    name in the manifest; `accelerators`: those that the manifest gives each, 0 where it does not say.
    """

    backend: Backend
    values: Mapping[str, Any]
    role: str
    replicas: int = 1
    component: str = ""
    accelerators: int = 0


def role_of(values: Mapping[str, Any]) -> str:
    """What part of the work the options of a worker say that it does."""
    mode = str(values.get("disaggregation-mode", values.get("disaggregation_mode", ""))).lower()
    if values.get("is-prefill-worker"):
        return PREFILL
    return DECODE if values.get("is-decode-worker") else ROLES.get(mode, "")


def workers_of(source: Source) -> Iterator[Worker]:
    """The workers that commands start."""
    for name, backend in BACKENDS.items():
        for _, command in commands_of(source, backend.program):
            values = backend.values(backend.program.values(command), source)
            yield Worker(backend=backend, values=values, role=role_of(values), component=name)
    for _, command in commands_of(source, RUN):
        yield _of_run(RUN.values(command), source)


def _of_run(words: dict[str, Any], source: Source) -> Worker:
    """`dynamo run in=http out=vllm MODEL --flags`."""
    alone = list(words.pop("alone", []))
    out = next((word.partition("=")[2] for word in alone if word.startswith("out=")), "vllm")
    if out not in BACKENDS:
        raise InvalidInput(
            "{file}: dynamo run has out=vllm, out=sglang or out=trtllm here. Got out={out}.", file=source.name, out=out
        )
    named = [word for word in alone if not word.startswith(("out=", "in="))]
    model = words.pop("model-path", named[0] if named else None)
    plain = {"context-length": {"vllm": "max-model-len", "trtllm": "max-seq-len"}.get(out, "context-length")}
    plain |= {"num-nodes": "nnodes"} if out != "trtllm" else {}
    options = {plain.get(key, key): value for key, value in words.items()}
    if model is not None:
        options["model" if out != "sglang" else "model-path"] = model
    backend = BACKENDS[out]
    return Worker(backend=backend, values=backend.values(options, source), role="", component=out)


# ---- Manifests.


def manifest(source: Source) -> Mapping[str, Any]:
    """The manifest of a graph; nothing where there is none."""
    if source.kind not in ("yaml", "json"):
        return {}
    for document in source.documents:
        if isinstance(document, Mapping) and document.get("kind") == "DynamoGraphDeployment":
            return document
    return {}


def components(tree: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Place, name and fields of each component: v1alpha1 has services by name, v1beta1 a list."""
    spec = tree.get("spec")
    if not isinstance(spec, Mapping):
        return
    services, listed = spec.get("services"), spec.get("components")
    if isinstance(services, Mapping):
        for name, fields in services.items():
            if isinstance(fields, Mapping):
                yield f"spec.services.{name}", str(name), fields
    if isinstance(listed, list):
        for number, fields in enumerate(listed):
            if isinstance(fields, Mapping):
                yield f"spec.components.{number}", str(fields.get("name", number)), fields


def container_of(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The main container of a component."""
    pod = fields.get("extraPodSpec")
    main = pod.get("mainContainer") if isinstance(pod, Mapping) else None
    template = fields.get("podTemplate")
    spec = template.get("spec") if isinstance(template, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    if isinstance(containers, list):
        entries = [entry for entry in containers if isinstance(entry, Mapping)]
        main = next((entry for entry in entries if entry.get("name") == "main"), entries[0] if entries else main)
    return main if isinstance(main, Mapping) else {}


def worker_in(source: Source, name: str, fields: Mapping[str, Any]) -> Worker | None:
    """The worker that a component is; None where it is none, such as a frontend."""
    container = container_of(fields)
    words = [*_words(container.get("command")), *_words(container.get("args"))]
    environment = {
        str(word.get("name")): str(word.get("value"))
        for part in (fields.get("envs"), container.get("env"))
        if isinstance(part, list)
        for word in part
        if isinstance(word, Mapping) and word.get("value") is not None
    }
    inner = _source_of(name, words, environment, source)
    worker = next(iter(workers_of(inner)), None)
    if worker is None:
        return None
    kind = str(fields.get("subComponentType") or fields.get("type") or "")
    return Worker(
        backend=worker.backend,
        values=worker.values,
        role=worker.role or ROLES.get(kind.lower(), "") * (kind.lower() == "prefill"),
        replicas=_number(source, f"{name}: replicas", fields.get("replicas"), 1),
        component=name,
        accelerators=_accelerators(source, name, fields, container),
    )


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else [value] if isinstance(value, str) else []


SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")


def _source_of(name: str, words: list[str], environment: Mapping[str, str], source: Source) -> Source:
    """The command of a container, which may be one text for a shell."""
    from shlex import join, quote

    if words[:1] and words[0] in SHELLS:
        script = "\n".join(word for word in words[1:] if word not in ("-c", "-lc", "-ec", "-exc"))
    else:
        script = join(words)
    sets = "".join(f"{key}={quote(value)}\n" for key, value in environment.items() if key.isidentifier())
    return text_source(f"{sets}{script}\n", f"{source.name} {name}", source.folder)


def _number(source: Source, key: str, value: Any, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**6:
        raise InvalidInput("{file}: {key} must be a whole number. Got {value}.", file=source.name, key=key, value=value)
    return value


def _accelerators(source: Source, name: str, fields: Mapping[str, Any], container: Mapping[str, Any]) -> int:
    """Accelerators of a worker: those of its pod, on as many nodes as it has."""
    amount = 0
    for place in (fields.get("resources"), container.get("resources")):
        for kind in ("limits", "requests"):
            amounts = place.get(kind) if isinstance(place, Mapping) else None
            if isinstance(amounts, Mapping):
                for key in ("gpu", "nvidia.com/gpu", "amd.com/gpu"):
                    amount = amount or _number(source, f"{name}: {kind}.{key}", amounts.get(key), 0)
    nodes = fields.get("multinode")
    count = nodes.get("nodeCount") if isinstance(nodes, Mapping) else None
    return amount * max(_number(source, f"{name}: multinode.nodeCount", count, 1), 1)
