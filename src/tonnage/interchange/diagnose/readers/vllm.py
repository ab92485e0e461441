"""vLLM. Sources: vllm 0.33 (v1/worker/utils.py, v1/worker/gpu_worker.py, v1/core/kv_cache_planning.py,
v1/worker/gpu_model_runner.py, utils/mem_utils.py); vllm 0.4 to 0.10 (worker/worker.py, worker/model_runner.py,
executor/executor_base.py) for older wordings.
"""

from tonnage.interchange.diagnose.numbers import NUMBER
from tonnage.interchange.diagnose.patterns import FAILED, SAYS_CAUSE, fact, failure

_N = NUMBER
VLLM = "vllm"

FAILURES = (
    failure(
        VLLM,
        "No available memory for the cache blocks",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(
        VLLM,
        "To serve at least one request with the model",
        rf"max seq len \((?P<max_model_len>\d+)\), \(?(?P<needed_kv>{_N}) ?Gi?B KV cache is needed, which is larger "
        rf"than the available KV cache memory \((?P<available_kv>{_N}) ?Gi?B\)"
        r"(?:.{0,120}?estimated maximum model length is (?P<estimated_max_model_len>\d+))?",
        phase="cache allocation",
        cause="context too long",
        strength=SAYS_CAUSE,
        max_model_len="tokens",
        needed_kv="gib",
        available_kv="gib",
        estimated_max_model_len="tokens",
    ),
    failure(  # up to 0.11
        VLLM,
        "is larger than the maximum number of tokens that can be stored in KV cache",
        r"max seq len \((?P<max_model_len>\d+)\) is larger than the maximum number of tokens that can be stored in KV "
        r"cache \((?P<estimated_max_model_len>\d+)\)",
        phase="cache allocation",
        cause="context too long",
        strength=SAYS_CAUSE,
        max_model_len="tokens",
        estimated_max_model_len="tokens",
    ),
    failure(
        VLLM,
        "is less than desired GPU memory utilization",
        rf"Free memory on device (?:[\w:]{{1,20}} )?\((?P<free>{_N})/(?P<total>{_N}) GiB\) on startup is less than "
        rf"desired GPU memory utilization \((?P<gpu_memory_utilization>{_N}), (?P<wanted>{_N}) GiB\)",
        phase="loading weights",
        cause="another process",
        strength=SAYS_CAUSE,
        free="gib",
        total="gib",
        gpu_memory_utilization="share",
        wanted="gib",
    ),
    failure(
        VLLM,
        "This happens when other processes sharing the same container",
        phase="profiling",
        cause="another process",
        strength=SAYS_CAUSE,
    ),
    failure(  # up to 0.10
        VLLM,
        "Error in memory profiling",
        r"Error in memory profiling\. (?:Peak memory usage|Initial free memory)",
        phase="profiling",
        cause="another process",
        strength=SAYS_CAUSE,
    ),
    failure(
        VLLM,
        "out of memory occurred when warming up sampler",
        r"warming up sampler with (?P<requests>\d+) dummy requests",
        phase="profiling",
        cause="logits",
        strength=SAYS_CAUSE,
        requests="requests",
    ),
    failure(
        VLLM,
        "out of memory occurred when warming up pooler",
        phase="profiling",
        cause="activations",
        strength=SAYS_CAUSE,
    ),
    failure(
        VLLM,
        "Failed to load model - not enough GPU memory",
        phase="loading weights",
        cause="weights",
        strength=FAILED,
    ),
)

FACTS = (
    fact(VLLM, "Model loading took", rf"Model loading took (?P<weights>{_N}) Gi?B", weights="gib"),
    fact(VLLM, "Loading model weights took", rf"Loading model weights took (?P<weights>{_N}) GB", weights="gib"),
    fact(
        VLLM, "Available KV cache memory", rf"Available KV cache memory: (?P<available_kv>{_N}) GiB", available_kv="gib"
    ),
    fact(
        VLLM,
        "model weights take",
        rf"model weights take (?P<weights>{_N})GiB; non_torch_memory takes (?P<outside_pytorch>{_N})GiB; PyTorch "
        rf"activation peak memory takes (?P<activations>{_N})GiB; the rest of the memory reserved for KV Cache is "
        rf"(?P<available_kv>{_N})GiB",
        weights="gib",
        outside_pytorch="gib",
        activations="gib",
        available_kv="gib",
    ),
    fact(
        VLLM,
        "the current vLLM instance can use total_gpu_memory",
        rf"total_gpu_memory \((?P<total>{_N})GiB\) x gpu_memory_utilization \((?P<gpu_memory_utilization>{_N})\)",
        total="gib",
        gpu_memory_utilization="share",
    ),
    fact(VLLM, "KV cache size", r"KV cache size: (?P<kv_tokens>[\d,]+) tokens", kv_tokens="tokens"),
    fact(VLLM, " blocks: ", r"# (?:GPU|CUDA) blocks: (?P<kv_blocks>\d+)", kv_blocks="blocks"),
    fact(VLLM, "Graph capturing finished", rf"took (?P<cuda_graphs>{_N}) GiB", cuda_graphs="gib"),
    fact(
        VLLM,
        "Maximum concurrency for",
        rf"Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request: (?P<concurrency>{_N})x",
        max_model_len="tokens",
        concurrency="requests",
    ),
    fact(
        VLLM,
        "for consumed memory (weights + non-torch)",
        rf"Free memory on device \((?P<free>{_N})/(?P<total>{_N}) GiB\).{{0,120}}Actual usage is "
        rf"(?P<weights_and_outside_pytorch>{_N}) GiB for consumed memory \(weights \+ non-torch\), "
        rf"(?P<activations>{_N}) GiB for peak activation, and (?P<cuda_graphs>{_N}) GiB",
        free="gib",
        total="gib",
        weights_and_outside_pytorch="gib",
        activations="gib",
        cuda_graphs="gib",
    ),
    fact(  # before the line above
        VLLM,
        "GiB for weight, ",
        rf"Actual usage is (?P<weights>{_N}) GiB for weight, (?P<activations>{_N}) GiB for peak activation, "
        rf"(?P<outside_pytorch>{_N}) GiB for non-torch memory, and (?P<cuda_graphs>{_N}) GiB for CUDAGraph memory",
        weights="gib",
        activations="gib",
        outside_pytorch="gib",
        cuda_graphs="gib",
    ),
    fact(
        VLLM,
        "Total non KV cache memory",
        rf"torch peak memory increase: (?P<activations>{_N}) ?GiB; non-torch forward increase memory: "
        rf"(?P<outside_pytorch>{_N}) ?GiB; weights memory: (?P<weights>{_N}) ?GiB",
        activations="gib",
        outside_pytorch="gib",
        weights="gib",
    ),
    fact(  # 0.6.4 to 0.6.6; the later ones have commas between the figures
        VLLM,
        "Memory profiling results",
        rf"peak_torch_memory=(?P<torch_peak>{_N})GiB.{{0,60}}?non_torch_memory=(?P<outside_pytorch>{_N})GiB,? "
        rf"kv_cache_size=(?P<available_kv>{_N})GiB",
        torch_peak="gib",
        outside_pytorch="gib",
        available_kv="gib",
    ),
    fact(
        VLLM,
        "CUDA graph pool memory",
        rf"CUDA graph pool memory: (?P<cuda_graphs>{_N}) GiB \(actual\)",
        cuda_graphs="gib",
    ),
)
