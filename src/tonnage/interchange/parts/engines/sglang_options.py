"""The options of SGLang 0.5.23 that mean the same whatever else is said, and names that older releases had.

Read in sglang/srt/arg_groups/fields (ServerArgs) of the wheel, older names in sglang/srt/server_args.py of older ones.
"""

from tonnage.interchange.parts.engines.engine_options import KERNELS, NO_OPTION, Options, names

SWITCHES = names("""
    abort-on-priority-when-disabled allow-auto-truncate checkpoint-engine-wait-weights-before-ready
    constrained-json-disable-any-whitespace debug-cuda-graph delete-ckpt-after-loading
    disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill disable-attn-tp-gather
    disable-chunked-prefix-cache disable-cuda-graph disable-cuda-graph-padding disable-custom-all-reduce
    disable-decode-cuda-graph disable-fast-image-processor disable-flashinfer-autotune
    disable-flashinfer-cutlass-moe-fp4-allgather disable-hybrid-swa-memory disable-mla disable-outlines-disk-cache
    disable-overlap-schedule disable-prefill-cuda-graph disable-priority-preemption disable-radix-cache
    disable-shared-experts-fusion disable-tokenizer-batch-decode disaggregation-decode-enable-offload-kvcache
    disaggregation-decode-enable-radix-cache disaggregation-enable-kv-checksum dllm-fdfo
    enable-adaptive-dispatch-to-encoder enable-aiter-allreduce-fusion enable-amd-monokernel
    enable-attn-tp-input-scattered enable-broadcast-mm-inputs-process enable-cache-report enable-cp-decode-attn-tp
    enable-cudagraph-gc enable-custom-logit-processor enable-deepep-moe enable-deepseek-v4-fp4-indexer
    enable-dense-mlp-attn-tp enable-deterministic-inference enable-double-sparsity enable-dp-attention
    enable-dp-attention-local-control-broadcast enable-dp-lm-head enable-draft-weights-cpu-backup
    enable-dsa-cache-layer-split enable-dynamic-batch-tokenizer enable-dynamic-chunking enable-elastic-expert-backup
    enable-encoder-swa-bounded-replay enable-ep-moe enable-eplb enable-expert-distribution-metrics
    enable-flashinfer-allreduce-fusion enable-flexkv enable-forward-pass-metrics enable-fp32-lm-head
    enable-fused-moe-sum-all-reduce enable-hierarchical-cache enable-hicache enable-hisparse enable-http2
    enable-http-worker-reuseport enable-int8-mamba-checkpoint enable-kv-cache-sharding enable-layernorm-sp
    enable-layerwise-nvtx-marker enable-linear-replayssm enable-linear-replayssm-spec enable-linker-mla-dedup
    enable-lmcache enable-lora enable-lora-overlap-loading enable-mamba-cache-stochastic-rounding
    enable-megamoe-for-layernorm-sp enable-memory-saver enable-metrics enable-metrics-for-all-schedulers
    enable-mfu-metrics enable-mis enable-mixed-chunk enable-mm-global-cache enable-mscclpp enable-multi-layer-eagle
    enable-multimodal enable-nan-detection enable-nccl-nvls enable-nvidia-megakernel enable-p2p-check
    enable-paged-experts enable-page-major-kv-layout enable-pd-role-switch enable-pdmux
    enable-precise-embedding-interpolation enable-prefill-cp enable-prefill-delayer enable-prefix-mm-cache
    enable-priority-scheduling enable-profile-cuda-graph enable-quant-communications
    enable-request-time-stats-logging enable-response-store enable-return-aux-hidden-states
    enable-return-hidden-states enable-return-indexer-topk enable-return-routed-experts enable-scattered-sconv
    enable-session-radix-cache enable-shared-experts-attn-tp enable-single-batch-overlap enable-ssl-refresh
    enable-streaming-session enable-strict-thinking enable-symm-mem enable-tokenizer-batch-encode enable-torch-compile
    enable-torch-compile-debug-mode enable-torch-symm-mem enable-trace enable-two-batch-overlap
    enable-unified-cache-external-linker enable-unified-memory enable-waterfill enable-watermark
    enable-weights-cpu-backup enable-w4a4-mxfp4-megamoe encoder-only enforce-disable-flashinfer-allreduce-fusion
    enforce-shared-experts-fusion export-metrics-to-file flashinfer-mla-disable-ragged grpc-mode
    incremental-streaming-output is-embedding keep-mm-feature-on-device language-model-only language-only log-requests
    mlx-enable-sampling mm-enable-dp-encoder pre-warm-nccl prefill-only-disable-kv-cache quantize-and-serve
    remote-instance-weight-loader-start-seed-via-transfer-engine return-input-ids return-output-ids
    schedule-low-priority-values-first show-time-cost skip-server-warmup skip-tokenizer-init sleep-on-idle
    smg-grpc-mode speculative-adaptive speculative-dspark-align-verify-tokens-to-graph-tier
    speculative-use-block-verification speculative-use-rejection-sampling stream-output
    stream-response-default-include-usage strip-thinking-cache triton-attention-reduce-in-fp32 trust-mm-content-hashes
    trust-remote-code trust-request-chat-template use-ray weight-loader-disable-mmap
    weight-loader-drop-cache-after-load weight-loader-prefetch-checkpoints lora-use-virtual-experts lora-strict-loading
    enable-tf32-matmul
""")
SEVERAL = names("""
    lora-paths lora-target-modules cuda-graph-bs cuda-graph-bs-decode cuda-graph-bs-prefill numa-node gc-threshold
    encoder-urls encoder-register-urls decoupled-spec-connect-endpoints custom-weight-loader debug-tensor-dump-layers
    bucket-time-to-first-token bucket-inter-token-latency bucket-e2e-request-latency prompt-tokens-buckets
    generation-tokens-buckets tokenizer-metrics-allowed-custom-labels allowed-media-domains log-requests-target
    uvicorn-access-log-exclude-prefixes prefill-delayer-forward-passes-buckets sidecar-args
    prefill-delayer-wait-seconds-buckets flashinfer-autotune-skip-ops return-aux-hidden-state-layer-ids
    remote-instance-weight-loader-send-weights-group-ports torch-compile-bs
""")
SHORT = {
    "model": "model-path",
    "tensor-parallel-size": "tp-size",
    "tp": "tp-size",
    "pipeline-parallel-size": "pp-size",
    "pp": "pp-size",
    "data-parallel-size": "dp-size",
    "dp": "dp-size",
    "expert-parallel-size": "ep-size",
    "ep": "ep-size",
    "attention-data-parallel-size": "attn-dp-size",
    "attention-context-parallel-size": "attn-cp-size",
    "moe-data-parallel-size": "moe-dp-size",
    "decode-context-parallel-size": "dcp-size",
    "nccl-init-addr": "dist-init-addr",
    "enable-hicache": "enable-hierarchical-cache",
    "speculative-draft-model": "speculative-draft-model-path",
    "speculative-draft": "speculative-draft-model-path",
    "speculative-algo": "speculative-algorithm",
    "context-bucket": "cuda-graph-prefill-max-context",
    "cuda-graph-max-bs": "cuda-graph-max-bs-decode",
    "cuda-graph-bs": "cuda-graph-bs-decode",
    "served-name": "served-model-name",
    "load-watch-interval": "load-snapshot-publish-interval",
    "grpc-http-sidecar-port": "smg-http-sidecar-port",
}
JSON = names("json-model-override-args limit-mm-data-per-request cuda-graph-config mm-process-config")
IGNORED = names("""
    abort-on-priority-when-disabled admin-api-key allow-auto-truncate allowed-media-domains api-key
    asr-max-buffer-seconds asr-max-concurrent-sessions base-gpu-id batch-notify-size bucket-e2e-request-latency
    bucket-inter-token-latency bucket-time-to-first-token chat-template checkpoint-engine-wait-weights-before-ready
    completion-template config constrained-json-disable-any-whitespace constrained-json-max-whitespace-cnt
    constrained-json-whitespace-pattern crash-dump-folder custom-sigquit-handler custom-weight-loader
    debug-tensor-dump-input-file debug-tensor-dump-layers debug-tensor-dump-output-folder decode-log-interval
    decrypted-config-file decrypted-draft-config-file default-chat-template-kwargs default-priority-value
    delete-ckpt-after-loading detokenizer-worker-num disable-outlines-disk-cache disable-priority-preemption
    disable-tokenizer-batch-decode disable-radix-cache disaggregation-bootstrap-port disaggregation-ib-device
    disaggregation-transfer-backend disaggregation-decode-polling-interval disaggregation-enable-kv-checksum
    disaggregation-decode-enable-radix-cache disaggregation-decode-allocation-policy
    disaggregation-decode-retraction-backup disaggregation-decode-tp disaggregation-decode-dp
    disaggregation-prefill-pp disaggregation-decode-extra-slots disaggregation-decode-host-receive-threshold
    dist-init-addr dist-timeout download-dir dynamic-batch-tokenizer-batch-size dynamic-batch-tokenizer-batch-timeout
    enable-cache-report enable-custom-logit-processor enable-dynamic-batch-tokenizer enable-expert-distribution-metrics
    enable-forward-pass-metrics enable-http-worker-reuseport enable-http2 enable-layerwise-nvtx-marker enable-metrics
    enable-metrics-for-all-schedulers enable-mfu-metrics enable-p2p-check enable-priority-scheduling
    enable-profile-cuda-graph enable-request-time-stats-logging enable-response-store enable-session-radix-cache
    enable-ssl-refresh enable-streaming-session enable-strict-thinking enable-tokenizer-batch-encode enable-trace
    enable-cudagraph-gc engine-info-bootstrap-port expert-balancedness-report-mode
    expert-distribution-recorder-buffer-size expert-distribution-recorder-mode export-metrics-to-file
    export-metrics-to-file-dir extra-metric-labels fastapi-root-path file-storage-path
    forward-pass-metrics-ipc-name forward-pass-metrics-worker-id gated-launch-port gc-threshold
    gc-warning-threshold-secs generation-tokens-buckets gpu-id-step grammar-backend grpc-mode grpc-port
    grpc-response-timeout-secs hf-chat-template-name host http2-initial-connection-window-size
    http2-max-concurrent-streams image-processor-backend disable-fast-image-processor incremental-streaming-output
    kv-canary kv-canary-real-data kv-canary-sweep-interval kv-events-config load-balance-method load-format
    load-publish-endpoint load-snapshot-publish-interval log-level log-level-http log-requests log-requests-format
    log-requests-level log-requests-target lora-backend lora-drain-wait-threshold lora-eviction-policy lora-paths
    lora-target-modules lora-strict-loading enable-lora-overlap-loading max-lora-chunk-size
    max-queued-requests media-url-max-file-size-mb mm-io-worker-num mm-processor-worker-num
    mm-preprocess-cache-size-mb model-checksum model-config-parser model-loader-extra-config modelexpress-config
    modelopt-checkpoint-restore-path modelopt-checkpoint-save-path modelopt-export-path mooncake-ib-device
    msprobe-dump-config nccl-port node-rank numa-node otlp-service-name otlp-traces-endpoint port
    preferred-sampling-params priority-scheduling-preemption-threshold prompt-tokens-buckets radix-eviction-policy
    radix-eviction-policy-config random-seed reasoning-parser remote-instance-weight-loader-backend
    remote-instance-weight-loader-seed-instance-ip remote-instance-weight-loader-seed-instance-service-port
    remote-instance-weight-loader-send-weights-group-ports
    remote-instance-weight-loader-start-seed-via-transfer-engine retraction-policy return-input-ids return-output-ids
    revision sampling-defaults schedule-low-priority-values-first served-model-name show-time-cost sidecar sidecar-args
    skip-server-warmup skip-tokenizer-init sleep-on-idle smg-grpc-mode smg-http-sidecar-port soft-watchdog-timeout
    spec-trace-dir speculative-draft-model-revision speculative-draft-load-format
    ssl-ca-certs ssl-certfile ssl-keyfile ssl-keyfile-password startup-weight-load-mode stat-loggers
    stream-interval stream-output stream-response-default-include-usage strip-thinking-cache tokenizer-backend
    tokenizer-metrics-allowed-custom-labels tokenizer-metrics-custom-labels-header tokenizer-mode tokenizer-path
    tokenizer-worker-num tool-call-parser tool-server trace-modules trust-mm-content-hashes trust-remote-code
    trust-request-chat-template use-ray uvicorn-access-log-exclude-prefixes warmups watchdog-timeout
    weight-loader-disable-mmap weight-loader-drop-cache-after-load weight-loader-prefetch-checkpoints
    weight-loader-prefetch-num-threads weight-version weight-cache-mode weight-cache-socket weight-cache-timeout
    enable-dp-attention-local-control-broadcast elastic-ep-scale-timeout eplb-algorithm
    eplb-rebalance-num-iterations eplb-rebalance-layers-per-chunk eplb-min-rebalancing-utilization-threshold
    init-expert-location flashinfer-autotune-skip-ops pre-warm-nccl enable-nan-detection
    speculative-accept-threshold-single speculative-accept-threshold-acc speculative-use-rejection-sampling
    speculative-ngram-match-type speculative-ngram-min-bfs-breadth speculative-ngram-max-trie-depth
    speculative-ngram-capacity speculative-ngram-external-corpus-path speculative-ngram-external-sam-budget
    speculative-ngram-external-corpus-max-tokens speculative-ngram-max-bfs-breadth
    speculative-ngram-min-match-window-size speculative-ngram-max-match-window-size speculative-ngram-branch-length
    schedule-policy enable-broadcast-mm-inputs-process encoder-bootstrap-port
""")
BACKENDS = ("flashinfer", "fa3", "fa4", "flashmla", "trtllm_mla", "trtllm_mha", "cutlass_mla", "dsa", "nsa")
ALIKE = "the other servers have their own settings"
HARMLESS = {
    "device": (("auto", "cuda"), "the machine is that of `on`"),
    "model-impl": (("auto", "sglang"), KERNELS),
    "is-embedding": (("false",), "a model that pools is not estimated"),
    **dict.fromkeys(
        ("attention-backend", "decode-attention-backend", "prefill-attention-backend"), (BACKENDS, KERNELS)
    ),
    **dict.fromkeys(
        ("fp8-gemm-backend", "fp4-gemm-backend", "bf16-gemm-backend", "moe-runner-backend", "dsv4-attn-backend"),
        (("auto",), KERNELS),
    ),
    **dict.fromkeys(
        ("dsv4-prefill-backend", "dsa-paged-mqa-logits-backend", "boundary-reduction"), (("auto",), KERNELS)
    ),
    **dict.fromkeys(("deepep-mode", "deepep-dispatcher-output-dtype", "deepep-v2-mode"), (("auto", "direct"), KERNELS)),
    "dsa-topk-backend": (("sgl-kernel",), KERNELS),
    "speculative-dsa-topk-backend": (("sgl-kernel",), KERNELS),
    "mamba-backend": (("triton",), KERNELS),
    "linear-attn-backend": (("triton",), KERNELS),
    "sampling-backend": (("flashinfer",), KERNELS),
    "moe-a2a-backend": (("none",), "buffers and times of exchanges of experts"),
    "flashinfer-mxfp4-moe-precision": (("default",), KERNELS),
    "prefill-kv-cache-dequant-dtype": (("auto",), KERNELS),
    "triton-attention-num-kv-splits": (("8",), KERNELS),
    "dsa-triton-union": (("0",), KERNELS),
    "fuseep-mode": (("2",), KERNELS),
    "qsa-indexer-dtype": (("auto",), NO_OPTION),
    "page-size": (("1",), "pages of the cache have one token here"),
    "c128-page-size": (("16",), NO_OPTION),
    "max-prefill-tokens": (("16384",), "tokens of one pass are those of chunked-prefill-size here"),
    "schedule-conservativeness": (("1", "1.0"), "requests are let in as the engine's own setting lets them"),
    "scheduler-recv-interval": (("1",), NO_OPTION),
    "num-continuous-decode-steps": (("1",), NO_OPTION),
    "prefill-decode-interval-min-bs": (("0",), NO_OPTION),
    "num-reserved-decode-tokens": (("512",), NO_OPTION),
    "attn-cp-size": (("1",), NO_OPTION),
    "moe-dp-size": (("1",), NO_OPTION),
    "dcp-size": (("1",), NO_OPTION),
    "dwdp-size": (("1",), NO_OPTION),
    "swa-full-tokens-ratio": (("0.8",), "the parts of the cache are those of the engine's own setting"),
    "mamba-full-memory-ratio": (("0.9",), "the parts of the cache are those of the engine's own setting"),
    "mamba-radix-cache-strategy": (("auto",), "states at the ends of prefixes are those of `auto`"),
    "mamba-scheduler-strategy": (("auto",), "states at the ends of prefixes are those of `auto`"),
    "mamba-track-interval": (("256",), NO_OPTION),
    "mamba-max-states-per-path": (("-1",), NO_OPTION),
    "mamba-cache-philox-rounds": (("0",), KERNELS),
    "linear-replayssm-cache-len": (("16",), NO_OPTION),
    "disaggregation-mode": (("null",), ALIKE),
    "decoupled-spec-role": (("null",), NO_OPTION),
    "encoder-transfer-backend": (("auto",), NO_OPTION),
    "sm-group-num": (("8",), NO_OPTION),
    "optimistic-prefill-attempts": (("0",), NO_OPTION),
    "speculative-attention-mode": (("prefill",), KERNELS),
    "speculative-eagle-topk": (("1",), "a tree of drafts is not estimated"),
    "speculative-domino-candidate-pool-size": (("2048",), NO_OPTION),
    "hicache-ratio": (("2", "2.0"), "a cache in host memory is not estimated"),
    "hicache-size": (("0",), "a cache in host memory is not estimated"),
    "hicache-host-memory-mode": (("cache",), NO_OPTION),
    "hicache-host-memory-fraction": (("0.8",), NO_OPTION),
    "hicache-write-policy": (("write_through",), NO_OPTION),
    "hicache-io-backend": (("kernel",), NO_OPTION),
    "hicache-mem-layout": (("page_first", "layer_first"), NO_OPTION),
    "hicache-storage-prefetch-policy": (("timeout", "best_effort"), NO_OPTION),
    "hicache-storage-prefetch-retry-poll-interval": (("8",), NO_OPTION),
    "hicache-storage-prefetch-retry-max-attempts": (("8",), NO_OPTION),
    "unified-cache-external-linker-backend": (("mooncake",), NO_OPTION),
    "mm-global-cache-backend": (("mooncake",), NO_OPTION),
    "offload-group-size": (("-1",), NO_OPTION),
    "offload-num-in-group": (("1",), NO_OPTION),
    "offload-prefetch-step": (("1",), NO_OPTION),
    "offload-mode": (("cpu",), NO_OPTION),
    "ple-offload-backend": (("pinned",), NO_OPTION),
    "torch-compile-max-bs": (("32",), NO_OPTION),
    "tbo-token-distribution-threshold": (("0.48",), NO_OPTION),
    "prefill-delayer-max-delay-passes": (("30",), NO_OPTION),
    "sampling-mask-max-tokens": (("4096",), NO_OPTION),
    "kt-method": (("amxint4",), NO_OPTION),
    "kt-threadpool-count": (("2",), NO_OPTION),
    "kt-max-deferred-experts-per-token": (("0",), NO_OPTION),
    "ep-join-rank-offset": (("0",), NO_OPTION),
    "elastic-ep-join-rank-offset": (("0",), NO_OPTION),
    "pp-async-batch-depth": (("0",), NO_OPTION),
    "dllm-fdfo": (("true",), NO_OPTION),
    "watermark-context-window": (("4",), NO_OPTION),
}
MULTIMODAL = "how the towers of images and sounds run is not read"
GRAPHS = "graphs are counted for the engine's own sizes"
OVERLAP = "parts of a batch that overlap are not timed"
UNSURE = {
    **dict.fromkeys(
        names("""
        encoder-only language-only language-model-only enable-multimodal mm-attention-backend mm-process-config
        mm-enable-dp-encoder enable-prefix-mm-cache enable-mm-global-cache
        mm-feature-transport keep-mm-feature-on-device encoder-urls encoder-register-urls
        enable-adaptive-dispatch-to-encoder mm-max-concurrent-calls mm-per-request-timeout
        enable-precise-embedding-interpolation
    """),
        MULTIMODAL,
    ),
    **dict.fromkeys(
        names("""
        cuda-graph-config cuda-graph-max-bs-decode cuda-graph-max-bs-prefill cuda-graph-max-seq-len-prefill
        cuda-graph-bs-decode cuda-graph-bs-prefill cuda-graph-prefill-max-context cuda-graph-backend-decode
        cuda-graph-backend-prefill disable-prefill-cuda-graph disable-decode-cuda-graph disable-cuda-graph-padding
        debug-cuda-graph
    """),
        GRAPHS,
    ),
    **dict.fromkeys(
        names("""
        enable-two-batch-overlap enable-single-batch-overlap enable-mixed-chunk enable-pdmux pdmux-config-path
        disable-overlap-schedule enable-dynamic-chunking prefill-decode-interval prefill-max-requests
        enable-prefill-delayer prefill-delayer-token-usage-low-watermark prefill-delayer-forward-passes-buckets
        prefill-delayer-wait-seconds-buckets prefill-delayer-queue-min-ratio prefill-delayer-max-delay-ms
        min-free-slots-delay pp-max-micro-batch-size
    """),
        OVERLAP,
    ),
    **dict.fromkeys(
        names("""
        dsa-prefill-backend dsa-decode-backend enable-lean-attention enable-nvidia-megakernel enable-amd-monokernel
        monokernel-backend disable-flashinfer-autotune triton-attention-reduce-in-fp32
        triton-attention-split-tile-size flashinfer-mla-disable-ragged enable-fused-qk-norm-rope
        enable-dsa-fused-indexer linear-attn-decode-backend linear-attn-prefill-backend linear-attn-verify-backend
        enable-mamba-cache-stochastic-rounding enable-torch-compile enable-torch-compile-debug-mode enable-nccl-nvls
        enable-symm-mem disable-custom-all-reduce enable-mscclpp enable-torch-symm-mem enable-scattered-sconv
        enable-quant-communications enable-flashinfer-allreduce-fusion enforce-disable-flashinfer-allreduce-fusion
        flashinfer-allreduce-fusion-backend enable-aiter-allreduce-fusion disable-aiter-allreduce-fusion-in-prefill
        disable-aiter-allreduce-fusion-in-decode enable-fused-moe-sum-all-reduce enable-w4a4-mxfp4-megamoe
        flashinfer-a2a-dispatch-type ep-dispatch-algorithm enable-waterfill
        disable-flashinfer-cutlass-moe-fp4-allgather disable-shared-experts-fusion enforce-shared-experts-fusion
        deepep-config enable-deterministic-inference rl-on-policy-target enable-fp32-lm-head enable-tf32-matmul
        speculative-draft-attention-backend speculative-moe-runner-backend speculative-moe-a2a-backend
        speculative-enable-w4a4-mxfp4-megamoe disable-chunked-prefix-cache disable-mla
        enable-deepseek-v4-fp4-indexer
    """),
        KERNELS,
    ),
    **dict.fromkeys(
        names("""
        max-total-tokens enable-hierarchical-cache hicache-storage-backend hicache-storage-backend-extra-config
        enable-unified-cache-external-linker unified-cache-external-linker-config enable-linker-mla-dedup
        enable-hisparse hisparse-config enable-lmcache lmcache-config-file enable-flexkv flexkv-config-file
        radix-cache-backend enable-page-major-kv-layout enable-unified-memory disable-hybrid-swa-memory
        swa-prefix-tails prefill-only-disable-kv-cache max-mamba-cache-size mamba-ssm-dtype
        enable-int8-mamba-checkpoint int8-mamba-ckpt-size enable-linear-replayssm enable-linear-replayssm-spec
        disaggregation-decode-enable-offload-kvcache enable-kv-cache-sharding enable-dsa-cache-layer-split
        enable-encoder-swa-bounded-replay enable-decoder-swa-bounded-replay quantization-param-path
        speculative-draft-kv-cache-dtype
    """),
        "the cache gets what mem_fraction_static leaves here, in the engine's own parts",
    ),
    **dict.fromkeys(
        names("""
        enable-memory-saver enable-weights-cpu-backup enable-draft-weights-cpu-backup enable-return-hidden-states
        return-hidden-states-mode enable-return-aux-hidden-states return-aux-hidden-state-layer-ids
        enable-return-routed-experts enable-return-indexer-topk enable-mis enable-watermark watermark-config
        elastic-ep-backend enable-elastic-expert-backup elastic-ep-join-mode enable-paged-experts
        paged-experts-num-resident kt-weight-path kt-cpuinfer kt-num-gpu-experts
        ple-offload-embedding ple-offload-dir dllm-algorithm dllm-algorithm-config experts-shared-outer-loras
        lora-use-virtual-experts forward-hooks mlx-enable-sampling decoupled-spec-bind-endpoint
        decoupled-spec-connect-endpoints decoupled-spec-rank enable-pd-role-switch modelopt-quant
        quantize-and-serve rl-quant-profile dcp-comm-backend dcp-replicate-q-proj enable-prefill-cp cp-strategy
        enable-cp-decode-attn-tp enable-dp-lm-head enable-tp-lm-head-all-to-all enable-attn-tp-input-scattered
        enable-shared-experts-attn-tp shared-experts-tp-size enable-dense-mlp-attn-tp enable-layernorm-sp
        enable-megamoe-for-layernorm-sp disable-attn-tp-gather moe-dense-tp-size elastic-ep-initial-size max-ep-size
        enable-double-sparsity uno-lora-path speculative-dflash-block-size speculative-dspark-block-size
        speculative-dspark-sps-table-path speculative-dspark-confidence-sts-path
        speculative-dspark-align-verify-tokens-to-graph-tier speculative-use-block-verification
        speculative-token-map speculative-draft-window-size speculative-draft-sink-size
        speculative-draft-model-quantization enable-multi-layer-eagle speculative-adaptive
        speculative-adaptive-config
    """),
        NO_OPTION,
    ),
}
TABLE = Options(
    tool="SGLang",
    counts={"max-running-requests": "max_num_seqs"},
    shares={"mem-fraction-static": "gpu_memory_utilization"},
    ignored=IGNORED,
    harmless=HARMLESS,
    unsure=UNSURE,
)
# Options that `sglang_server` reads by rules of its own.
COMPUTED = names("""
    model-path context-length dtype quantization kv-cache-dtype tp-size pp-size dp-size ep-size attn-dp-size nnodes
    enable-dp-attention enable-ep-moe enable-deepep-moe disable-cuda-graph chunked-prefill-size cpu-offload-gb
    enable-lora max-loras-per-batch max-lora-rank speculative-algorithm speculative-draft-model-path
    speculative-num-steps speculative-num-draft-tokens json-model-override-args disaggregation-mode max-loaded-loras
    enable-eplb limit-mm-data-per-request
""")
VARIABLES_IGNORED = names("""
    SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN SGLANG_USE_MODELSCOPE SGLANG_TORCH_PROFILER_DIR SGLANG_HOST_IP
    SGLANG_PORT SGLANG_LOG_MS SGLANG_LOG_GC SGLANG_LOGGING_CONFIG_PATH SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT
    SGLANG_DISAGGREGATION_WAITING_TIMEOUT SGLANG_DISAGGREGATION_HEARTBEAT_INTERVAL SGLANG_RECORD_STEP_TIME
    SGLANG_DISAGGREGATION_HEARTBEAT_MAX_FAILURE SGLANG_DISAGGREGATION_THREAD_POOL_SIZE
    SGLANG_DISAGGREGATION_QUEUE_SIZE SGLANG_CHUNKED_PREFIX_CACHE_THRESHOLD SGLANG_EXPERT_DISTRIBUTION_RECORDER_DIR
    SGLANG_BLOCK_NONZERO_RANK_CHILDREN SGLANG_LOCAL_IP_NIC SGLANG_HEALTH_CHECK_TIMEOUT SGLANG_TEST_REQUEST_TIME_STATS
""")
