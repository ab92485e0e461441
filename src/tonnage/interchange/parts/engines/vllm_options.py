"""The options of vLLM 0.33 that mean the same whatever else is said, and names that older releases had.

Read in vllm/engine/arg_utils.py (EngineArgs), vllm/entrypoints/common/cli_args.py (FrontendArgs), vllm/config and
vllm/envs.py of the wheels.
"""

from tonnage.interchange.parts.engines.engine_options import KERNELS, NO_OPTION, Options, names

# EngineArgs and FrontendArgs whose type is bool
SWITCHES = names("""
    aggregate-engine-logging allow-credentials allow-deprecated-quantization async-scheduling
    cohere-is-reasoning-model cudagraph-metrics data-parallel-external-lb data-parallel-hybrid-lb
    data-parallel-multi-port-external-lb dcp-q-replicate disable-access-log disable-cascade-attn
    disable-chunked-mm-input disable-custom-all-reduce disable-fastapi-docs disable-frontend-multiprocessing
    disable-hybrid-kv-cache-manager
    disable-log-requests disable-log-stats disable-nccl-for-dp-synchronization disable-sliding-window
    disable-uvicorn-access-log enable-auto-tool-choice enable-batch-sharded-sampling enable-chunked-prefill
    enable-cumem-allocator enable-dbo enable-elastic-ep enable-ep-weight-filter enable-eplb enable-expert-parallel
    enable-fault-tolerance enable-flash-late-interaction enable-flashinfer-autotune enable-force-include-usage
    enable-hc-sp enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs enable-log-requests
    enable-logging-iteration-details enable-lora enable-lora-bias enable-mamba-cache-stochastic-rounding
    enable-mamba-shared-prefix-checkpoint enable-mfu-metrics enable-mixed-moe-lora-format enable-mm-embeds
    enable-mm-processor-stats enable-moe-shared-loras enable-nccl-comm-suspend enable-offline-docs
    enable-per-request-metrics enable-prefix-caching enable-prompt-adapter enable-prompt-embeds
    enable-prompt-tokens-details enable-reasoning enable-request-id-headers enable-return-routed-experts
    enable-scale-out enable-server-load-tracking enable-shm-tensor-arena enable-sleep-mode enable-ssl-refresh
    enable-tokenizer-info-endpoint enable-tower-connector-lora enable-trace-replay enforce-eager
    exclude-tools-when-tool-choice-none fail-on-environ-validation fully-sharded-loras headless interleave-mm-strings
    jit-monitor-verbose kv-cache-metrics kv-sharing-fast-prefill language-model-only log-error-stack
    long-prefill-token-threshold-adaptive mm-device-do-normalize mm-encoder-only monokernel multi-step-stream-outputs
    numa-bind ray-workers-use-nsight return-sampling-mask return-tokens-as-token-ids scheduler-reserve-full-isl
    skip-mm-profiling skip-tokenizer-init sleep-mode-offload-cudagraph specialize-active-lora swa-bounded-replay
    task-embedding tokens-only trust-remote-code trust-request-chat-template trust-request-mm-kwargs use-fp64-gumbel
    use-replayssm use-tqdm-on-load use-v2-block-manager worker-use-ray
""")
SEVERAL = names("""
    served-model-name lora-modules cudagraph-capture-sizes cuda-graph-sizes allowed-media-domains device-ids
    numa-bind-nodes numa-bind-cpus kv-cache-dtype-skip-layers logits-processors collect-detailed-traces middleware
    api-key lora-target-modules sleep-preserve-parameter-names cpu-offload-params offload-params ignore-patterns
    prompt-adapters
""")
# Short names, and those that older releases had.
SHORT = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "dcp": "decode-context-parallel-size",
    "pcp": "prefill-context-parallel-size",
    "dpn": "data-parallel-rank",
    "dpr": "data-parallel-start-rank",
    "dpl": "data-parallel-size-local",
    "dpa": "data-parallel-address",
    "dpp": "data-parallel-rpc-port",
    "dpb": "data-parallel-backend",
    "dph": "data-parallel-hybrid-lb",
    "dpe": "data-parallel-external-lb",
    "dpm": "data-parallel-multi-port-external-lb",
    "ep": "enable-expert-parallel",
    "n": "nnodes",
    "r": "node-rank",
    "q": "quantization",
    "O": "optimization-level",
    "device-memory-utilization": "gpu-memory-utilization",
    "cuda-graph-sizes": "cudagraph-capture-sizes",
    "guided-decoding-backend": "structured-outputs-config.backend",
    "num-speculative-tokens": "speculative-config.num_speculative_tokens",
    "speculative-model": "speculative-config.model",
    "spec-model": "speculative-config.model",
    "spec-method": "speculative-config.method",
    "spec-tokens": "speculative-config.num_speculative_tokens",
    "speculative-draft-tensor-parallel-size": "speculative-config.draft_tensor_parallel_size",
    "speculative-max-model-len": "speculative-config.max_model_len",
    "ngram-prompt-lookup-max": "speculative-config.prompt_lookup_max",
    "ngram-prompt-lookup-min": "speculative-config.prompt_lookup_min",
}
SECTIONS = {"sc": "speculative-config", "cc": "compilation-config", "ac": "attention-config", "O": "compilation-config"}
# Options whose value is an object of JSON.
JSON = names("""
    speculative-config compilation-config hf-overrides limit-mm-per-prompt kv-transfer-config kv-events-config
    ec-transfer-config ec-manager-config eplb-config additional-config attention-config engram-config kernel-config
    mamba-config structured-outputs-config aux-output-config profiler-config watchdog-config reasoning-config
    weight-transfer-config pooler-config override-generation-config override-pooler-config override-neuron-config
    media-io-kwargs mm-processor-kwargs model-loader-extra-config quantization-config default-chat-template-kwargs
    reasoning-effort-map custom-histogram-buckets default-mm-loras watermark-config diffusion-config logging-config
    fault-tolerance-config rope-scaling ir-op-priority model-class-overrides
""")
IGNORED = names("""
    aggregate-engine-logging allow-credentials allow-deprecated-quantization allowed-headers allowed-local-media-path
    allowed-media-domains allowed-methods allowed-origins anthropic-disabled-thinking-effort
    chat-template-content-format code-revision cohere-format cohere-is-reasoning-model collect-detailed-traces
    config-format cpu-distributed-timeout-seconds cudagraph-metrics custom-histogram-buckets data-parallel-address
    data-parallel-backend data-parallel-external-lb data-parallel-hybrid-lb data-parallel-multi-port-external-lb
    data-parallel-rank data-parallel-rpc-port data-parallel-start-rank data-parallel-supervisor-port
    default-chat-template-kwargs device-ids disable-access-log-for-endpoints disable-fastapi-docs
    disable-frontend-multiprocessing disable-uvicorn-access-log distributed-executor-backend
    distributed-timeout-seconds dp-supervisor-probe-failure-threshold dp-supervisor-probe-interval-s
    dp-supervisor-probe-timeout-s enable-flash-late-interaction enable-force-include-usage
    enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs enable-log-requests
    enable-logging-iteration-details enable-mfu-metrics enable-mm-processor-stats enable-offline-docs
    enable-per-request-metrics enable-prompt-tokens-details enable-reasoning enable-request-id-headers
    enable-return-routed-experts enable-scale-out enable-server-load-tracking enable-shm-tensor-arena
    enable-ssl-refresh enable-tokenizer-info-endpoint enable-trace-replay exclude-tools-when-tool-choice-none
    fail-on-environ-validation fault-tolerance-config fingerprint-mode fingerprint-value generation-config grpc-port
    h11-max-header-count h11-max-incomplete-event-size headless hf-config-path hf-token ignore-patterns
    interleave-mm-strings io-processor-plugin jit-monitor-mode jit-monitor-verbose kv-cache-metrics
    kv-cache-metrics-sample kv-events-config load-format log-config-file log-error-stack log-level logging-config
    lora-modules lora-target-modules master-addr master-port max-log-len max-logprobs
    max-num-queued-reqs max-num-queued-tokens max-parallel-loading-workers media-io-kwargs middleware
    mm-hasher-algorithm mm-processor-cache-gb mm-processor-cache-type mm-processor-kwargs
    mm-shm-cache-max-object-size-mb model-loader-extra-config node-rank numa-bind numa-bind-cpus numa-bind-nodes
    otlp-traces-endpoint override-generation-config per-request-spec-decode-metrics prefix-cache-retention-interval
    prefix-caching-hash-algo profiler-config pt-load-map-location ray-workers-use-nsight reasoning-config
    reasoning-effort-map reasoning-parser-plugin renderer-num-workers response-role return-tokens-as-token-ids
    revision root-path safetensors-load-strategy safetensors-prefetch-block-size safetensors-prefetch-num-threads seed
    show-hidden-metrics-for-version shutdown-timeout skip-tokenizer-init sse-keep-alive-interval ssl-ca-certs
    ssl-cert-reqs ssl-certfile ssl-ciphers ssl-keyfile ssl-keyfile-password stream-interval structured-outputs-config
    tokenizer-mode tokenizer-revision tokens-only tool-parser-plugin tool-server tool-strict-level
    trust-request-chat-template trust-request-mm-kwargs uds use-fp64-gumbel use-tqdm-on-load uvicorn-log-level
    watchdog-config enable-fault-tolerance swap-space scheduling-policy logits-processors logprobs-mode
    return-sampling-mask api-server-count use-v2-block-manager worker-use-ray disable-log-stats disable-access-log
    enable-ep-weight-filter expert-placement-strategy disable-nccl-for-dp-synchronization
""")
# option -> values that change nothing, and why others may change something
MULTIMODAL = "how the towers of images and sounds run is not read"
HARMLESS = {
    "runner": (("auto", "generate"), "a model that pools is not estimated"),
    "task": (("auto", "generate"), "a model that pools is not estimated"),
    "convert": (("auto", "none"), "a model that pools is not estimated"),
    "model-impl": (("auto", "vllm"), KERNELS),
    "device": (("auto", "cuda"), "the machine is that of `on`"),
    "attention-backend": (("auto", "flash_attn", "flashinfer", "flashmla", "cutlass_mla", "flashinfer_mla"), KERNELS),
    "moe-backend": (("auto",), KERNELS),
    "linear-backend": (("auto",), KERNELS),
    "mamba-backend": (("triton",), KERNELS),
    "gdn-prefill-backend": ((), KERNELS),
    "kda-prefill-backend": (("auto",), KERNELS),
    "kda-decode-backend": (("auto",), KERNELS),
    "sparse-indexer-topk-backend": (("auto",), KERNELS),
    "all2all-backend": (("auto", "naive", "allgather_reducescatter"), "buffers and times of exchanges of experts"),
    "offload-backend": (("auto", "uva"), NO_OPTION),
    "kv-offloading-backend": (("native",), NO_OPTION),
    "mm-encoder-tp-mode": (("weights",), "the weights of towers are shared among tensor ranks here"),
    "mm-processor-device": (("auto", "cpu"), NO_OPTION),
    "mm-tensor-ipc": (("direct_rpc", "auto"), NO_OPTION),
    "mm-ipc-gpu-memory-gb": (("0", "0.0"), NO_OPTION),
    "performance-mode": (("balanced",), "it changes graphs and kernels"),
    "optimization-level": (("2", "3"), "it changes what is compiled"),
    "async-scheduling": (("true",), "the times are those of asynchronous scheduling"),
    "enable-chunked-prefill": (("true",), "prompts are split over passes here"),
    "enable-prefix-caching": (("true",), ""),
    "block-size": (("16",), "blocks have the engine's own size here"),
    "decode-context-parallel-size": (("1",), "the cache is not shared among tensor ranks here"),
    "prefill-context-parallel-size": (("1",), NO_OPTION),
    "offload-group-size": (("0",), NO_OPTION),
    "offload-num-in-group": (("1",), NO_OPTION),
    "offload-prefetch-step": (("1",), NO_OPTION),
    "dp-sync-interval": (("16",), NO_OPTION),
    "ubatch-size": (("0",), NO_OPTION),
    "num-scheduler-steps": (("1",), "several steps between two looks at new requests are not estimated"),
    "num-lookahead-slots": (("0",), NO_OPTION),
    "max-num-partial-prefills": (("1",), NO_OPTION),
    "max-long-partial-prefills": (("1",), NO_OPTION),
    "long-prefill-token-threshold": (("0",), NO_OPTION),
    "prefill-schedule-interval": (("1",), NO_OPTION),
    "watermark": (("0", "0.0"), "blocks that are kept free are not estimated"),
    "scheduler-reserve-full-isl": (("true",), NO_OPTION),
    "scheduler-cls": (("vllm.v1.core.sched.scheduler.scheduler",), NO_OPTION),
    "swa-bounded-replay": (("true",), NO_OPTION),
    "mamba-cache-dtype": (("auto",), "states have the model's own type here"),
    "mamba-ssm-cache-dtype": (("auto",), "states have the model's own type here"),
    "mamba-cache-mode": (("none",), "states at the ends of prefixes are counted as for `none`"),
    "lora-dtype": (("auto",), "adapters are in 16 bits here"),
    "lora-extra-vocab-size": (("0", "256"), NO_OPTION),
    "worker-cls": (("auto",), NO_OPTION),
    "worker-extension-cls": (("",), NO_OPTION),
    "enable-flashinfer-autotune": (("true",), KERNELS),
    "use-replayssm": (("false",), NO_OPTION),
    "replayssm-buffer-len": (("16",), NO_OPTION),
    "elastic-ep-max-dp-size": (("0",), NO_OPTION),
    "dbo-decode-token-threshold": (("32",), NO_OPTION),
    "dbo-prefill-token-threshold": (("512",), NO_OPTION),
    "sleep-mode-backend": (("cumem",), NO_OPTION),
    "dcp-kv-cache-interleave-size": (("1",), NO_OPTION),
    "cp-kv-cache-interleave-size": (("1",), NO_OPTION),
    "video-pruning-method": (("evs",), MULTIMODAL),
    "mm-device-do-normalize": (("true",), MULTIMODAL),
    "mm-encoder-fp8-scale-save-margin": (("1.5",), MULTIMODAL),
    "model-weights": (("",), "weights from another place than the config"),
}
UNSURE = {
    **dict.fromkeys(("enable-mm-embeds", "skip-mm-profiling", "mm-encoder-only"), MULTIMODAL),
    **dict.fromkeys(("video-pruning-rate", "disable-chunked-mm-input", "mm-encoder-attn-backend"), MULTIMODAL),
    **dict.fromkeys(("mm-encoder-attn-dtype", "mm-encoder-fp8-scale-path"), MULTIMODAL),
    **dict.fromkeys(("mm-encoder-fp8-scale-save-path", "enable-tower-connector-lora"), MULTIMODAL),
    "language-model-only": "the weights of towers are counted here",
    "kv-cache-memory-bytes": "the cache gets what gpu_memory_utilization leaves here",
    "num-gpu-blocks-override": "the cache gets what gpu_memory_utilization leaves here",
    "max-num-scheduled-tokens": NO_OPTION,
    "max-num-active-seqs": NO_OPTION,
    "disable-sliding-window": "layers with windows keep their windows here",
    "disable-hybrid-kv-cache-manager": "layers with windows keep their windows here",
    "disable-cascade-attn": KERNELS,
    "disable-custom-all-reduce": "exchanges are timed as with the custom all-reduce",
    "enable-dbo": "two micro-batches that overlap are not timed",
    "enable-elastic-ep": NO_OPTION,
    "enable-hc-sp": NO_OPTION,
    "enable-batch-sharded-sampling": NO_OPTION,
    "enable-sleep-mode": "its allocator is not estimated",
    "sleep-mode-offload-cudagraph": NO_OPTION,
    "sleep-preserve-parameter-names": NO_OPTION,
    "enable-cumem-allocator": "its allocator is not estimated",
    "enable-nccl-comm-suspend": NO_OPTION,
    "enable-prompt-embeds": NO_OPTION,
    "enable-mamba-shared-prefix-checkpoint": NO_OPTION,
    "enable-mamba-cache-stochastic-rounding": KERNELS,
    "mamba-cache-philox-rounds": KERNELS,
    "mamba-block-size": NO_OPTION,
    "mamba-ssu-algorithm": KERNELS,
    "prefix-match-unit": NO_OPTION,
    "long-prefill-token-threshold-adaptive": NO_OPTION,
    "kv-cache-dtype-skip-layers": "all layers have the same type of cache here",
    "kv-sharing-fast-prefill": NO_OPTION,
    "cpu-offload-params": "the bytes of weights_on_host are of any weights",
    "offload-params": NO_OPTION,
    "fully-sharded-loras": "adapters are shared among tensor ranks in part here",
    "specialize-active-lora": "graphs for each number of adapters are not counted",
    "enable-lora-bias": NO_OPTION,
    "enable-mixed-moe-lora-format": NO_OPTION,
    "enable-moe-shared-loras": NO_OPTION,
    "max-lora-cls-labels": NO_OPTION,
    "default-mm-loras": MULTIMODAL,
    "long-lora-scaling-factors": NO_OPTION,
    "enable-prompt-adapter": NO_OPTION,
    "cudagraph-capture-sizes": "graphs are counted for the engine's own sizes",
    "max-cudagraph-capture-size": "graphs are counted for the engine's own sizes",
    "max-seq-len-to-capture": "graphs are counted for the engine's own sizes",
    "quantization-config": "the weights that it makes are not described",
    "quantization-param-path": NO_OPTION,
    "dcp-comm-backend": NO_OPTION,
    "dcp-q-replicate": NO_OPTION,
    "monokernel": KERNELS,
    "ir-op-priority": KERNELS,
    "kernel-config": KERNELS,
    "attention-config": KERNELS,
    "mamba-config": KERNELS,
    "engram-config": NO_OPTION,
    "additional-config": NO_OPTION,
    "ec-transfer-config": MULTIMODAL,
    "ec-manager-config": MULTIMODAL,
    "weight-transfer-config": NO_OPTION,
    "pooler-config": "a model that pools is not estimated",
    "override-pooler-config": "a model that pools is not estimated",
    "override-neuron-config": NO_OPTION,
    "watermark-config": NO_OPTION,
    "diffusion-config": NO_OPTION,
    "aux-output-config": NO_OPTION,
    "model-class-overrides": "a change of the model that is not estimated",
    "preemption-mode": NO_OPTION,
    "multi-step-stream-outputs": NO_OPTION,
}
TABLE = Options(
    tool="vLLM",
    counts={
        name.replace("_", "-"): name
        for name in ("tensor_parallel_size", "pipeline_parallel_size", "max_num_seqs", "max_num_batched_tokens")
    },
    shares={"gpu-memory-utilization": "gpu_memory_utilization"},
    ignored=IGNORED,
    harmless=HARMLESS,
    unsure=UNSURE,
)
# Options that `vllm_server` reads by rules of its own.
COMPUTED = names("""
    model max-model-len dtype quantization kv-cache-dtype data-parallel-size data-parallel-size-local nnodes
    enable-expert-parallel enforce-eager cpu-offload-gb enable-lora max-loras max-lora-rank speculative-config
    compilation-config hf-overrides rope-scaling rope-theta enable-eplb eplb-config kv-transfer-config
    optimization-level config calculate-kv-scales enable-prefix-caching kv-offloading-size max-cpu-loras
    limit-mm-per-prompt
""")
# Variables of the environment that change neither memory nor time, beside those that are known below.
VARIABLES_IGNORED = names("""
    VLLM_API_KEY VLLM_ASSETS_CACHE VLLM_AUDIO_FETCH_TIMEOUT VLLM_CACHE_ROOT VLLM_CONFIGURE_LOGGING VLLM_CONFIG_ROOT
    VLLM_DEBUG_LOG_API_SERVER_RESPONSE VLLM_DEBUG_DUMP_PATH VLLM_DISABLE_COMPILE_CACHE VLLM_DISABLE_LOG_LOGO
    VLLM_DO_NOT_TRACK VLLM_ENABLE_V1_MULTIPROCESSING VLLM_ENGINE_ITERATION_TIMEOUT_S VLLM_ENGINE_READY_TIMEOUT_S
    VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS VLLM_HOST_IP VLLM_HTTP_TIMEOUT_KEEP_ALIVE VLLM_IMAGE_FETCH_TIMEOUT
    VLLM_KEEP_ALIVE_ON_ENGINE_DEATH VLLM_LOGGING_COLOR VLLM_LOGGING_CONFIG_PATH VLLM_LOGGING_LEVEL
    VLLM_LOGGING_PREFIX VLLM_LOGGING_STREAM VLLM_LOG_STATS_INTERVAL VLLM_LOG_BATCHSIZE_INTERVAL
    VLLM_LORA_RESOLVER_CACHE_DIR VLLM_MEDIA_CACHE VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT VLLM_MOONCAKE_BOOTSTRAP_PORT
    VLLM_NCCL_SO_PATH VLLM_NIXL_ABORT_REQUEST_TIMEOUT VLLM_NIXL_SIDE_CHANNEL_HOST VLLM_NIXL_SIDE_CHANNEL_PORT
    VLLM_NO_USAGE_STATS VLLM_PLUGINS VLLM_PORT VLLM_PROCESS_NAME_PREFIX VLLM_RPC_BASE_PATH VLLM_RPC_TIMEOUT
    VLLM_SERVER_DEV_MODE VLLM_SKIP_P2P_CHECK VLLM_TORCH_PROFILER_DIR VLLM_TRACE_FUNCTION VLLM_USAGE_SOURCE
    VLLM_USAGE_STATS_SERVER VLLM_USE_MODELSCOPE VLLM_USE_RUST_FRONTEND VLLM_VIDEO_FETCH_TIMEOUT
    VLLM_WORKER_MULTIPROC_METHOD VLLM_ALLOW_LONG_MAX_MODEL_LEN VLLM_ALLOW_RUNTIME_LORA_UPDATING VLLM_DP_MASTER_IP
    VLLM_DP_MASTER_PORT VLLM_DP_RANK VLLM_DP_RANK_LOCAL VLLM_RANDOMIZE_DP_DUMMY_INPUTS VLLM_RAY_DP_PACK_STRATEGY
    VLLM_RAY_PER_WORKER_GPUS VLLM_RAY_BUNDLE_INDICES VLLM_GPU_NIC_PCIE_MAPPING VLLM_TUNED_CONFIG_FOLDER
    VLLM_ALLOW_INSECURE_SERIALIZATION VLLM_ENABLE_RESPONSES_API_STORE VLLM_GPT_OSS_SYSTEM_TOOL_MCP_LABELS
""")
VARIABLES_HARMLESS = {
    "VLLM_USE_V1": (("1", "true"), "the rules are those of V1"),
    "VLLM_USE_FLASHINFER_SAMPLER": (("1", "true"), "the sampler keeps other amounts"),
    "VLLM_ATTENTION_BACKEND": (HARMLESS["attention-backend"][0], KERNELS),
    "VLLM_USE_DEEP_GEMM": (("1", "true"), KERNELS),
    "VLLM_MOE_USE_DEEP_GEMM": (("1", "true"), KERNELS),
    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": (("1", "true"), "graphs count against the engine's share here"),
    "VLLM_MLA_DISABLE": (("0", "false"), "latent attention is not written out here"),
    "VLLM_FLASH_ATTN_VERSION": (("2", "3", "4"), KERNELS),
}
