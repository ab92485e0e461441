"""What is on an accelerator beside weights, cache and activations of a served model, or must stay free there."""

from functools import lru_cache

from tonnage.architectures import Block, Model
from tonnage.estimate.serving.forward_peak import Limits
from tonnage.estimate.step.rank import Stage, layer_count
from tonnage.formulas import engines as e
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.message import Message
from tonnage.kernel.part_names import CUDA_CONTEXT, CUDA_GRAPHS, LEFT_UNUSED
from tonnage.kernel.term import Term
from tonnage.kernel.units import MIB
from tonnage.ops import MLP, Attention, Head, LatentAttention, MoE
from tonnage.runtimes import Cells, Reserve, ServingRuntime, serving_runtime
from tonnage.runtimes.parts.plugins import Plugin, plugin_for
from tonnage.spec import Accelerator, ServingPlan

# ---- Parts of a replica's memory: llama.cpp's compute and host buffers, and adapters that an engine holds.

ROWS_CUT = (
    "o_proj",
    "out_proj",
    "down_proj",
    "dense_4h_to_h",
    "c_proj",
    "wo",
    "w2",
    "fc2",
)  # whose inputs tensor ranks share


def compute_buffer(model: Model, plan: ServingPlan, stage: Stage, limits: Limits, cells: Cells) -> Term:
    """The largest moment of a graph over one micro-batch: attention, a feed-forward layer, or the head."""
    h, T = model.hidden_size, limits.tokens
    s = _seen(plan, cells)
    moments = []
    heads = max((_heads(block) for block, _ in stage.layers), default=0)
    if heads and cells.flash:
        moments.append(Term.of("mask of attention", e.mask_buffer_bytes, s=s, h=h, T=T))
    elif heads:
        moments.append(Term.of("scores of attention", e.scores_buffer_bytes, a=heads, s=s, h=h, T=T))
    inner = max((_inner(block) for block, _ in stage.layers), default=0)
    moments.append(
        Term.of("feed-forward layer", e.layer_buffer_bytes, x=inner, s=s if heads and cells.flash else 0, h=h, T=T)
    )
    head = next((op for op in stage.ops if isinstance(op, Head)), None)
    if head is not None and stage.is_last:
        moments.append(Term.of("logits", e.head_buffer_bytes, V=head.vocab_size, h=h, T=T))
    return Term.max("activations", *moments)


def _seen(plan: ServingPlan, cells: Cells) -> Number:
    """Cells that attention runs over."""
    return e.cells(s=plan.context, B=cells.multiple) * (plan.concurrency if cells.unified else 1)


def host_buffers(model: Model, plan: ServingPlan, limits: Limits, cells: Cells) -> tuple[Term, ...]:
    """What llama.cpp keeps in host memory beside weights: inputs of a batch, and outputs."""
    h, T = model.hidden_size, limits.tokens
    return (
        Term.of("inputs of a batch", e.host_input_bytes, s=_seen(plan, cells), h=h, T=T),
        Term.of("outputs", e.output_buffer_bytes, V=model.vocab_size, h=h, R=plan.concurrency),
    )


@lru_cache(maxsize=1024)
def _heads(block: Block) -> int:
    return max((op.heads for op in block.ops if isinstance(op, Attention | LatentAttention)), default=0)


@lru_cache(maxsize=1024)
def _inner(block: Block) -> int:
    """Numbers of a token inside a feed-forward layer: gate and value, or of chosen experts also their outputs."""
    widest = 0
    for op in block.ops:
        if isinstance(op, MLP):
            widest = max(widest, op.intermediate_size * (1 + op.gated))
        elif isinstance(op, MoE):
            inner = op.intermediate_size * (1 + op.gated)
            widest = max(widest, op.top_k * max(inner, op.intermediate_size + (op.latent_size or op.hidden_size)))
    return widest


def adapters(plan: ServingPlan, stage: Stage, t: Number, width: float) -> Term:
    """Low-rank pairs beside every matrix of the layers, of routed experts where the engine has slots for them; tensor
    ranks share the side that they share of the matrix.
    """
    of_experts = serving_runtime(plan.engine, plan.engine_version).adapts_experts
    parts = [
        Term.product(
            Message("{block}s", block=block.name),
            "bytes",
            layer_count(count),
            Term.of(
                "one layer",
                e.adapter_bytes,
                A=plan.adapters.lora_adapters,
                rank=plan.adapters.lora_rank,
                x=adapted(block, t) + (_adapted_experts(block, plan, t) if of_experts else 0),
                w=width,
            ),
        )
        for block, count in stage.layers
    ]
    return Term.sum("adapters", *parts, unit="bytes")


def _adapted_experts(block: Block, plan: ServingPlan, t: Number) -> Number:
    """The same of the routed experts on a rank: expert ranks share them, else tensor ranks the side inside of each."""
    total: Number = 0
    ep = plan.expert_parallel_size
    inside = 1 if is_any(ep > 1) else t
    for weight in block.weights():
        if weight.split == "expert" and weight.quantizable:
            number = weight.num_parameters / (weight.rows * weight.columns) / ep
            down = weight.name.rpartition(".")[0].endswith(ROWS_CUT)
            total += number * (weight.columns / inside + weight.rows if down else weight.columns + weight.rows / inside)
    return total


def adapted(block: Block, t: Number) -> Number:
    """Numbers that the matrices of a layer but its routed experts take and give, on one of t tensor ranks."""
    total: Number = 0
    for weight in block.weights():
        if not weight.quantizable or weight.split == "expert":
            continue
        cut = t if weight.split in ("tensor", "kv") else 1
        rows_whole = weight.name.rpartition(".")[0].endswith(ROWS_CUT) or weight.name.endswith(ROWS_CUT)
        total += weight.columns / cut + weight.rows if rows_whole else weight.columns + weight.rows / cut
    return total


VISION, BASE_LAYERS, BASE_WIDTH, SENSITIVITY, MIN_FACTOR, MAX_FACTOR = (
    0.95,
    24,
    1024,
    0.1,
    0.8,
    1.05,
)  # adjust_mem_fraction_for_vlm


# ---- SGLang's mem_fraction_static where nobody says it: what it reserves of an accelerator for activations and graphs,
# by version.


def memory_share(
    engine: ServingRuntime, plan: ServingPlan, model: Model | None = None, accelerator: Accelerator | None = None
) -> float | None:
    """The part of the memory that the engine takes for itself; None: it takes what it needs, or nobody says of which
    accelerator.
    """
    if plan.gpu_memory_utilization is not None:
        return plan.gpu_memory_utilization
    if engine.reserve is None or accelerator is None or model is None:
        return engine.memory_share
    return static_share(engine.reserve, plan, model, accelerator)


def static_share(reserve: Reserve, plan: ServingPlan, model: Model, accelerator: Accelerator) -> float:
    memory = accelerator.memory
    mib = (memory.reported_bytes or memory.nominal_bytes) // MIB
    ranks = plan.tensor_parallel_size * plan.attention_data_parallel_size
    if reserve.by_ranks and (not reserve.up_to_mib or mib <= reserve.up_to_mib):
        return next(share for least, share in reserve.by_ranks if ranks >= least)
    reserved = reserve.beyond_mib * MIB or _reserved(reserve, plan, model, mib)
    share = round(1 - reserved / MIB / mib, 3)
    towers = [branch for branch in model.branches if branch.kind == "vision"]
    if not towers or reserve.by_ranks:
        return share
    size = towers[0].num_layers * towers[0].hidden_size ** 2 / (BASE_LAYERS * BASE_WIDTH**2)
    return share * VISION * max(MIN_FACTOR, min(MAX_FACTOR, 1 - SENSITIVITY * (size - 1)))


def _reserved(reserve: Reserve, plan: ServingPlan, model: Model, mib: int) -> Number:
    """Bytes for activations and graphs."""
    groups = plan.attention_data_parallel_size
    ranks = plan.tensor_parallel_size * groups
    step = next(candidate for candidate in reserve.steps if not candidate.below_mib or mib < candidate.below_mib)
    chunk = plan.max_num_batched_tokens or step.chunk
    graph = 0 if plan.enforce_eager else min(step.few if ranks < 4 else step.many, plan.max_num_seqs or step.many)
    needed = e.activation_reserve_bytes(T=chunk) + e.parallel_reserve_bytes(t=ranks, p=plan.pipeline_parallel_size)
    needed += e.graph_reserve_bytes(n_graph=graph)
    if groups > 1:
        needed += e.attention_groups_reserve_bytes(n_graph=graph, n_dp=groups)
    if not plan.enforce_eager:
        is_latent = any(isinstance(op, LatentAttention) for block in model.decoder.blocks for op in block.ops)
        sizes = reserve.latent_graph_mib if is_latent else len(captured(chunk)) * reserve.prefill_graph_mib
        needed += sizes * MIB
    return max(needed, e.least_reserve_bytes(U=mib * MIB))


def captured(most: int) -> list[int]:
    """SGLang, sglang/srt/arg_groups/cuda_graph_hook.py, generate_prefill_cuda_graph_batch_sizes: prompts that are
    captured.
    """
    steps = ((4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1024, 64), (1280, 4096, 256), (4608, most, 512))
    return [size for first, last, step in steps for size in range(first, last + 1, step) if size <= most]


def context_name(vendor: str) -> str:
    """The name of what a driver holds for each process."""
    return CUDA_CONTEXT if vendor == "NVIDIA" else "driver context"


COLLECTIVES = {"NVIDIA": "NCCL buffers", "AMD": "RCCL buffers"}  # by vendor


def collective_buffers(vendor: str) -> str:
    """The name of what the library of collectives keeps on each rank."""
    return COLLECTIVES.get(vendor, "buffers of collectives")


NO_CONTEXT = ("cpu", "apple")  # kinds of accelerators on which a process holds nothing beside its tensors


class Overhead:
    """What the engine takes beside weights, cache and activations, on each rank of a replica."""

    def __init__(self, model: Model, engine: ServingRuntime, plan: ServingPlan, accelerator: Accelerator | None):
        self.engine, self.plan, self.accelerator = engine, plan, accelerator
        self.share = memory_share(engine, plan, model, accelerator)
        self.plugin = plugin_for(engine.plugins, accelerator)
        self.tensor = plan.tensor_parallel_size * plan.attention_data_parallel_size

    def beside(self, stage: Stage, weights: Term, activations: Term) -> Term:
        """Fixed amounts, and what the engine leaves free."""
        engine = self.engine
        captured, graphs = self._captured(stage), self._graphs_name()
        parts = [
            *self._measured(self._process_name(), 0 if self._has_no_context() else engine.process),
            *self._measured(collective_buffers(self._vendor()), self._communicators()),
            *self._measured(graphs, captured if engine.graphs_in_share else 0),
        ]
        outside = self._measured(graphs, 0 if engine.graphs_in_share else captured)
        fixed = sum(part.value for part in parts)
        return Term.sum(
            "runtime overhead", *parts, *self._left_free(fixed, outside, weights, activations), unit="bytes"
        )

    def _graphs_name(self) -> str:
        return self.plugin.graphs if self.plugin is not None else CUDA_GRAPHS

    def _vendor(self) -> str:
        return self.accelerator.vendor if self.accelerator is not None else "NVIDIA"

    def _process_name(self) -> str:
        """vLLM counts the context apart; what else it holds are the libraries that it loads."""
        return "libraries outside of PyTorch" if self.engine.context else context_name(self._vendor())

    def _measured(self, name: str, size: int) -> list[Term]:
        if not size:
            return []
        return [Term.of(name, f.fixed_bytes, basis="measured", source=self.engine.overhead_source, M=size)]

    def _has_no_context(self) -> bool:
        """llama.cpp: on the processor and on Apple's chips nothing."""
        own = self.engine.cells is not None and self.engine.cells.host_table
        return own and self.accelerator is not None and self.accelerator.kind in NO_CONTEXT

    def _communicators(self) -> int:
        if self.tensor == 1:
            return 0
        return self.engine.communicators + (self.tensor - 2) * self.engine.each_peer

    def _captured(self, stage: Stage) -> int:
        """What captured graphs take for the layers of a stage."""
        if self.plan.enforce_eager or (self.plugin is not None and (not self.plugin.graphs or self.plugin.graph_share)):
            return 0
        per_layer, more = self.engine.graph_layers
        mixed = sum(count for block, count in stage.layers if any(isinstance(op, MoE) for op in block.ops))
        alone = self.tensor * self.plan.pipeline_parallel_size == 1
        layers = per_layer * sum(count for _, count in stage.layers) + more * mixed
        return self.engine.graphs[0 if alone else 1] + layers

    def _left_free(self, fixed: Number, outside: list[Term], weights: Term, activations: Term) -> list[Term]:
        """What the engine leaves free of an accelerator, by how its share is meant; `outside`: what it takes beside
        that share.
        """
        engine, share = self.engine, self.share
        if self.accelerator is None or share is None:
            return outside
        if self.plugin is not None and self.plugin.graph_share is not None:
            return self._of_free(self.plugin, share, fixed + weights.value + activations.value)
        usable = self.accelerator.memory.usable_bytes - (self.plan.reserve_bytes if engine.share_of != "total" else 0)
        if engine.share_of == "static":
            dynamic = e.dynamic_bytes
            rest = Term.of("outside of the static part", dynamic, source=engine.source, U=usable - fixed, u=share)
            return [Term.of("reserved beyond activations", e.reserve_left_bytes, U=rest.value, M=activations.value)]
        if engine.share_of == "loaded":
            used = fixed + weights.value
            rest = Term.of("left by the cache", e.unshared_bytes, source=engine.source, U=usable, u=share, M=used)
            return [Term.of("reserved beyond activations", e.reserve_left_bytes, U=rest.value, M=activations.value)]
        if engine.share_of == "free":
            used = fixed + weights.value + activations.value
            return [Term.of("left by the cache", e.unshared_bytes, source=engine.source, U=usable, u=share, M=used)]
        beyond = g.unclaimed_bytes
        rest = Term.of(
            "beyond the engine's share", beyond, source=engine.source, U=usable, u=share, M=self.plan.reserve_bytes
        )
        context = Term.of(
            context_name(self._vendor()),
            f.fixed_bytes,
            basis="measured",
            source=engine.overhead_source,
            M=engine.context,
        )
        inside = [context] if engine.context_in_share else []
        outside = ([] if engine.context_in_share else [context]) + outside
        if len(outside) > 1:
            outside = [Term.sum("beside the engine's share", *outside, unit="bytes")]
        maker = str(engine.version).partition(" ")[0]
        unused = Message(LEFT_UNUSED, engine=maker, setting=engine.setting)
        return [*inside, Term.max(unused, rest, *outside)]

    def _of_free(self, plugin: Plugin, share: float, used: Number) -> list[Term]:
        """What a plugin leaves of the memory that is free once the model ran: its share counts of that alone, and a
        part of the share is for graphs.
        """
        assert self.accelerator is not None and plugin.graph_share is not None
        usable = self.accelerator.memory.usable_bytes
        maker = str(self.engine.version).partition(" ")[0]
        parts = [
            Term.of(
                Message(LEFT_UNUSED, engine=maker, setting=self.engine.setting),
                e.unshared_bytes,
                source=plugin.source,
                U=usable,
                u=share,
                M=used,
            )
        ]
        if not self.plan.enforce_eager:
            graphs = e.plugin_graphs_bytes
            parts.append(Term.of(plugin.graphs, graphs, U=usable, u=share, M=used, p=plugin.graph_share))
        return parts
