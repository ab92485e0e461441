"""Any other engine that pages: a share of the accelerator, measured after a forward pass of the largest prompt, as
Text Generation Inference does.
"""

from shlex import quote

from tonnage.kernel.units import GIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.runtimes.parts.start import KV_WORDS, Start, settings


def launch(start: Start) -> str:
    plan = start.plan
    start.note_nodes()
    words = [
        "text-generation-launcher",
        f"--model-id {quote(start.name)}",
        f"--max-total-tokens {plan.context}",
        *start.words,
    ]
    words += [f"--num-shard {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    words += settings(
        plan,
        {
            "kv_cache": "--kv-cache-dtype",
            "max_num_batched_tokens": "--max-batch-prefill-tokens",
            "max_num_seqs": "--max-batch-size",
            "gpu_memory_utilization": "--cuda-memory-fraction",
        },
        KV_WORDS,
    )
    return " ".join(words)


SERVING_RUNTIMES.add(
    "generic",
    ServingRuntime(
        name="generic",
        version="like TGI",
        source=(
            "text-generation-inference, server/text_generation_server/models/flash_causal_lm.py: warmup; "
            "text-generation-inference, backends/gaudi/server/text_generation_server/models/globals.py: "
            "TGI_WIGGLE_ROOM 0.90; Kwon2023, sec. 4.2"
        ),
        memory_share=0.9,
        setting="cuda_memory_fraction",
        limits=(BatchLimit(tokens=8192, requests=256),),
        paging=Paging(block_tokens=16, spare_batches=0, state_copies=1, group_tolerance=0, shares_blocks=False),
        context=round(0.51 * GIB),
        process=0,
        communicators=round((1.53 - 0.51) * GIB),
        graphs=(0, 0),
        launch=launch,
        listed=10,
        aliases=("liketgi",),
        settings=("lora_adapters",),
        # text-generation-inference, launcher/src/main.rs: Quantization
        at_load={
            "fp8-e4m3": "--quantize fp8",
            "nf4": "--quantize bitsandbytes-nf4",
            "fp4": "--quantize bitsandbytes-fp4",
            "int8": "--quantize bitsandbytes",
        },
        overhead_source=(
            "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one "
            "rank and with two"
        ),
        logits_bytes=10,
        kv_cache={"fp8": "fp8-e4m3", "fp8_e4m3fn": "fp8-e4m3", "fp8_e5m2": "fp8-e5m2"},
        kv_cache_source="text-generation-inference, launcher/src/main.rs: KVCacheDtype",
    ),
)
