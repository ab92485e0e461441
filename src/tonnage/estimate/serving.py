"""Memory of one serving replica: weights as stored, cache of every kind of attention, the engine's own share."""

from functools import lru_cache

from msgspec import Struct

from tonnage.architectures import Block, Model
from tonnage.breakdown import Term
from tonnage.errors import MissingDatum
from tonnage.estimate._activations import widest
from tonnage.estimate._rank import Group, Shares, Stage, layer_count, share, stages
from tonnage.estimate._storage import storage
from tonnage.estimate._stored import Storage, block_bytes, op_bytes
from tonnage.formula import Number
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.ops import Head, Kernels, StateCache, TokenCache
from tonnage.precisions import precision
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Accelerator, ServingPlan

_KERNELS = Kernels(attention="flash", fused_norm=True, fused_activation=True)
EVERY_TOKEN = 2**62  # a window that no context reaches


class ServingRank(Struct, frozen=True, eq=False):
    """One pipeline stage of a replica: what it needs, and the cache of one request on it."""

    rank: int
    memory: Term
    per_request: Term
    per_token: Term
    besides_cache: Term


class ServingMemory(Struct, frozen=True, eq=False):
    """All stages; the fullest decides."""

    ranks: tuple[ServingRank, ...]
    stored: Storage

    @property
    def fullest(self) -> ServingRank:
        return max(self.ranks, key=lambda rank: rank.memory.value)

    @property
    def memory(self) -> Term:
        return self.fullest.memory


def serving_memory(model: Model, plan: ServingPlan, accelerator: Accelerator | None = None) -> ServingMemory:
    """Bytes of one rank of each stage, for plan.concurrency requests of plan.context tokens."""
    stored = storage(model, plan.weights)
    walk = _Replica(model, plan, accelerator, stored)
    return ServingMemory(tuple(walk.rank(stage) for stage in walk.stages), stored)


class _Replica:
    def __init__(self, model: Model, plan: ServingPlan, accelerator: Accelerator | None, stored: Storage):
        self.model, self.plan, self.accelerator, self.stored = model, plan, accelerator, stored
        self.engine = serving_runtime(plan.engine)
        self.shares = Shares(plan.tensor_parallel_size, plan.expert_parallel_size, _inside_experts(plan))
        self.stages = stages(model, plan.pipeline_parallel_size)
        self.cache_width = precision(plan.kv_cache or "bf16").bytes_per_weight
        self.activation_width = 4 if model.dtype == "float32" else 2

    def rank(self, stage: Stage) -> ServingRank:
        per_request = self.request_cache(stage, "one request")
        cache = Term.product("kv cache", "bytes", Term.of("requests", g.requests, R=self.plan.concurrency), per_request)
        weights, activations = self.weights(stage), self.activations(stage)
        communication = Term.sum("communication buffers", unit="bytes")
        overhead = self.overhead()
        memory = Term.sum("serving", weights, cache, activations, communication, overhead)
        besides = Term.sum("besides the cache", weights, activations, communication, overhead)
        return ServingRank(stage.rank, memory, per_request, self.token_cache(stage), besides)

    def weights(self, stage: Stage) -> Term:
        parts = []
        for op in stage.ops + stage.tower_ops:
            for weight, size in op_bytes(self.stored, op):
                split = "tensor" if weight.split == "vocab" else weight.split
                parts.append(self._stored(weight.name, Group(split, weight.heads, weight.num_parameters), size))
        for block, count in stage.layers + stage.towers:
            groups = _block_bytes(self.model, self.stored, block)
            one = [
                self._stored("", Group(split, heads, number), size) for (split, heads), (number, size) in groups.items()
            ]
            parts.append(
                Term.product(f"{block.name}s", "bytes", layer_count(count), Term.sum("one layer", *one, unit="bytes"))
            )
        return Term.sum("weights", *parts, unit="bytes")

    def _stored(self, name: str, group: Group, size: float) -> Term:
        held = share(group, self.shares)
        each = Term.of(
            "bytes per parameter", f.mean_bytes_per_parameter, source=self.stored.source, M=size, N=group.count
        )
        return Term.product(name or held.name, "bytes", each, held)

    def request_cache(self, stage: Stage, name: str) -> Term:
        """Cache and states of one request of the plan's context."""
        parts = []
        for block, count in stage.layers:
            one = [self._cached(cache) for op in block.ops for cache in op.caches()]
            if one:
                parts.append(Term.product(f"{block.name}s", "bytes", layer_count(count), Term.sum("one layer", *one)))
        return Term.sum(name, *parts, unit="bytes")

    def token_cache(self, stage: Stage) -> Term:
        """What one more token of context adds: layers whose window is not yet full."""
        parts = []
        for block, count in stage.layers:
            growing = [cache for op in block.ops for cache in op.caches() if isinstance(cache, TokenCache)]
            one = [Term.of(cache.name, g.token_growth_bytes, x=cache.elements, w=self._width(cache), s=self.plan.context,
                           r=cache.window or EVERY_TOKEN, j=cache.stride, t=self.shares.t, k=max(cache.heads, 1)) for cache in growing]  # fmt: skip
            if one:
                parts.append(Term.product(f"{block.name}s", "bytes", layer_count(count), Term.sum("one layer", *one)))
        return Term.sum("one more token", *parts, unit="bytes")

    def _cached(self, cache: TokenCache | StateCache) -> Term:
        heads = max(cache.heads, 1)
        if isinstance(cache, StateCache):
            default = self.engine.state_bytes or self.activation_width
            width = default if cache.bytes_per_element is None else cache.bytes_per_element
            return Term.of(cache.name, f.state_cache_bytes, x=cache.elements, w=width, t=self.shares.t, k=heads)
        context = Term.of("context in blocks", g.block_tokens, s=self.plan.context, x=self.engine.block_tokens)
        return Term.of(cache.name, f.token_cache_bytes, x=cache.elements, w=self._width(cache), s=context.value,
                       r=cache.window or EVERY_TOKEN, j=cache.stride, t=self.shares.t, k=heads)  # fmt: skip

    def _width(self, cache: TokenCache) -> float:
        return self.cache_width if cache.bytes_per_element is None else cache.bytes_per_element

    def activations(self, stage: Stage) -> Term:
        """The peak of one forward pass: the widest layer on a full batch of tokens, or the sampler on every request."""
        batched, requests = batch_limits(self.engine, self.plan, self.accelerator)
        h, w = self.model.hidden_size, self.activation_width
        inner = max((widest(block, _KERNELS) for block, _ in stage.layers), default=0.0)
        layer = Term.sum(
            "widest layer",
            Term.of("residual stream and its copies", g.batch_bytes, x=3 * h, w=w, T=batched),
            Term.of("inside the operation", g.split_batch_bytes, x=inner, w=w, T=batched, t=self.shares.t),
        )
        head = next((op for op in stage.ops if isinstance(op, Head)), None)
        if head is None or not stage.is_last:
            return Term.max("activations", layer)
        sampler = Term.sum(
            "sampler",
            Term.of("hidden states of the batch", g.batch_bytes, x=2 * h, w=w, T=batched),
            Term.of(
                "logits, probabilities and noise",
                g.sampler_bytes,
                V=head.vocab_size,
                R=requests,
                w=self.engine.logits_bytes,
            ),
        )
        return Term.max("activations", layer, sampler)

    def overhead(self) -> Term:
        alone = self.plan.tensor_parallel_size * self.plan.pipeline_parallel_size == 1
        fixed = self.engine.overhead_single if alone else self.engine.overhead_parallel
        parts = [
            Term.of(name, f.fixed_bytes, basis="measured", source=self.engine.overhead_source, M=size)
            for name, size in fixed.items()
        ]
        if self.accelerator is not None and self.engine.memory_share < 1:
            parts.append(Term.of("left free by the engine", g.unclaimed_bytes, source=self.engine.source,
                                 U=self.accelerator.memory.usable_bytes, u=self.engine.memory_share))  # fmt: skip
        return Term.sum("runtime overhead", *parts, unit="bytes")


def batch_limits(engine: ServingRuntime, plan: ServingPlan, accelerator: Accelerator | None) -> tuple[int, int]:
    """Tokens of one forward pass, and requests that the sampler sees, as the engine defaults them on this accelerator."""
    memory = accelerator.memory.nominal_bytes if accelerator else 0
    for smallest, tokens, requests in engine.tiers:
        if memory >= smallest:
            return plan.batched_tokens or tokens or plan.context * plan.concurrency, requests or plan.concurrency
    raise MissingDatum(f"{engine.name} has no batch limits for an accelerator of {memory} bytes.")


def _inside_experts(plan: ServingPlan) -> Number:
    """Tensor ranks that cut inside an expert: those that expert parallelism leaves."""
    return plan.tensor_parallel_size / plan.expert_parallel_size if plan.expert_parallel_size == 1 else 1


@lru_cache(maxsize=512)
def _block_bytes(model: Model, stored: Storage, block: Block) -> dict[tuple[str, int], tuple[int, float]]:
    return block_bytes(model, stored, block)
