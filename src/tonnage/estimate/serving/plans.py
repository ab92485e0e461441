"""Serving: from what the user said to a complete plan, and the figures that people ask of it."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.answer import Slopes
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.inputs import Question
from tonnage.estimate.media import note_media
from tonnage.estimate.options.machine import arithmetic_of, site_of, stated_links, warn_of_machine
from tonnage.estimate.plan.rule import (
    Facts,
    check,
    check_positions,
    check_size,
    divisors,
    expert_counts,
    mask,
    near_sizes,
)
from tonnage.estimate.plan.validity import EXPERTS, HEADS, LAYERS, shares_heads
from tonnage.estimate.serving.beside import settings_beside
from tonnage.estimate.serving.denoising import denoising
from tonnage.estimate.serving.engine_checks import (
    check_cache,
    check_format,
    check_heads,
    check_layers,
    check_purpose,
    check_settings,
)
from tonnage.estimate.serving.engine_choice import cannot_run, is_home, usual, usual_vllm
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.host_experts import host_bandwidth, host_experts_plan
from tonnage.estimate.serving.limits import request_figures
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.overhead import NO_CONTEXT, static_share
from tonnage.estimate.serving.weights.storage import check_blocks, fits_blocks
from tonnage.kernel.errors import (
    InvalidInput,
    InvalidPlan,
    MissingDatum,
    NotApplicable,
    shown,
)
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.term import Term
from tonnage.kernel.units import counted, human
from tonnage.numerics.precisions import ALIASES
from tonnage.runtimes import (
    ServingRuntime,
    has_serving_runtime,
    serving_runtime,
    serving_runtimes,
)
from tonnage.spec import Cluster, ServingPlan

COUNTS = (
    "context",
    "concurrency",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "expert_parallel_size",
    "attention_data_parallel_size",
    "max_num_batched_tokens",
    "max_num_seqs",
    "layers_on_accelerator",
    "expert_layers_on_host",
    "draft_tokens",
    "lora_adapters",
    "lora_rank",
    "lora_active",
    "lora_on_host",
    "host_cores",
    "gpu_prefill_tokens",
)


def serving_plan(model: Model, cluster: Cluster, options: ServingOptions, question: Question) -> ServingPlan:
    """A complete, checked plan of one replica; replicas use the whole cluster and share the requests evenly."""
    if options.engine is None or has_serving_runtime(options.engine):
        return _on_engine(model, cluster, options, question)
    from tonnage.estimate.serving.engine_tools import check_requests, note_tool, run_of_tool  # most name an engine

    run = run_of_tool(model, cluster, options)
    if run is None:
        return _on_engine(model, cluster, options, question)
    plan = _on_engine(model, cluster, run.options, question)
    check_requests(run.tool, plan.concurrency)
    note_tool(run, question)
    return replace(plan, engine_tool=run.tool.name)


def _on_engine(model: Model, cluster: Cluster, options: ServingOptions, question: Question) -> ServingPlan:
    """The plan of options that name no tool."""
    o, q = options, question
    check_layers(o.layers_on_accelerator)
    for name in COUNTS:
        check_size(name, getattr(o, name))
    if model.dtype is None and model.tensors is None and not (model.quantization or o.weights):
        q.warn("the config names no dtype: 16-bit weights are assumed. Set another precision with --weights.")
    engine = _engine(model, cluster, o, q)
    check_settings(engine, {name: getattr(o, name) for name in o.__struct_fields__})
    o = replace(o, weights=engine.weight_words.get((o.weights or "").strip().lower(), o.weights))
    check_format(model, o.weights, engine, cluster.accelerator)
    denoises = denoising(model, engine, o, q)
    context = _context(model, cluster, o, q, engine)
    groups = o.attention_data_parallel_size or 1
    if o.attention_data_parallel_size:
        q.put("attention_data_parallel_size", groups, "given", "groups that share the experts")
    tensor, pipeline, data = _sizes(model, cluster, o, q, engine, groups)
    room = cluster.size // (pipeline * groups)
    check_heads(model, tensor, room, engine)
    facts = Facts(model)
    sizes = {
        "accelerators": cluster.size,
        "tensor_parallel_size": tensor,
        "pipeline_parallel_size": pipeline,
        "attention_data_parallel_size": groups,
    }
    check(facts, sizes, HEADS)
    check_positions(model, context, "context")
    bare = engine.cells is not None and engine.cells.host_table and cluster.accelerator.kind in NO_CONTEXT
    holds = not bare and (engine.process or engine.communicators or engine.context)
    warn_of_machine(q, cluster, arithmetic_of(model), tensor, fixed_counted=True if holds else None)
    expert = q.take("expert_parallel_size", o.expert_parallel_size, 1)
    copies = _redundant_experts(model, o, expert, q)
    _check_experts(facts, sizes | {"expert_parallel_size": expert, "redundant_experts": copies}, o, engine)
    check_blocks(model, o.weights, engine, tensor, expert, groups, divisors(room))
    check(facts, sizes, LAYERS)
    bandwidth: float | None
    plan = ServingPlan.of_fields(
        context=context,
        concurrency=_concurrency(data, o, q),
        tensor_parallel_size=tensor,
        pipeline_parallel_size=pipeline,
        expert_parallel_size=expert,
        attention_data_parallel_size=groups,
        redundant_experts=copies,
        data_parallel_size=data,
        weights=o.weights,
        kv_cache=_kv_cache(model, o, q, engine),
        engine=engine.name,
        engine_version=o.engine_version or "",
        max_num_batched_tokens=o.max_num_batched_tokens,
        max_num_seqs=o.max_num_seqs or (1 if denoises and engine.queues else None),
        gpu_memory_utilization=o.gpu_memory_utilization,
        enforce_eager=q.take("enforce_eager", o.enforce_eager, False) if engine.share_of != "nothing" else False,
        reserve_bytes=o.reserve_bytes,
        site=site_of(o.calibrated, q),
        media=o.media,
        denoising=denoises,
        weights_on_host_bytes=o.weights_on_host or 0,
        host_bandwidth=(bandwidth := host_bandwidth(cluster, o, q, engine)),
        **stated_links(o.inter_node_bandwidth, o.intra_node_bandwidth, q),
        **_on_host(model, o, q),
        **host_experts_plan(model, o, engine, bandwidth, q),
        **settings_beside(model, o, q, engine),
    )
    note_media(o.media, q)
    check_cache(model, plan.kv_cache or "", engine, cluster.accelerator)
    if engine.reserve is not None:
        share = static_share(engine.reserve, plan, model, cluster.accelerator)
        q.take(engine.setting, o.gpu_memory_utilization, share, "runtime", engine.source)
    _put_limits(engine, plan, cluster, q)
    return plan


def _on_host(model: Model, o: ServingOptions, q: Question) -> dict[str, Any]:
    """Layers, or their experts, that stay in host memory."""
    settings: dict[str, Any] = {}
    if o.layers_on_accelerator is not None:
        settings["layers_on_accelerator"] = q.put(
            "layers_on_accelerator", o.layers_on_accelerator, "given", "the last ones; the head counts as one more"
        )
    if o.expert_layers_on_host is not None:
        if not expert_counts(model):
            raise NotApplicable(
                Message(
                    "{@expert_layers_on_host}: {model} has no experts. Got {expert_layers_on_host}.",
                    model=model.name,
                    expert_layers_on_host=o.expert_layers_on_host,
                ),
                "expert_layers_on_host",
                ("model",),
            )
        settings["expert_layers_on_host"] = q.put(
            "expert_layers_on_host", o.expert_layers_on_host, "given", "of the first layers"
        )
    return settings


def _redundant_experts(model: Model, o: ServingOptions, expert: int, q: Question) -> int:
    """Copies of experts of each layer, on ranks that share its experts."""
    if not o.redundant_experts:
        return 0
    check_size("redundant_experts", o.redundant_experts)
    if not expert_counts(model):
        raise NotApplicable(
            Message(
                "{@redundant_experts}: {model} has no experts. Got {count}.",
                model=model.name,
                count=o.redundant_experts,
            ),
            "redundant_experts",
            ("model",),
        )
    if expert == 1:
        raise InvalidPlan(
            "{@redundant_experts} are copies on ranks that share experts: give {@expert_parallel_size} too. "
            "Got {count}.",
            count=o.redundant_experts,
        )
    return q.put(
        "redundant_experts", o.redundant_experts, "given", "of each layer; tokens are taken to reach all ranks alike"
    )


def _concurrency(replicas: int, o: ServingOptions, q: Question) -> int:
    """Requests of one replica: the fullest, where they do not divide. Where prompts have replicas of their own,
    requests stay on the others, whose caches hold them until they are answered.
    """
    decode = decode_replicas(replicas, o.replicas_of_prompts)
    total = q.take("concurrency", o.concurrency, decode, "default", "one request on each replica at a time")
    if replicas == 1:
        return total
    why = "concurrency / decode replicas, rounded up" if decode < replicas else "concurrency / replicas, rounded up"
    return q.put("concurrency_per_replica", -(-total // decode), "default", why)


def decode_replicas(replicas: int, of_prompts: int | None) -> int:
    """Replicas that users share: all but those that compute prompts alone. At least 1, as no plan has fewer."""
    return max(replicas - (of_prompts or 0), 1)


def _put_limits(engine: ServingRuntime, plan: ServingPlan, cluster: Cluster, q: Question) -> None:
    limits = batch_limits(engine, plan, cluster.accelerator)
    own = engine.queues or engine.limits[0].tokens
    why = (
        Message("{engine}'s default on {accelerator}", engine=engine.name, accelerator=cluster.accelerator.name)
        if own
        else "the prompts of all requests"
    )
    q.take("max_num_batched_tokens", plan.max_num_batched_tokens, limits.tokens, "runtime", why)
    q.take("max_num_seqs", plan.max_num_seqs, limits.requests, "runtime", why)
    if engine.queues and plan.max_num_seqs and limits.tokens < plan.max_num_seqs:
        raise InvalidPlan(
            "{@max_num_batched_tokens} must be at least {@max_num_seqs} ({max_num_seqs}). Got {tokens}.",
            max_num_seqs=plan.max_num_seqs,
            tokens=limits.tokens,
        )
    if engine.queues and plan.concurrency > limits.requests * plan.attention_data_parallel_size:
        q.warn(
            Message(
                "{engine} runs at most {requests} requests of a replica at once; the others queue. "
                "{--max-num-seqs} raises this limit.",
                engine=engine.name,
                requests=limits.requests,
            )
        )


def _engine(model: Model, cluster: Cluster, o: ServingOptions, q: Question) -> ServingRuntime:
    reason = cannot_run(usual_vllm(o), model, o.engine_version or "")
    own, origin, why = usual(model, cluster, o, reason)
    named = serving_runtime(o.engine or own, o.engine_version or "" if o.engine else "")
    q.take("engine", o.engine and named.name, own, origin, why)
    engine = serving_runtime(named.name, o.engine_version or "")
    check_purpose(model, engine)
    if reason := cannot_run(engine, model, o.engine_version or ""):
        q.warn(reason)
    if engine.share_of != "nothing" and not is_home(cluster.accelerator):
        q.warn(
            Message(
                "{engine}'s rules are those of data-centre accelerators; on {accelerator} they may not hold.",
                engine=engine.name,
                accelerator=cluster.accelerator.name,
            )
        )
    q.put("engine_version", engine.version, "given" if o.engine_version else "runtime", engine.source)
    if o.engine_version:
        q.warn(
            "engine_version changes memory, batch limits, times and the command; most rates of kernels and "
            "scheduler are fitted to all measured releases together."
        )
    share = o.gpu_memory_utilization
    if engine.share_of == "nothing":
        if share is not None or o.enforce_eager is not None:
            what = "gpu_memory_utilization" if share is not None else "enforce_eager"
            having = listed(name for name in serving_runtimes() if serving_runtime(name).share_of != "nothing")
            raise NotApplicable(
                Message(
                    "{name} is a setting of {engines}. Got engine {engine}.",
                    name=option_name(what),
                    engines=having,
                    engine=engine.name,
                ),
                what,
                ("engine",),
            )
        return engine
    if share is not None and not 0 < share <= 1:
        raise InvalidPlan("{@gpu_memory_utilization} must be above 0 and at most 1. Got {share:g}.", share=share)
    if engine.memory_share is not None:
        q.take(engine.setting, share, engine.memory_share, "runtime", engine.source)
    return engine


def _context(model: Model, cluster: Cluster, o: ServingOptions, q: Question, engine: ServingRuntime) -> int:
    default, why = model.context, "the model's own"
    if engine.context_steps:
        total = cluster.accelerator.memory.usable_bytes * cluster.accelerators_per_node
        step = next(tokens for least, tokens in engine.context_steps if total >= least)
        default, why = (
            min(step, model.context or step),
            Message("{version} on {total}, at most the model's", version=engine.version, total=human(total, "bytes")),
        )
    if o.context is None and default is None:
        raise MissingDatum("{model} names no context. Say one: {--context} 8k.", model=model.name)
    context = q.take("context", o.context, default, "runtime" if engine.context_steps else "model", why)
    if model.context and context > model.context:
        rule = (
            Message(
                " {longer}, refuses it unless {longer_variable}; the longest valid one is {context}.",
                longer=engine.longer,
                longer_variable=engine.longer_variable,
                context=model.context,
            )
            if engine.longer
            else ""
        )
        q.warn(
            Message(
                "context {context} is beyond the {context2} tokens that {model} was made for.{rule}",
                context=context,
                context2=model.context,
                model=model.name,
                rule=rule,
            )
        )
    return int(context)


def _check_experts(facts: Facts, sizes: dict[str, int], o: ServingOptions, engine: ServingRuntime) -> None:
    """Experts are dealt to the ranks of a stage. Where the engine has groups of attention, of which all ranks share the
    experts, the error says how many of them have so many ranks.
    """
    try:
        check(facts, sizes, EXPERTS)
    except InvalidPlan as error:
        tensor, expert = o.tensor_parallel_size or 1, sizes["expert_parallel_size"]
        groups = expert // tensor
        wide = sizes | {"tensor_parallel_size": tensor, "attention_data_parallel_size": groups}
        is_placed = expert % tensor == 0 and sizes["accelerators"] % (expert * sizes["pipeline_parallel_size"]) == 0
        if "attention_data_parallel_size" in engine.settings and is_placed and mask(facts, wide, (HEADS, EXPERTS)):
            raise InvalidPlan(
                "{error} {expert} is valid with {@attention_data_parallel_size} {groups}.",
                error=str(error),
                expert=expert,
                groups=groups,
            ) from error
        raise


def _sizes(
    model: Model, cluster: Cluster, o: ServingOptions, q: Question, engine: ServingRuntime, groups: int
) -> tuple[int, int, int]:
    """Tensor parallelism over the node as far as heads allow, or layers over it; whole replicas for the rest of the
    cluster.
    """
    by_layers = engine.cells is not None and engine.cells.by_layers
    spread = min(cluster.accelerators_per_node // (o.tensor_parallel_size or 1), model.num_layers) if by_layers else 1
    pipeline = q.take(
        "pipeline_parallel_size",
        o.pipeline_parallel_size,
        max(spread, 1),
        "runtime" if spread > 1 else "default",
        Message("{engine} shares layers among accelerators", engine=engine.name) if spread > 1 else "",
    )
    default = (
        1
        if by_layers
        else _largest_tensor(
            model,
            cluster,
            pipeline * groups,
            lambda t: fits_blocks(model, o.weights, engine, t, o.expert_parallel_size or 1, groups),
        )
    )
    why = "layers are shared instead" if by_layers else "the node, as far as its heads divide"
    tensor = q.take("tensor_parallel_size", o.tensor_parallel_size, default, "model", why)
    replica_size = tensor * pipeline * groups
    if replica_size > cluster.size or cluster.size % replica_size:
        raise InvalidPlan(
            _does_not_divide(
                model,
                cluster.size,
                o,
                {
                    "tensor_parallel_size": tensor,
                    "pipeline_parallel_size": pipeline,
                    "attention_data_parallel_size": groups,
                },
            )
        )
    data = q.put("replicas", cluster.size // replica_size, "cluster", "uses all accelerators")
    return tensor, pipeline, data


def _does_not_divide(model: Model, world: int, o: ServingOptions, sizes: dict[str, int]) -> str:
    """Of the sizes that were said, as the others follow them: the nearest that divide the accelerators, the heads
    and the layers as well.
    """
    above = {name: size for name, size in sizes.items() if size > 1}
    chosen = {name: size for name, size in above.items() if getattr(o, name)} or above

    def holds(some: Mapping[str, int]) -> bool:
        fits = (
            shares_heads(model, some.get("tensor_parallel_size", 1))
            and some.get("pipeline_parallel_size", 1) <= model.num_layers
        )
        return fits and world % prod(some.values()) == 0

    names, values = joined(" x ", map(option_name, chosen)), " x ".join(map(str, chosen.values()))
    return Message(
        "{names} must divide the cluster's {world}. Got {values}. Nearest: {nearest}.",
        names=names,
        world=counted(world, "accelerators"),
        values=values,
        nearest=near_sizes(chosen, divisors(world), holds),
    )


def _largest_tensor(model: Model, cluster: Cluster, pipeline: int, loads_on: Callable[[int], bool]) -> int:
    """The most ranks of a node that divide the model's heads, and with the pipeline the cluster, and on which the
    engine loads the weights.
    """
    for size in range(cluster.accelerators_per_node, 1, -1):
        fits = cluster.accelerators_per_node % size == 0 and cluster.size % (size * pipeline) == 0
        if fits and shares_heads(model, size) and loads_on(size):
            return size
    return 1


def _kv_cache(model: Model, o: ServingOptions, q: Question, engine: ServingRuntime) -> str:
    """The precision of keys and values: that of the activations, or one that the engine has."""
    own = engine.own_kv_cache or {"float32": "fp32", "float16": "fp16"}.get(model.dtype or "", "bf16")
    requested = ("auto" if o.kv_cache is None else o.kv_cache).strip().lower().removeprefix("torch.")
    if requested == "auto":
        return str(
            q.put(
                "kv_cache",
                own,
                "given" if o.kv_cache else "runtime" if engine.own_kv_cache else "model",
                Message("{engine}'s default", engine=engine.name)
                if engine.own_kv_cache
                else "as wide as the activations",
            )
        )
    choices = {own: own, **engine.kv_cache}
    named = ALIASES.get(requested, requested)
    chosen = choices.get(requested) or next(
        (name for name in choices.values() if name in (named, named.replace("_", "-"))), None
    )
    if chosen is None:
        known = listed(["auto", *choices])
        raise InvalidInput(
            "{@kv_cache}: {engine} can hold keys and values in {known}. Got {kv_cache}.",
            engine=engine.name,
            known=known,
            kv_cache=shown(o.kv_cache),
        )
    if chosen.startswith("kv-"):
        q.warn(
            Message(
                "{@kv_cache} {asked}: the last 128 tokens of a request stay in 16 bits, which is not counted.",
                asked=requested,
            )
        )
    return str(q.put("kv_cache", chosen, "given", "" if chosen == own else engine.kv_cache_source))


def serving_slopes(memory: ServingMemory) -> Slopes:
    """What one more request, and one more token of context, add on the fullest GPU."""
    fullest = memory.fullest
    return Slopes(bytes_per_sequence=fullest.per_request.value, bytes_per_token=fullest.per_token.value)


@lru_cache(maxsize=256)
def _unsharded(model: ByIdentity, plan: ServingPlan) -> dict[str, Term]:
    """The cache on one accelerator that holds all."""
    unsharded = serving_memory(model.thing, plan).fullest
    return {
        "kv_bytes_per_token": unsharded.kept_per_token.named("cache of one more token, before any sharding"),
        "kv_bytes_per_request": unsharded.kept.named("cache of one request, before any sharding"),
    }


def serving_figures(
    model: Model, memory: ServingMemory, plan: ServingPlan, cluster: Cluster, usable: int, of_prompts: int | None = None
) -> dict[str, Term]:
    """The cache of a token and of a request before any sharding, and how many requests fit beside everything else.
    `of_prompts`: replicas that compute prompts alone, where no request stays.
    """
    alone = plan.with_fields(
        concurrency=1,
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        chunk_layers=(),
        expert_parallel_size=1,
        attention_data_parallel_size=1,
        layers_on_accelerator=None,
        draft_tokens=0,
        draft_model="",
        speculative="",
    )
    figures = dict(_unsharded(ByIdentity(model), alone))
    if memory.host is not None:
        figures["host_memory"] = memory.host
    replicas = decode_replicas(int(plan.data_parallel_size), of_prompts)
    return figures | request_figures(model, plan, cluster, memory, usable, replicas)
