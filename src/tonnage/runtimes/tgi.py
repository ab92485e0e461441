"""Text Generation Inference 3: warms up with the largest batch of prompts, then gives the cache a share of what is
free. Prompts of new requests pause those that decode.
"""

from shlex import quote

from tonnage.kernel.units import GIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.runtimes.parts.start import KV_WORDS, Start, settings

SPARE = 50  # launcher/src/main.rs: max_batch_prefill_tokens is max_input_tokens + 50 where nobody says it


def launch(start: Start) -> str:
    plan = start.plan
    start.note_nodes()
    before = [] if plan.gpu_memory_utilization is None else [f"TGI_WIGGLE_ROOM={plan.gpu_memory_utilization:g}"]
    words = [
        *before,
        "text-generation-launcher",
        f"--model-id {quote(start.name)}",
        f"--max-total-tokens {plan.context}",
        f"--max-input-tokens {max(plan.context - 1, 1)}",
        f"--max-batch-prefill-tokens {plan.max_num_batched_tokens or plan.context + SPARE}",
        *start.words,
    ]
    words += [f"--num-shard {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    words += settings(plan, {"kv_cache": "--kv-cache-dtype", "max_num_seqs": "--max-batch-size"}, KV_WORDS)
    words += ["--cuda-graphs 0"] if plan.enforce_eager else []
    return " ".join(words)


SERVING_RUNTIMES.add(
    "tgi",
    ServingRuntime(
        name="tgi",
        version="TGI 3.0",
        source=(
            "text-generation-inference, server/text_generation_server/models/flash_causal_lm.py: warmup; "
            "text-generation-inference, backends/gaudi/server/text_generation_server/models/globals.py: "
            "TGI_WIGGLE_ROOM 0.90"
        ),
        memory_share=0.9,
        share_of="free",
        setting="TGI_WIGGLE_ROOM",
        # launcher/src/main.rs: a batch of prompts is as long as the longest; --max-concurrent-requests 128
        limits=(BatchLimit(tokens=SPARE, requests=128, whole_context=True),),
        # server/text_generation_server/models/globals.py: BLOCK_SIZE is 1 with flashinfer, which is the default; warmup
        # divides what is free by the bytes of a block of all layers, windows or not
        paging=Paging(
            block_tokens=1, spare_batches=0, state_copies=1, group_tolerance=0, shares_blocks=False, windows=False
        ),
        process=round(0.51 * GIB),
        communicators=round((1.53 - 0.51) * GIB),
        graphs=(0, 0),  # captured in what the cache leaves
        launch=launch,
        listed=8,
        aliases=("textgenerationinference", "huggingfacetgi"),
        settings=("lora_adapters",),
        prefix_caching="text-generation-inference, launcher/src/main.rs: resolve_attention",
        # launcher/src/main.rs: Quantization
        at_load={
            "fp8-e4m3": "--quantize fp8",
            "nf4": "--quantize bitsandbytes-nf4",
            "fp4": "--quantize bitsandbytes-fp4",
            "int8": "--quantize eetq",
        },
        overhead_source=(
            "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one rank "
            "and with two"
        ),
        logits_bytes=10,
        kv_cache={"fp8": "fp8-e4m3", "fp8_e4m3fn": "fp8-e4m3", "fp8_e5m2": "fp8-e5m2"},
        kv_cache_source="text-generation-inference, launcher/src/main.rs: KVCacheDtype",
        formats=("bf16", "fp16", "fp32", "awq", "gptq", "nf4", "fp4", "bnb", "fp8", "int8", "int4"),
        formats_source="text-generation-inference, launcher/src/main.rs: Quantization",
        mixes_prompts=False,  # launcher/src/main.rs, max_waiting_tokens: a prefill pauses the running batch
        is_fitted=False,
        vendors=("NVIDIA", "AMD", "Intel"),
    ),
)
