"""MLC LLM: models that TVM compiles for a device, with a cache in pages of 16 tokens of a share of the memory.

This is its mode server. Modes local, which is its default, and interactive run 4 requests and 1, and their caches hold
8,192 tokens and a context: say {--max-num-seqs}. Temporary buffers of the compiled functions are in the metadata of the
library alone, twice the largest counts; here they are the activations of a pass.
"""

from shlex import quote

from tonnage.kernel.message import Message
from tonnage.kernel.units import MIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.runtimes.parts.start import Start
from tonnage.spec import Accelerator

TOKENS = 8192  # mlc-llm, python/mlc_llm/model/llama/llama_model.py: prefill_chunk_size, at most the context
METAL_TOKENS = 32_768
REQUESTS = 128  # mlc-llm, python/mlc_llm/cli/gen_config.py: --max-batch-size


def launch(start: Start) -> str:
    """MLC-LLM, python/mlc_llm/cli/serve.py: --overrides, whose names are those of EngineConfig."""
    plan = start.plan
    start.note_nodes()
    kind = plan.weights or "q0f16"
    changes: dict[str, object] = {"max_single_sequence_length": plan.context}
    changes |= {"tensor_parallel_shards": plan.tensor_parallel_size} if plan.tensor_parallel_size > 1 else {}
    changes |= {"gpu_memory_utilization": plan.gpu_memory_utilization} if plan.gpu_memory_utilization else {}
    changes |= {"max_num_sequence": plan.max_num_seqs} if plan.max_num_seqs else {}
    changes |= {"prefill_chunk_size": plan.max_num_batched_tokens} if plan.max_num_batched_tokens else {}
    changes |= {"prefix_cache_mode": "disable"} if plan.prefix_caching is False else {}
    overrides = ";".join(f"{name}={value}" for name, value in changes.items())
    place = f"HF://mlc-ai/{start.name.rpartition('/')[2]}-{kind}-MLC"
    start.notes.append(
        Message(
            "{place} stands for the model in {kind}: mlc_llm convert_weight and gen_config make it where nobody "
            "publishes it.",
            place=place,
            kind=kind,
        )
    )
    return f"mlc_llm serve {quote(place)} --mode server --overrides {quote(overrides)}"


def metal_note(accelerator: Accelerator) -> str:
    """mlc-llm, cpp/serve/config.cc: kDLMetal."""
    if accelerator.kind != "apple":
        return ""
    return Message(
        "on Metal, MLC's cache holds at most {tokens:,} tokens of all requests together, however much memory is free. "
        "What is said of room for requests counts memory alone.",
        tokens=METAL_TOKENS,
    )


SERVING_RUNTIMES.add(
    "mlc",
    ServingRuntime(
        name="mlc",
        version="MLC LLM 0.20",
        source="MLC-LLM, python/mlc_llm/serve/config.py: EngineConfig; MLC-LLM, cpp/serve/config.cc: InferForKVCache",
        memory_share=0.85,
        share_of="total",
        limits=(BatchLimit(tokens=TOKENS, requests=REQUESTS),),
        # a window is one of the whole model (sliding_window_size); layers with one of their own keep every token
        paging=Paging(
            block_tokens=16, spare_batches=0, state_copies=1, group_tolerance=0, shares_blocks=False, windows=False
        ),
        process=0,
        communicators=0,
        graphs=(0, 0),
        # cpp/serve/config.cc: kv_aux_workspace_bytes; the parts that grow with tokens are streams of a layer here
        workspace={"": 48 * MIB},
        overhead_source="MLC-LLM, cpp/serve/config.cc: EstimateMemoryUsageOnMode",
        # cpp/serve/config.cc: logit_processor_workspace_bytes, 16.125 for each request and word
        logits_bytes=16.125,
        sampler_rows=0,
        narrower_weights=("q4f16_1",),
        faster_weights=("q4f16_1",),
        launch=launch,
        kernels_note=metal_note,
        listed=9,
        aliases=("mlcllm", "mlcengine", "webllm"),
        prefix_caching="MLC-LLM, python/mlc_llm/serve/config.py: prefix_cache_mode radix",
        own_kv_cache="fp16",
        kv_cache={"fp16": "fp16"},
        kv_cache_source="MLC-LLM, cpp/serve/config.cc: 4 bytes for each key and value together",
        formats=("bf16", "fp16", "fp32", "q3f16", "q4f16", "q3bf16", "q4bf16"),
        formats_source="MLC-LLM, python/mlc_llm/quantization/quantization.py",
        exports=("fp16", "q3", "q4"),
        mixes_prompts=False,  # cpp/serve/engine_actions: a prefill or a decode in each step
        is_fitted=False,
        unmeasured=("ttft_seconds", "tpot_seconds"),
        vendors=("NVIDIA", "AMD", "Apple", "Intel"),
    ),
)
