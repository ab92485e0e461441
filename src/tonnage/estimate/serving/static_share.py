"""SGLang's mem_fraction_static where nobody says it: what it reserves of an accelerator for activations and graphs,
by version.
"""

from tonnage.architectures import Model
from tonnage.formulas import engines as e
from tonnage.kernel.formula import Number
from tonnage.kernel.units import MIB
from tonnage.ops import LatentAttention
from tonnage.runtimes import Reserve, ServingRuntime
from tonnage.spec import Accelerator, ServingPlan

VISION, BASE_LAYERS, BASE_WIDTH, SENSITIVITY, MIN_FACTOR, MAX_FACTOR = (
    0.95,
    24,
    1024,
    0.1,
    0.8,
    1.05,
)  # adjust_mem_fraction_for_vlm


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
    step = next(each for each in reserve.steps if not each.below_mib or mib < each.below_mib)
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
