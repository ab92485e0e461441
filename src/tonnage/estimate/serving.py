"""Memory of one serving replica: weights as stored, cache of every kind of attention, the engine's own share."""

from functools import lru_cache

from msgspec import Struct

from tonnage.architectures import Block, Model
from tonnage.breakdown import Term
from tonnage.estimate._batch import Limits, batch_limits
from tonnage.estimate._cache import PagedCache, RequestCache
from tonnage.estimate._rank import Group, Shares, Stage, layer_count, share, stages
from tonnage.estimate._serving_activations import ForwardPass, workspace_bytes
from tonnage.estimate._serving_weights import beside_weights
from tonnage.estimate._storage import storage
from tonnage.estimate._stored import Storage, block_bytes, op_bytes
from tonnage.formula import Number, minimum
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.ops import MoE, StateCache, TokenCache
from tonnage.precisions import precision
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Accelerator, ServingPlan


class ServingRank(Struct, frozen=True, eq=False):
    """One pipeline stage of a replica: what it needs, and the cache of one request on it.

    `per_request`, `per_token`: as the engine sets them aside; `kept`, `kept_per_token`: as the architecture needs them.
    """

    rank: int
    memory: Term
    per_request: Term
    per_token: Term
    kept: Term
    kept_per_token: Term
    besides_cache: Term


class ServingMemory(Struct, frozen=True, eq=False):
    """All stages; the fullest decides."""

    ranks: tuple[ServingRank, ...]
    stored: Storage
    limits: Limits

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
    return ServingMemory(tuple(walk.rank(stage) for stage in walk.stages), stored, walk.limits)


class _Replica:
    def __init__(self, model: Model, plan: ServingPlan, accelerator: Accelerator | None, stored: Storage):
        self.model, self.plan, self.accelerator, self.stored = model, plan, accelerator, stored
        self.engine = serving_runtime(plan.engine, plan.engine_version)
        self.shares = Shares(plan.tensor_parallel_size, plan.expert_parallel_size, _inside_experts(plan))
        self.stages = stages(model, plan.pipeline_parallel_size)
        self.limits = batch_limits(self.engine, plan, accelerator)
        self.cache_width = precision(plan.kv_cache or "bf16").bytes_per_weight
        self.activation_width = 4 if model.dtype == "float32" else 2

    def rank(self, stage: Stage) -> ServingRank:
        kept = RequestCache(self.plan.context, self.shares.t, self._width)
        held = self._paged() or kept
        per_request = held.kept(stage, "one request")
        cache = Term.product(
            "kv cache", "bytes", Term.of("requests", g.requests, R=running(self.plan, self.limits)), per_request
        )
        weights, activations = self.weights(stage), self.activations(stage)
        communication = Term.sum("communication buffers", unit="bytes")
        overhead = self.overhead(stage)
        return ServingRank(
            stage.rank,
            memory=Term.sum("serving", weights, cache, activations, communication, overhead),
            per_request=per_request,
            per_token=held.growth(stage, "one more token"),
            kept=kept.kept(stage, "one request"),
            kept_per_token=kept.growth(stage, "one more token"),
            besides_cache=Term.sum("besides the cache", weights, activations, communication, overhead),
        )

    def _paged(self) -> PagedCache | None:
        paging = self.engine.paging
        if paging is None:
            return None
        batches = 1 if paging.one_batch else self.plan.pipeline_parallel_size + paging.spare_batches
        in_flight = g.tokens_in_flight(T=self.limits.tokens, n_batches=batches)
        return PagedCache(self.plan.context, self.shares.t, self._width, paging, in_flight)

    def _width(self, cache: TokenCache | StateCache) -> float:
        """Bytes of one number of a cache."""
        if cache.bytes_per_element is not None:
            return cache.bytes_per_element
        if isinstance(cache, StateCache):
            return self.engine.state_bytes or self.activation_width
        return self.cache_width

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
        parts += beside_weights(self.model, self.engine, stage, self.stored, self.shares)
        return Term.sum("weights", *parts, unit="bytes")

    def _stored(self, name: str, group: Group, size: float) -> Term:
        held = share(group, self.shares)
        each = Term.of(
            "bytes per parameter", f.mean_bytes_per_parameter, source=self.stored.source, M=size, N=group.count
        )
        return Term.product(name or held.name, "bytes", each, held)

    def activations(self, stage: Stage) -> Term:
        """The peak of one forward pass; of the prompts alone where an engine runs them at once, before the answers' cache is there."""
        forward = ForwardPass(
            self.model, self.engine, self.limits, self.shares, self.activation_width, self.stored.name
        )
        made = forward.peak(stage, self.accelerator)
        if self.engine.paging is not None or self.plan.max_num_batched_tokens is None:
            return made
        requests, context = running(self.plan, self.limits), self.plan.context
        moments = []
        for name, size, tokens in (
            ("of the prompts, beyond the cache of the answers", made.value, context - self.limits.tokens / requests),
            ("second table while loading, beyond the cache", self._loading(), context),
        ):
            cache = RequestCache(tokens, self.shares.t, self._width).kept(stage, "cache")
            if size:
                moments.append(Term.of(name, g.early_bytes, M=size, U=cache.value * requests))
        staying = workspace_bytes(self.engine, self.accelerator)
        return Term.max("activations", *moments, Term.of("workspace of the matrix products", f.fixed_bytes, M=staying))

    def _loading(self) -> float:
        """A tied head that is loaded before it is tied."""
        loads = any(name in self.stored.name for name in self.engine.loading_heads)
        return (
            self.model.vocab_size * self.model.hidden_size * self.activation_width if self.model.tied and loads else 0
        )

    def overhead(self, stage: Stage) -> Term:
        engine, plan = self.engine, self.plan
        cut = plan.tensor_parallel_size > 1
        alone = plan.tensor_parallel_size * plan.pipeline_parallel_size == 1
        fixed = {
            "libraries of the process": engine.process,
            "communicators": engine.communicators + (plan.tensor_parallel_size - 2) * engine.each_peer if cut else 0,
        }
        graphs = 0 if plan.enforce_eager else engine.graphs[0 if alone else 1] + _captured(engine, stage)
        if engine.graphs_in_share:
            fixed["captured graphs"] = graphs
        parts = [
            Term.of(name, f.fixed_bytes, basis="measured", source=engine.overhead_source, M=size)
            for name, size in fixed.items()
            if size
        ]
        share = memory_share(engine, plan)
        if self.accelerator is not None and share is not None:
            usable = self.accelerator.memory.usable_bytes
            rest = Term.of(
                "beyond the engine's share",
                g.unclaimed_bytes,
                source=engine.source,
                U=usable,
                u=share,
                M=plan.reserve_bytes,
            )
            context = Term.of(
                "accelerator context", f.fixed_bytes, basis="measured", source=engine.overhead_source, M=engine.context
            )
            outside = [] if engine.context_in_share else [context]
            if engine.context_in_share:
                parts.append(context)
            if graphs and not engine.graphs_in_share:
                outside.append(
                    Term.of("captured graphs", f.fixed_bytes, basis="measured", source=engine.overhead_source, M=graphs)
                )
            if len(outside) > 1:
                outside = [Term.sum("beside the engine's share", *outside, unit="bytes")]
            parts.append(Term.max("left free by the engine", rest, *outside))
        elif graphs and not engine.graphs_in_share:
            parts.append(
                Term.of("captured graphs", f.fixed_bytes, basis="measured", source=engine.overhead_source, M=graphs)
            )
        return Term.sum("runtime overhead", *parts, unit="bytes")


def _captured(engine: ServingRuntime, stage: Stage) -> int:
    """What captured graphs take for the layers of a stage."""
    each, more = engine.graph_layers
    mixed = sum(count for block, count in stage.layers if any(isinstance(op, MoE) for op in block.ops))
    return each * sum(count for _, count in stage.layers) + more * mixed


def running(plan: ServingPlan, limits: Limits) -> Number:
    """Requests that have a cache: an engine that pages lets those wait that it does not run."""
    return (
        minimum(plan.concurrency, limits.requests)
        if serving_runtime(plan.engine, plan.engine_version).paging
        else plan.concurrency
    )


def memory_share(engine: ServingRuntime, plan: ServingPlan) -> float | None:
    """The part of the accelerator's memory that the engine takes; None: it takes what it needs."""
    return engine.memory_share if plan.gpu_memory_utilization is None else plan.gpu_memory_utilization


def _inside_experts(plan: ServingPlan) -> Number:
    """Tensor ranks that cut inside an expert: those that expert parallelism leaves."""
    return plan.tensor_parallel_size / plan.expert_parallel_size if plan.expert_parallel_size == 1 else 1


@lru_cache(maxsize=512)
def _block_bytes(model: Model, stored: Storage, block: Block) -> dict[tuple[str, int], tuple[int, float]]:
    return block_bytes(model, stored, block)
