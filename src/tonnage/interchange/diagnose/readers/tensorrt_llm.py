"""TensorRT-LLM. Sources: tensorrt_llm/_torch/pyexecutor/py_executor_creator.py (the names of its components);
cpp/tensorrt_llm/runtime/tllmBuffers.h and batch_manager for the engine in C++.
"""

from tonnage.interchange.diagnose.numbers import NUMBER
from tonnage.interchange.diagnose.patterns import FAILED, SAYS_CAUSE, fact, failure

_N = NUMBER
TENSORRT_LLM = "tensorrt-llm"
_FAILED = "The following component could not be created"

FAILURES = (
    failure(
        TENSORRT_LLM,
        "Requested amount of GPU memory",
        r"Requested amount of GPU memory \((?P<tried>\d+) bytes\) could not be allocated",
        phase="loading weights",
        cause="weights",
        tried="bytes",
    ),
    failure(
        TENSORRT_LLM,
        _FAILED,
        rf"{_FAILED}: (?:Model$|Model |Draft model)",
        phase="loading weights",
        cause="weights",
        strength=SAYS_CAUSE,
    ),
    failure(
        TENSORRT_LLM,
        _FAILED,
        rf"{_FAILED}: (?:Initial )?KV [Cc]ache",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(
        TENSORRT_LLM,
        _FAILED,
        rf"{_FAILED}: (?:Sampler|Drafter|Guided|Speculative)",
        phase="profiling",
        cause="logits",
        strength=SAYS_CAUSE,
    ),
    failure(
        TENSORRT_LLM,
        _FAILED,
        rf"{_FAILED}: (?:Additional|Model resources)",
        phase="profiling",
        cause="activations",
        strength=SAYS_CAUSE,
    ),
    failure(
        TENSORRT_LLM,
        "Executor creation failed due to insufficient GPU memory",
        phase="loading weights",
        strength=FAILED,
    ),
    failure(TENSORRT_LLM, "cudaMallocAsync(ptr, n, mCudaStream->get()): out of memory", strength=FAILED),
    failure(TENSORRT_LLM, "in ::cudaMalloc", r"::cudaMalloc\(.{0,40}\): out of memory", strength=FAILED),
    failure(
        TENSORRT_LLM,
        "is not enough to hold",
        r"KV cache.{0,80}is not enough to hold",
        phase="cache allocation",
        cause="context too long",
        strength=SAYS_CAUSE,
    ),
    failure(
        TENSORRT_LLM,
        "maxTokensInPagedKvCache",
        r"maxTokensInPagedKvCache \((?P<kv_tokens>\d+)\) must be large enough to process at least 1 sequence",
        phase="cache allocation",
        cause="context too long",
        strength=SAYS_CAUSE,
        kv_tokens="tokens",
    ),
)

FACTS = (
    fact(TENSORRT_LLM, "Total GPU memory (GiB):", rf"Total GPU memory \(GiB\): (?P<total>{_N})", total="gib"),
    fact(
        TENSORRT_LLM,
        "Free GPU memory before component creation attempt",
        rf"attempt \(GiB\): (?P<free>{_N})",
        free="gib",
    ),
    fact(
        TENSORRT_LLM,
        "Model: ",
        rf"^\s*Model: (?P<free_before_weights>{_N}) / (?P<free_after_weights>{_N})\s*$",
        free_before_weights="gib",
        free_after_weights="gib",
    ),
    fact(TENSORRT_LLM, "Loaded engine size", rf"Loaded engine size: (?P<weights>{_N}) MiB", weights="mib"),
    fact(
        TENSORRT_LLM,
        "for execution context memory",
        rf"Allocated (?P<activations>{_N}) MiB for execution context",
        activations="mib",
    ),
    fact(
        TENSORRT_LLM,
        "for max tokens in paged KV cache",
        rf"Allocated (?P<kv_cache>{_N}) GiB for max tokens in paged KV cache \((?P<kv_tokens>\d+)\)",
        kv_cache="gib",
        kv_tokens="tokens",
    ),
)
