"""LMDeploy with TurboMind: once the weights are loaded, the cache takes a share of what is free, in blocks of 64
tokens, and activations what remains.
"""

from shlex import quote

from msgspec.structs import replace

from tonnage.kernel.units import GIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.runtimes.parts.start import Start, settings

PREFILL_TOKENS = 8192  # lmdeploy/messages.py: TurbomindEngineConfig.max_prefill_token_num


def _limits(**requests: int) -> tuple[BatchLimit, ...]:
    """Requests of a batch by what stands in the accelerator's name; "other": on all others."""
    named = [
        BatchLimit(named=name, tokens=PREFILL_TOKENS, requests=most)
        for name, most in requests.items()
        if name != "other"
    ]
    return (*named, BatchLimit(tokens=PREFILL_TOKENS, requests=requests["other"]))


def launch(start: Start) -> str:
    plan = start.plan
    start.note_nodes()
    words = ["lmdeploy serve api_server", quote(start.name), "--backend turbomind", f"--session-len {plan.context}"]
    words += [f"--tp {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    words += settings(
        plan,
        {
            "gpu_memory_utilization": "--cache-max-entry-count",
            "max_num_seqs": "--max-batch-size",
            "max_num_batched_tokens": "--max-prefill-token-num",
        },
        {},
    )
    bits = {"head-int8": 8, "head-int4": 4}.get(plan.kv_cache or "")
    words += [f"--quant-policy {bits}"] if bits else []
    words += ["--enable-prefix-caching"] if plan.prefix_caching else []
    return " ".join(words)


NEWEST = ServingRuntime(
    name="lmdeploy",
    version="LMDeploy 0.10",
    source=(
        "LMDeploy, lmdeploy/messages.py: TurbomindEngineConfig, cache_max_entry_count 0.8 of the free memory; "
        "LMDeploy, src/turbomind/models/llama/BlockManager.cc: GetBlockCount"
    ),
    memory_share=0.8,
    share_of="loaded",
    setting="cache_max_entry_count",
    # lmdeploy/utils.py: get_max_batch_size, since 0.10
    limits=_limits(a100=512, a800=512, h100=1024, h800=1024, h200=1280, h20=1024, other=128),
    # lmdeploy/messages.py: cache_block_seq_len 64; docs/en/inference/turbomind_config.md: a block has all layers
    paging=Paging(
        block_tokens=64, spare_batches=0, state_copies=1, group_tolerance=0, shares_blocks=False, windows=False
    ),
    process=round(0.51 * GIB),
    communicators=round((1.53 - 0.51) * GIB),
    graphs=(0, 0),
    overhead_source=(
        "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one rank and "
        "with two"
    ),
    logits_bytes=10,
    narrow_cache="int8",
    launch=launch,
    listed=8,
    aliases=("turbomind",),
    kv_cache={"int8": "head-int8", "int4": "head-int4"},
    kv_cache_source="LMDeploy, docs/en/quantization/kv_quant.md: --quant-policy 8 and 4, for each head and token",
    formats=("bf16", "fp16", "fp32", "awq", "gptq", "fp8", "int4"),
    formats_source=(
        "LMDeploy, lmdeploy/messages.py: model_format; LMDeploy, docs/en/quantization: w4a16, blocked_fp8, "
        "llm_compressor_int4"
    ),
    vendors=("NVIDIA",),
    is_fitted=False,
)
OLDER = {
    "0.9": replace(
        NEWEST, version="LMDeploy 0.9", limits=_limits(a100=384, a800=384, h100=1024, h800=1024, h200=1024, other=128)
    ),
    "0.7": replace(NEWEST, version="LMDeploy 0.7", limits=_limits(a100=256, a800=256, h100=512, h800=512, other=128)),
}
SERVING_RUNTIMES.add("lmdeploy", replace(NEWEST, older=OLDER))
