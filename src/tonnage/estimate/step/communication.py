"""Buffers that communication holds on a rank: units gathered by ZeRO-3, gradients on their way, flat buckets.

A unit is what FSDP wraps: a layer, the table before the layers, the norm and head after them. What is in use is
gathered, and so is what comes next.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from tonnage.architectures import Block
from tonnage.estimate.step.rank import Shares, Stage, op_parameters
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.part_names import CUDA_CONTEXT
from tonnage.kernel.term import Term
from tonnage.kernel.units import GIB, MIB
from tonnage.numerics.precisions import Recipe
from tonnage.ops import Op
from tonnage.runtimes import TrainingRuntime
from tonnage.runtimes.parts.base import Bucket, Copy, Moment
from tonnage.spec import Cluster, TrainingPlan

NOTHING = Term.sum("nothing", unit="parameters")


class Communication:
    """The buffers of one stage at each moment of a step."""

    def __init__(
        self,
        runtime: TrainingRuntime,
        recipe: Recipe,
        plan: TrainingPlan,
        stage: Stage,
        held: Mapping[Block, Term],
        shares: Shares,
    ):
        self.runtime, self.recipe, self.zero_stage = runtime, recipe, plan.zero_stage
        self.chunked = plan.loss == "chunked"
        layers = [held[block] for block, _ in stage.layers]
        self.layer = Term.max("largest layer", *layers) if layers else NOTHING
        self.before = _unit("before the layers", stage.before, shares)
        self.after = _unit("after the layers", stage.after + stage.table, shares)

    def buffers(self, moment: Moment, held: Term, trained: Term, updates: Recipe) -> Term:
        """All buffers at this moment; `held`: the parameters of the rank before ZeRO; `trained`: those of them that
        train, whose gradients `updates` says the width of.

        Buckets hold gradients of what trains alone (PyTorch, torch/nn/parallel/distributed.py:
        _build_params_for_reducer takes the parameters with requires_grad).
        """
        parts = [*self._gathered(moment, held), *self._reduced(moment)]
        parts += [
            self._bucket(bucket, trained, updates)
            for bucket in self.runtime.buckets
            if self.zero_stage in bucket.stages and moment in bucket.moments
        ]
        return Term.sum("communication buffers", *parts, unit="bytes")

    def _gathered(self, moment: Moment, held: Term) -> list[Term]:
        stays = self.zero_stage == 2 and self.runtime.stays_gathered
        if stays and moment in ("loss", "first layer of backward"):
            return [copies("all-gather buffer (all units)", self.recipe.compute_bytes, held)]
        if not (stays or self.zero_stage == 3) or not self.runtime.gathers:
            return []
        in_use = {"loss": self.after, "first layer of backward": self.layer, "last layer of backward": self.before}.get(
            moment
        )
        if in_use is None:
            return []
        ahead = [self.layer] * (self.runtime.gathers - 1)
        return [
            copies(Message("all-gather buffer ({unit})", unit=unit.name), self.recipe.compute_bytes, unit)
            for unit in (in_use, *ahead)
            if unit.children
        ]

    def _reduced(self, moment: Moment) -> list[Term]:
        """Gradients of a unit before they are sharded: of the one that backward has just left.

        A chunked loss runs the head's backward chunk by chunk, and reduces its gradients after the last one.
        """
        left: tuple[Term, ...] = {
            "first layer of backward": (self.after, self.layer),
            "last layer of backward": (self.before, self.layer),
            "loss": (self.after,) if self.chunked else (),
        }.get(moment, ())
        units = [unit for unit in left if unit.children] if self.zero_stage >= 2 else []
        if not units:
            return []
        unit = Term.max("largest unit", *units)
        return [copies(copy.name, copy.bytes_per_element, unit) for copy in self.runtime.reduces]

    def step(self, updated: Term) -> Term:
        """Copies of the gradients that the optimizer's step makes; `updated`: the parameters whose states this rank
        holds.
        """
        copied = [copy for copy in self.runtime.step if self.zero_stage in copy.stages]
        buckets = [self._bucket(copy, updated, self.recipe) for copy in copied]
        return Term.sum("temporary", *(buckets if self.recipe.master_bytes else ()), unit="bytes")

    def _bucket(self, bucket: Bucket, held: Term, recipe: Recipe) -> Term:
        width = width_of(bucket.copy, recipe)
        if bucket.whole:
            return copies(bucket.name, width, Term.of("elements", f.whole_bucket_parameters, x=bucket.elements))
        if bucket.elements:
            held = Term.of("elements", f.bucket_parameters, N=held.value, x=bucket.elements)
        return copies(bucket.name, width, held)


def width_of(copy: Copy, recipe: Recipe) -> float:
    """Bytes of a parameter in this copy."""
    return {"compute": recipe.compute_bytes, "master": recipe.update_bytes, "gradient": recipe.main_gradient_bytes}[
        copy
    ]


def copies(name: str, w: float, parameters: Term, source: str = "") -> Term:
    """w bytes for each of these parameters."""
    return Term.product(name, "bytes", _bytes_each(w, source), parameters)


@lru_cache(maxsize=256, typed=True)
def _bytes_each(w: float, source: str) -> Term:
    return Term.of("bytes per parameter", f.bytes_per_parameter, source=source, w=w)


def _unit(name: str, ops: Iterable[Op], shares: Shares) -> Term:
    return Term.sum(name, *(term for op in ops for term in op_parameters(op, shares)), unit="parameters")


# ---- What a process holds beyond its tensors: context, communicators, the allocator's reserve.

# Measured by others; issue "Training memory as measured" replaces them by accelerator and version.
CONTEXT = round(0.51 * GIB)
COMMUNICATORS = round(1.02 * GIB)
CONTEXT_SOURCE = (
    "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib of an H100, 0.51 with one rank, "
    "1.53 with two (1.43 to 2.01 with two or four)"
)
RESERVE = 0.053
RESERVE_SOURCE = (
    "SimuMax, docs/b200/b200_release_v1.2_summary.json: reserved over allocated in Megatron, median of 19 "
    "runs, 1.028 to 1.093 "
    "(scripts/allocator_reserve.py: 1.9 % of the peak with each run left out)"
)
# One for each thread that multiplies: that of the program, and autograd's of the device.
WORKSPACE_THREADS = 2
WORKSPACE, LARGE_WORKSPACE = 2 * (4096 * 1024) + 8 * (16 * 1024), 32 * MIB  # ":4096:2:16:8", and from Hopper on
LARGE_GENERATIONS = ("Hopper", "Blackwell")
WORKSPACE_SOURCE = (
    "PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp: parseChosenWorkspaceSize, workspaces by handle and stream"
)
MEASURED_VENDORS = frozenset({"NVIDIA"})


def cublas_workspaces(cluster: Cluster | None) -> list[Term]:
    """The workspaces of PyTorch's matrix products."""
    if cluster is not None and cluster.accelerator.vendor != "NVIDIA":
        return []
    generation = cluster.accelerator.generation if cluster is not None else LARGE_GENERATIONS[0]
    size = LARGE_WORKSPACE if generation.startswith(LARGE_GENERATIONS) else WORKSPACE
    return [Term.of("cuBLAS workspaces", f.workspace_bytes, source=WORKSPACE_SOURCE, M=size, n=WORKSPACE_THREADS)]


def cuda_context(cluster: Cluster | None) -> Term:
    """What the process holds outside of PyTorch's allocator: as the catalogue has it of this accelerator, else that
    of an H100.
    """
    accelerator = cluster.accelerator if cluster is not None else None
    own = accelerator.memory.context_bytes if accelerator is not None else None
    source = CONTEXT_SOURCE
    if accelerator is not None and own is not None:
        fact = accelerator.sources.get("memory.context_mib") or accelerator.sources.get("memory")
        source = fact.source if fact is not None else source
    return Term.of(CUDA_CONTEXT, f.fixed_bytes, basis="measured", source=source, M=own or CONTEXT)


def training_overhead(
    tensors: Number,
    plan: TrainingPlan,
    cluster: Cluster | None,
    workspaces: list[Term],
    reserve: list[Term] | None = None,
) -> Term:
    """Context, communicators and allocator reserve on one rank, `tensors` being the bytes of all tensors; `reserve`:
    where it is known.
    """
    parts = (
        []
        if cluster is not None and cluster.accelerator.kind == "tpu"  # XLA lays out all buffers when it compiles
        else reserve
        if reserve is not None
        else [
            Term.of(
                "allocator reserve", f.reserve_bytes, basis="measured", source=RESERVE_SOURCE, M=tensors, rho=RESERVE
            )
        ]
    )
    parts = [*parts, *workspaces]
    if cluster is None or cluster.accelerator.vendor in MEASURED_VENDORS:
        parts.append(cuda_context(cluster))
        parts.append(
            Term.of(
                "NCCL buffers",
                f.parallel_bytes,
                basis="measured",
                source=CONTEXT_SOURCE,
                M=COMMUNICATORS,
                n=plan.world_size,
            )
        )
    if cluster is not None and plan.post_training.engine_memory_share:
        usable = cluster.accelerator.memory.usable_bytes
        parts.append(
            Term.of("engine that generates", f.engine_bytes, U=usable, u=plan.post_training.engine_memory_share)
        )
    return Term.sum("runtime overhead", *parts, unit="bytes")
