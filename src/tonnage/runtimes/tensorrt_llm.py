"""TensorRT-LLM: runs the model once, then gives the cache a share of what is free; windows have pools of their own."""

from msgspec.structs import replace

from tonnage.runtimes._serving import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.units import GIB

# each window has a pool of its own, in the proportion in which one request of full length needs them
PAGING = Paging(block_tokens=32, spare_batches=0, state_copies=1, group_tolerance=0, shares_blocks=False)
BEFORE = ("bf16", "fp16", "fp32", "fp8", "int8", "int4", "gptq-4bit", "awq-4bit")
NEWEST = ServingRuntime(
    name="tensorrt-llm",
    version="TensorRT-LLM 1.3",
    source="TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py: KvCacheConfig, BaseLlmArgs; TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py: _cal_max_memory",
    memory_share=0.9,
    share_of="free",
    setting="free_gpu_memory_fraction",
    limits=(BatchLimit(tokens=8192, requests=2048),),
    paging=PAGING,
    process=round(0.51 * GIB),
    communicators=round((1.53 - 0.51) * GIB),
    graphs=(0, 0),  # in what the cache leaves
    listed=3,
    aliases=("trtllm", "trt", "tensorrt"),
    settings=("lora_adapters", "attention_data_parallel_size", "draft_tokens"),
    heads_rule="TensorRT-LLM, tensorrt_llm/_torch/modules/attention.py: num_heads % tp_size == 0",
    reads_faster_cache=True,
    overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one rank and with two",
    logits_bytes=10,
    kv_cache={"fp8": "fp8-e4m3", "nvfp4": "nvfp4"},
    kv_cache_source="TensorRT-LLM, docs/source/features/quantization.md",
    formats=(*BEFORE, "nvfp4", "mxfp4"),
    formats_source="TensorRT-LLM, docs/source/features/quantization.md",
    reserves_answers=True,  # CapacitySchedulerPolicy.GUARANTEED_NO_EVICT
    vendors=("NVIDIA",),
    peaks={"fp8": "fp8", "nvfp4": "fp4"},  # Model-Optimizer's table: FP8 on Ada and later, FP4 on Blackwell and later
)
# until 0.12, tensorrt_llm/plugin/plugin.py: _tokens_per_block 64
OLDER = {"0.12": replace(NEWEST, version="TensorRT-LLM 0.12", paging=replace(PAGING, block_tokens=64), formats=BEFORE,
                         kv_cache={"fp8": "fp8-e4m3"},
                         source="TensorRT-LLM, tensorrt_llm/plugin/plugin.py: PluginConfig; TensorRT-LLM, docs/source/reference/memory.md")}  # fmt: skip
SERVING_RUNTIMES.add("tensorrt-llm", replace(NEWEST, older=OLDER))
