"""vLLM on accelerators that a package of others makes known to it: graphs, error bands, and what is said of them."""

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.plugins import plugin_for

GAUDI3_BYTES = 128 * 2**30


def served(on: str, **more: object) -> tonnage.Answer:
    options = {"input_tokens": 1000, "output_tokens": 200, "concurrency": 4, "advice": False, **more}
    return tonnage.serve("qwen3-32b", on=on, **options)


def overhead(answer: tonnage.Answer) -> dict[str, float]:
    return {str(part.name): part.value for part in answer.memory.child("runtime overhead").children}


@pytest.mark.parametrize(
    ("on", "package"),
    [
        ("8xascend-910b-64gb", "vllm-ascend"),
        ("8xascend-910c", "vllm-ascend"),
        ("8xgaudi2", "vllm-gaudi"),
        ("8xgaudi3", "vllm-gaudi"),
        ("8xtpu-v5e", "vllm-tpu"),
        ("8xtpu-v7", "vllm-tpu"),
        ("8xh100", ""),
        ("8xmi300x", ""),
        ("8xtrainium2", ""),
    ],
)
def test_which_package_vllm_needs(on, package):
    plugin = plugin_for(serving_runtime("vllm").plugins, cluster(on).accelerator)
    assert (plugin.package if plugin else "") == package
    if package:
        assert package in served(on).serving.launch, "whoever starts it must install it"


def test_a_tpu_captures_no_graphs_and_an_ascend_calls_them_acl():
    assert not any("graphs" in name for name in overhead(served("8xtpu-v6e")))
    assert "ACL graphs" in overhead(served("8xascend-910b-64gb"))
    assert "CUDA graphs" in overhead(served("8xh100"))


def test_gaudi_keeps_a_tenth_of_its_share_of_the_free_memory_for_graphs():
    """vllm_gaudi/v1/worker/hpu_worker.py: free memory x gpu_memory_utilization x VLLM_GRAPH_RESERVED_MEM."""
    answer = served("8xgaudi3", gpu_memory_utilization=0.8)
    parts = overhead(answer)
    (unused,) = (value for name, value in parts.items() if name.startswith("left unused"))
    used = sum(answer.memory.child(name).value for name in ("weights", "activations"))
    used += sum(value for name, value in parts.items() if name != "HPU graphs") - unused
    free = GAUDI3_BYTES - used
    assert unused == pytest.approx(0.2 * free)
    assert parts["HPU graphs"] == pytest.approx(0.8 * 0.1 * free)
    assert "HPU graphs" not in overhead(served("8xgaudi3", enforce_eager=True))


@pytest.mark.parametrize("on", ["8xascend-910b-64gb", "8xgaudi3", "8xtpu-v6e"])
def test_the_band_is_that_of_an_unseen_gpu_twice_over(on):
    wide, gpu = served(on).serving, served("4xmax-1550").serving
    for figure in ("ttft", "tpot"):
        low, high = (edge / getattr(wide, f"{figure}_seconds").value for edge in getattr(wide, f"{figure}_band"))
        of_gpu = [edge / getattr(gpu, f"{figure}_seconds").value for edge in getattr(gpu, f"{figure}_band")]
        assert [low, high] == pytest.approx([edge**2 for edge in of_gpu])
