"""NxD Inference on AWS's accelerators, under vLLM's plugin too: compiled for one batch and one length, whose cache
is allocated whole.
"""

from shlex import quote

from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import Start, sizes


def launch(start: Start) -> str:
    """vLLM's plugin: the batch is compiled in."""
    plan = start.plan
    words = ["vllm serve", quote(start.name), *sizes("--tensor-parallel-size", "--pipeline-parallel-size", plan)]
    words += [f"--max-model-len {plan.context}", f"--max-num-seqs {plan.concurrency}"]
    start.note_nodes()
    return " ".join(["VLLM_NEURON_FRAMEWORK=neuronx-distributed-inference", *words])


SERVING_RUNTIMES.add(
    "neuron",
    ServingRuntime(
        name="neuron",
        version="NxD Inference",
        source="NxD-Inference, src/neuronx_distributed_inference/modules/kvcache/kv_cache_manager.py: KVCacheManager",
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=0, requests=0, one_prompt=True),),
        paging=None,
        cells=Cells(multiple=1, windows=False, flash=True, host_table=False, by_layers=False),
        process=0,  # what Neuron's runtime holds nobody published
        communicators=0,
        graphs=(0, 0),
        launch=launch,
        listed=8,
        aliases=("nxd", "nxdinference"),
        overhead_source="NxD-Inference, src/neuronx_distributed_inference/modules/kvcache/kv_cache_manager.py",
        logits_bytes=6,
        kv_cache={"fp8": "fp8-e4m3"},
        kv_cache_source="NxD-Inference, src/neuronx_distributed_inference/modules/kvcache/kv_cache_manager.py: "
        "kv_cache_quant",
        vendors=("AWS",),
        formats=("bf16", "fp16", "fp32", "fp8", "int8", "mxfp4"),
        formats_source="NxD-Inference, documentation, feature guide: quantization",
    ),
)
