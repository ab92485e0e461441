"""vLLM: takes a share of the accelerator, profiles one full forward pass, and gives what is left to the cache.

Its memory rules are read from the 0.33 wheel; the fixed amounts were measured by others on vLLM 0.19 and an H100 (the
medians of validation/vllm_memory_h100.yaml, which scripts/vllm_overheads.py prints).
"""

from tonnage.runtimes._base import SERVING_RUNTIMES, ServingRuntime
from tonnage.units import GIB

SERVING_RUNTIMES.add(
    "vllm",
    ServingRuntime(
        name="vllm",
        version="vLLM 0.33",
        source="vLLM 0.33, vllm/config/cache.py and scheduler.py: gpu_memory_utilization 0.92, block size 16; "
        "max_num_batched_tokens and max_num_seqs of a server by the memory of its accelerator",
        memory_share=0.92,
        tiers=((160 * GIB, 16384, 1024), (70 * GIB, 8192, 1024), (0, 2048, 256)),
        block_tokens=16,
        overhead_single={"CUDA context and libraries": round(0.25 * GIB), "CUDA graphs": round(0.87 * GIB)},
        overhead_parallel={"CUDA context, libraries and NCCL": round(2.09 * GIB), "CUDA graphs": round(1.54 * GIB)},
        overhead_source="llm-d-planner accuracy table (vLLM 0.19, H100): medians of its runs",
        logits_bytes=14,  # the sampler on logits: 16 bit, fp32, probabilities, and the noise that draws from them
    ),
)
