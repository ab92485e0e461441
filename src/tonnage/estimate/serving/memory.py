"""Memory of one serving replica: weights as stored, cache of every kind of attention, the engine's own share."""

from collections.abc import Hashable, Mapping
from functools import lru_cache, partial, reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from tonnage.architectures import Block, Model
from tonnage.estimate.serving.cache import CellCache, PagedCache, PooledCache, RequestCache, kinds
from tonnage.estimate.serving.forward_peak import ForwardPass, Limits, batch_limits, workspace_bytes
from tonnage.estimate.serving.host_experts import held_experts, host_expert_bytes, loaded_layer, resident_share
from tonnage.estimate.serving.layer_buffers import layer_buffers
from tonnage.estimate.serving.overhead import Overhead, adapters, compute_buffer, host_buffers
from tonnage.estimate.serving.placement import HEADS, drafting, host_experts, placed
from tonnage.estimate.serving.weights.rank import ALL_WEIGHTS, beside_weights
from tonnage.estimate.serving.weights.storage import Storage, block_bytes, loaded_storage, op_bytes, storage
from tonnage.estimate.step.rank import Group, Shares, Stage, layer_count, share
from tonnage.formulas import engines as e
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import Number, ceil_div, maximum, minimum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import precision
from tonnage.ops import StateCache, TokenCache
from tonnage.runtimes import Pools, ServingRuntime, serving_runtime
from tonnage.spec import Accelerator, ServingPlan


class ServingRank(Struct, frozen=True, eq=False):
    """One pipeline stage of a replica: what it needs, and the cache of one request on it.

    `per_request`, `per_token`: as the engine sets them aside; `kept`, `kept_per_token`: as the architecture needs them.
    `in_flight`: bytes that windows hold beyond that for the tokens of a step, of all requests together; it is among
    `besides_cache`, and with `per_request` it is what the engine admits one request with.
    """

    rank: int
    memory: Term
    per_request: Term
    in_flight: Number
    per_token: Term
    kept: Term
    kept_per_token: Term
    besides_cache: Term


class ServingMemory(Struct, frozen=True, eq=False):
    """All stages; the fullest decides. `host`: what the engine keeps in host memory, where it says so."""

    ranks: tuple[ServingRank, ...]
    stored: Storage
    limits: Limits
    host: Term | None = None

    @property
    def fullest(self) -> ServingRank:
        return max(self.ranks, key=lambda rank: rank.memory.value)

    @property
    def memory(self) -> Term:
        return self.fullest.memory


def serving_memory(model: Model, plan: ServingPlan, accelerator: Accelerator | None = None) -> ServingMemory:
    """Bytes of one rank of each stage, for plan.concurrency requests of plan.context tokens."""
    stored = loaded_storage(model, plan)
    walk = _Replica(model, plan, accelerator, stored, drafting(model, plan))
    return ServingMemory(walk.ranks(), stored, walk.limits, walk.host_memory())


def serving_needed(model: Model, plan: ServingPlan, accelerator: Accelerator | None = None) -> Number:
    """Bytes of the fullest GPU, as `serving_memory` has them, without what else it finds."""
    walk = _Replica(model, plan, accelerator, loaded_storage(model, plan), drafting(model, plan))
    return reduce(maximum, (walk.memory(stage).value for stage in walk.unlike_stages().values()))


def stage_memory(model: Model, plan: ServingPlan, accelerator: Accelerator | None, stage: int) -> ServingRank:
    """Bytes of one rank of one stage alone, as `serving_memory` has them: of a pipeline whose stages are on unlike
    accelerators.
    """
    walk = _Replica(model, plan, accelerator, loaded_storage(model, plan), drafting(model, plan))
    return walk.rank(walk.stages[stage])


class _Replica:
    def __init__(
        self,
        model: Model,
        plan: ServingPlan,
        accelerator: Accelerator | None,
        stored: Storage,
        draft: Model | None = None,
    ):
        self.model, self.plan, self.accelerator, self.stored = model, plan, accelerator, stored
        self.engine = serving_runtime(plan.engine, plan.engine_version)
        self.shares = Shares(plan.tensor_parallel_size, plan.expert_parallel_size, _inside_experts(plan))
        self.stages, self.on_host = placed(model, plan, self.engine, accelerator)
        self.held_experts = held_experts(model, plan)
        self.limits = batch_limits(self.engine, plan, accelerator)
        uncached = plan.denoising is not None and not plan.denoising.is_cached
        self.cache_width = (
            0 if uncached else precision(plan.kv_cache or self.engine.own_kv_cache or "bf16").bytes_per_weight
        )
        self.activation_width = 4 if model.dtype == "float32" else 2
        self.beside = Overhead(model, self.engine, plan, accelerator)
        self.draft = None if draft is None else _Replica(draft, draft_plan(plan), accelerator, storage(draft, None))

    def ranks(self) -> tuple[ServingRank, ...]:
        """Stages that hold the same need the same."""
        found = {key: self.rank(stage) for key, stage in self.unlike_stages().items()}
        return tuple(replace(found[self._contents(stage)], rank=stage.rank) for stage in self.stages)

    def unlike_stages(self) -> dict[tuple[Hashable, ...], Stage]:
        """By what it holds the first stage that holds it."""
        unlike: dict[tuple[Hashable, ...], Stage] = {}
        for stage in self.stages:
            unlike.setdefault(self._contents(stage), stage)
        return unlike

    def _contents(self, stage: Stage) -> tuple[Hashable, ...]:
        return (*stage.contents, stage.first_layer if self.plan.host.expert_layers_on_host else 0)

    def rank(self, stage: Stage) -> ServingRank:
        request_cache = RequestCache(self.plan.context, self.shares.t, self._width)
        held = self._held() or request_cache
        per_request, in_flight = self._one_request(stage), self._in_flight(stage)
        memory = self._memory(stage, per_request, in_flight)
        weights, _, *besides = memory.children
        besides += [] if in_flight is None else [in_flight]
        return ServingRank(
            stage.rank,
            memory=memory,
            per_request=per_request,
            in_flight=0 if in_flight is None else in_flight.value,
            per_token=Term.sum(
                "one more token", held.growth(stage, "one more token"), *self._of_draft(stage, "growth", "its draft")
            ),
            kept=request_cache.kept(stage, "one request"),
            kept_per_token=request_cache.growth(stage, "one more token"),
            besides_cache=Term.sum("besides the cache", weights, *besides),
        )

    def memory(self, stage: Stage) -> Term:
        """What a rank of a stage needs."""
        return self._memory(stage, self._one_request(stage), self._in_flight(stage))

    def _memory(self, stage: Stage, per_request: Term, in_flight: Term | None) -> Term:
        requests = Term.of("requests", g.requests, R=running(self.plan, self.limits))
        if in_flight is None:
            cache = Term.product("kv cache", "bytes", requests, per_request)
        else:
            held = Term.product("held by requests", "bytes", requests, per_request)
            cache = Term.sum("kv cache", held, in_flight)
        weights, activations = self.weights(stage), self.activations(stage)
        communication = Term.sum("communication buffers", unit="bytes")
        overhead = self.beside.beside(stage, weights, activations)
        return Term.sum("serving", weights, cache, activations, communication, overhead)

    def _one_request(self, stage: Stage) -> Term:
        """The cache of one request between two steps, with that of its draft."""
        held = self._held(decoding=True) or RequestCache(self.plan.context, self.shares.t, self._width)
        parts = [held.kept(stage, "one request"), *self._of_draft(stage, "kept", "its draft")]
        return parts[0] if len(parts) == 1 else Term.sum("one request", *parts)

    def _in_flight(self, stage: Stage) -> Term | None:
        """What windows of an engine that pages hold beyond one request's for the tokens that steps are computing: of
        all requests together, as a step has so many tokens at most. None where no layer of the stage has a window.
        """
        if self.engine.paging is None or all(kind.window is None for kind in kinds(stage, self.engine.paging.windows)):
            return None
        admitted, decoding = self._held(), self._held(decoding=True)
        assert admitted is not None and decoding is not None
        return Term.of(
            "tokens in flight",
            g.in_flight_bytes,
            U=admitted.kept(stage, "one request").value,
            M=decoding.kept(stage, "one request").value,
        )

    def _held(self, *, decoding: bool = False) -> RequestCache | None:
        """What the engine sets aside for a request; None: what is kept. `decoding`: between steps, with one token in
        flight.
        """
        engine, s, t = self.engine, self.plan.context, self.shares.t
        alone = self.plan.prefix_caching is False  # a state has no copies at the ends of prefixes
        if engine.pools is not None:
            return PooledCache(s, t, self._width, self._pools(engine.pools, alone))
        if engine.cells is not None:
            return CellCache(s, t, self._width, engine.cells, self.limits.tokens)
        if engine.paging is None:
            return None
        paging = replace(engine.paging, state_copies=1) if alone else engine.paging
        batches = 1 if paging.one_batch else self.plan.pipeline_parallel_size + paging.spare_batches
        in_flight = 1 if decoding else g.tokens_in_flight(T=self.limits.tokens, n_batches=batches)
        return PagedCache(s, t, self._width, paging, in_flight)

    def _pools(self, pools: Pools, alone: bool) -> Pools:
        """The pools of this plan: without a cache of prefixes a request has one state, for each that may run where
        their number is said.
        """
        if alone:
            return replace(pools, state_slots=1, state_share=0 if self.plan.max_num_seqs else pools.state_share)
        tracking = pools.tracking_slots if self.model.architecture in pools.tracked else 0
        return replace(pools, state_slots=pools.state_slots + tracking)

    def _of_draft(self, stage: Stage, what: str, name: str) -> list[Term]:
        """The cache of a draft model, which is whole on the last stage."""
        if self.draft is None or not stage.is_last:
            return []
        held = self.draft._held() or RequestCache(self.plan.context, self.shares.t, self.draft._width)
        return [getattr(held, what)(draft_stage, name) for draft_stage in self.draft.stages]

    @property
    def _draft_name(self) -> str:
        return "draft head" if self.plan.drafting.speculative in HEADS else "draft model"

    def _width(self, cache: TokenCache | StateCache) -> float:
        """Bytes of one number of a cache."""
        if isinstance(cache, StateCache) and self.engine.cells is not None and self.engine.state_bytes:
            return self.engine.state_bytes  # llama.cpp keeps every state in fp32
        if cache.bytes_per_element is not None:
            return cache.bytes_per_element
        if isinstance(cache, StateCache):
            own = self.engine.recurrent_bytes if cache.name == RECURRENT else None
            return own or self.engine.state_bytes or self.activation_width
        return self.cache_width

    def weights(self, stage: Stage) -> Term:
        parts = self._held_weights(stage)
        if self.draft is not None and stage.is_last:
            parts += [self.draft.weights(draft_stage).named(self._draft_name) for draft_stage in self.draft.stages]
        if self.plan.adapters.lora_adapters:
            parts.append(adapters(self.plan, stage, self.shares.t, self.activation_width))
        total = Term.sum("weights", *parts, unit="bytes")
        if not self.plan.host.weights_on_host_bytes:
            return total
        left = Term.of(
            "of them in host memory", e.host_weights_bytes, M=total.value, U=self.plan.host.weights_on_host_bytes
        )
        return Term.sum("weights", total.named(ALL_WEIGHTS), left)

    def _held_weights(self, stage: Stage) -> list[Term]:
        """The weights of a stage on the accelerator: found once where only numbers cut them."""
        if self.held_experts is not None:
            room = loaded_layer(self.model, self.plan, self.stored, self.shares.t)
            own = _stage_weights(self.model, self.engine, stage, self.stored, self.shares, {}, self.plan)
            return own if room is None else [*own, room]
        if self.plan.redundant_experts:
            return _stage_weights(self.model, self.engine, stage, self.stored, self.shares, {}, self.plan)
        if self.shares.is_of_numbers and not self.plan.host.expert_layers_on_host:
            version = self.plan.engine, self.plan.engine_version
            return list(_known_weights(self.model, *version, stage, self.stored, *astuple(self.shares)))
        away = host_experts(stage, self.plan)
        return _stage_weights(self.model, self.engine, stage, self.stored, self.shares, away)

    def host_memory(self) -> Term | None:
        """What the engine puts into host memory, with the adapters that are kept there."""
        beside, held = self._host_adapters(), self._on_host_memory()
        if beside is None or held is None:
            return held or (beside and Term.sum("host memory", beside))
        return Term.sum("host memory", *(held.children if held.combine == "sum" else (held,)), beside)

    def _host_adapters(self) -> Term | None:
        """Each rank loads whole adapters of its stage, and cuts its part out where they come to the GPU.

        vLLM, vllm/lora/worker_manager.py: _load_adapter; vllm/lora/layers/base_linear.py: set_lora.
        """
        if not self.plan.adapters.lora_on_host:
            return None
        kept = replace(self.plan, adapters=replace(self.plan.adapters, lora_adapters=self.plan.adapters.lora_on_host))
        of_stages = [adapters(kept, stage, 1, self.activation_width) for stage in self.stages]
        ranks = Term.of("ranks that hold a copy", g.ranks_of_replica, n=self.plan.tensor_parallel_size)
        return Term.product("adapters", "bytes", ranks, Term.sum("of all stages", *of_stages, unit="bytes"))

    def _on_host_memory(self) -> Term | None:
        """Layers, the token table, experts, inputs and outputs; weights that were offloaded."""
        if self.held_experts is not None:
            return host_expert_bytes(self.model, self.plan, self.held_experts)
        if self.on_host is None:
            if not self.plan.host.weights_on_host_bytes:
                return None
            ranks = (
                self.plan.tensor_parallel_size
                * self.plan.pipeline_parallel_size
                * self.plan.attention_data_parallel_size
            )
            of_rank = Term.of(
                "weights of one rank", f.fixed_bytes, source=OFFLOAD, M=self.plan.host.weights_on_host_bytes
            )
            return Term.product("host memory", "bytes", Term.of("ranks", g.ranks_of_replica, n=ranks), of_rank)
        held = self._held()
        cache = (
            Term.product(
                "kv cache",
                "bytes",
                Term.of("requests", g.requests, R=self.plan.concurrency),
                held.kept(self.on_host, "one request"),
            )
            if held
            else None
        )
        whole = partial(_weights_of, self.model, self.engine, stored=self.stored, shares=self.shares)
        away = [(stage, host_experts(stage, self.plan)) for stage in (*self.stages, self.on_host)]
        experts = [part for stage, layers in away[:-1] for part in whole(stage, away=layers, experts_alone=True)]
        inner = Term.sum("weights", *whole(self.on_host, away=away[-1][1]), *experts, unit="bytes")
        cells = self.engine.cells
        buffers = host_buffers(self.model, self.plan, self.limits, cells) if cells and not cells.unpacks else ()
        return Term.sum("host memory", inner, *([cache] if cache else []), *buffers)

    def activations(self, stage: Stage) -> Term:
        """The peak of one forward pass; of the prompts alone where an engine runs them at once, before the answers'
        cache is there.
        """
        engine, plan = self.engine, self.plan
        if engine.cells is not None and engine.cells.unpacks:
            return layer_buffers(self.model, engine, plan, stage, self.limits, self.stored, engine.cells)
        if engine.cells is not None and engine.cells.host_table:
            return compute_buffer(self.model, plan, stage, self.limits, engine.cells)
        forward = ForwardPass(
            self.model,
            engine,
            self.limits,
            self.shares,
            self.activation_width,
            self.stored.name,
            self._sampled(),
            plan.media,
        )
        peak = forward.peak(stage, self.accelerator)
        if engine.queues or engine.cells is not None or plan.max_num_batched_tokens is None:
            return peak
        requests, context = running(plan, self.limits), plan.context
        moments = []
        for name, size, tokens in (
            (
                "of the prompts, beyond the cache of the answers",
                peak.value,
                maximum(context - self.limits.tokens / requests, 0),
            ),
            ("second table while loading, beyond the cache", self._loading(), context),
        ):
            cache = RequestCache(tokens, self.shares.t, self._width).kept(stage, "cache")
            if size:
                moments.append(Term.of(name, g.early_bytes, M=size, U=cache.value * requests))
        staying = workspace_bytes(engine, self.accelerator)
        return Term.max("activations", *moments, Term.of("GEMM workspace", f.fixed_bytes, M=staying))

    def _loading(self) -> float:
        """A tied head that is loaded before it is tied."""
        loads = any(name in self.stored.name for name in self.engine.loading_heads)
        return (
            self.model.vocab_size * self.model.hidden_size * self.activation_width if self.model.tied and loads else 0
        )

    def _sampled(self) -> Number:
        """Requests that the sampler sees: all that an engine may run when it tries itself out, else those that there
        are.
        """
        tries = self.engine.paging is not None or not self.engine.queues
        requests = self.limits.requests if tries else minimum(self.plan.concurrency, self.limits.requests)
        # logits of every token of a pass that denoises
        return requests * self.plan.denoising.pass_tokens if self.plan.denoising else requests


def _weights_of(
    model: Model,
    engine: ServingRuntime,
    stage: Stage,
    stored: Storage,
    shares: Shares,
    away: Mapping[Any, int],
    experts_alone: bool = False,
    dealt: ServingPlan | None = None,
) -> list[Term]:
    """The weights of a stage; or those of its experts that stay in host memory, of as many layers as `away` says.
    `dealt`: a plan that has some experts of each layer alone on the accelerators, or copies of some.
    """

    def held(name: str, group: Group, size: float) -> Term:
        of_rank = share(group, shares)
        of_one = Term.of("bytes per parameter", f.mean_bytes_per_parameter, source=stored.source, M=size, N=group.count)
        return Term.product(name or of_rank.name, "bytes", of_one, of_rank)

    parts: list[Term] = []
    for op in () if experts_alone else stage.ops + stage.tower_ops:
        for weight, size in op_bytes(stored, op):
            split = "tensor" if weight.split == "vocab" else weight.split
            multiple = engine.vocabulary_multiple if weight.split == "vocab" else 1
            rows = ceil_div(weight.rows, multiple) * multiple
            group = Group(split, weight.heads, weight.num_parameters * rows // weight.rows)
            parts.append(held(weight.name, group, size * rows / weight.rows))
    for block, count in stage.layers + stage.towers:
        on_accelerator = {"expert": count - away.get(block, 0)}
        shown: dict[int, list[Term]] = {}
        for (cut, heads), (number, size) in _block_bytes(model, stored, block).items():
            here = resident_share(block, dealt) if dealt is not None and cut == "expert" else 1
            times = away.get(block, 0) * (cut == "expert") if experts_alone else on_accelerator.get(cut, count)
            if times and here:
                group = Group(cut, heads, round(number * here))
                shown.setdefault(times, []).append(held("", group, size * here))
        for times, one in shown.items():
            name = (
                Message("{block}s", block=block.name)
                if times == count
                else Message("experts of {block}s", block=block.name)
            )
            parts.append(Term.product(name, "bytes", layer_count(times), Term.sum("one layer", *one, unit="bytes")))
    return parts


def _stage_weights(
    model: Model,
    engine: ServingRuntime,
    stage: Stage,
    stored: Storage,
    shares: Shares,
    away: Mapping[Any, int],
    dealt: ServingPlan | None = None,
) -> list[Term]:
    """The weights of a stage on the accelerator, with what holding them takes beyond their bytes."""
    return [
        *_weights_of(model, engine, stage, stored, shares, away, dealt=dealt),
        *beside_weights(model, engine, stage, stored, shares),
    ]


@lru_cache(maxsize=1024, typed=True)
def _known_weights(
    model: Model, engine: str, version: str, stage: Stage, stored: Storage, *sizes: Any
) -> tuple[Term, ...]:
    """Those without layers in host memory. A search for what would fit asks for the same weights many times."""
    return tuple(_stage_weights(model, serving_runtime(engine, version), stage, stored, Shares(*sizes), {}))


RECURRENT = "recurrent state"  # the name that every recurrence gives its own
OFFLOAD = "vLLM, vllm/config/offload.py: cpu_offload_gb; SGLang, sglang/srt/server_args.py: --cpu-offload-gb"


def running(plan: ServingPlan, limits: Limits) -> Number:
    """Requests that have a cache on a rank: an engine that deals it out lets those wait that it does not run; groups
    of attention share them.
    """
    of_group = ceil_div(plan.concurrency, plan.attention_data_parallel_size)
    return minimum(of_group, limits.requests) if serving_runtime(plan.engine, plan.engine_version).queues else of_group


def draft_plan(plan: ServingPlan) -> ServingPlan:
    """The plan of a draft model: the same engine and ranks, whole on one stage."""
    return plan.with_fields(
        pipeline_parallel_size=1,
        chunk_layers=(),
        expert_parallel_size=1,
        weights=None,
        draft_tokens=0,
        draft_model="",
        speculative="",
        lora_adapters=0,
        layers_on_accelerator=None,
        expert_layers_on_host=0,
        weights_on_host_bytes=0,
    )


def _inside_experts(plan: ServingPlan) -> Number:
    """Ranks that cut inside an expert: those that expert parallelism leaves of all that share a layer's experts."""
    groups = plan.attention_data_parallel_size
    if groups > 1:
        return plan.tensor_parallel_size * groups / plan.expert_parallel_size
    return plan.tensor_parallel_size / plan.expert_parallel_size if plan.expert_parallel_size == 1 else 1


@lru_cache(maxsize=512)
def _block_bytes(model: Model, stored: Storage, block: Block) -> dict[tuple[str, int], tuple[int, float]]:
    return block_bytes(model, stored, block)
