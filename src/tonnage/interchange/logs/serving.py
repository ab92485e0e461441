"""Start-up logs of engines, and the metrics that they publish."""

from collections.abc import Iterator, Mapping

from tonnage.interchange.diagnose.readers import llama_cpp as of_llama_cpp
from tonnage.interchange.diagnose.readers import sglang as of_sglang
from tonnage.interchange.diagnose.readers import vllm as of_vllm
from tonnage.interchange.logs import READERS, Figure, LogReader
from tonnage.interchange.logs.values import NUMBER, facts, figure, first, in_gib, in_mib, largest, numbers, unpredicted

Found = Mapping[str, list[float]]
# Sizes that vLLM states, as `tonnage diagnose` calls them -> quantity, and what vLLM calls them.
_OF_VLLM = {
    "activations": ("activations", "PyTorch activation peak memory"),
    "outside_pytorch": ("outside_torch", "non_torch_memory"),
    "torch_peak": ("torch_peak", "peak_torch_memory"),
    "cuda_graphs": ("cuda_graphs", "Graph capturing finished, took"),
    "available_kv": ("kv_cache", "Available KV cache memory"),
    "needed_kv": ("request_cache", "KV cache is needed"),
}


def vllm(text: str) -> Iterator[Figure]:
    """What a worker says while it starts."""
    found = facts(text, [*of_vllm.FACTS, *of_vllm.FAILURES])
    yield from figure("weights", largest(in_gib(found.get("weights", []))), "GiB", "Model loading took")
    for name, (quantity, metric) in _OF_VLLM.items():
        yield from figure(quantity, first(in_gib(found.get(name, []))), "GiB", metric)
    yield from figure("kv_cache_tokens", first(found.get("kv_tokens", [])), "count", "GPU KV cache size")
    yield from figure("kv_cache_blocks", first(found.get("kv_blocks", [])), "count", "# GPU blocks")
    if held := found.get("concurrency"):
        metric = f"Maximum concurrency for {found['max_model_len'][0]:,.0f} tokens"
        yield from figure("concurrency", (held[0], 1), "count", metric)


def sglang(text: str) -> Iterator[Figure]:
    """What a scheduler says while it starts, in GiB called GB."""
    found = facts(text, of_sglang.FACTS)
    yield from figure("weights", largest(in_gib(found.get("weights", []))), "GiB", "Load weight end, mem usage")
    yield from _cache_of_sglang(found)
    graphs = first(in_gib(found.get("cuda_graphs", [])))
    yield from figure("cuda_graphs", graphs, "GiB", "Capture cuda graph end, mem usage")
    for name, metric in (
        ("free_after_weights", "Load weight end, avail mem"),
        ("free_after_cache", "Memory pool end, avail mem"),
        ("conv_state", "conv_state size"),
        ("ssm_state", "ssm_state size"),
    ):
        yield from unpredicted(first(in_gib(found.get(name, []))), "GiB", metric)


def _cache_of_sglang(found: Found) -> Iterator[Figure]:
    """The pool of keys and values. With sliding windows the line of both pools counts, not those of each."""
    if pools := found.get("window_cache"):
        yield from figure("kv_cache_tokens", first(found["full_tokens"]), "count", "full size")
        yield from figure("kv_cache", first(in_gib(pools)), "GiB", "SWAKVPool mem usage")
        return
    yield from figure("kv_cache_tokens", first(found.get("kv_tokens", [])), "count", "#tokens")
    if keys := found.get("k_cache"):
        both = [key + value for key, value in zip(keys, found["v_cache"], strict=True)]
        yield from figure("kv_cache", first(in_gib(both)), "GiB", "K size + V size")
    else:
        yield from figure("kv_cache", first(in_gib(found.get("kv_cache", []))), "GiB", "KV size")


def llama_cpp(text: str) -> Iterator[Figure]:
    """What a model and a context take when they are loaded, on all backends together."""
    found = facts(text, of_llama_cpp.FACTS)
    yield from figure("tensor_bytes", _sum(found, "weights"), "MiB", "model buffer size")
    cache = _sum(found, "kv_cache") or first(in_mib(found.get("kv_self", [])))
    yield from figure("kv_buffer", cache, "MiB", "KV buffer size" if _sum(found, "kv_cache") else "KV self size")
    yield from unpredicted(first(in_mib(found.get("activations", []))), "MiB", "compute buffer size")
    yield from unpredicted(first(in_mib(found.get("required", []))), "MiB", "mem required")


def _sum(found: Found, name: str) -> tuple[float, int] | None:
    """MiB of the buffers of all backends, and how many there are."""
    sizes = [*found.get(name, []), *found.get(f"{name}_on_host", [])]
    return (in_mib([sum(sizes)])[0], len(sizes)) if sizes else None


def _mean(text: str, *names: str) -> tuple[str, float, int] | None:
    """The first histogram that is there: its name, sum over count, and count, of all its labels together."""
    for name in names:
        if f"{name}_sum" not in text:  # a search for lines of a long log takes seconds
            continue
        sums = numbers(rf"(?m)^{name}_sum(?:\{{[^}}]*\}})?\s+{NUMBER}", text)
        counts = numbers(rf"(?m)^{name}_count(?:\{{[^}}]*\}})?\s+{NUMBER}", text)
        if sums and sum(counts):
            return name, sum(sums) / sum(counts), int(sum(counts))
    return None


def metrics(text: str) -> Iterator[Figure]:
    """The histograms of `/metrics`, of vLLM or SGLang: means over everything since the start.

    vLLM's V0 has `time_per_output_token`; V1 has `request_time_per_output_token`, a mean over requests, beside
    `inter_token_latency`, a mean over tokens. SGLang has `time_per_output_token`, later `inter_token_latency`.
    """
    for engine in ("vllm", "sglang"):
        later = ("request_time_per_output_token", "time_per_output_token", "inter_token_latency")
        for quantity, names in (
            ("ttft", ("time_to_first_token",)),
            ("tpot", later),
            ("end_to_end", ("e2e_request_latency",)),
        ):
            found = _mean(text, *(f"{engine}:{name}_seconds" for name in names))
            if found:
                yield from figure(quantity, found[1:], "s", found[0])


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
