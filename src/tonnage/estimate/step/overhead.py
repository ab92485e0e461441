"""What a process holds beyond its tensors: context, communicators, the allocator's reserve."""

from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.kernel.units import GIB, MIB
from tonnage.spec import Cluster, TrainingPlan

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
    """Those of PyTorch's matrix products."""
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
    return Term.of("accelerator context", f.fixed_bytes, basis="measured", source=source, M=own or CONTEXT)


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
        reserve
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
                "communicators",
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
