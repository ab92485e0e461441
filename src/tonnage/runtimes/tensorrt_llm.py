"""TensorRT-LLM: runs the model once, then gives the cache a share of what is free; windows have pools of their own."""

from shlex import quote

from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.kernel.units import GIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.runtimes.parts.start import DECODE, KV_WORDS, PREFILL, Roles, Spread, Start, Words, settings
from tonnage.spec import Cluster

# each window has a pool of its own, in the proportion in which one request of full length needs them
PAGING = Paging(block_tokens=32, spare_batches=0, state_copies=1, group_tolerance=0, shares_blocks=False)
BEFORE = ("bf16", "fp16", "fp32", "fp8", "int8", "int4", "gptq-4bit", "awq-4bit")


def launch(start: Start) -> str:
    """What trtllm-serve has no option for goes into a file of settings."""
    plan = start.plan
    groups = plan.attention_data_parallel_size
    before, nodes, notes = _nodes(start.spread, start.cluster)
    start.notes.extend(notes)
    words = [f"{before}trtllm-serve", quote(start.name), f"--max_seq_len {plan.context}", *nodes]
    ranks = plan.tensor_parallel_size * groups
    words += [f"--tp_size {ranks}"] if ranks > 1 else []
    words += [f"--pp_size {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else []
    words += [f"--ep_size {plan.expert_parallel_size}"] if plan.expert_parallel_size > 1 else []
    words += settings(
        plan,
        {
            "max_num_batched_tokens": "--max_num_tokens",
            "max_num_seqs": "--max_batch_size",
            "gpu_memory_utilization": "--kv_cache_free_gpu_memory_fraction",
        },
        {},
    )
    lines = ["enable_attention_dp: true"] if groups > 1 else []
    dtype = KV_WORDS.get(plan.kv_cache or "", "")
    cache = [f"dtype: {dtype.split('_')[0]}"] if dtype else []
    cache += [f"host_cache_size: {plan.tier.kv_offload_bytes}"] if plan.tier.kv_offload else []
    lines += [f"kv_cache_config: {{{', '.join(cache)}}}"] if cache else []
    if plan.drafting.draft_tokens:
        lines.append(f"speculative_config: {{{_drafts(start)}}}")
    lines += (
        [f"lora_config: {{max_lora_rank: {plan.adapters.lora_rank}, max_loras: {plan.adapters.lora_adapters}}}"]
        if plan.adapters.lora_adapters
        else []
    )
    lines += ["enable_chunked_prefill: true"] if plan.chunked_prefill else []
    if start.role:  # the overlap scheduler is not for servers of prompts alone
        lines += ["disable_overlap_scheduler: true"] if start.role == PREFILL else []
        buffer = f"max_tokens_in_buffer: {plan.context}"
        lines.append(f"cache_transceiver_config: {{backend: {start.transfer.upper()}, {buffer}}}")
        words.append("--host 0.0.0.0")
    return _with_file(" ".join(words), lines, f"{start.role}.yml" if start.role else "config.yml")


def _with_file(command: str, lines: Words, file: str) -> str:
    if not lines:
        return command
    written = "\n".join(lines)
    return f"cat > {file} <<EOF\n{written}\nEOF\n{command} --config {file}"


ANYWHERE = "0.0.0.0"  # every address of a machine
PORT = 8000


def router(roles: Roles) -> str:
    """TensorRT-LLM, docs/source/features/disagg-serving.md: trtllm-serve disaggregated."""
    lines = [f"hostname: {ANYWHERE}", f"port: {PORT + 1}"]
    for name, role, number in (("context", PREFILL, roles.prefill), ("generation", DECODE, roles.decode)):
        urls = ", ".join(f'"{at}"' for at in roles.addresses(role, PORT))
        lines.append(f"{name}_servers: {{num_instances: {number}, urls: [{urls}]}}")
    written = "\n".join(lines)
    return f"cat > router.yml <<EOF\n{written}\nEOF\ntrtllm-serve disaggregated -c router.yml"


def _drafts(start: Start) -> str:
    tokens = start.plan.drafting.draft_tokens
    if start.head:  # tensorrt_llm/llmapi/llm_args.py: Eagle3DecodingConfig
        return f"decoding_type: Eagle3, max_draft_len: {tokens}, speculative_model: {start.draft}"
    if start.draft:
        return f"decoding_type: Draft_Target, max_draft_len: {tokens}, speculative_model: {start.draft}"
    return (
        f"decoding_type: MTP, num_nextn_predict_layers: {tokens}"
        if start.predicts
        else f"decoding_type: NGram, max_draft_len: {tokens}"
    )


def _nodes(spread: Spread, cluster: Cluster) -> tuple[str, list[str], list[str]]:
    """TensorRT-LLM, docs/source/commands/trtllm-serve: what stands before the command, its options, notes."""
    many = Message("The plan is {servers} such servers, each on accelerators of its own.", servers=spread.servers)
    notes: list[str] = [many] if spread.servers > 1 else []
    if spread.nodes == 1:
        return "", [], notes
    node = cluster.accelerators_per_host
    tasks = f"--ntasks {spread.nodes * node} --ntasks-per-node {node}"
    start = f"srun -N {spread.nodes} {tasks} --mpi=pmix trtllm-llmapi-launch "
    return (
        start,
        [f"--gpus_per_node {node}"],
        ["Without Slurm, mpirun starts one process for each accelerator instead of srun.", *notes],
    )


NEWEST = ServingRuntime(
    name="tensorrt-llm",
    version="TensorRT-LLM 1.3",
    source=(
        "TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py: KvCacheConfig, BaseLlmArgs; TensorRT-LLM, "
        "tensorrt_llm/_torch/pyexecutor/_util.py: _cal_max_memory"
    ),
    memory_share=0.9,
    share_of="free",
    setting="free_gpu_memory_fraction",
    limits=(BatchLimit(tokens=8192, requests=2048),),
    paging=PAGING,
    process=round(0.51 * GIB),
    communicators=round((1.53 - 0.51) * GIB),
    graphs=(0, 0),  # in what the cache leaves
    narrow_cache="fp8",
    launch=launch,
    transfers=("nixl", "ucx", "mpi"),
    transfers_source="TensorRT-LLM, docs/source/features/disagg-serving.md: cache_transceiver_config",
    router=router,
    kv_tiers=("host",),
    kv_tiers_source="TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py: KvCacheConfig.host_cache_size",
    listed=3,
    aliases=("trtllm", "trt", "tensorrt"),
    settings=("lora_adapters", "attention_data_parallel_size", "draft_tokens", "speculative", "kv_offload"),
    prefix_caching="TensorRT-LLM, tensorrt_llm/llmapi/llm_args.py: KvCacheConfig.enable_block_reuse True",
    drafts=("eagle3", "mtp", "ngram", "draft"),
    heads_rule="TensorRT-LLM, tensorrt_llm/_torch/modules/attention.py: num_heads % tp_size == 0",
    reads_faster_cache=True,
    overhead_source=(
        "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one rank "
        "and with two"
    ),
    logits_bytes=10,
    kv_cache={"fp8": "fp8-e4m3", "nvfp4": "nvfp4"},
    kv_cache_source="TensorRT-LLM, docs/source/features/quantization.md",
    formats=(*BEFORE, "nvfp4", "mxfp4"),
    formats_source="TensorRT-LLM, docs/source/features/quantization.md",
    fuses_mixtures=True,
    passes_ahead=1,
    shared_experts_beside=True,
    delta_net_inputs=2,
    reserves_answers=True,  # CapacitySchedulerPolicy.GUARANTEED_NO_EVICT
    vendors=("NVIDIA",),
    peaks={"fp8": "fp8", "nvfp4": "fp4"},  # Model-Optimizer's table: FP8 on Ada and later, FP4 on Blackwell and later
)
# until 0.12, tensorrt_llm/plugin/plugin.py: _tokens_per_block 64
OLDER = {
    "0.12": replace(
        NEWEST,
        version="TensorRT-LLM 0.12",
        paging=replace(PAGING, block_tokens=64),
        formats=BEFORE,
        kv_cache={"fp8": "fp8-e4m3"},
        source=(
            "TensorRT-LLM, tensorrt_llm/plugin/plugin.py: PluginConfig; TensorRT-LLM, docs/source/reference/memory.md"
        ),
    )
}
SERVING_RUNTIMES.add("tensorrt-llm", replace(NEWEST, older=OLDER))
