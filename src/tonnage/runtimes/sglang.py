"""SGLang: a static part of the memory for weights and cache, the rest for activations and graphs, which it does not
measure but reserves.

By version, as its wheels on PyPI have it: 0.4.1, 0.4.6, 0.5.5, 0.5.9 and 0.5.23. What a process holds before the model
is loaded (context and communicators) is outside of both parts.
"""

from shlex import quote

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.units import GB, GIB, MIB
from tonnage.models.purpose import purpose
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Pools, Reserve, ServingRuntime, Step
from tonnage.runtimes.parts.start import (
    DECODE,
    FIRST,
    KV_WORDS,
    PREFILL,
    RANK,
    Roles,
    Spread,
    Start,
    Words,
    offload,
    settings,
)
from tonnage.spec import Accelerator

# sglang/srt/server_args.py of 0.4: mem_fraction_static by tensor ranks
BY_RANKS = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
OLDEST = (Step(25_000, 2048, 8, 80), Step(0, 8192, 160, 160))
LARGE = (Step(60 * 1024, 4096, 32, 160), Step(160 * 1024, 8192, 256, 512), Step(0, 16384, 512, 512))
LATER = (Step(20 * 1024, 2048, 8, 8), Step(35 * 1024, 2048, 24, 80), *LARGE)
NOW = (Step(20 * 1024, 2048, 8, 8), Step(35 * 1024, 4096, 48, 160), *LARGE)
REQUESTS = (
    4096  # at most, as resolve_max_num_reqs has it: 512 for each full context that the pool holds, from 2048 to 4096
)
# sglang/srt/arg_groups/overrides.py, _MAMBA_EXTRA_BUFFER_ARCHS: since "auto" takes extra_buffer for these, each request
# has two slots
# more, in which the states at the ends of prefixes are written while the next pass is prepared (0.5.9: "auto" was
# no_buffer).
TRACKED = frozenset(
    [
        "KimiLinearForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen4ExpForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "MiniCPMV4_6ForConditionalGeneration",
        "MiniCPMV4_7ForConditionalGeneration",
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration",
        "FalconH1ForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "Glm5NextForConditionalGeneration",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3",
        "KimiK3ForConditionalGeneration",
    ]
)
# Architectures for which --moe-runner-backend auto takes flashinfer_trtllm on data-centre Blackwell: pull requests
# 11816, 13489 and 38374 (all others run Triton's kernels)
FUSED = frozenset(
    [
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekV4ForCausalLM",
        "GlmMoeDsaForCausalLM",
        "GptOssForCausalLM",
        "KimiK25ForConditionalGeneration",
        "Llama4ForConditionalGeneration",
        "Qwen3MoeForCausalLM",
        "Qwen3NextForCausalLM",
    ]
)
STATES = 0.9 / 1.9  # mamba_full_memory_ratio 0.9: of states over the cache of attention


def _limits(steps: tuple[Step, ...]) -> tuple[BatchLimit, ...]:
    """Chunks of a prompt by memory, the largest accelerators first."""
    floors = (0, *(step.below_mib * MIB for step in steps))
    held = zip(steps, floors, strict=False)
    return tuple(
        BatchLimit(tokens=step.chunk, requests=REQUESTS, memory_bytes=floor) for step, floor in reversed(list(held))
    )


FP4_CACHE = "SGLang, pull requests 21601 (SM120) and 36340 (SM100); 23354 (SM80, SM90) is open"


def check_cache(engine: ServingRuntime, model: Model, kind: str, accelerator: Accelerator) -> None:
    """A cache in nvfp4 is read on Blackwell alone."""
    if kind == "nvfp4" and not ("fp4" in accelerator.dense_flops and accelerator.vendor == "NVIDIA"):
        raise InvalidPlan(
            "{@kv_cache}: {version} holds nvfp4 on NVIDIA's Blackwell alone ({fp4_cache}). Got "
            "{accelerator}. Nearest: fp8.",
            version=engine.version,
            fp4_cache=FP4_CACHE,
            accelerator=accelerator.name,
        )


PORT = 20000


def launch(start: Start) -> str:
    plan = start.plan
    groups = plan.attention_data_parallel_size
    words = ["python -m sglang.launch_server", f"--model-path {quote(start.name)}", f"--context-length {plan.context}"]
    ranks = plan.tensor_parallel_size * groups
    words += [f"--tp-size {ranks}"] if ranks > 1 else []
    words += [f"--dp-size {groups}", "--enable-dp-attention"] if groups > 1 else []
    words += [f"--dp-size {start.spread.copies}"] if start.spread.copies > 1 else []
    words += [f"--pp-size {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else []
    words += [f"--ep-size {plan.expert_parallel_size}"] if plan.expert_parallel_size > 1 else []
    if plan.redundant_experts:
        words += ["--enable-eplb", f"--ep-num-redundant-experts {plan.redundant_experts}"]
    words += _dispatch(start)
    nodes, notes = _nodes(start.spread)
    start.notes.extend(notes)
    words += nodes
    words += ["--is-embedding"] if purpose(start.model) in ("embed", "rerank") else []
    words += settings(
        plan,
        {
            "kv_cache": "--kv-cache-dtype",
            "max_num_batched_tokens": "--chunked-prefill-size",
            "max_num_seqs": "--max-running-requests",
            "gpu_memory_utilization": "--mem-fraction-static",
        },
        KV_WORDS,
    )
    words += ["--disable-cuda-graph"] if plan.enforce_eager else []
    words += start.words
    words += offload(plan)
    if plan.adapters.lora_adapters:
        words += [
            "--enable-lora",
            f"--max-loras-per-batch {plan.adapters.lora_adapters}",
            f"--max-lora-rank {plan.adapters.lora_rank}",
        ]
        words += [f"--max-loaded-loras {plan.adapters.lora_on_host}"] if plan.adapters.lora_on_host else []
    words += _drafts(start)
    if plan.denoising is not None:  # sglang/srt/dllm/algorithm/low_confidence.py
        words += ["--trust-remote-code", "--dllm-algorithm LowConfidence"]
    if plan.media is not None:
        counts = ", ".join(f'"{name}": {count}' for name, count in plan.media.counts.items())
        words += [f"--limit-mm-data-per-request '{{{counts}}}'"]
    words += ["--chunked-prefill-size -1"] if plan.chunked_prefill is False else []
    words += _tier(start)
    words += ["--disable-radix-cache"] if plan.prefix_caching is False else []
    if start.role:
        words += [
            f"--disaggregation-mode {start.role}",
            f"--disaggregation-transfer-backend {start.transfer}",
            "--host 0.0.0.0",
        ]
    return " ".join(words)


def _tier(start: Start) -> Words:
    """Caches of prefixes beside the GPUs: sglang/srt/arg_groups/fields/memory.py, hicache_size in GB of each rank."""
    plan = start.plan
    if not plan.tier.kv_offload:
        return []
    words = ["--enable-hierarchical-cache"]
    ranks = plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size
    if plan.tier.kv_offload == "host" and plan.tier.kv_offload_bytes:
        words.append(f"--hicache-size {max(round(plan.tier.kv_offload_bytes / ranks / GB), 1)}")
    if plan.tier.kv_offload == "disk":
        start.notes.append("SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR names the folder of the caches.")
    backends = {"disk": "file", "store": "mooncake"}
    words += [f"--hicache-storage-backend {backends[plan.tier.kv_offload]}"] if plan.tier.kv_offload in backends else []
    return words


LISTENS = 30000  # sglang/srt/server_args.py: port


def router(roles: Roles) -> str:
    """SGLang, docs/advanced_features/pd_disaggregation.md."""
    words = [f"--{role} http://{at}" for role in (PREFILL, DECODE) for at in roles.addresses(role, LISTENS)]
    return " ".join(["python -m sglang_router.launch_router --pd-disaggregation", *words])


def _dispatch(start: Start) -> Words:
    """sglang/srt/arg_groups/fields/parallel.py: moe_a2a_backend, deepep_mode; moe_hook.py: deepep_mode normal captures
    no graphs.
    """
    if not start.shares_experts_widely or not start.dispatches_by:
        return []
    start.note_dispatch()
    mode = "normal" if start.role == PREFILL else "low_latency"
    words = [f"--deepep-mode {mode}"] if start.dispatches_by == "deepep" else []
    return [f"--moe-a2a-backend {start.dispatches_by}", *words]


def _drafts(start: Start) -> Words:
    """sglang/srt/arg_groups/speculative_hook.py: a chain's steps, and one token more, which is that before the
    drafts.
    """
    tokens = start.plan.drafting.draft_tokens
    if not tokens:
        return []
    checked = f"--speculative-num-draft-tokens {tokens + 1}"
    if not start.draft and not start.predicts:
        return ["--speculative-algorithm NGRAM", checked, "--speculative-ngram-max-bfs-breadth 1"]
    path = f" --speculative-draft-model-path {quote(start.draft)}"
    if start.head == "dflash":  # its block has the last token and the drafts
        return [f"--speculative-algorithm DFLASH{path}", f"--speculative-dflash-block-size {tokens + 1}"]
    model = f"{start.head.upper() or 'STANDALONE'}{path}" if start.draft else "NEXTN"
    return [
        f"--speculative-algorithm {model}",
        f"--speculative-num-steps {tokens}",
        "--speculative-eagle-topk 1",
        checked,
    ]


def _nodes(spread: Spread) -> tuple[list[str], list[str]]:
    words = [f"--nnodes {spread.nodes}", f"--node-rank {RANK}", f"--dist-init-addr {FIRST}:{PORT}"]
    return words if spread.nodes > 1 else [], [spread.each] if spread.each else []


NEWEST = ServingRuntime(
    # as vLLM: the same kernels
    fuses_mixtures=True,
    fused_architectures=FUSED,
    passes_ahead=1,
    # sglang/srt/multimodal/processors/qwen_vl.py: VIDEO_MAX_PIXELS
    frame_pixels={"qwen_vl": 768 * 28 * 28},
    shared_experts_beside=True,
    delta_net_inputs=2,
    tile_rows=64,
    packed_tile_rows=16,
    expands_in_lanes=True,
    name="sglang",
    rollout="sglang",
    version="SGLang 0.5.23",
    source=(
        "SGLang, sglang/srt/arg_groups/memory_hook.py: handle_gpu_memory_settings; SGLang, "
        "sglang/srt/model_executor/pool_configurator.py"
    ),
    memory_share=None,
    share_of="static",
    setting="mem_fraction_static",
    reserve=Reserve(steps=NOW, prefill_graph_mib=8, latent_graph_mib=1536),
    limits=_limits(NOW),
    paging=None,
    # MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO 3; get_mamba_tracking_slots 2 where scheduling overlaps
    pools=Pools(page_tokens=1, window_share=0.8, state_share=STATES, state_slots=3, tracking_slots=2, tracked=TRACKED),
    # sglang/srt/configs/mamba_utils.py, mamba2_state_dtype: float32 unless the config says mamba_ssm_dtype
    recurrent_bytes=4,
    process=round(0.51 * GIB),
    communicators=round((1.53 - 0.51) * GIB),
    graphs=(0, 0),  # in the reserve
    narrow_cache="fp8",
    launch=launch,
    transfers=("mooncake", "nixl", "mori"),
    transfers_source="SGLang, sglang/srt/arg_groups/choices.py: DISAGG_TRANSFER_BACKEND_CHOICES",
    router=router,
    kv_tiers=("host", "disk", "store"),
    kv_tiers_source="SGLang, sglang/srt/arg_groups/fields/memory.py: hicache_ratio, hicache_storage_backend",
    serves=("generate", "embed", "rerank"),
    copies_in_server="one-node",
    listed=2,
    settings=(
        "weights_on_host",
        "lora_adapters",
        "attention_data_parallel_size",
        "redundant_experts",
        "draft_tokens",
        "speculative",
        "kv_offload",
    ),
    prefix_caching="SGLang, sglang/srt/mem_cache/radix_cache.py, unless --disable-radix-cache",
    drafts=("eagle3", "eagle", "mtp", "dflash", "ngram", "draft"),
    heads_rule="SGLang, sglang/srt/models/llama.py: total_num_heads % tp_size == 0",
    blocks_rule="SGLang, sglang/srt/layers/quantization/fp8.py, create_weights: not divisible by weight quantization "
    "block_n; "
    "Qwen3 issue 1485",
    check_cache=check_cache,
    # sglang/srt/arg_groups/choices.py: QUANTIZATION_CHOICES; sglang/srt/model_loader/loader.py: BitsAndBytesModelLoader
    at_load={
        "fp8-e4m3": "--quantization fp8",
        "mxfp8": "--quantization mxfp8",
        "nf4": "--load-format bitsandbytes --quantization bitsandbytes",
    },
    dtype_flag="--dtype",
    reads_faster_cache=True,
    overhead_source=(
        "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one rank "
        "and with two"
    ),
    logits_bytes=10,  # 16 bit, fp32, probabilities
    kv_cache={
        "bf16": "bf16",
        "fp8": "fp8-e4m3",
        "fp8_e4m3": "fp8-e4m3",
        "fp8_e5m2": "fp8-e5m2",
        "mxfp8": "mxfp8",
        "nvfp4": "nvfp4",
    },
    kv_cache_source="SGLang, sglang/srt/arg_groups/fields/model.py: kv_cache_dtype",
    formats=(
        "bf16",
        "fp16",
        "fp32",
        "fp8",
        "int8",
        "int4",
        "gptq",
        "awq",
        "nf4",
        "fp4",
        "mxfp8",
        "mxfp4",
        "nvfp4",
        "gguf",
    ),
    formats_source="SGLang, sglang/srt/arg_groups/choices.py: QUANTIZATION_CHOICES",
    split="rest last",
    mixes_prompts=False,  # unless --enable-mixed-chunk
    vocabulary_multiple=64,  # sglang/srt/layers/vocab_parallel_embedding.py: DEFAULT_VOCAB_PADDING_SIZE
    longer="SGLang, sglang/srt/configs/model_config.py",
    longer_variable="SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
)


def _earlier(version: str, steps: tuple[Step, ...], pools: Pools, **rules: object) -> ServingRuntime:
    """An earlier version: its rules stood in server_args.py and model_runner.py."""
    reserve = Reserve(steps=steps, **rules)  # type: ignore[arg-type]
    source = (
        "SGLang, sglang/srt/server_args.py; SGLang, sglang/srt/model_executor/model_runner.py: profile_max_num_token"
    )
    without = {name: kind for name, kind in NEWEST.kv_cache.items() if name in ("bf16", "fp8", "fp8_e4m3", "fp8_e5m2")}
    listed = "SGLang, sglang/srt/server_args.py: --quantization"
    known = tuple(
        kind for kind in NEWEST.formats or () if kind not in ("mxfp8", *(("mxfp4",) if version[:3] == "0.4" else ()))
    )
    if version == "0.4.1":
        known = tuple(kind for kind in known if kind != "nvfp4")
    return replace(
        NEWEST,
        # until pull requests 19321 and 21019: in_proj_qkv, _z, _b and _a one by one, and four kernels that copy parts
        # of them where one does now
        delta_net_inputs=4,
        delta_net_copies=3,
        version=f"SGLang {version}",
        source=source,
        reserve=reserve,
        limits=_limits(steps),
        pools=pools,
        kv_cache=without,
        formats=known,
        formats_source=listed,
        slow_experts=("gptq",) if version.startswith("0.4") else (),
        slow_experts_source="QwenLM/Qwen3 docs/source/getting_started/speed_benchmark.md",
    )


EVERY_TOKEN = Pools(page_tokens=1, window_share=0, state_share=STATES, state_slots=3)
_V9 = _earlier("0.5.9", LATER, replace(EVERY_TOKEN, window_share=0.8))
SERVING_RUNTIMES.add(
    "sglang",
    replace(
        NEWEST,
        older={
            "0.5.10": replace(_V9, version="SGLang 0.5.10", delta_net_inputs=2, delta_net_copies=0),
            "0.5.9": _V9,
            "0.5.5": _earlier("0.5.5", LATER, EVERY_TOKEN),
            "0.4.6": _earlier("0.4.6", OLDEST, EVERY_TOKEN, by_ranks=BY_RANKS, up_to_mib=81920, beyond_mib=13 * 1024),
            "0.4.1": _earlier("0.4.1", OLDEST, EVERY_TOKEN, by_ranks=BY_RANKS),
        },
    ),
)
