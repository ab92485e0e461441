"""llama.cpp and what is built on ggml. Sources: ggml/src/ggml-cuda/ggml-cuda.cu, ggml/src/ggml-alloc.c,
ggml/src/ggml-backend.cpp, src/llama-context.cpp, src/llama-kv-cache.cpp, src/llama-model.cpp, common/common.cpp.
"""

from tonnage.interchange.diagnose.numbers import NUMBER
from tonnage.interchange.diagnose.patterns import FAILED, FOLLOWS, SAYS_CAUSE, LinePattern, fact, failure

_N = NUMBER
LLAMA_CPP = "llama-cpp"
_DEVICE = r"(?:CUDA|ROCm|HIP|Vulkan|Metal|SYCL|CANN|MUSA|OpenCL|MTL|RPC)\w{0,12}"

FAILURES = (
    failure(
        LLAMA_CPP,
        "cudaMalloc failed: out of memory",
        rf"allocating (?P<tried>{_N}) MiB on device (?P<gpu>\d+): cudaMalloc failed: out of memory",
        strength=FAILED,
        tried="mib",
        gpu="",
    ),
    failure(
        LLAMA_CPP,
        "error loading model: unable to allocate",
        phase="loading weights",
        cause="weights",
        strength=SAYS_CAUSE,
    ),
    failure(
        LLAMA_CPP,
        "alloc_tensor_range: failed to allocate",
        rf"failed to allocate {_DEVICE} buffer of size (?P<tried>\d+)",
        phase="loading weights",
        cause="weights",
        strength=FAILED,
        tried="bytes",
    ),
    failure(
        LLAMA_CPP,
        "failed to allocate buffer for kv cache",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(
        LLAMA_CPP,
        "llama_kv_cache_init() failed for self-attention cache",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(LLAMA_CPP, "unable to allocate KV buffer", phase="cache allocation", cause="kv cache", strength=SAYS_CAUSE),
    failure(
        LLAMA_CPP,
        "KV buffer",
        rf"(?:unable|failed) to allocate (?:{_DEVICE} )?KV buffer",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(
        LLAMA_CPP,
        "failed to allocate compute",
        r"failed to allocate compute (?:pp |tg )?buffers?",
        phase="profiling",
        cause="activations",
        strength=SAYS_CAUSE,
    ),
    failure(
        LLAMA_CPP,
        "ggml_gallocr_reserve_n",
        rf"failed to allocate {_DEVICE} buffer of size (?P<tried>\d+)",
        phase="profiling",
        cause="activations",
        strength=FAILED,
        tried="bytes",
    ),
    failure(LLAMA_CPP, "ErrorOutOfDeviceMemory", strength=FAILED),
    failure(
        LLAMA_CPP,
        "failed to allocate buffer, size",
        rf"failed to allocate buffer, size = +(?P<tried>{_N}) MiB",
        strength=FAILED,
        tried="mib",
    ),
    failure(
        LLAMA_CPP,
        "kIOGPUCommandBufferCallbackErrorOutOfMemory",
        phase="serving",
        cause="activations",
        strength=SAYS_CAUSE,
    ),
    failure(LLAMA_CPP, "Insufficient Memory (", phase="serving", cause="activations", strength=FAILED),
    failure(
        LLAMA_CPP,
        "MiB of pinned memory",
        rf"failed to allocate (?P<tried>{_N}) MiB of pinned memory",
        phase="host",
        cause="host memory",
        strength=FOLLOWS,
        host=True,
        tried="mib",
    ),
    failure(
        LLAMA_CPP, "failed to allocate CPU buffer", phase="host", cause="host memory", strength=SAYS_CAUSE, host=True
    ),
    failure(
        LLAMA_CPP,
        "ggml_aligned_malloc: insufficient memory",
        rf"attempted to allocate +(?P<tried>{_N}) MB",
        phase="host",
        cause="host memory",
        strength=SAYS_CAUSE,
        host=True,
        tried="mib",
    ),
    failure(LLAMA_CPP, "try reducing --n-gpu-layers if you're running out of VRAM", strength=FOLLOWS),
)


def _buffer(hint: str, pattern: str, name: str) -> LinePattern:
    """A line for each backend that has such a buffer; those of processors are `_on_host`."""
    on_device = rf"{_DEVICE}(?:_Mapped)? {pattern} = +(?P<{name}>{_N}) MiB"
    on_host = rf"\w+ {pattern} = +(?P<{name}_on_host>{_N}) MiB"
    return fact(LLAMA_CPP, hint, f"(?:{on_device}|{on_host})", **{name: "mib", f"{name}_on_host": "mib"})


FACTS = (
    _buffer("model buffer size", "model buffer size", "weights"),
    _buffer("llm_load_tensors: ", "buffer size", "weights"),  # until b4000: "buffer size" alone
    _buffer("KV buffer size", "KV buffer size", "kv_cache"),
    _buffer("compute buffer size", "compute buffer size", "activations"),
    fact(LLAMA_CPP, "self size", rf"(?:KV|kv) self size += +(?P<kv_self>{_N}) (?:MiB|MB)", kv_self="mib"),
    fact(LLAMA_CPP, "mem required", rf"mem required += +(?P<required>{_N}) MB", required="mib"),  # until 2023
    fact(
        LLAMA_CPP,
        "n_ctx ",
        r"llama_(?:context|new_context_with_model): n_ctx +?= +(?P<max_model_len>\d+)",
        max_model_len="tokens",
    ),
    fact(
        LLAMA_CPP,
        "layers to GPU",
        r"offloaded (?P<layers_on_gpu>\d+)/(?P<layers>\d+) layers to GPU",
        layers_on_gpu="layers",
        layers="layers",
    ),
    fact(LLAMA_CPP, "using device", rf"using device {_DEVICE} .{{0,120}} - (?P<free>\d+) MiB free", free="mib"),
)
