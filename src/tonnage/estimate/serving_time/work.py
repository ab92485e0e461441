"""What one forward pass of a served model does on one rank: products, reads of caches, exchanges, kernels. Counted once
for a plan.

Everything that grows with what a pass carries is a slope here; `forward_pass.py` puts in tokens and times it. Numbers
of a plan may be arrays.
"""

from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block, Branch, Model
from tonnage.estimate.serving.host_experts import held_experts
from tonnage.estimate.serving.overhead import adapted
from tonnage.estimate.serving.weights.storage import OUTSIDE, Storage, is_gguf_type, loaded_storage
from tonnage.estimate.step.rank import Group, Shares, Stage, share, stages
from tonnage.kernel.formula import Number, minimum
from tonnage.numerics.precisions import PRECISIONS, precision
from tonnage.numerics.quantization import file_type
from tonnage.ops import MLP, Core, GatedDeltaNet, Head, LatentAttention, MoE, Norm, Op, StateCache, TokenCache, Weight
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import Eager, ServingRuntime
from tonnage.spec import ServingPlan

WIDE_BITS, EIGHT_BITS = 12, 6.9  # a parameter: above is 16 or 32 bit, above is 8 with its scales, below is fewer
FP32_BYTES = 4.0
# Kernels besides products that layers are written with: an op's own (a norm, an activation, a residual's sum), those
# around attention's core (positions, the
# cache's entry, the core). Those around routed experts are a rate of their own.
OWN, AROUND_CORE = 1, 3


class Products(Struct, frozen=True, eq=False, kw_only=True):
    """Matrix products of all layers of a stage that are alike: bytes of weights on one rank, FLOP of a row, how many
    kernels.

    `compute`: the peak that multiplies them; `is_narrow`: operands are quantised before; `is_packed`: weights are
    expanded first; `scales`: operations of the ordinary lanes for each 32 products.
    """

    compute: str
    is_narrow: bool
    is_packed: bool
    scales: int = 0
    bytes: Number = 0
    flops: Number = 0
    kernels: Number = 0

    @property
    def is_expanded(self) -> bool:
        """Whether its weights are of 4 bits or fewer, so that expanding them takes many operations."""
        return self.is_packed and 8 * self.bytes * 2 < EIGHT_BITS * self.flops


class Experts(Struct, frozen=True, eq=False, kw_only=True):
    """Mixtures of a stage that are alike: `layers` of them, with `bytes` of one expert on a rank that has it, and
    FLOP of one row through one.
    """

    compute: str
    is_narrow: bool
    is_packed: bool
    layers: Number
    num_experts: int
    top_k: int
    bytes: Number
    flops: Number
    width: int  # of what is sent to an expert
    scales: int = 0  # operations of the ordinary lanes for each 32 products
    looped: float = 0  # operations of one expert that the host asks for one by one
    loops_over_all: bool = False  # those of experts that no token chose, too
    is_fused: bool = False  # kernels that route, sort and sum by themselves, where the accelerator has them
    host_bytes: float = 0  # of a whole expert as it lies in host memory, where the engine keeps experts there
    host_flops: Number = 0  # of one row through a whole expert
    host_method: str = ""  # how the host multiplies these

    @property
    def is_quantised(self) -> bool:
        return self.is_narrow or self.is_packed


class Attending(Struct, frozen=True, eq=False, kw_only=True):
    """Layers of a stage that keep keys alike: bytes that a key in reach takes on one rank, FLOP of a query and a key
    in decoding and in a prompt; `scores`: of a query and a key that are written to memory (query heads).
    """

    layers: Number
    window: int | None
    bytes: Number
    flops: Number
    prompt_flops: Number
    scores: Number = 0


class Work(Struct, frozen=True, eq=False, kw_only=True):
    """One rank of one stage. `head`: products of the tokens that are sampled alone; `state_bytes`: of a request's
    recurrent states, read and written;
    `scan_flops`: of a token in recurrences; `kernels`: besides products and attention, `launches`: all that the host
    asks for; `latents`: layers of latent attention; `reduced`: all-reduces over tensor ranks.
    """

    products: tuple[Products, ...]
    head: tuple[Products, ...]
    experts: tuple[Experts, ...]
    attending: tuple[Attending, ...]
    state_bytes: Number
    scan_flops: Number
    recurrences: Number
    kernels: Number
    launches: Number
    latents: int
    reduced: Number
    layers: int
    #: Numbers that matrices with adapters take and give, and the matrices that an engine multiplies as one.
    adapted: Number = 0
    adapted_products: int = 0

    @property
    def dense_bytes(self) -> Number:
        """Weights that every token reads, the head's too."""
        return sum(product.bytes for product in (*self.products, *self.head))

    @property
    def chosen_bytes(self) -> Number:
        """Weights of the experts that one token chooses, all on one rank."""
        return sum(experts.layers * experts.top_k * experts.bytes for experts in self.experts)


def stage_works(
    model: Model, plan: ServingPlan, peaks: tuple[str, ...], kv_bytes: float, kind: str = ""
) -> tuple[Work, ...]:
    """The work of every pipeline stage; `peaks`: precisions that the accelerator multiplies; `kv_bytes`: of one
    number of a cache; `kind`: of the branches of this kind in place of the language model's layers, with its head.
    """
    counted = _Counting(model, plan, peaks, loaded_storage(model, plan), kv_bytes)
    if not kind:
        placed = stages(model, plan.pipeline_parallel_size, plan.chunk_layers)
        by_contents = {stage.contents: stage for stage in placed}
        works = {
            contents: counted.stage(stage) for contents, stage in by_contents.items()
        }  # stages that hold the same are one
        return tuple(works[stage.contents] for stage in placed)
    (all_layers,) = stages(model, 1)
    layers = tuple(
        pair
        for branch in model.branches
        if branch.kind == kind
        for pair in zip(branch.blocks, branch.counts(), strict=True)
    )
    return (counted.stage(replace(all_layers, layers=layers)),)


def tower_works(
    model: Model, plan: ServingPlan, peaks: tuple[str, ...], kv_bytes: float, branch: Branch, layers: int
) -> tuple[Work, Work]:
    """The work of a tower on one rank: that of its first `layers` with what stands before them, for each patch; and
    that of its projector, for each row that passes it.
    """
    counted = _Counting(model, plan, peaks, loaded_storage(model, plan), kv_bytes)
    stage = Stage(
        rank=0,
        layers=tuple((block, count) for block, count in zip(branch.blocks, branch.counts(0, layers), strict=True)),
        before=(),
        after=(),
        table=(),
        towers=(),
        tower_ops=(),
        is_last=False,
    )
    inner = counted.stage(stage)
    first, last = counted.loose(branch.before), counted.loose(branch.after)
    none = replace(inner, attending=(), kernels=0, launches=0, reduced=0, recurrences=0, scan_flops=0, layers=0)
    return replace(inner, products=inner.products + first), replace(none, products=last)


class _Counting:
    def __init__(self, model: Model, plan: ServingPlan, peaks: tuple[str, ...], stored: Storage, kv_bytes: float):
        self.model, self.plan, self.peaks, self.stored, self.kv_bytes = model, plan, peaks, stored, kv_bytes
        self.t = plan.tensor_parallel_size
        self.adapts = bool(plan.adapters.lora_adapters)
        self.copies = plan.redundant_experts
        ranks = self.t * plan.attention_data_parallel_size
        self.shares = Shares(self.t, plan.expert_parallel_size, ranks / plan.expert_parallel_size)
        engine = serving_runtime(plan.engine, plan.engine_version)
        self.engine, self.held = engine, held_experts(model, plan)
        self.integers, self.eager = engine.integer_products, engine.eager
        element = file_type(stored.name).base if is_gguf_type(stored) else stored.name.partition("+")[0]
        self.scales = engine.scale_operations.get(element, 0)
        self.writes_scores = engine.cells is not None and not engine.cells.flash
        self.formats = tuple(PRECISIONS[name] for name in stored.name.split("+") if name in PRECISIONS)

    def stage(self, stage: Stage) -> Work:
        dense: dict[tuple[str, bool, bool], list[Number]] = {}
        head: dict[tuple[str, bool, bool], list[Number]] = {}
        experts: list[Experts] = []
        attending: list[Attending] = []
        state: Number = 0
        scan: Number = 0
        kernels: Number = 0
        launches: Number = 0
        latents = 0
        recurrences: Number = 0
        reduced: Number = 0
        wrapped: Number = 0
        wrapped_products = 0
        for block, count in stage.layers:
            if self.adapts:
                wrapped = wrapped + count * adapted(block, self.t)
                wrapped_products += count * _adapted_products(block, self.model.hidden_size)
            is_left = self.engine.evaluates_caches and _keeps_no_cache(block)
            for op in block.ops:
                self._products(head if is_left else dense, op, block, count)
                experts += self._experts(op, block, count)
                cores = self._attending(op, count)
                attending += (replace(core, prompt_flops=0) for core in cores) if is_left else cores
                held = [cache for cache in op.caches() if isinstance(cache, StateCache)]
                state = state + count * sum(self._cache_bytes(cache) for cache in held)
                scanned = sum(core.flops for core in op.core() if not core.per_key)
                scan = scan + count * scanned / self.t
                recurrences = recurrences + count * bool(scanned and held)
                latents += count * isinstance(op, LatentAttention)
                small, products = _kernels(op, self.model.hidden_size, self.engine)
                kernels, launches = kernels + count * small, launches + count * (small + products)
                reduced = reduced + count * any(w.linear and w.split in ("tensor", "expert") for w in op.weights())
        for op in stage.after:
            self._products(head if isinstance(op, Head) or op in stage.after[-1:] else dense, op, None, 1)
        return Work(
            products=_made(dense, self.scales),
            head=_made(head, self.scales),
            experts=_joined(experts),
            attending=_alike(attending),
            state_bytes=2 * state,
            scan_flops=scan,
            recurrences=recurrences,
            kernels=kernels,
            launches=launches,
            latents=latents,
            reduced=reduced,
            layers=sum(count for _, count in stage.layers),
            adapted=wrapped,
            adapted_products=wrapped_products,
        )

    # ---- products ----

    def loose(self, ops: tuple[Op, ...]) -> tuple[Products, ...]:
        """The matrices of ops that stand in no layer; a pooling head is stored, and no projector reads it."""
        found: dict[tuple[str, bool, bool], list[Number]] = {}
        for op in ops:
            if not str(getattr(op, "name", "")).startswith("head."):
                self._products(found, op, None, 1)
        return _made(found, self.scales)

    def _products(
        self, into: dict[tuple[str, bool, bool], list[Number]], op: Op, block: Block | None, count: int
    ) -> None:
        before: Weight | None = None
        for weight, size in _sizes(self.stored, op, block):
            kind = self._kind(8 * size / weight.num_parameters)
            totals = into.setdefault(kind, [0, 0, 0])
            on_rank = self._share(weight)
            totals[0] = totals[0] + count * size * on_rank
            totals[1] = totals[1] + count * 2 * weight.num_parameters * on_rank
            is_beside = weight.part != "router" and self._runs_beside(op)
            totals[2] = totals[2] + count * (not is_beside and not _joins(before, weight, self.model.hidden_size))
            before = weight
        if isinstance(op, GatedDeltaNet):
            totals[2] = totals[2] + count * (_delta_net_inputs(op, self.engine) - 1)

    def _runs_beside(self, op: Op) -> bool:
        """Whether the matrices of an op are multiplied beside other kernels, so that their start takes no time."""
        return isinstance(op, MoE) and bool(op.shared_size) and self.engine.shared_experts_beside

    def _share(self, weight: Weight) -> Number:
        """The part of a weight on one rank."""
        split = "tensor" if weight.split == "vocab" else weight.split
        group = Group(split, weight.heads if split == "kv" else 0, weight.num_parameters)
        return share(group, self.shares).value / weight.num_parameters

    def _kind(self, bits: float) -> tuple[str, bool, bool]:
        """How weights of so many bits are multiplied: the peak's name, whether operands are quantised, whether
        weights are expanded.
        """
        wide = next((name for name in ("bf16", "fp16", "fp32") if name in self.peaks), "bf16")
        if bits > WIDE_BITS:
            return wide, False, False
        integer = next((name for name in self.integers if name in self.peaks), None)
        if integer is not None:  # llama.cpp: every quantised type by the same kernels
            return integer, False, True
        near = [
            candidate for candidate in self.formats if (candidate.element_bits >= EIGHT_BITS) == (bits > EIGHT_BITS)
        ]
        compute = near[0].compute if near else wide
        if compute in ("bf16", "fp16", wide) or compute not in self.peaks:
            narrower = "fp8" if compute in ("nvfp4", "mxfp4", "fp4") and "fp8" in self.peaks else ""
            return (narrower or wide) if compute == "mxfp8" else wide, False, True
        return compute, True, False

    def _experts(self, op: Op, block: Block, count: int) -> Iterator[Experts]:
        if not isinstance(op, MoE):
            return
        size: float = 0
        parameters, kind = 0, ("bf16", False, False)
        for weight, own in _sizes(self.stored, op, block, of_experts=True):
            kind = self._kind(8 * own / weight.num_parameters)
            size += own
            parameters += weight.num_parameters
        q, eager = self.shares.q, self.eager
        on_host = _sizes(self.held.stored, op, block, of_experts=True) if self.held is not None else ()
        yield Experts(
            compute=kind[0],
            is_narrow=kind[1],
            is_packed=kind[2],
            layers=count,
            num_experts=op.num_experts + self.copies,
            top_k=op.top_k,
            bytes=size / op.num_experts / q,
            flops=2 * parameters / op.num_experts / q,
            width=op.latent_size or op.hidden_size,
            scales=self.scales * kind[2],
            looped=eager.expert if eager else 0,
            is_fused=self._is_fused(kind),
            host_bytes=sum(own for _, own in on_host) / op.num_experts,
            host_flops=2 * parameters / op.num_experts,
            host_method=self.held.name if self.held is not None else "",
            loops_over_all=bool(eager and eager.loops_over_all and self.model.architecture not in eager.hit_alone),
        )

    def _is_fused(self, kind: tuple[str, bool, bool]) -> bool:
        """Whether experts of this kind have kernels that route, sort and sum by themselves."""
        if not self.engine.fuses_mixtures or self.plan.fused_experts is not None:
            return self.engine.fuses_mixtures and bool(self.plan.fused_experts)
        compute, is_narrow, is_packed = kind
        chosen = self.engine.fused_architectures
        by_default = chosen is None or compute in ("nvfp4", "fp4") or self.model.architecture in chosen
        return (is_narrow or is_packed) and by_default

    # ---- caches ----

    def _cache_bytes(self, cache: TokenCache | StateCache) -> Number:
        width = cache.bytes_per_element
        if width is None:
            width = FP32_BYTES / 2 if isinstance(cache, StateCache) else self.kv_bytes
        cut = minimum(self.t, max(cache.heads, 1))
        return cache.elements * width / cut

    def _attending(self, op: Op, count: int) -> Iterator[Attending]:
        caches = [cache for cache in op.caches() if isinstance(cache, TokenCache)]
        cores = [core for core in op.core() if core.per_key]
        if not cores:
            return
        windows = {cache.window for cache in caches} or {cores[0].window}
        flops = sum(core.flops for core in cores[:1]) / self.t
        decode = flops
        if isinstance(op, LatentAttention):  # decoded on the latents themselves: DeepSeek-V2, sec. 2.1.2
            decode = 2 * op.heads * (2 * op.kv_lora_rank + op.qk_rope_head_dim) / self.t
            yield from self._indexed(op, caches, cores, count)
            caches, windows = caches[:1], {op.index_topk}
        for window in windows:
            cache_bytes = sum(
                self._cache_bytes(cache) / cache.stride for cache in caches if window in (cache.window, cores[0].window)
            )
            cache_bytes = cache_bytes * self._passes_over_cache(op)
            scores = getattr(op, "heads", 0) / self.t if self.writes_scores and flops else 0
            yield Attending(
                layers=count, window=window, bytes=cache_bytes, flops=decode, prompt_flops=flops, scores=scores
            )
            decode = flops = 0.0  # counted once

    def _passes_over_cache(self, op: Op) -> float:
        """How often the bytes of a layer's cache cross the memory in a decoding pass: once, where a kernel reads it.

        A tensor that grows is copied (read and written); heads that are repeated are read, written, and read again as
        often as query heads share one.
        """
        if self.eager is None:
            return 1
        together = getattr(op, "heads", 1) / max(getattr(op, "kv_heads", 0) or getattr(op, "heads", 1), 1)
        if self.eager.repeats_heads and together > 1:
            return 3 + 2 * together
        return 3

    def _indexed(self, op: Op, caches: list[TokenCache], cores: list[Core], count: int) -> Iterator[Attending]:
        """An indexer that looks at every key to choose those that are attended to; each tensor rank does all of it."""
        for cache, core in zip(caches[1:], cores[1:], strict=False):
            key_bytes = self._cache_bytes(cache) / cache.stride
            yield Attending(layers=count, window=None, bytes=key_bytes, flops=core.flops, prompt_flops=core.flops)


def _keeps_no_cache(block: Block) -> bool:
    """Whether a layer reads the keys of an earlier one and keeps nothing itself."""
    return any(getattr(op, "shares_cache", False) for op in block.ops) and not any(op.caches() for op in block.ops)


def _multiplied(op: Op, *, is_table: bool = False) -> list[Weight]:
    """Matrices that every token passes."""
    return [
        weight
        for weight in op.weights()
        if weight.split != "expert" and (weight.linear or (is_table and weight.split == "vocab"))
    ]


@lru_cache(maxsize=4096)
def _sizes(
    stored: Storage, op: Op, block: Block | None, *, of_experts: bool = False
) -> tuple[tuple[Weight, float], ...]:
    """Matrices of an op with their bytes; those that every token passes, or those of experts."""
    places = (stored.blocks.get(block) if block else None) or (OUTSIDE,)
    if of_experts:
        chosen = [weight for weight in op.weights() if weight.split == "expert" and weight.linear]
    else:
        chosen = _multiplied(op, is_table=block is None)
    return tuple((weight, stored.mean_bytes(weight, places)) for weight in chosen)


def _adapted_products(block: Block, hidden_size: int) -> int:
    """Matrices of a layer with adapters, those that are multiplied as one counted once."""
    count, before = 0, None
    for weight in block.weights():
        if weight.quantizable and weight.split != "expert":
            count += not _joins(before, weight, hidden_size)
            before = weight
    return count


def _joins(before: Weight | None, weight: Weight, hidden_size: int) -> bool:
    """Whether an engine multiplies a matrix together with the one before it: both read the same (queries, keys and
    values; gate and up).
    """
    return before is not None and before.columns == weight.columns and weight.rows != hidden_size


def _kernels(op: Op, hidden_size: int, engine: ServingRuntime) -> tuple[int, int]:
    """Kernels of an op besides its products, and of those."""
    matrices = _multiplied(op)
    if engine.eager is not None:
        return _operations(op, engine.eager), len(matrices)
    products = sum(
        not _joins(before, matrix, hidden_size) for before, matrix in zip([None, *matrices], matrices, strict=False)
    )
    small = OWN + AROUND_CORE * bool(op.core())
    if isinstance(op, GatedDeltaNet):
        return small + engine.delta_net_copies, products + _delta_net_inputs(op, engine) - 1
    return small, products


def _delta_net_inputs(op: GatedDeltaNet, engine: ServingRuntime) -> int:
    """Products that make the inputs of a gated delta net: at most one for each matrix of the checkpoint."""
    return min(engine.delta_net_inputs, len(op.inputs))


def _operations(op: Op, eager: Eager) -> int:
    """Operations of an op besides its products and those of routed experts, each asked for by itself."""
    if isinstance(op, Norm):
        return eager.rms_norm if op.kind == "rms" else eager.layer_norm
    if isinstance(op, MLP):
        return eager.residual + eager.activation
    if isinstance(op, MoE):
        return eager.residual + eager.router + eager.grouped + eager.activation * bool(op.shared_size)
    norms = 2 * bool(getattr(op, "qk_norm", "")) or 2 * isinstance(op, LatentAttention)
    return eager.residual + eager.around_core * bool(op.core()) + norms * eager.rms_norm


def _made(totals: dict[tuple[str, bool, bool], list[Number]], scales: int) -> tuple[Products, ...]:
    return tuple(
        Products(
            compute=kind[0],
            is_narrow=kind[1],
            is_packed=kind[2],
            bytes=size,
            flops=flops,
            kernels=kernels,
            scales=scales * kind[2],
        )
        for kind, (size, flops, kernels) in totals.items()
    )


def _alike(attending: list[Attending]) -> tuple[Attending, ...]:
    merged: dict[tuple[object, ...], Attending] = {}
    for core in attending:
        key = core.window, _key(core.bytes), _key(core.flops)
        old = merged.get(key)
        merged[key] = core if old is None else replace(old, layers=old.layers + core.layers)
    return tuple(merged.values())


def _key(value: Number) -> object:
    return id(value) if hasattr(value, "ndim") else value


def _joined(mixtures: list[Experts]) -> tuple[Experts, ...]:
    """Mixtures that differ in nothing but the kind of layer they stand in, as one."""
    merged: dict[tuple[object, ...], Experts] = {}
    for mixture in mixtures:
        key = mixture.compute, mixture.num_experts, mixture.top_k, mixture.width, _key(mixture.bytes)
        old = merged.get(key)
        merged[key] = mixture if old is None else replace(old, layers=old.layers + mixture.layers)
    return tuple(merged.values())


UNPACKED = 4.0  # bytes of a number that is written and read in 16 bits


def kv_bytes(plan: ServingPlan) -> float:
    """Bytes that reading one number of a cache moves: with those of writing and reading it in 16 bits where an engine
    unpacks a quantised cache before attention.
    """
    stored = precision(plan.kv_cache or "bf16").bytes_per_weight
    cells = serving_runtime(plan.engine, plan.engine_version).cells
    return stored + UNPACKED * (cells is not None and cells.unpacks and stored < WIDE_BITS / 8)
