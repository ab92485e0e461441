"""Configs of Ray Serve LLM: the model, the options of its engine, and its accelerators."""

import json
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.launching.accelerators import accelerator_named
from tonnage.interchange.parts.launching.carried import CarriedCommand, form_that_reads
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message

# Ray 2.60, python/ray/llm/_internal/serve/core/configs/llm_config.py: LLMConfig
KNOWN = names("""
    model_loading_config.model_id model_loading_config.model_source model_loading_config.tokenizer_source
    llm_engine engine_kwargs accelerator_type accelerator_config.kind accelerator_config.topology
    placement_group_config.bundles placement_group_config.bundle_per_worker placement_group_config.strategy
    lora_config.dynamic_lora_loading_path lora_config.max_num_adapters_per_replica
    lora_config.download_timeout_s lora_config.max_download_tries deployment_config.num_replicas
    deployment_config.autoscaling_config.min_replicas deployment_config.autoscaling_config.max_replicas
    deployment_config.autoscaling_config.initial_replicas deployment_config.max_ongoing_requests runtime_env
    experimental_configs log_engine_metrics callback_config server_cls
""")
OPTIONS = "engine_kwargs"
UNFLATTENED = frozenset((
    "runtime_env", "experimental_configs", "callback_config", "placement_group_config.bundle_per_worker",
    "model_loading_config.model_source", "deployment_config.ray_actor_options"))  # fmt: skip
IGNORED = (
    "model_loading_config.model_id", "model_loading_config.tokenizer_source", "runtime_env", "experimental_configs",
    "log_engine_metrics", "callback_config", "server_cls", "placement_group_config.strategy", "accelerator_config.",
    "lora_config.dynamic_lora_loading_path", "lora_config.download_timeout_s", "lora_config.max_download_tries",
    "deployment_config.", "input_modality", "generation_config.", "resources_per_bundle.", "llm_engine",
)  # fmt: skip
# A config of Serve: python/ray/serve/schema.py
OF_SERVE = frozenset(
    names("""
    applications http_options grpc_options logging_config proxy_location target_capacity name route_prefix
    import_path runtime_env args host port deployments ingress_options autoscaling_policy
    external_scaler_enabled ingress_deployment_config ingress_cls_config
""")
)
REPLICAS = (
    "deployment_config.num_replicas",
    "deployment_config.autoscaling_config.min_replicas",
    "deployment_config.autoscaling_config.initial_replicas",
)
ENGINES = {"vllm": ("vllm", "serve"), "sglang": ("python", "-m", "sglang.launch_server", "--model-path")}


def is_config(source: Source) -> bool:
    """Whether it is an LLMConfig, or has some."""
    return bool(_configs_in(source)) or any(
        isinstance(one, Mapping) and "ray.serve.llm" in str(one.get("import_path", "")) for one in _applications(source)
    )


def _applications(source: Source) -> list[Any]:
    value = source.tree.get("applications")
    return value if isinstance(value, list) else []


def _configs_in(source: Source) -> list[Any]:
    """Every LLMConfig: a mapping, or the path of a file with one."""
    tree = source.tree
    if "model_loading_config" in tree:
        return [tree]
    holders = [tree, *(one.get("args") for one in _applications(source) if isinstance(one, Mapping))]
    configs: list[Any] = []
    for holder in holders:
        if not isinstance(holder, Mapping):
            continue
        value = holder.get("llm_configs", holder.get("llm_config"))
        configs += value if isinstance(value, list) else [value] if isinstance(value, Mapping) else []
        configs += [holder[name] for name in ("prefill_config", "decode_config") if name in holder]
    return configs


def configs(source: Source) -> list[Mapping[str, Any]]:
    """Every LLMConfig, those of files that are named too."""
    result: list[Mapping[str, Any]] = []
    for one in _configs_in(source):
        tree = source.sibling(one).tree if isinstance(one, str) else one
        if not isinstance(tree, Mapping) or "model_loading_config" not in tree:
            raise InvalidInput(
                "{file}: a model needs model_loading_config. Got {one}.", file=source.name, one=shown(one)
            )
        result.append(tree)
    return result


def outer(source: Source) -> dict[str, Any]:
    """The keys of Serve around the models."""
    if "model_loading_config" in source.tree:
        return {}
    rest = {name: value for name, value in source.tree.items() if name not in ("applications", "llm_configs")}
    values = flattened(rest)
    for number, one in enumerate(_applications(source)):
        if isinstance(one, Mapping):
            values |= {f"applications.{number}.{name}": value for name, value in one.items() if name != "args"}
    return values


def model_of(config: Mapping[str, Any]) -> str:
    loading = config.get("model_loading_config")
    if not isinstance(loading, Mapping):
        return ""
    source = loading.get("model_source")
    if isinstance(source, Mapping):
        source = None  # a bucket of a cloud
    return str(source or loading.get("model_id") or "")


def command(r: Reading) -> list[str]:
    """The command that would start the engine with the same options."""
    engine = r.text("llm_engine", "vLLM").lower()
    if "sglang" in str(r.get("server_cls", "")).lower():
        engine = "sglang"
    if engine not in ENGINES:
        raise r.wrong("llm_engine", "vLLM")
    source, loading = r.get("model_loading_config.model_source"), "model_loading_config.model_id"
    model = r.text("model_loading_config.model_source") if isinstance(source, str) else r.text(loading)
    line = [*ENGINES[engine], *([model] if model else [])]
    options = {key.removeprefix(f"{OPTIONS}."): value for key, value in _options(r).items()}
    for name, value in options.items():
        line += _words(name.replace("_", "-"), value)
    if r.has("lora_config.max_num_adapters_per_replica") and "max_loras" not in options:
        number = r.integer("lora_config.max_num_adapters_per_replica")
        line += ["--enable-lora", "--max-loras", str(number)]
        r.put("lora_adapters", None, "lora_config.max_num_adapters_per_replica")
    return line


def _options(r: Reading) -> dict[str, Any]:
    """Options of the engine; sections of it are whole again."""
    tree: dict[str, Any] = {}
    for key in r.under(f"{OPTIONS}."):
        name, _, inner = key.removeprefix(f"{OPTIONS}.").partition(".")
        if inner:
            section = tree.setdefault(name, {})
            if isinstance(section, dict):
                section[inner] = r.values[key]
        else:
            tree[name] = r.values[key]
    if r.has(OPTIONS) and not isinstance(r.get(OPTIONS), Mapping):
        raise r.wrong(OPTIONS, "options of the engine")
    return tree


def _words(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, Mapping | list):
        return [f"--{name}", json.dumps(_nested(value))]
    return [f"--{name}", str(value)]


def _nested(value: Any) -> Any:
    """Sections whose names are joined by dots, as sections in each other."""
    if not isinstance(value, Mapping):
        return value
    tree: dict[str, Any] = {}
    for key, inner in value.items():
        *path, last = str(key).split(".")
        at = tree
        for part in path:
            at = at.setdefault(part, {}) if isinstance(at.get(part, {}), dict) else {}
        at[last] = inner
    return tree


def commands_of_configs(r: Reading, line: list[str]) -> list[CarriedCommand]:
    source = Source(name=r.source.name, text="", words=tuple(line))
    form = form_that_reads(source)
    return [CarriedCommand(command=Command(words=tuple(line)), form=form)] if form is not None else []


def count(r: Reading) -> None:
    """Accelerators of all replicas. Those of a deployment that scales are its fewest."""
    sizes = [_size(r, f"{OPTIONS}.{name}") for name in ("tensor_parallel_size", "pipeline_parallel_size")]
    sizes.append(_size(r, f"{OPTIONS}.data_parallel_size"))
    per_replica = sizes[0] * sizes[1] * sizes[2]
    bundles = r.get("placement_group_config.bundles")
    if isinstance(bundles, list):
        numbers = [one.get("GPU", 0) for one in bundles if isinstance(one, Mapping)]
        if not all(isinstance(one, int | float) and 0 <= one <= 10_000 for one in numbers):
            raise r.wrong("placement_group_config.bundles", "bundles with numbers of GPU")
        if sum(numbers) and sum(numbers) != per_replica:
            raise InvalidInput(
                "{file}: placement_group_config.bundles has {numbers:g} GPU, and the engine takes {each:,}.",
                file=r.source.name,
                numbers=sum(numbers),
                each=per_replica,
            )
    key = next((key for key in REPLICAS if r.has(key)), "")
    replicas = 1
    if key and r.get(key) != "auto":
        replicas = max(r.integer(key), 1)
        if replicas > 1_000_000:
            raise r.wrong(key, "a number of replicas")
    r.put("on", None, *(key for key in REPLICAS if r.has(key)))
    if not (r.machines.nodes or r.machines.per_node):  # those of a cluster of Ray stand beside it
        r.count_machines(per_node=per_replica * replicas)
    if r.has("accelerator_type"):
        name = accelerator_named(r.text("accelerator_type").removeprefix("accelerator_type:"))
        if not name and not r.asker.on:
            raise r.wrong("accelerator_type", "an accelerator that is known here, or say one with --on")
        r.count_machines(accelerator=name)
        r.put("on", None, "accelerator_type")
    for key in ("placement_group_config.bundles", "placement_group_config.bundle_per_worker"):
        r.put("on", None, key)


def _size(r: Reading, key: str) -> int:
    size = r.integer(key, 1)
    if not 1 <= size <= 100_000:
        raise r.wrong(key, "a number from 1 on")
    return size


def classify(r: Reading) -> None:
    r.put("model", r.question.get("model"), "model_loading_config.model_source")
    if "model_loading_config.model_source" not in r.values:
        r.put("model", r.question.get("model"), "model_loading_config.model_id")
    actor = r.get("deployment_config.ray_actor_options")
    if isinstance(actor, Mapping) and actor.get("num_gpus"):
        r.unsure(
            "deployment_config.ray_actor_options", Message("accelerators that are shared: {text}", text=str(actor))
        )
    r.ignore(IGNORED)
    for key in list(r.values):
        parts = key.split(".")
        name = parts[2] if parts[0] == "applications" and len(parts) > 2 else parts[0]
        if name in OF_SERVE:
            r.ignore([key])
