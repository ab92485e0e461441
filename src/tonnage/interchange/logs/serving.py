"""Start-up logs of engines, and the metrics that they publish."""

import re
from collections.abc import Iterator

from tonnage.interchange.logs import READERS, Figure, LogReader, figure, largest, number

NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)"


def _all(pattern: str, text: str) -> list[float]:
    return [number(match) for match in re.findall(pattern, text)]


def _first(values: list[float]) -> tuple[float, int] | None:
    """The first value: further ones are of other ranks, or of a second start."""
    return (values[0], len(values)) if values else None


def vllm(text: str) -> Iterator[Figure]:
    """What a worker says while it starts."""
    weights = _all(rf"model weights take {NUMBER}GiB", text) or _all(
        rf"(?:Model loading|Loading model weights) took {NUMBER} Gi?B", text
    )
    yield from figure("weights", largest(weights), "GiB", "Model loading took")
    peak = _all(rf"PyTorch activation peak memory takes {NUMBER}GiB", text)
    yield from figure("activations", _first(peak), "GiB", "PyTorch activation peak memory")
    outside = _all(rf"non_torch_memory takes {NUMBER}GiB", text)
    yield from figure("outside_torch", _first(outside), "GiB", "non_torch_memory")
    graphs = _all(rf"Graph capturing finished in .*? secs?, took {NUMBER} GiB", text)
    yield from figure("cuda_graphs", _first(graphs), "GiB", "Graph capturing finished, took")
    cache = _all(rf"Available KV cache memory: {NUMBER} GiB", text)
    yield from figure("kv_cache", _first(cache), "GiB", "Available KV cache memory")
    tokens = _all(rf"KV cache size: {NUMBER} tokens", text)
    yield from figure("kv_cache_tokens", _first(tokens), "count", "GPU KV cache size")
    blocks = _all(rf"# (?:GPU|CUDA) blocks: {NUMBER}", text)  # until 0.8
    yield from figure("kv_cache_blocks", _first(blocks), "count", "# GPU blocks")
    held = re.findall(rf"Maximum concurrency for {NUMBER} tokens per request: {NUMBER}x", text)
    if held:
        metric = f"Maximum concurrency for {held[0][0]} tokens"
        yield from figure("concurrency", (number(held[0][1]), 1), "count", metric)


def sglang(text: str) -> Iterator[Figure]:
    """What a scheduler says while it starts, in GiB called GB."""
    weights = _all(rf"Load weight end\..*?mem usage={NUMBER} ?GB", text)
    yield from figure("weights", largest(weights), "GiB", "Load weight end, mem usage")
    sizes = rf"(?:, K size: {NUMBER} GB, V size: {NUMBER} GB)?"
    caches = re.findall(rf"KV Cache is allocated\..*?#tokens: {NUMBER}{sizes}", text)
    if caches:
        tokens, keys, values = caches[0]
        yield from figure("kv_cache_tokens", (number(tokens), len(caches)), "count", "#tokens")
        if keys:
            yield from figure("kv_cache", (number(keys) + number(values), len(caches)), "GiB", "K size + V size")
    graphs = _all(rf"Capture cuda graph end\..*?mem usage={NUMBER} ?GB", text)
    yield from figure("cuda_graphs", _first(graphs), "GiB", "Capture cuda graph end, mem usage")


def llama_cpp(text: str) -> Iterator[Figure]:
    """What a model and a context take when they are loaded."""
    model = re.findall(rf"(\w+) model buffer size\s*=\s*{NUMBER} MiB", text)
    if model:
        total = sum(number(size) for _, size in model)
        yield from figure("tensor_bytes", (total, len(model)), "MiB", "model buffer size")
    cache = re.findall(rf"(\w+) KV buffer size\s*=\s*{NUMBER} MiB", text)
    cache = cache or re.findall(rf"KV (self) size\s*=\s*{NUMBER} MiB", text)
    if cache:
        yield from figure("kv_buffer", (sum(number(size) for _, size in cache), len(cache)), "MiB", "KV buffer size")


def _mean(text: str, *names: str) -> tuple[float, int] | None:
    """Sum over count of a histogram, of all its labels together."""
    for name in names:
        sums = _all(rf"(?m)^{name}_sum(?:\{{[^}}]*\}})?\s+{NUMBER}", text)
        counts = _all(rf"(?m)^{name}_count(?:\{{[^}}]*\}})?\s+{NUMBER}", text)
        if sums and sum(counts):
            return sum(sums) / sum(counts), int(sum(counts))
    return None


def metrics(text: str) -> Iterator[Figure]:
    """The histograms of `/metrics`, of vLLM or SGLang: means over everything since the start."""
    for engine in ("vllm", "sglang"):
        first = f"{engine}:time_to_first_token_seconds"
        names = ("request_time_per_output_token", "time_per_output_token", "inter_token_latency")
        later = tuple(f"{engine}:{name}_seconds" for name in names)
        yield from figure("ttft", _mean(text, first), "s", first)
        yield from figure("tpot", _mean(text, *later), "s", later[0])
        whole = f"{engine}:e2e_request_latency_seconds"
        yield from figure("end_to_end", _mean(text, whole), "s", whole)


for reader in (
    LogReader(
        name="vllm",
        tool="vLLM",
        verbs=("serve",),
        source="vllm/v1/worker/gpu_worker.py",
        read=vllm,
    ),
    LogReader(
        name="sglang",
        tool="SGLang",
        verbs=("serve",),
        source="sglang/srt/model_executor/model_runner.py, mem_cache/memory_pool.py",
        read=sglang,
    ),
    LogReader(
        name="llama.cpp",
        tool="llama.cpp",
        verbs=("serve",),
        source="llama.cpp, src/llama-model.cpp, src/llama-kv-cache.cpp",
        read=llama_cpp,
    ),
    LogReader(
        name="metrics",
        tool="/metrics",
        verbs=("serve",),
        source="vllm/v1/metrics/loggers.py; sglang/srt/metrics/collector.py",
        read=metrics,
    ),
):
    READERS.add(reader.name, reader)
