"""KV caches of prefixes in host memory, on disks and in a store: what they hold, and how long a hit takes."""

import pytest

import tonnage
from tonnage.cli import main
from tonnage.kernel.errors import InvalidPlan, MissingDatum, TonnageError

TOKEN = 131_072  # bytes of the cache of a token of Llama-3.1-8B: 32 layers x 8 heads x 128 x 2 x 2 bytes
PCIE_5 = 63e9  # bytes/s of 16 lanes, of which a copy reaches 0.8769 (links.toml)
QUESTION = {
    "on": "dgx-h100",
    "tensor_parallel_size": 1,
    "input_tokens": 16_000,
    "output_tokens": 200,
    "concurrency": 8,
    "advice": False,
}


def served(**more: object) -> tonnage.Answer:
    return tonnage.serve("llama-3.1-8b", **{**QUESTION, "cached_tokens": 12_000, "kv_offload": "host", **more})


def test_a_hit_takes_the_bytes_of_its_cache_over_the_host_link():
    """vLLM blog, 2026-01-08: copies between an H100 and its host reach about 50 GB/s in one direction."""
    tier = served().serving.kv_offload
    assert tier.load_seconds.inputs["M"] == 12_000 * TOKEN
    assert tier.load_seconds.inputs["W"] == pytest.approx(PCIE_5 * 0.8769, rel=0.01)
    assert 45e9 < tier.load_seconds.inputs["W"] < 60e9
    assert tier.faster and tier.recompute_seconds.value > 5 * tier.load_seconds.value
    assert tier.break_even_bandwidth.value == pytest.approx(12_000 * TOKEN / tier.recompute_seconds.value)


def test_ttft_of_hits_lies_between_hits_on_the_gpu_and_computing_the_prompt():
    on_gpu, loaded, computed = (
        served(**more).serving.ttft_seconds.value
        for more in ({"kv_offload": None}, {}, {"kv_offload": None, "cached_tokens": None})
    )
    assert on_gpu < loaded < computed
    parts = {str(part.name): part.value for part in served().serving.ttft_seconds.children}
    assert parts["KV cache loaded"] >= served().serving.kv_offload.load_seconds.value


def test_ranks_of_a_replica_load_side_by_side_and_share_the_disks():
    """Samsung2020: a drive reads 6.5 GB/s; DGX-H100 has eight of them."""
    one, four = (served(tensor_parallel_size=size).serving.kv_offload.load_seconds.value for size in (1, 4))
    assert one / four == pytest.approx(4, rel=1e-6)
    disk = {"kv_offload": "disk", "storage_read_bandwidth": "8GB/s"}
    one, four = (served(tensor_parallel_size=size, **disk).serving.kv_offload.load_seconds.value for size in (1, 4))
    assert one == pytest.approx(four) == pytest.approx(12_000 * TOKEN / 8e9)


def test_the_default_is_twice_the_cache_of_the_gpus_as_hicache_has_it():
    serving = served(engine="sglang", concurrency=1).serving
    assert serving.kv_offload.capacity_tokens.value == pytest.approx(
        2 * serving.kv_capacity_tokens.value / 8, rel=0.01
    ), "of each of the 8 replicas"
    half = served(kv_offload_size=10**9, cached_tokens=1000).serving.kv_offload
    assert half.capacity_tokens.value == pytest.approx(1e9 / TOKEN)


def test_more_requests_than_the_links_load_are_an_overload():
    slow = {"kv_offload": "disk", "storage_read_bandwidth": "1GB/s", "concurrency": None}
    few, many = (served(**slow, request_rate=rate) for rate in (0.5, 8.0))
    assert few.serving.ttft_seconds is not None and many.serving.ttft_seconds is None
    assert served(**{**slow, "concurrency": 32}).serving.requests_per_second.value < 8 / 1.5


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"engine": "tensorrt-llm", "kv_offload": "disk"}, InvalidPlan, "host"),
        ({"engine": "llama.cpp"}, TonnageError, "kv_offload"),
        ({"kv_offload": "store"}, MissingDatum, "kv_offload_size"),
        ({"kv_offload_size": 40 * 10**12}, InvalidPlan, "host memory"),
        ({"kv_offload": None, "kv_offload_size": 10**9}, TonnageError, "kv_offload"),
        ({"simulate": True}, InvalidPlan, "simulation"),
        ({"prefill_replicas": 2}, InvalidPlan, "not timed"),
    ],
)
def test_what_cannot_be_is_said_with_what_can(more, error, words):
    with pytest.raises(error, match=words):
        served(**more)


def test_engines_are_started_with_the_tier():
    """vLLM, docs/features/kv_offloading_usage.md; SGLang, sglang/srt/arg_groups/fields/memory.py."""
    assert "--kv-offloading-size 46.57" in served(kv_offload_size=50 * 10**9).serving.launch
    assert '"type":"fs"' in served(kv_offload="disk").serving.launch
    store = served(kv_offload="store", kv_offload_size=10**12)
    assert "MooncakeStoreConnector" in store.serving.launch
    sglang = served(engine="sglang", kv_offload_size=50 * 10**9).serving.launch
    assert "--enable-hierarchical-cache --hicache-size 50" in sglang
    assert "--hicache-storage-backend file" in served(engine="sglang", kv_offload="disk").serving.launch
    assert "host_cache_size: 50000000000" in served(engine="tensorrt-llm", kv_offload_size=50 * 10**9).serving.launch


def test_the_text_compares_loading_with_computing(capsys):
    words = "serve llama-3.1-8b --on dgx-h100 --tp 1 --users 8 --input 16k --output 200 --kv-offload host"
    assert main([*words.split(), "--cache-hit-rate", "0.75"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "12,288 cached tokens load in 29" in text and "computing them again takes" in text
    assert main(words.split()) == 0
    assert "--cache-hit-rate" in capsys.readouterr().out


def test_a_tier_that_holds_less_than_one_prefix_is_refused_with_what_it_needs():
    with pytest.raises(InvalidPlan, match=r"must hold the 12,000 cached tokens of a prompt, 1.46 GiB.*7,629 tokens"):
        served(kv_offload_size=10**9)


def test_a_tier_of_fewer_prefixes_than_users_says_so():
    few, all_of_them = (
        served(kv_offload_size=prefixes * 12_000 * TOKEN, concurrency=40, tensor_parallel_size=8)
        for prefixes in (3, 40)
    )
    (note,) = [note for note in few.warnings if "the tier of a replica" in note]
    assert "holds the cached tokens of 3 of its 40 users" in note
    assert not any("the tier of a replica" in note for note in all_of_them.warnings)
