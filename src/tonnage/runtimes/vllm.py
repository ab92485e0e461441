"""vLLM: takes a share of the accelerator, profiles one full forward pass, and gives what is left to the cache.

Its memory rules are read from its source at 002f10e, which has the defaults of the 0.33 wheel; the fixed amounts were measured
by others on vLLM 0.19 and H100s (scripts/vllm_overheads.py prints their medians). They are what a process takes beyond its context:
the context itself, 0.51 GiB, is not counted against the share that vLLM takes.
"""

from tonnage.runtimes._base import SERVING_RUNTIMES, ServingRuntime
from tonnage.units import GIB

SERVING_RUNTIMES.add(
    "vllm",
    ServingRuntime(
        name="vllm",
        version="vLLM 0.33",
        source="vLLM, vllm/config/cache.py: gpu_memory_utilization 0.92, DEFAULT_BLOCK_SIZE 16; "
        "vLLM, vllm/engine/arg_utils.py, get_batch_defaults: max_num_batched_tokens and max_num_seqs of an API server",
        memory_share=0.92,
        tiers=((160 * GIB, 16384, 1024), (70 * GIB, 8192, 1024), (0, 2048, 256)),
        block_tokens=16,
        overhead_single={"CUDA libraries": round(0.25 * GIB), "CUDA graphs": round(0.87 * GIB)},
        overhead_parallel={"CUDA libraries and NCCL": round(2.09 * GIB), "CUDA graphs": round(1.54 * GIB)},
        overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: medians of non_torch_forward_gib and "
        "cuda_graph_actual_gib over 19 runs with one rank and 10 with several",
        # int8, int4 and fp8 per token and head, and TurboQuant, depend on the size of a head and are not described
        kv_cache={
            "fp16": "fp16",
            "bf16": "bf16",
            "fp8": "fp8-e4m3",
            "fp8_e4m3": "fp8-e4m3",
            "fp8_e5m2": "fp8-e5m2",
            "nvfp4": "nvfp4",
        },
        kv_cache_source="vLLM, vllm/config/cache.py: CacheDType",
        logits_bytes=14,  # the sampler on logits: 16 bit, fp32, probabilities, and the noise that draws from them
    ),
)
