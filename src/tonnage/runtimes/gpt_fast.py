"""gpt-fast: PyTorch alone, compiled, with a cache that is allocated whole for a batch of one length."""

from tonnage.runtimes._serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.units import GIB

SERVING_RUNTIMES.add(
    "gpt-fast",
    ServingRuntime(
        name="gpt-fast",
        version="gpt-fast",
        source="gpt-fast, model.py: Transformer.setup_caches, KVCache",
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=0, requests=0),),  # the whole prompts of all requests at once
        paging=None,
        cells=Cells(multiple=8, windows=False, flash=True, host_table=False, by_layers=False),
        process=round(0.51 * GIB),
        communicators=round((1.53 - 0.51) * GIB),
        graphs=(0, 0),
        listed=7,
        settings=("draft_tokens",),
        loads_files=True,
        overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one rank and with two",
        logits_bytes=6,
        kv_cache_source="gpt-fast, model.py: KVCache",
        formats=("bf16", "fp16", "int8", "int4"),
        formats_source="gpt-fast, quantize.py",
    ),
)
