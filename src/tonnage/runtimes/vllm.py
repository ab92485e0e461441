"""vLLM: takes a share of the accelerator, profiles one full forward pass, and gives what is left to the cache.

Its rules are read from the source of the 0.33 wheel, and those of earlier versions from their own; the fixed amounts
were measured by others on vLLM 0.19 and H100s (scripts/vllm_overheads.py fits them). They are what a process takes
beyond its context: the context itself, 0.51 GiB, is not counted against the share that vLLM takes since 0.9.
"""

from shlex import quote

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.kernel.units import GIB, MIB
from tonnage.models.purpose import is_encoder, purpose
from tonnage.ops import Attention
from tonnage.runtimes.parts.plugins import VLLM
from tonnage.runtimes.parts.serving import CUBLAS_WORKSPACE, SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.runtimes.parts.start import (
    DECODE,
    FIRST,
    HERE,
    KV_WORDS,
    PREFILL,
    RANK,
    Roles,
    Start,
    Words,
    offload,
    settings,
    sizes,
    switch,
)
from tonnage.spec import Accelerator, Media

# vllm/engine/arg_utils.py, get_batch_defaults: those of an API server
LIMITS = (
    BatchLimit(kind="tpu", named="v6e", tokens=1024, requests=256),
    BatchLimit(kind="tpu", named="v5e", tokens=512, requests=256),
    BatchLimit(kind="tpu", named="v5p", tokens=256, requests=256),
    BatchLimit(kind="cpu", tokens=2048, requests=128, each_rank=True),
    BatchLimit(memory_bytes=160 * GIB, tokens=16384, requests=1024),
    BatchLimit(memory_bytes=70 * GIB, but_named=("a100", "gb10"), tokens=8192, requests=1024),
    BatchLimit(tokens=2048, requests=256),
)
# vllm/config/vllm.py, max_concurrent_batches: scheduling is asynchronous. vllm/v1/kv_cache_interface.py, MambaSpec: two
# blocks where prefixes are cached, which they are beside attention. vllm/v1/core/kv_cache_planning.py: the groups.
PAGING = Paging(block_tokens=16, spare_batches=1, state_copies=2, group_tolerance=1.5)

# vllm/model_executor/models/registry.py, _PREVIOUSLY_SUPPORTED_MODELS: the last version that ran each architecture
DROPPED = {
    "": "RwkvForCausalLM",
    "0.9.2": "Phi3SmallForCausalLM",
    "0.10.2": "MotifForCausalLM Phi4FlashForCausalLM DonutForConditionalGeneration MllamaForConditionalGeneration",
    "0.12.0": "Phi4MultimodalForCausalLM",
    "0.22.0": "JAISLMHeadModel",
    "0.23.0": (
        "ErnieModel ErnieForSequenceClassification ErnieForTokenClassification InternLM2VEForCausalLM "
        "QWenLMHeadModel QwenVLForConditionalGeneration InternLMForCausalLM XverseForCausalLM "
        "Dots1ForCausalLM BambaForCausalLM MiniMaxForCausalLM MiniMaxText01ForCausalLM MiniMaxM1ForCausalLM "
        "MiniMaxVL01ForConditionalGeneration BaiChuanForCausalLM BaichuanForCausalLM "
        "Tarsier2ForConditionalGeneration"
    ),
    "0.24.0": (
        "AquilaModel AquilaForCausalLM Grok1ModelForCausalLM Grok1ForCausalLM TarsierForConditionalGeneration "
        "MantisForConditionalGeneration MusicFlamingoForConditionalGeneration "
        "AyaVisionForConditionalGeneration"
    ),
    "0.25.0": "TeleChatForCausalLM PersimmonForCausalLM FuyuForCausalLM",
    "0.26.0": "Plamo2ForCausalLM OuroForCausalLM",
    "0.28.0": (
        "ArcticForCausalLM ChameleonForConditionalGeneration Cheers CheersForConditionalGeneration "
        "Fairseq2LlamaForCausalLM FireRedLIDForConditionalGeneration GritLM HCXVisionForCausalLM "
        "MPTForCausalLM MptForCausalLM RWForCausalLM StableLMEpochForCausalLM PrithviGeoSpatialMAE"
    ),
}

# vllm/config/quantization.py, _ONLINE_SHORTHANDS: those that the linear layers have too
AT_LOAD = {
    "fp8-e4m3": "--quantization fp8",
    "fp8-block": "--quantization fp8_per_block",
    "fp8-channel": "--quantization fp8_per_channel",
    "mxfp8": "--quantization mxfp8",
}
# vLLM, pull request 46963: its configuration is refused on SM90 and SM12x, whose kernels read no nvfp4
FP4_CACHE = "vLLM, vllm/v1/attention/backends/flashinfer.py, supports_kv_cache_dtype and supports_combination"
UNREAD_HEAD = 64


def check_cache(engine: ServingRuntime, model: Model, kind: str, accelerator: Accelerator) -> None:
    """A cache in nvfp4 is read by FlashInfer's kernels alone: those before Blackwell have not every shape of head."""
    is_wide = "fp4" in accelerator.dense_flops and accelerator.scale_up is not None  # SM100, and not the cards of SM120
    if kind != "nvfp4" or is_wide:
        return
    why = "vLLM's kernels for nvfp4 are those of B200 and its like" if "fp4" in accelerator.dense_flops else ""
    if accelerator.vendor != "NVIDIA" or ("fp16" in accelerator.dense_flops and "bf16" not in accelerator.dense_flops):
        why = Message("{accelerator} is none of NVIDIA's from Ampere on", accelerator=accelerator.name)
    if accelerator.generation == "Hopper":
        why = "FlashInfer's kernels of Hopper read no nvfp4"
    heads = [op for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention)]
    if not why and any(op.head_dim == UNREAD_HEAD or op.sinks for op in heads):
        why = Message(
            "before Blackwell it reads neither heads of {unread_head} nor sinks, and {model} has them",
            unread_head=UNREAD_HEAD,
            model=model.name,
        )
    if why:
        raise InvalidPlan(
            "{@kv_cache}: {version} cannot hold nvfp4 there: {why} ({fp4_cache}). Got {accelerator}. Nearest: fp8.",
            version=engine.version,
            why=why,
            fp4_cache=FP4_CACHE,
            accelerator=accelerator.name,
        )


WITHOUT_NODES = 11  # of 0.x: vLLM spread over nodes by Ray alone
LOOKED_UP = 4  # of an n-gram: the longest that is searched for in the prompt


def kernels_note(accelerator: Accelerator) -> str:
    """vLLM leaves AMD's fast kernels out unless its environment asks for them (docs.vultr.com, inference-cookbook,
    AITER configuration, 2026-03); the runs without them are in validation/recent/vllm_mi300x.yaml.
    """
    if accelerator.generation not in ("CDNA 3", "CDNA 4"):
        return ""
    return Message(
        "the times are those of AITER's kernels: set VLLM_ROCM_USE_AITER=1. Without them five published runs "
        "on MI300X took 2.2 to 2.6 times as long as estimated."
    )


def weights_note(weights: str, accelerator: Accelerator) -> str:
    """Formats that it reads without kernels for them, which costs time that no term counts."""
    if accelerator.vendor != "AMD" or not weights.startswith("nvfp4"):
        return ""
    return Message(
        "vLLM emulates nvfp4 on {accelerator}: it turns every matrix into 16 bits in each pass "
        "(pull request 35733). The bytes hold; the times are those of kernels that read nvfp4, "
        "and it is slower. {--weights} fp8 needs no emulation.",
        accelerator=accelerator.name,
    )


# vLLM, docs/models/pooling_models.md: a decoder that embeds, and one whose head is made of two tokens of its table.
SCORES_TOKENS = (
    '{"architectures": ["Qwen3ForSequenceClassification"], "classifier_from_token": ["no", "yes"], '
    '"is_original_qwen3_reranker": true}'
)
POOLING = {"embed": ["--runner pooling"], "rerank": ["--runner pooling", f"--hf-overrides {quote(SCORES_TOKENS)}"]}


def launch(start: Start) -> str:
    plan = start.plan
    words = [
        "vllm serve",
        quote(start.name),
        *sizes("--tensor-parallel-size", "--pipeline-parallel-size", plan),
        f"--max-model-len {plan.context}",
    ]
    words += POOLING.get(purpose(start.model), []) if not is_encoder(start.model) else []
    groups = plan.attention_data_parallel_size * start.spread.copies
    words += [f"--data-parallel-size {groups}"] if groups > 1 else []
    nodes, notes = _nodes(start, int(groups))
    start.notes.extend(notes)
    words += nodes
    words += ["--enable-expert-parallel"] if plan.expert_parallel_size > 1 else []
    if plan.redundant_experts:
        copies = f'{{"num_redundant_experts": {plan.redundant_experts}}}'
        words += ["--enable-eplb", f"--eplb-config {quote(copies)}"]
    words += _dispatch(start)
    words += settings(
        plan,
        {
            "kv_cache": "--kv-cache-dtype",
            "max_num_batched_tokens": "--max-num-batched-tokens",
            "max_num_seqs": "--max-num-seqs",
            "gpu_memory_utilization": "--gpu-memory-utilization",
        },
        KV_WORDS,
    )
    words += ["--enforce-eager"] if plan.enforce_eager else []
    words += start.words
    words += offload(plan)
    if plan.adapters.lora_adapters:
        words += [
            "--enable-lora",
            f"--max-loras {plan.adapters.lora_adapters}",
            f"--max-lora-rank {plan.adapters.lora_rank}",
        ]
        words += [f"--max-cpu-loras {plan.adapters.lora_on_host}"] if plan.adapters.lora_on_host else []
    if plan.drafting.draft_tokens:
        words.append(f"--speculative-config {quote(_drafts(start))}")
    words += _media(plan.media, start.engine)
    words += switch(plan.chunked_prefill, "--enable-chunked-prefill", "--no-enable-chunked-prefill")
    words += _tier(start)
    words += switch(plan.prefix_caching, "--enable-prefix-caching", "--no-enable-prefix-caching")
    if not start.role:
        return " ".join(words)
    from json import dumps

    connector, variable = CONNECTORS[start.transfer]
    side = {"kv_connector": connector, "kv_role": "kv_producer" if start.role == PREFILL else "kv_consumer"}
    words.append(f"--kv-transfer-config {quote(dumps(side, separators=COMPACT))}")  # no blanks: lines may end at them
    return " ".join([f"{variable}={HERE}"] * bool(variable) + words)


def _tier(start: Start) -> Words:
    """Caches of prefixes beside the GPUs: docs/features/kv_offloading_usage.md, mooncake_store_connector_usage.md."""
    tier, size = start.plan.tier, int(start.plan.tier.kv_offload_bytes or 0)
    if tier.kv_offload in ("", "host"):
        return [f"--kv-offloading-size {size / GIB:.4g}"] if tier.kv_offload else []
    from json import dumps

    side: dict[str, object] = {"kv_connector": "MooncakeStoreConnector", "kv_role": "kv_both"}
    if tier.kv_offload == "disk":
        disks = [{"type": "fs", "root_dir": KV_FOLDER}]
        extra = {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": STAGED, "secondary_tiers": disks}
        side |= {"kv_connector": "OffloadingConnector", "kv_connector_extra_config": extra}
        start.notes.append(
            Message(
                "{folder} stands for a folder on the disks; caches pass through 10 GiB of host memory.",
                folder=KV_FOLDER,
            )
        )
    else:
        start.notes.append("MOONCAKE_CONFIG_PATH names the store and how much memory each node gives it.")
    return [f"--kv-transfer-config {quote(dumps(side, separators=COMPACT))}"]


KV_FOLDER, STAGED = "KV-FOLDER", 10 * GIB  # docs/features/kv_offloading_usage.md: Multi-Tier Setup
# vllm/distributed/kv_transfer/kv_connector/factory.py; docs/features/nixl_connector_usage.md: the host of the handshake
# is localhost unless its variable says the node's address
COMPACT = (",", ":")
CONNECTORS = {"nixl": ("NixlConnector", "VLLM_NIXL_SIDE_CHANNEL_HOST"), "mooncake": ("MooncakeConnector", "")}
PORT = 8000


def router(roles: Roles) -> str:
    """vllm-project/router, README.md: Prefill-Decode Disaggregation."""
    words = ["vllm-router --vllm-pd-disaggregation"]
    words += ["--kv-connector mooncake"] if roles.transfer == "mooncake" else []
    words += [f"--{role} http://{at}" for role in (PREFILL, DECODE) for at in roles.addresses(role, PORT)]
    return " ".join(words)


def _dispatch(start: Start) -> Words:
    """vllm/config/parallel.py: All2AllBackend; docs/serving/expert_parallel_deployment.md: high throughput for prefill
    servers, low latency for decode servers.
    """
    if not start.shares_experts_widely or not start.dispatches_by or int(start.engine.rpartition(".")[2]) < FLAGGED:
        return []
    start.note_dispatch()
    way = "high_throughput" if start.role == PREFILL else "low_latency"
    return [f"--all2all-backend {start.dispatches_by}_{way}"]


FLAGGED = 11  # of 0.x: before, VLLM_ALL2ALL_BACKEND of the environment said it


WITH_FRAMES = 10  # of 0.x: --media-io-kwargs
WITHOUT_SIZES, WITHOUT_JSON = 11, 6  # of 0.x: the limit was a number alone, and before that `image=2`


def _media(media: Media | None, engine: str) -> list[str]:
    """vllm/config/multimodal.py: limit_per_prompt, whose sizes are those of what memory is profiled with, and
    media_io_kwargs, without which 32 frames are taken of every video (vllm/multimodal/media/video.py).
    """
    if media is None:
        return []
    minor = int(engine.rpartition(".")[2])
    counts = media.counts
    if minor <= WITHOUT_JSON:
        return [f"--limit-mm-per-prompt {','.join(f'{name}={count}' for name, count in counts.items())}"]
    from json import dumps

    settings: dict[str, int | dict[str, int]] = dict(counts)
    if media.images and minor > WITHOUT_SIZES:
        settings["image"] = {"count": media.images, "width": media.width, "height": media.height}
    if media.video is None:
        return [f"--limit-mm-per-prompt {quote(dumps(settings))}"]
    frames = {"num_frames": media.video_frames}
    if minor > WITHOUT_SIZES:
        settings["video"] = {"count": 1, **frames, "width": media.width, "height": media.height}
    words = [f"--limit-mm-per-prompt {quote(dumps(settings))}"]
    words += [f"--media-io-kwargs {quote(dumps({'video': frames}))}"] if minor >= WITH_FRAMES else []
    return words


def _drafts(start: Start) -> str:
    """vllm/config/speculative.py: SpeculativeConfig."""
    parallel = start.head == "p-eagle"
    settings: dict[str, str | int] = {"method": "eagle3" if parallel else start.head} if start.head else {}
    own = "suffix" if start.plan.drafting.speculative == "suffix" else "mtp" if start.predicts else "ngram"
    settings |= {"model": start.draft} if start.draft else {"method": own}
    settings["num_speculative_tokens"] = start.plan.drafting.draft_tokens
    settings |= {"parallel_drafting": True} if parallel else {}
    if settings.get("method") == "ngram":
        settings["prompt_lookup_max"] = LOOKED_UP
    from json import dumps

    return dumps(settings)


def _nodes(start: Start, groups: int) -> tuple[list[str], list[str]]:
    """vllm/engine/arg_utils.py, create_engine_config: --nnodes, of which it infers the data-parallel rank; before,
    Ray had the nodes.
    """
    plan, spread = start.plan, start.spread
    if spread.nodes == 1:
        return [], [spread.each] if spread.each else []
    group_size = int(plan.tensor_parallel_size * plan.pipeline_parallel_size)
    here = max(groups * group_size // spread.nodes // group_size, 1)
    words = [f"--data-parallel-size-local {here}"] if groups > 1 else []
    minor = int(start.engine.rpartition(".")[2])
    if minor <= WITHOUT_NODES:
        words += [f"--data-parallel-address {FIRST}", "--data-parallel-backend ray"] if groups > 1 else []
        return [*words, "--distributed-executor-backend ray"], [
            (
                Message(
                    "First `ray start` on each of the {nodes} nodes makes them one Ray cluster; the command "
                    "is run on one.",
                    nodes=spread.nodes,
                )
            )
        ]
    words += [f"--data-parallel-address {FIRST}"] if groups > 1 else []
    words += [f"--nnodes {spread.nodes}", f"--node-rank {RANK}", f"--master-addr {FIRST}"]
    return words, [Message("{each} All but the first also need --headless.", each=spread.each)]


NEWEST = ServingRuntime(
    name="vllm",
    rollout="vllm",
    version="vLLM 0.33",
    source="vLLM, vllm/config/cache.py: gpu_memory_utilization 0.92, DEFAULT_BLOCK_SIZE 16; "
    "vLLM, vllm/engine/arg_utils.py, get_batch_defaults: max_num_batched_tokens and max_num_seqs of an API server",
    memory_share=0.92,
    limits=LIMITS,
    paging=PAGING,
    context=round(0.51 * GIB),
    process=round(0.25 * GIB),
    communicators=round((2.07 - 0.25) * GIB),
    each_peer=round(0.07 * GIB),
    graphs=(round(0.31 * GIB), round(0.31 * GIB)),
    graph_layers=(round(0.0164 * GIB), round(0.0085 * GIB)),
    weights_note=weights_note,
    kernels_note=kernels_note,
    narrow_cache="fp8",
    partition_variable="VLLM_PP_LAYER_PARTITION",
    launch=launch,
    plugins=VLLM,
    adapts_experts=True,  # vllm/lora/layers/fused_moe.py: FusedMoEWithLoRA, since 0.11.1
    adapter_ranks=(1, 8, 16, 32, 64, 128, 256, 320, 512),
    adapter_ranks_source="vLLM, vllm/config/lora.py: MaxLoRARanks",
    transfers=("nixl", "mooncake"),
    transfers_source="vLLM, docs/features/nixl_connector_usage.md; vLLM, docs/features/mooncake_connector_usage.md",
    router=router,
    kv_tiers=("host", "disk", "store"),
    kv_tiers_source="vLLM, docs/features/kv_offloading_usage.md; vLLM, vllm/config/cache.py: kv_offloading_size",
    halves=True,  # vllm/config/model.py, _get_and_verify_dtype: auto takes float16 for float32
    serves=("generate", "embed", "rerank", "transcribe"),
    front_end=Message(
        "this is what the accelerator does. One server process of vLLM reads requests more slowly where documents are "
        "short: published runs end at 415 to 1,089 requests/s of one document each (pull requests 23000 and 39113). "
        "Send many documents in a request."
    ),
    copies_in_server="all-nodes",
    listed=1,
    settings=(
        "weights_on_host",
        "lora_adapters",
        "attention_data_parallel_size",
        "redundant_experts",
        "draft_tokens",
        "speculative",
        "kv_offload",
    ),
    prefix_caching="vLLM, vllm/config/cache.py: enable_prefix_caching True",
    drafts=("eagle3", "eagle", "mtp", "medusa", "p-eagle", "dflash", "ngram", "suffix", "draft"),
    heads_rule="vLLM, vllm/config/model.py, verify_with_parallel_config: total number of attention heads must be "
    "divisible by tensor "
    "parallel size",
    blocks_rule="vLLM, vllm/model_executor/layers/quantization/fp8.py, create_weights: not divisible by weight "
    "quantization block_n; "
    "vllm issue 17569",
    check_cache=check_cache,
    at_load=AT_LOAD,
    dtype_flag="--dtype",
    reads_faster_cache=True,
    overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: non_torch_forward_gib and "
    "cuda_graph_actual_gib on H100s "
    "(scripts/vllm_overheads.py)",
    dropped={name: version for version, names in DROPPED.items() for name in names.split()},
    encoder_decoders=("whisper",),
    # int8, int4 and fp8 per token and head, and TurboQuant, depend on the size of a head and are not described
    kv_cache={
        "fp16": "fp16",
        "bf16": "bf16",
        "fp8": "fp8-e4m3",
        "fp8_e4m3": "fp8-e4m3",
        "fp8_e5m2": "fp8-e5m2",
        "nvfp4": "nvfp4",
    },
    kv_cache_source="vLLM, vllm/config/cache.py: CacheDType",
    longer="vLLM, vllm/config/model.py",
    too_old=dict.fromkeys(("awq", "fp8", "nvfp4", "mxfp4", "int8"), ("Pascal", "Volta")),
    too_old_source="vLLM, docs/features/quantization/README.md, supported hardware; AWQConfig.get_min_capability: 75",
    longer_variable="VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    # the sampler on logits: 16 bit, fp32, probabilities, and the noise that draws from them, or FlashInfer's two in
    # their place
    logits_bytes=14,
    sampled_streams=2,
    workspace=CUBLAS_WORKSPACE,
    # torch/_inductor/runtime/benchmarking.py: a buffer as large as an H100's L2 beside the kernel that is timed
    autotuner=50 * MIB,
    keeps_expert_workspace=True,
    bare_experts=("mxfp4",),  # fused_moe/gpt_oss_triton_kernels_moe.py: one kernel, without workspaces
    rounds_tensors=True,
    fused_names=(("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")),
    rotary_tables=True,
    # cuBLAS's and CUTLASS's kernels of Hopper multiply 64 rows at once (PTX ISA: wgmma.m64), those of Ampere have tiles
    # of as many; Marlin's has 16 (csrc/quantization/gptq_marlin: thread_m_blocks)
    tile_rows=64,
    packed_tile_rows=16,
    expands_in_lanes=True,
    fuses_mixtures=True,
    passes_ahead=1,
    shared_experts_beside=True,
    delta_net_inputs=2,
    absorbed=("kv_b_proj",),  # model_executor/layers/attention/mla_attention.py: W_UK_T and W_UV
)

# What was otherwise before, read from the source of the wheels 0.19.0, 0.11.0, 0.8.5 and 0.6.4.
_V21 = replace(
    NEWEST,
    version="vLLM 0.21",
    source=(
        "vLLM 0.19, vllm/v1/worker/gpu_worker.py: determine_available_memory, with "
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS on"
    ),
    memory_share=0.9,
    paging=replace(PAGING, one_batch=True),
    sampler_rows=132,
    # of what it makes of weights now, fp8 alone
    at_load={"fp8-e4m3": "--quantization fp8", "nf4": "--quantization bitsandbytes"},
)
_V17 = replace(
    _V21,
    version="vLLM 0.17",
    source=(
        "vLLM 0.19, vllm/v1/worker/gpu_worker.py: determine_available_memory; vllm/v1/sample/ops/topk_topp_sampler.py"
    ),
    graphs_in_share=False,
)
# vllm/v1/sample/ops/topk_topp_sampler.py: torch.sort on fp32 logits keeps values, indices and the indices before, and a
# second buffer of
# values and indices (PyTorch, aten/src/ATen/native/cuda/Sort.cu: segmented_sort_pairs), beside logits in 16 bit and
# fp32
SORTED = 2 + 4 + 4 + 8 + 8 + 12
_V14 = replace(
    _V17,
    version="vLLM 0.14",
    source="vLLM 0.11, vllm/v1/worker/gpu_worker.py: determine_available_memory; vllm/v1/kv_cache_interface.py",
    logits_bytes=SORTED,
    sampler_rows=0,
    keeps_expert_workspace=False,
    paging=replace(PAGING, one_batch=True, state_copies=1, group_tolerance=1),
)
# asynchronous scheduling is the default since 0.14 (release notes; pull request 27614)
_V11 = replace(_V14, version="vLLM 0.11", passes_ahead=0, adapts_experts=False)
_V8 = replace(
    _V11,
    shared_experts_beside=False,  # pull request 26440: a stream of their own since 0.11.1
    version="vLLM 0.8",
    source=(
        "vLLM 0.8.5, vllm/v1/worker/gpu_worker.py: determine_available_memory; vllm/engine/arg_utils.py: "
        "_set_default_args_v1"
    ),
    limits=(BatchLimit(memory_bytes=70 * GIB, tokens=8192, requests=1024), BatchLimit(tokens=2048, requests=256)),
    context_in_share=True,
    paging=replace(PAGING, one_batch=True, state_copies=1, group_tolerance=1, windows=False),
)
_V6 = replace(
    _V8,
    prefix_caching="",  # --enable-prefix-caching was off
    version="vLLM 0.6",
    source="vLLM 0.6.4, vllm/worker/worker.py: determine_num_available_blocks; vllm/config.py: SchedulerConfig",
    limits=(
        BatchLimit(up_to_context=32768, tokens=2048, requests=256, whole_context=True),
        BatchLimit(tokens=512, requests=256),
    ),
    autotuner=0,
)

SERVING_RUNTIMES.add(
    "vllm",
    replace(NEWEST, older={each.version.rpartition(" ")[2]: each for each in (_V21, _V17, _V14, _V11, _V8, _V6)}),
)
