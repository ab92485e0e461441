"""Serving: from what the user said to a complete plan, and the figures that people ask of it."""

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.errors import InvalidInput, InvalidPlan, MissingDatum, shown
from tonnage.estimate._batch import batch_limits
from tonnage.estimate._checks import check_experts, check_positions, check_size, check_tensor_parallel
from tonnage.estimate._machine import arithmetic_of, warn_of_machine
from tonnage.estimate._question import Question
from tonnage.estimate.serving import ServingMemory, serving_memory
from tonnage.formulas import serving as g
from tonnage.precisions import ALIASES
from tonnage.quantization import FILE_TYPES
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Accelerator, Cluster, ServingPlan
from tonnage.units import counted, human

GPU_VENDORS = frozenset({"NVIDIA", "AMD", "Intel", "Google", "AWS", "Huawei"})


MUCH_MORE = 1.5  # times what is kept
COUNTS = ("context", "concurrency", "tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size",
          "max_num_batched_tokens", "max_num_seqs")  # fmt: skip


class ServingOptions(Struct, frozen=True, kw_only=True):
    """What the user may say about serving; None: not said."""

    context: int | None = None
    concurrency: int | None = None
    weights: str | None = None
    kv_cache: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    expert_parallel_size: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    gpu_memory_utilization: float | None = None
    enforce_eager: bool | None = None
    reserve_bytes: int = 0
    engine: str | None = None


def serving_plan(model: Model, cluster: Cluster, options: ServingOptions, question: Question) -> ServingPlan:
    """A complete, checked plan of one replica; replicas use the whole cluster and share the requests evenly."""
    o, q = options, question
    for name in COUNTS:
        check_size(name, getattr(o, name))
    if model.dtype is None and model.tensors is None and not (model.quantization or o.weights):
        q.warn("the config names no dtype: 16-bit weights are assumed. --weights says otherwise.")
    engine = _engine(model, cluster, o, q)
    context = _context(model, o, q)
    tensor, pipeline, data = _sizes(model, cluster, o, q)
    check_tensor_parallel(model, tensor)
    check_positions(model, context, "context")
    warn_of_machine(q, cluster, arithmetic_of(model), tensor, fixed_counted=True)
    expert = q.take("expert_parallel_size", o.expert_parallel_size, 1)
    check_experts(model, expert, 1, tensor)
    if pipeline > model.num_layers:
        raise InvalidPlan(
            f"pipeline_parallel_size must be from 1 to the {counted(model.num_layers, 'layers')} of {model.name}. Got {pipeline}."
        )
    plan = ServingPlan(
        context=context, concurrency=_concurrency(data, o, q), tensor_parallel_size=tensor, pipeline_parallel_size=pipeline,
        expert_parallel_size=expert, data_parallel_size=data, weights=o.weights, kv_cache=_kv_cache(model, o, q, engine), engine=engine.name,
        max_num_batched_tokens=o.max_num_batched_tokens, max_num_seqs=o.max_num_seqs, gpu_memory_utilization=o.gpu_memory_utilization,
        enforce_eager=q.take("enforce_eager", o.enforce_eager, False) if engine.memory_share is not None else False,
        reserve_bytes=o.reserve_bytes,
    )  # fmt: skip
    _put_limits(engine, plan, cluster, q)
    return plan


def _concurrency(replicas: int, o: ServingOptions, q: Question) -> int:
    """Requests of one replica: the fullest, where they do not divide."""
    total = q.take("concurrency", o.concurrency, replicas, "default", "one request on each replica at a time")
    if replicas == 1:
        return total
    return q.put("concurrency_per_replica", -(-total // replicas), "default", "concurrency / replicas, rounded up")


def _put_limits(engine: ServingRuntime, plan: ServingPlan, cluster: Cluster, q: Question) -> None:
    limits = batch_limits(engine, plan, cluster.accelerator)
    why = f"{engine.name}'s default on {cluster.accelerator.name}" if engine.paging else "the prompts of all requests"
    q.take("max_num_batched_tokens", plan.max_num_batched_tokens, limits.tokens, "runtime", why)
    q.take("max_num_seqs", plan.max_num_seqs, limits.requests, "runtime", why)
    if engine.paging and plan.max_num_seqs and limits.tokens < plan.max_num_seqs:
        raise InvalidPlan(
            f"max_num_batched_tokens must be at least max_num_seqs ({plan.max_num_seqs}). Got {limits.tokens}."
        )
    if engine.paging and plan.concurrency > limits.requests:
        q.warn(f"{engine.name} runs at most {limits.requests} requests of a replica at once and lets others wait: --max-num-seqs raises it.")  # fmt: skip


def _engine(model: Model, cluster: Cluster, o: ServingOptions, q: Question) -> ServingRuntime:
    vllm = serving_runtime("vllm")
    reason = _cannot_run(vllm, model)
    if reason:
        engine = serving_runtime(q.take("engine", o.engine, "transformers", "model", reason))
    else:
        usual = "vllm" if _is_home(cluster.accelerator) else "transformers"
        engine = serving_runtime(q.take("engine", o.engine, usual, "cluster", f"usual on {cluster.accelerator.vendor}"))
    if engine is vllm and reason:
        q.warn(reason)
    if engine is vllm and not _is_home(cluster.accelerator):
        q.warn(f"vllm's rules are those of data-centre accelerators; on {cluster.accelerator.name} they may not hold.")
    q.put("engine_version", engine.version, "runtime", engine.source)
    share = o.gpu_memory_utilization
    if engine.memory_share is None:
        if share is not None or o.enforce_eager is not None:
            what = "gpu_memory_utilization" if share is not None else "enforce_eager"
            raise InvalidPlan(f"{what} is a setting of vllm. Got engine {engine.name}.")
        return engine
    if share is not None and not 0 < share <= 1:
        raise InvalidPlan(f"gpu_memory_utilization must be above 0 and at most 1. Got {share:g}.")
    q.take("gpu_memory_utilization", share, engine.memory_share, "runtime", engine.source)
    return engine


def _is_home(accelerator: Accelerator) -> bool:
    """Whether vLLM is what people run there."""
    return accelerator.vendor in GPU_VENDORS and accelerator.kind not in ("cpu", "apple")


def _cannot_run(engine: ServingRuntime, model: Model) -> str:
    """Why this engine does not run this model; nothing where nothing is known against it."""
    last = engine.dropped.get(model.architecture)
    if last == "":
        return f"{engine.version} runs no {model.architecture}."
    if last:
        return f"{engine.version} no longer runs {model.architecture}; the last version that did is {last}."
    kinds = {branch.kind for branch in model.branches}
    if (
        engine.encoder_decoders is not None
        and {"encoder", "decoder"} <= kinds
        and model.family not in engine.encoder_decoders
    ):
        return f"{engine.version} runs no model of an encoder and a decoder such as {model.family}."
    return ""


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
    default = _largest_tensor(model, cluster, pipeline)
    why = "the node, as far as its heads divide"
    tensor = q.take("tensor_parallel_size", o.tensor_parallel_size, default, "model", why)
    if tensor * pipeline > cluster.size or cluster.size % (tensor * pipeline):
        raise InvalidPlan(
            f"tensor x pipeline parallel sizes must divide the cluster's {counted(cluster.size, 'accelerators')}. Got {tensor} x {pipeline}."
        )
    data = q.put("replicas", cluster.size // (tensor * pipeline), "cluster", "uses all accelerators")
    return tensor, pipeline, data


def _largest_tensor(model: Model, cluster: Cluster, pipeline: int) -> int:
    """The most ranks of a node that divide the model's heads, and with the pipeline the cluster."""
    for size in range(cluster.accelerators_per_node, 1, -1):
        if cluster.accelerators_per_node % size == 0 and cluster.size % (size * pipeline) == 0:
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


def warn_of_blocks(engine: str, made: ServingMemory, question: Question) -> None:
    """Where an engine sets aside much more than a request's keys and values, people look for the reason."""
    rank = made.fullest
    if rank.per_request.value > MUCH_MORE * rank.kept.value > 0:
        question.warn(
            f"{engine} sets aside {human(rank.per_request.value, 'bytes')} of cache for a request that keeps {human(rank.kept.value, 'bytes')}: "
            "its blocks hold layers of several kinds, and a window also the tokens in flight. A smaller --max-num-batched-tokens helps."
        )


def warn_of_gguf(plan: ServingPlan, made: ServingMemory, question: Question) -> None:
    """GGUF files are judged as the engine would run them, and what most people run them with is not described yet."""
    if made.stored.name not in FILE_TYPES:
        return
    if plan.engine == "vllm":
        question.warn("GGUF is judged as vllm would run it. llama.cpp has no share that it leaves free and captures no such graphs; it is not described yet.")  # fmt: skip
    else:
        question.warn(f"{plan.engine} turns GGUF weights into 16 bits when it loads them. They are counted as stored, as llama.cpp keeps them, which is not described yet.")  # fmt: skip


def serving_slopes(made: ServingMemory) -> dict[str, float]:
    """What one more request, and one more token of context, add on the fullest rank."""
    return {"bytes_per_sequence": made.fullest.per_request.value, "bytes_per_token": made.fullest.per_token.value}


def serving_figures(model: Model, made: ServingMemory, plan: ServingPlan, usable: int) -> dict[str, Term]:
    """The cache of a token and of a request before any sharding, and how many requests fit beside everything else."""
    whole = serving_memory(
        model, replace(plan, tensor_parallel_size=1, pipeline_parallel_size=1, expert_parallel_size=1)
    )
    figures = {
        "kv_bytes_per_token": whole.fullest.kept_per_token.named("cache of one more token, before any sharding"),
        "kv_bytes_per_request": whole.fullest.kept.named("cache of one request, before any sharding"),
    }
    held = [rank for rank in made.ranks if rank.per_request.value]
    if not held:
        return figures
    pools = [
        (Term.of("room for the cache", g.cache_pool_bytes, U=usable, M=rank.besides_cache.value), rank) for rank in held
    ]
    pool, rank = min(pools, key=lambda pair: pair[0].value / pair[1].per_request.value)
    size = rank.per_request.value
    replicas = Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size)
    most = made.limits.requests if serving_runtime(plan.engine, plan.engine_version).paging else 2**40
    each = Term.of("concurrent requests of one replica", g.concurrency, U=pool.value, M=size, R=most)
    figures["concurrency"] = Term.product("concurrent requests", "requests", replicas, each)
    if any(rank.per_token.value for rank in made.ranks):
        tokens = Term.of("tokens of cache of one replica", g.pool_tokens, U=pool.value, M=size, s=plan.context)
        figures["kv_capacity_tokens"] = Term.product("tokens of cache", "tokens", replicas, tokens)
    return figures
