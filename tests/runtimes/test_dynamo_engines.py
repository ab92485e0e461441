"""Dynamo before workers of vLLM, SGLang and TensorRT-LLM: their memory and times, and its own commands."""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan, NotApplicable, TonnageError
from tonnage.runtimes import serving_runtime

PAIRS = [("dynamo", "vllm"), ("dynamo-sglang", "sglang"), ("dynamo-trtllm", "tensorrt-llm")]
LOAD = {"on": "8xh100", "tensor_parallel_size": 1, "input_tokens": 2000, "output_tokens": 200, "concurrency": 64}


def served(engine, **options):
    return tonnage.serve("llama-3.1-8b", engine=engine, **{**LOAD, **options}).to_dict()


@pytest.mark.parametrize(("engine", "worker"), PAIRS)
def test_workers_have_the_memory_and_the_times_of_their_engine(engine, worker):
    found, alone = served(engine), served(worker)
    assert found["memory"]["value"] == alone["memory"]["value"]
    for name in ("ttft_seconds", "tpot_seconds", "tokens_per_second"):
        assert found["serving"][name]["value"] == pytest.approx(alone["serving"][name]["value"])


@pytest.mark.parametrize(
    ("engine", "command"),
    [
        ("dynamo", "python -m dynamo.vllm --model meta-llama/Llama-3.1-8B --max-model-len 2200"),
        ("dynamo-sglang", "python -m dynamo.sglang --model-path meta-llama/Llama-3.1-8B --context-length 2200"),
        ("dynamo-trtllm", "python -m dynamo.trtllm --model-path meta-llama/Llama-3.1-8B --max-seq-len 2200"),
    ],
)
def test_a_frontend_stands_before_workers(engine, command):
    first, second, *notes = served(engine)["serving"]["launch"].splitlines()
    assert (first, second) == ("python -m dynamo.frontend &", command)
    assert any("8 such servers" in note for note in notes)
    assert any("etcd and NATS" in note for note in notes)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("dynamo", '"kv_role":"kv_both"'),
        ("dynamo-sglang", "--disaggregation-transfer-backend nixl --host 0.0.0.0"),
        ("dynamo-trtllm", "cache_transceiver_config: {backend: NIXL"),
    ],
)
def test_prefill_and_decode_workers_are_told_their_mode_and_caches_go_by_nixl(engine, words):
    """ai-dynamo/dynamo, examples/backends: disagg.sh of each engine."""
    answer = served(engine, prefill_replicas=2)
    launch = answer["serving"]["launch"]
    assert launch.count("--disaggregation-mode prefill") == launch.count("--disaggregation-mode decode") == 1
    assert "# prefill: 2 servers" in launch
    assert "# decode: 6 servers" in launch
    assert words in launch
    assert "python -m dynamo.frontend --router-mode kv  # router" in launch
    with pytest.raises(TonnageError, match="nixl"):
        served(engine, prefill_replicas=2, kv_transfer="mooncake")


def test_options_of_trtllm_serve_are_spelled_as_dynamo_spells_them():
    """ai-dynamo/dynamo, components/src/dynamo/trtllm/backend_args.py."""
    options = {"tensor_parallel_size": 4, "max_num_seqs": 64, "gpu_memory_utilization": 0.8, "kv_cache": "fp8"}
    launch = served("dynamo-trtllm", **options)["serving"]["launch"]
    for words in (
        "--tensor-parallel-size 4",
        "--max-batch-size 64",
        "--free-gpu-memory-fraction 0.8",
        "--extra-engine-args config.yml",
    ):
        assert words in launch
    assert "_size" not in launch.split("python -m dynamo.trtllm")[1].split("#")[0]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Dynamo", "dynamo"),
        ("nvidia-dynamo", "dynamo"),
        ("dynamo-vllm", "dynamo"),
        ("ai_dynamo", "dynamo"),
        ("dynamo_sglang", "dynamo-sglang"),
        ("dynamo-tensorrt-llm", "dynamo-trtllm"),
    ],
)
def test_it_is_known_however_it_is_written(written, name):
    assert serving_runtime(written).name == name


def test_versions_are_the_workers_and_what_dynamo_does_not_take_is_refused():
    assert served("dynamo", engine_version="0.17")["question"]["engine_version"]["value"] == "vLLM 0.17"
    with pytest.raises(InvalidPlan, match="runs on accelerators of NVIDIA"):
        served("dynamo", on="mi300x")
    with pytest.raises(NotApplicable, match="kv_offload is a setting of vllm"):
        served("dynamo", kv_offload="host")
