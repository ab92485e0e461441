"""Lines that engines print, by release, and the published memory figures that are copied from them.

The figures are those of 04_infer_memory and 04b_infer_memory_vllm, the corpora of published memory of inference
(validation/infer_memory.yaml has their rows): each metric of a source, how many figures bear it, and the line that
prints it. Wording: vllm/worker/worker.py and v1/worker/gpu_worker.py, sglang/srt/model_executor/model_runner.py and
mem_cache/memory_pool.py, llama.cpp's src/llama*.cpp, litgpt/generate/base.py, each at its release; nvidia-smi as the
issue shows it. Not of a log: 128 `GPU memory` of tables in documentation, 5 `model tensor bytes` of a listing of GGUF
files, 1 `time`.
"""

from typing import NamedTuple


class Printed(NamedTuple):
    """A metric as its source names it; `times`: figures that bear it; `name`: the quantity of the figure that is
    found, or what the tool calls it where nothing predicts it; `value`: in the unit that is printed.
    """

    metric: str
    times: int
    name: str
    value: float


class Line(NamedTuple):
    """What a release prints: one line, or those of one report."""

    tool: str
    release: str
    text: str
    printed: tuple[Printed, ...]


LINES = (
    Line(
        "vLLM",
        "0.19",
        "(EngineCore pid=7) DEBUG 03-30 10:00:00 [gpu_worker.py:423] Memory profiling takes 7.29 seconds. Total non KV "
        "cache memory: 13.58GiB; torch peak memory increase: 0.77GiB; non-torch forward increase memory: 0.25GiB; "
        "weights memory: 12.56GiB.",
        (
            Printed("weights", 29, "weights", 12.56),
            Printed("activation peak", 29, "activations", 0.77),
            Printed("non-torch", 29, "outside_torch", 0.25),
        ),
    ),
    Line(
        "vLLM",
        "0.19",
        "(EngineCore pid=7) INFO 03-30 10:00:00 [gpu_worker.py:436] Available KV cache memory: 61.66 GiB",
        (Printed("KV cache memory", 29, "kv_cache", 61.66),),
    ),
    Line(
        "vLLM",
        "0.19",
        "(EngineCore pid=7) INFO 03-30 10:00:01 [kv_cache_utils.py:1319] GPU KV cache size: 126,256 tokens\n"
        "(EngineCore pid=7) INFO 03-30 10:00:01 [kv_cache_utils.py:1324] Maximum concurrency for 8,192 tokens per "
        "request: 15.41x",
        (
            Printed("KV cache tokens", 29, "kv_cache_tokens", 126256),
            Printed("maximum concurrency", 29, "concurrency", 15.41),
        ),
    ),
    Line(
        "vLLM",
        "0.19",
        "(EngineCore pid=7) INFO 03-30 10:00:20 [gpu_model_runner.py:6133] Graph capturing finished in 15 secs, took "
        "0.89 GiB",
        (Printed("CUDA graphs", 29, "cuda_graphs", 0.89),),
    ),
    Line(
        "vLLM",
        "0.17",
        "(EngineCore pid=7) INFO 03-05 10:00:00 [gpu_model_runner.py:4281] Model loading took 75.17 GiB memory and "
        "41.3 seconds",
        (Printed("model loading", 2, "weights", 75.17),),
    ),
    Line(
        "vLLM",
        "0.17",
        "(EngineCore pid=7) INFO 03-05 10:00:09 [kv_cache_utils.py:1307] GPU KV cache size: 482,080 tokens\n"
        "(EngineCore pid=7) INFO 03-05 10:00:09 [kv_cache_utils.py:1312] Maximum concurrency for 262,144 tokens per "
        "request: 6.42x",
        (
            Printed("GPU KV cache size", 3, "kv_cache_tokens", 482080),
            Printed("max concurrency @262144", 1, "concurrency", 6.42),
        ),
    ),
    Line(
        "vLLM",
        "0.17",
        "(EngineCore pid=7) INFO 03-05 10:00:09 [gpu_worker.py:436] Available KV cache memory: 4.99 GiB\n"
        "(EngineCore pid=7) INFO 03-05 10:00:09 [kv_cache_utils.py:1312] Maximum concurrency for 131,072 tokens per "
        "request: 2.31x",
        (
            Printed("KV cache per GPU", 1, "kv_cache", 4.99),
            Printed("max concurrency @131072", 1, "concurrency", 2.31),
        ),
    ),
    Line(
        "vLLM",
        "0.15",
        "ValueError: To serve at least one request with the models's max seq len (262144), (24.0 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (9.6 GiB). Based on the available memory, the "
        "estimated maximum model length is 104848. Try increasing `gpu_memory_utilization` or decreasing "
        "`max_model_len` when initializing the engine.",
        (Printed("KV cache needed for one max-length sequence", 1, "request_cache", 24.0),),
    ),
    Line(
        "vLLM",
        "0.8",
        "INFO 04-24 10:00:00 [gpu_model_runner.py:1329] Model loading took 14.9889 GiB and 3.214 seconds\n"
        "INFO 04-24 10:00:20 [kv_cache_utils.py:634] GPU KV cache size: 158,656 tokens\n"
        "INFO 04-24 10:00:20 [kv_cache_utils.py:637] Maximum concurrency for 32,768 tokens per request: 4.84x",
        (
            Printed("model loading", 1, "weights", 14.9889),
            Printed("GPU KV cache size", 1, "kv_cache_tokens", 158656),
            Printed("max concurrency @32768", 1, "concurrency", 4.84),
        ),
    ),
    Line(
        "vLLM",
        "0.7.2",
        "INFO 02-11 10:00:00 model_runner.py:1115] Loading model weights took 13.9476 GB\n"
        "INFO 02-11 10:00:05 worker.py:267] model weights take 13.95GiB; non_torch_memory takes 0.25GiB; PyTorch "
        "activation peak memory takes 0.19GiB; the rest of the memory reserved for KV Cache is 8.69GiB.\n"
        "INFO 02-11 10:00:05 kv_cache_utils.py:395] GPU KV cache size: 81,536 tokens",
        (
            Printed("model weights per GPU", 1, "weights", 13.95),
            Printed("non-torch", 1, "outside_torch", 0.25),
            Printed("activation peak", 1, "activations", 0.19),
            Printed("KV cache per GPU", 1, "kv_cache", 8.69),
            Printed("GPU KV cache size", 1, "kv_cache_tokens", 81536),
        ),
    ),
    Line(
        "vLLM",
        "0.7",
        "INFO 01-17 10:00:05 worker.py:241] the current vLLM instance can use total_gpu_memory (79.22GiB) x "
        "gpu_memory_utilization (0.90) = 71.30GiB\n"
        "INFO 01-17 10:00:05 worker.py:241] model weights take 19.86GiB; non_torch_memory takes 0.16GiB; PyTorch "
        "activation peak memory takes 36.63GiB; the rest of the memory reserved for KV Cache is 14.65GiB.\n"
        "INFO 01-17 10:00:05 executor_base.py:110] # CUDA blocks: 6001, # CPU blocks: 1638",
        (
            Printed("model weights", 1, "weights", 19.86),
            Printed("non-torch", 1, "outside_torch", 0.16),
            Printed("activation peak", 1, "activations", 36.63),
            Printed("KV cache memory", 1, "kv_cache", 14.65),
            Printed("GPU blocks (16 tokens)", 1, "kv_cache_blocks", 6001),
        ),
    ),
    Line(
        "vLLM",
        "0.7",
        "INFO 01-20 10:00:05 worker.py:267] model weights take 8.51GiB; non_torch_memory takes 0.26GiB; PyTorch "
        "activation peak memory takes 0.94GiB; the rest of the memory reserved for KV Cache is 2.18GiB.\n"
        "INFO 01-20 10:00:05 gpu_executor.py:76] # GPU blocks: 715, # CPU blocks: 1310\n"
        "INFO 01-20 10:00:05 gpu_executor.py:80] Maximum concurrency for 2048 tokens per request: 5.59x",
        (
            Printed("model weights", 1, "weights", 8.51),
            Printed("non-torch", 1, "outside_torch", 0.26),
            Printed("activation peak", 1, "activations", 0.94),
            Printed("KV cache memory", 3, "kv_cache", 2.18),
            Printed("GPU blocks", 2, "kv_cache_blocks", 715),
            Printed("max concurrency", 1, "concurrency", 5.59),
        ),
    ),
    Line(
        "vLLM",
        "0.7",
        "INFO 01-30 10:00:00 model_runner.py:1099] Loading model weights took 67.7229 GB\n"
        "INFO 01-30 10:00:20 executor_base.py:115] Maximum concurrency for 2048 tokens per request: 10.79x",
        (
            Printed("model weights", 1, "weights", 67.7229),
            Printed("max concurrency @2048", 1, "concurrency", 10.79),
        ),
    ),
    Line(
        "vLLM",
        "0.6.4",
        "INFO 11-21 10:00:00 worker.py:232] Memory profiling results: total_gpu_memory=23.68GiB "
        "initial_memory_usage=15.63GiB peak_torch_memory=17.98GiB memory_usage_post_profile=15.66GiB "
        "non_torch_memory=0.44GiB kv_cache_size=2.89GiB gpu_memory_utilization=0.90\n"
        "INFO 11-21 10:00:00 gpu_executor.py:113] # GPU blocks: 1478, # CPU blocks: 2048\n"
        "INFO 11-21 10:00:00 gpu_executor.py:117] Maximum concurrency for 28960 tokens per request: 0.82x",
        (
            Printed("peak torch memory", 1, "torch_peak", 17.98),
            Printed("KV cache memory", 1, "kv_cache", 2.89),
            Printed("GPU blocks", 1, "kv_cache_blocks", 1478),
            Printed("max concurrency", 1, "concurrency", 0.82),
        ),
    ),
    Line(
        "vLLM",
        "0.5.3",
        "INFO 07-24 10:00:00 model_runner.py:692] Loading model weights took 57.7520 GB",
        (Printed("model weights per GPU", 1, "weights", 57.752),),
    ),
    Line(
        "vLLM",
        "0.2.7",
        "INFO 01-08 10:00:00 llm_engine.py:294] # GPU blocks: 6487, # CPU blocks: 4096",
        (Printed("GPU blocks", 1, "kv_cache_blocks", 6487),),
    ),
    Line(
        "nvidia-smi",
        "535",
        "| Processes:                                                                            |\n"
        "|    0   N/A  N/A     86918      C   python3                                  20238MiB |",
        (Printed("nvidia-smi used", 1, "process_memory", 20238),),
    ),
    Line(
        "SGLang",
        "0.5.8",
        "[2026-02-04 10:00:00] Load weight end. elapsed=11.20 s, type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail "
        "mem=221.52 GB, mem usage=56.98 GB.\n"
        "[2026-02-04 10:00:09] KV Cache is allocated. #tokens: 1669816, K size: 76.44 GB, V size: 76.44 GB",
        (
            Printed("weights mem usage", 1, "weights", 56.98),
            Printed("KV cache tokens", 1, "kv_cache_tokens", 1669816),
            Printed("K size", 1, "kv_cache", 152.88),
            Printed("V size", 1, "kv_cache", 152.88),
        ),
    ),
    Line(
        "SGLang",
        "0.5.9",
        "[2026-03-04 10:00:00 TP0] Mamba Cache is allocated. max_mamba_cache_size: 128, conv_state size: 0.09GB, "
        "ssm_state size: 6.46GB \n"
        "[2026-03-04 10:00:01 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 3491860, K size: 19.98 GB, V "
        "size: 19.98 GB",
        (
            Printed("mamba conv state", 1, "conv_state size", 0.09),
            Printed("mamba ssm state", 1, "ssm_state size", 6.46),
            Printed("KV cache tokens", 1, "kv_cache_tokens", 3491860),
            Printed("K size", 1, "kv_cache", 39.96),
            Printed("V size", 1, "kv_cache", 39.96),
        ),
    ),
    Line(
        "SGLang",
        "0.4.6",
        "[2025-05-02 10:00:00 TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=6.09 GB, "
        "mem usage=15.54 GB.\n"
        "[2025-05-02 10:00:01 TP0] KV Cache is allocated. #tokens: 46611, K size: 1.42 GB, V size: 1.42 GB\n"
        "[2025-05-02 10:00:01 TP0] Memory pool end. avail mem=2.09 GB",
        (
            Printed("mem usage (weights)", 1, "weights", 15.54),
            Printed("avail mem before pool", 1, "Load weight end, avail mem", 6.09),
            Printed("KV cache tokens", 1, "kv_cache_tokens", 46611),
            Printed("K size", 1, "kv_cache", 2.84),
            Printed("V size", 1, "kv_cache", 2.84),
            Printed("avail after pool", 1, "Memory pool end, avail mem", 2.09),
        ),
    ),
    Line(
        "SGLang",
        "0.5.12",
        "[2026-06-20 10:00:00 DP0 TP0 EP0] Load weight end. elapsed=93.10 s, type=DeepseekV4ForCausalLM, quant=fp8, "
        "avail mem=140.12 GB, mem usage=125.65 GB.",
        (Printed("mem usage after load", 1, "weights", 125.65),),
    ),
    Line(
        "llama.cpp",
        "July 2023",
        "llama_model_load_internal: mem required  = 7465.87 MB (+  162.50 MB per state)\n"
        "llama_new_context_with_model: kv self size  =  162.50 MB",
        (
            Printed("mem required", 1, "mem required", 7465.87),
            Printed("KV self size", 1, "kv_buffer", 162.5),
        ),
    ),
    Line(
        "llama.cpp",
        "b4400",
        "llama_new_context_with_model: KV self size  =  112.00 MiB, K (f16):   56.00 MiB, V (f16):   56.00 MiB\n"
        "llama_new_context_with_model:      CUDA0 compute buffer size =   304.00 MiB",
        (
            Printed("KV self size", 1, "kv_buffer", 112.0),
            Printed("compute buffer", 1, "compute buffer size", 304.0),
        ),
    ),
    Line(
        "LitGPT",
        "October 2023",
        "Time for inference 1: 6.21 sec total, 40.13 tokens/sec\nMemory used: 18.95 GB",
        (Printed("torch.cuda.max_memory_allocated", 15, "allocated_memory", 18.95),),
    ),
)
# Metrics of the corpora that are of a log, and how many figures bear them.
METRICS = {
    "KV cache memory": 34,
    "non-torch": 32,
    "activation peak": 32,
    "KV cache tokens": 32,
    "weights": 29,
    "maximum concurrency": 29,
    "CUDA graphs": 29,
    "torch.cuda.max_memory_allocated": 15,
    "GPU KV cache size": 5,
    "GPU blocks": 4,
    "model weights": 3,
    "model loading": 3,
    "V size": 3,
    "K size": 3,
    "model weights per GPU": 2,
    "max concurrency": 2,
    "KV self size": 2,
    "KV cache per GPU": 2,
    "weights mem usage": 1,
    "peak torch memory": 1,
    "nvidia-smi used": 1,
    "mem usage after load": 1,
    "mem usage (weights)": 1,
    "mem required": 1,
    "max concurrency @32768": 1,
    "max concurrency @262144": 1,
    "max concurrency @2048": 1,
    "max concurrency @131072": 1,
    "mamba ssm state": 1,
    "mamba conv state": 1,
    "compute buffer": 1,
    "avail mem before pool": 1,
    "avail after pool": 1,
    "KV cache needed for one max-length sequence": 1,
    "GPU blocks (16 tokens)": 1,
}
