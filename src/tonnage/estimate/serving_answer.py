"""Serving: from what the user said to a complete plan, and the figures that people ask of it."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError, shown
from tonnage.estimate._question import Question
from tonnage.estimate.plans import check_experts, check_tensor_parallel
from tonnage.estimate.serving import ServingMemory, serving_memory
from tonnage.formulas import serving as g
from tonnage.precisions import ALIASES
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Cluster, ServingPlan

QUANTISATIONS = ("fp8", "int8", "int4")
GPU_VENDORS = frozenset({"NVIDIA", "AMD", "Intel", "Google", "AWS", "Huawei"})


class ServingOptions(Struct, frozen=True, kw_only=True):
    """What the user may say about serving; None: not said."""

    context: int | None = None
    concurrency: int | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    expert_parallel_size: int | None = None
    weights: str | None = None
    kv_cache: str | None = None
    batched_tokens: int | None = None
    engine: str | None = None


def serving_plan(model: Model, cluster: Cluster, options: ServingOptions, question: Question) -> ServingPlan:
    """A complete, checked plan; replicas use the whole cluster."""
    o, q = options, question
    for name in (
        "context",
        "concurrency",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "expert_parallel_size",
        "batched_tokens",
    ):
        value = getattr(o, name)
        if value is not None and not 1 <= value <= 2**40:
            raise InvalidPlan(f"{name} must be at least 1. Got {value}.")
    if model.dtype is None and model.tensors is None and not (model.quantization or o.weights):
        q.warn("the config names no dtype: 16-bit weights are assumed. --weights says otherwise.")
    engine = _engine(cluster, o, q)
    context = _context(model, o, q)
    tensor, pipeline, data = _sizes(model, cluster, o, q)
    check_tensor_parallel(model, tensor)
    expert = q.take("expert_parallel_size", o.expert_parallel_size, 1)
    check_experts(model, expert, 1, tensor)
    if pipeline > model.num_layers:
        raise InvalidPlan(
            f"pipeline_parallel_size may be at most the {model.num_layers} layers of {model.name}. Got {pipeline}."
        )
    return ServingPlan(
        context=context, concurrency=q.take("concurrency", o.concurrency, 1, "default", "one request at a time"),
        tensor_parallel_size=tensor, pipeline_parallel_size=pipeline, expert_parallel_size=expert, data_parallel_size=data,
        weights=o.weights, kv_cache=_kv_cache(model, o, q, serving_runtime(engine)), batched_tokens=o.batched_tokens, engine=engine,
    )  # fmt: skip


def _engine(cluster: Cluster, o: ServingOptions, q: Question) -> str:
    vendor = cluster.accelerator.vendor
    default = "vllm" if vendor in GPU_VENDORS and cluster.accelerator.kind not in ("cpu", "apple") else "transformers"
    engine = serving_runtime(q.take("engine", o.engine, default, "cluster", f"usual on {vendor}"))
    q.put("engine_version", engine.version, "runtime", engine.source)
    q.put("gpu_memory_utilization", engine.memory_share, "runtime", engine.source)
    return engine.name


def _context(model: Model, o: ServingOptions, q: Question) -> int:
    if o.context is None and model.context is None:
        raise MissingDatum(f"{model.name} names no context. Say one: --context 8k.")
    context = q.take("context", o.context, model.context, "model", "the model's own")
    if model.context and context > model.context:
        q.warn(f"context {context} is beyond the {model.context} tokens that {model.name} was made for.")
    return context


def _sizes(model: Model, cluster: Cluster, o: ServingOptions, q: Question) -> tuple[int, int, int]:
    """Tensor parallelism over the node as far as heads allow; whole replicas for the rest of the cluster."""
    pipeline = q.take("pipeline_parallel_size", o.pipeline_parallel_size, 1)
    default = _largest_tensor(model, cluster.accelerators_per_node)
    why = "the node, as far as its heads divide"
    tensor = q.take("tensor_parallel_size", o.tensor_parallel_size, default, "model", why)
    if tensor * pipeline > cluster.size or cluster.size % (tensor * pipeline):
        raise InvalidPlan(
            f"tensor x pipeline parallel sizes must divide the cluster's {cluster.size} accelerators. Got {tensor} x {pipeline}."
        )
    data = q.put("replicas", cluster.size // (tensor * pipeline), "cluster", "uses all accelerators")
    return tensor, pipeline, data


def _largest_tensor(model: Model, each: int) -> int:
    for size in range(each, 1, -1):
        if each % size == 0:
            try:
                check_tensor_parallel(model, size)
                return size
            except InvalidPlan:
                continue
    return 1


def _kv_cache(model: Model, o: ServingOptions, q: Question, engine: ServingRuntime) -> str:
    """The precision of keys and values: that of the activations, or one that the engine has."""
    own = {"float32": "fp32", "float16": "fp16"}.get(model.dtype or "", "bf16")
    asked = ("auto" if o.kv_cache is None else o.kv_cache).strip().lower().removeprefix("torch.")
    if asked == "auto":
        return str(q.put("kv_cache", own, "given" if o.kv_cache else "model", "as wide as the activations"))
    choices = {own: own, **engine.kv_cache}
    named = ALIASES.get(asked, asked)
    found = choices.get(asked) or next(
        (name for name in choices.values() if name in (named, named.replace("_", "-"))), None
    )
    if found is None:
        listed = ", ".join(["auto", *choices])
        raise InvalidInput(f"kv_cache: {engine.name} can hold keys and values in {listed}. Got {shown(o.kv_cache)}.")
    if found.startswith("kv-"):
        q.warn(f"kv_cache {asked}: the last 128 tokens of a request stay in 16 bits, which is not counted.")
    return str(q.put("kv_cache", found, "given", "" if found == own else engine.kv_cache_source))


def serving_slopes(made: ServingMemory) -> dict[str, float]:
    """What one more request, and one more token of context, add on the fullest rank."""
    return {"bytes_per_sequence": made.fullest.per_request.value, "bytes_per_token": made.fullest.per_token.value}


def serving_figures(model: Model, made: ServingMemory, plan: ServingPlan, usable: int) -> dict[str, Term]:
    """The cache of a token and of a request before any sharding, and how many requests fit beside everything else."""
    whole = serving_memory(
        model, replace(plan, tensor_parallel_size=1, pipeline_parallel_size=1, expert_parallel_size=1)
    )
    figures = {
        "kv_bytes_per_token": whole.fullest.per_token.named("cache of one more token, all ranks together"),
        "kv_bytes_per_request": whole.fullest.per_request.named("cache of one request, all ranks together"),
    }
    least: Term | None = None
    for rank in made.ranks:
        pool = Term.of("room for the cache", g.cache_pool_bytes, U=usable, M=rank.besides_cache.value)
        if rank.per_request.value:
            fit = Term.of("concurrent requests", g.concurrency, U=pool.value, M=rank.per_request.value)
            least = fit if least is None or fit.value < least.value else least
    if least is not None:
        figures["concurrency"] = least
        figures["kv_capacity_tokens"] = Term.of("tokens of cache", g.pool_tokens, R=least.value, s=plan.context)
    return figures


def serving_advice(
    model: Model, cluster: Cluster, options: ServingOptions, plan: ServingPlan, needed: float, usable: float
) -> list[dict[str, Any]]:
    """Changes that free memory, estimated again; none are needed when it fits."""
    if needed <= usable:
        return []
    found = []
    for change in _smaller(cluster, plan):
        try:
            changed = serving_plan(model, cluster, replace(options, **change), Question())
            value = serving_memory(model, changed, cluster.accelerator).memory.value
        except TonnageError:
            continue
        if value < needed:
            flags = " ".join(f"--{key.replace('_', '-')} {setting}" for key, setting in change.items())
            found.append({"change": change, "text": flags, "needed_bytes": round(value), "freed_bytes": round(needed - value),
                          "fits": value <= usable})  # fmt: skip
    return sorted(found, key=lambda move: (not move["fits"], -move["freed_bytes"]))[:5]


def _smaller(cluster: Cluster, plan: ServingPlan) -> Iterator[dict[str, Any]]:
    for name in QUANTISATIONS:
        yield {"weights": name}
    yield {"kv_cache": "fp8"}
    if plan.concurrency > 1:
        yield {"concurrency": max(plan.concurrency // 2, 1)}
    for shorter in (2, 4, 8):
        yield {"context": max(plan.context // shorter, 1)}
    stages = 2 * plan.pipeline_parallel_size
    while stages * plan.tensor_parallel_size <= cluster.size:
        yield {"pipeline_parallel_size": stages}
        stages *= 2
