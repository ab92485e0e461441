"""The options of llama.cpp's programs that mean the same whatever else is said.

Read in tools/server/README.md of llama.cpp, which its programs write themselves (build b10481), and in common/arg.cpp
of older builds.
"""

from tonnage.interchange.parts.engines.engine_options import KERNELS, NO_OPTION, Options, names

SWITCHES = names("""
    swa-full perf no-perf e escape no-escape kvo kv-offload nkvo no-kv-offload repack nr no-repack no-host mlock
    no-mmap mmap dio direct-io check-tensors op-offload no-op-offload cmoe cpu-moe log-disable v verbose
    log-verbose offline log-prefix log-timestamps ignore-eos bs backend-sampling kvu kv-unified no-kvu
    no-kv-unified cache-idle-slots context-shift no-context-shift warmup no-warmup special sp spm-infill cb
    cont-batching nocb no-cont-batching mmproj-auto no-mmproj no-mmproj-auto mmproj-offload no-mmproj-offload
    reuse-port embedding embeddings rerank reranking cache-prompt no-cache-prompt metrics props slots no-slots
    models-autoload jinja no-jinja reasoning-preserve ui webui no-ui no-webui agent no-agent ag cnv conversation
    no-cnv no-conversation single-turn st interactive i interactive-first if multiline-input mli in-prefix-bos
    no-display-prompt color simple-io log-jsonl cors-credentials ui-mcp-proxy list-devices cpu-moe-draft cmoed
    cache-list completion-bash usage
    spec-default no-mlock prefill-assistant no-prefill-assistant kv-offload-draft verbose-prompt show-timings
    no-show-timings skip-chat-parsing no-skip-chat-parsing lora-init-without-apply spec-draft-backend-sampling
    no-spec-draft-backend-sampling spec-draft-cpu-moe embd-gemma-default fim-qwen-1.5b-default fim-qwen-3b-default
    fim-qwen-7b-default fim-qwen-7b-spec fim-qwen-14b-spec fim-qwen-30b-default gpt-oss-20b-default
    gpt-oss-120b-default vision-gemma-4b-default vision-gemma-12b-default
""")
SHORT = {
    "m": "model",
    "mu": "model-url",
    "hf": "hf-repo",
    "hfr": "hf-repo",
    "hff": "hf-file",
    "dr": "docker-repo",
    "hft": "hf-token",
    "c": "ctx-size",
    "b": "batch-size",
    "ub": "ubatch-size",
    "np": "parallel",
    "ngl": "gpu-layers",
    "n-gpu-layers": "gpu-layers",
    "sm": "split-mode",
    "ts": "tensor-split",
    "mg": "main-gpu",
    "dev": "device",
    "ot": "override-tensor",
    "cmoe": "cpu-moe",
    "ncmoe": "n-cpu-moe",
    "ncffn": "n-cpu-ffn",
    "ctk": "cache-type-k",
    "ctv": "cache-type-v",
    "fa": "flash-attn",
    "kvu": "kv-unified",
    "no-kvu": "no-kv-unified",
    "kvo": "kv-offload",
    "nkvo": "no-kv-offload",
    "nr": "no-repack",
    "cb": "cont-batching",
    "nocb": "no-cont-batching",
    "fit-target": "fitt",
    "fit-ctx": "fitc",
    "md": "spec-draft-model",
    "model-draft": "spec-draft-model",
    "draft": "spec-draft-n-max",
    "draft-max": "spec-draft-n-max",
    "draft-n": "spec-draft-n-max",
    "draft-min": "spec-draft-n-min",
    "draft-n-min": "spec-draft-n-min",
    "draft-p-min": "spec-draft-p-min",
    "hfd": "spec-draft-hf",
    "hfrd": "spec-draft-hf",
    "hf-repo-draft": "spec-draft-hf",
    "ngld": "spec-draft-ngl",
    "gpu-layers-draft": "spec-draft-ngl",
    "n-gpu-layers-draft": "spec-draft-ngl",
    "ctkd": "spec-draft-type-k",
    "cache-type-k-draft": "spec-draft-type-k",
    "ctvd": "spec-draft-type-v",
    "cache-type-v-draft": "spec-draft-type-v",
    "cd": "spec-draft-ctx-size",
    "ctx-size-draft": "spec-draft-ctx-size",
    "devd": "spec-draft-device",
    "device-draft": "spec-draft-device",
    "lm": "load-mode",
    "mm": "mmproj",
    "mmu": "mmproj-url",
    "lzm": "lazy-mode",
    "kvups": "kv-unified-per-slot",
}
# Variables of the environment -> options
VARIABLES = {
    "MODEL": "model",
    "MODEL_URL": "model-url",
    "HF_REPO": "hf-repo",
    "HF_FILE": "hf-file",
    "DOCKER_REPO": "docker-repo",
    "CTX_SIZE": "ctx-size",
    "BATCH": "batch-size",
    "UBATCH": "ubatch-size",
    "N_PARALLEL": "parallel",
    "N_GPU_LAYERS": "gpu-layers",
    "SPLIT_MODE": "split-mode",
    "TENSOR_SPLIT": "tensor-split",
    "MAIN_GPU": "main-gpu",
    "DEVICE": "device",
    "OVERRIDE_TENSOR": "override-tensor",
    "CPU_MOE": "cpu-moe",
    "N_CPU_MOE": "n-cpu-moe",
    "N_CPU_FFN": "n-cpu-ffn",
    "MOE_CACHE_MIB": "moe-cache-mib",
    "CACHE_TYPE_K": "cache-type-k",
    "CACHE_TYPE_V": "cache-type-v",
    "FLASH_ATTN": "flash-attn",
    "KV_UNIFIED": "kv-unified",
    "KV_OFFLOAD": "kv-offload",
    "NO_KV_OFFLOAD": "no-kv-offload",
    "SWA_FULL": "swa-full",
    "FIT": "fit",
    "RPC": "rpc",
    "MMPROJ": "mmproj",
    "CONT_BATCHING": "cont-batching",
    "NO_CONT_BATCHING": "no-cont-batching",
    "LOAD_MODE": "load-mode",
    "DRAFT_MAX": "spec-draft-n-max",
    "EMBEDDINGS": "embeddings",
    "RERANKING": "reranking",
    "POOLING": "pooling",
    "KV_UNIFIED_PER_SLOT": "kv-unified-per-slot",
    "REPACK": "repack",
    "NO_HOST": "no-host",
}
IGNORED = names("""
    threads t threads-batch tb cpu-mask C cpu-range Cr cpu-strict prio poll cpu-mask-batch Cb cpu-range-batch Crb
    cpu-strict-batch prio-batch poll-batch n predict n-predict keep perf no-perf e escape no-escape rope-scaling
    rope-scale rope-freq-base rope-freq-scale yarn-orig-ctx yarn-ext-factor yarn-attn-factor yarn-beta-slow
    yarn-beta-fast defrag-thold dt load-mode lazy-mode mlock no-mlock mmap no-mmap dio direct-io numa list-devices
    main-gpu fit fitt fitc check-tensors hf-token log-disable log-file log-jsonl log-colors v verbose log-verbose
    offline lv verbosity log-verbosity log-prefix log-timestamps samplers s seed sampler-seq sampling-seq
    ignore-eos temp temperature top-k top-p min-p top-nsigma top-n-sigma xtc-probability xtc-threshold typical
    typical-p repeat-last-n repeat-penalty presence-penalty frequency-penalty dry-multiplier dry-base
    dry-allowed-length dry-penalty-last-n dry-sequence-breaker adaptive-target adaptive-decay dynatemp-range
    dynatemp-exp mirostat mirostat-lr mirostat-ent l logit-bias grammar grammar-file j json-schema jf
    json-schema-file lookup-cache-static lcs lookup-cache-dynamic lcd ctx-checkpoints ctxcp swa-checkpoints
    checkpoint-min-step cms cache-ram cram cache-idle-slots context-shift no-context-shift r reverse-prompt sp
    special warmup no-warmup spm-infill mmproj-auto no-mmproj no-mmproj-auto a alias tags embd-normalize host port
    reuse-port path cors-origins cors-methods cors-headers cors-credentials api-prefix ui-config webui-config
    ui-config-file webui-config-file ui-mcp-proxy webui-mcp-proxy tools tools-runtime mcp-servers-config
    mcp-servers-json ag agent no-agent ui webui no-ui no-webui api-key api-key-file ssl-key-file ssl-cert-file
    chat-template-kwargs to timeout sse-ping-interval threads-http cache-prompt no-cache-prompt cache-reuse
    metrics props slots no-slots slot-save-path media-path models-autoload jinja no-jinja reasoning-format rea
    reasoning reasoning-effort reasoning-budget reasoning-budget-message reasoning-preserve chat-template
    chat-template-file skip-chat-parsing prefill-assistant no-prefill-assistant slot-prompt-similarity sps
    spec-draft-n-min spec-draft-threads p prompt f file sys system-prompt sysf system-prompt-file cnv conversation
    no-cnv no-conversation st single-turn i interactive if interactive-first mli multiline-input in-prefix
    in-suffix in-prefix-bos no-display-prompt color co simple-io prompt-cache prompt-cache-all prompt-cache-ro
    image audio gan group-attn-n gaw group-attn-w bf binary-file verbose-prompt show-timings no-show-timings
    version no-skip-chat-parsing lora-init-without-apply sleep-idle-seconds log-prompts-dir
    spec-draft-threads-batch td threads-draft tbd threads-batch-draft spec-draft-cpu-mask Cd cpu-mask-draft
    spec-draft-cpu-range Crd cpu-range-draft spec-draft-cpu-strict cpu-strict-draft spec-draft-prio prio-draft
    spec-draft-poll poll-draft spec-draft-cpu-mask-batch Cbd cpu-mask-batch-draft spec-draft-cpu-strict-batch
    cpu-strict-batch-draft spec-draft-prio-batch prio-batch-draft spec-draft-poll-batch poll-batch-draft
    spec-draft-backend-sampling no-spec-draft-backend-sampling spec-draft-sampling spec-ngram-mod-n-match
    spec-ngram-simple-size-n spec-ngram-simple-min-hits spec-ngram-map-k-size-n spec-ngram-map-k-min-hits
    spec-ngram-map-k4v-size-n spec-ngram-map-k4v-min-hits spec-ngram-size-n spec-ngram-min-hits
    cache-list completion-bash usage
""")
MULTIMODAL = "images and sounds are not estimated yet"
SEVERAL_MODELS = "several models at the same time are not estimated"
ON = ("on", "true", "1", "enabled")
HARMLESS = {
    "flash-attn": (("on", "auto", "true", "1"), "scores of attention are written"),
    "kv-offload": (ON, "a cache in host memory is not estimated"),
    "cont-batching": (ON, "requests are batched as they come here"),
    "repack": (ON, KERNELS),
    "moe-cache-mib": (("0",), "a cache of experts on the accelerator is not counted"),
    "n-cpu-ffn": (("0",), NO_OPTION),
    "spec-draft-ngl": (("99", "999", "all", "auto", "-1"), "the model that drafts is on the accelerator here"),
    "backend-sampling": (("false",), NO_OPTION),
    "bs": (("false",), NO_OPTION),
    "mtmd-batch-max-tokens": (("1024",), MULTIMODAL),
    "video-fps": (("4", "4.0"), MULTIMODAL),
    "video-timestamp-interval": (("5000",), MULTIMODAL),
    "op-offload": (ON, KERNELS),
    "mmproj-offload": (ON, MULTIMODAL),
    "models-max": (("4",), SEVERAL_MODELS),
    "spec-draft-p-split": (("0.1",), NO_OPTION),
    "draft-p-split": (("0.1",), NO_OPTION),
}
UNSURE = {
    "override-tensor": "only whole layers, or their experts, are placed here",
    "no-kv-offload": "a cache in host memory is not estimated",
    "swa-full": "layers with windows keep their windows here",
    "no-repack": KERNELS,
    "no-host": NO_OPTION,
    "no-op-offload": KERNELS,
    "rpc": "accelerators of other machines over the network are not timed",
    "no-cont-batching": "requests are batched as they come here",
    "override-kv": "a change of the model that is not estimated",
    "control-vector": NO_OPTION,
    "control-vector-scaled": NO_OPTION,
    "control-vector-layer-range": NO_OPTION,
    **dict.fromkeys(("mmproj", "mmproj-url", "no-mmproj-offload", "mmproj-device", "mmdev"), MULTIMODAL),
    **dict.fromkeys(("image-min-tokens", "image-max-tokens", "video-ffmpeg-dir", "model-vocoder", "mv"), MULTIMODAL),
    **dict.fromkeys(
        ("embedding", "embeddings", "rerank", "reranking", "pooling"), "a model that pools is not estimated"
    ),
    **dict.fromkeys(("models-dir", "models-preset"), SEVERAL_MODELS),
    **dict.fromkeys(("spec-draft-type-k", "spec-draft-type-v", "spec-draft-ctx-size", "spec-draft-device"), NO_OPTION),
    **dict.fromkeys(("spec-draft-p-min", "spec-default", "cpu-moe-draft", "cmoed"), NO_OPTION),
    "kv-unified-per-slot": NO_OPTION,
    **dict.fromkeys(
        names("""
            spec-draft-override-tensor otd override-tensor-draft spec-draft-cpu-moe spec-draft-n-cpu-moe
            spec-draft-ncmoe ncmoed n-cpu-moe-draft spec-synth-len spec-synth-rates spec-ngram-mod-n-min
            spec-ngram-mod-n-max spec-ngram-simple-size-m spec-ngram-map-k-size-m spec-ngram-map-k4v-size-m
            spec-ngram-size-m
        """),
        NO_OPTION,
    ),
    **dict.fromkeys(
        names("""
            embd-gemma-default fim-qwen-1.5b-default fim-qwen-3b-default fim-qwen-7b-default fim-qwen-7b-spec
            fim-qwen-14b-spec fim-qwen-30b-default gpt-oss-20b-default gpt-oss-120b-default vision-gemma-4b-default
            vision-gemma-12b-default
        """),
        "a model with settings of its own: --model names it",
    ),
}
TABLE = Options(ignored=IGNORED, harmless=HARMLESS, unsure=UNSURE)
COMPUTED = names("""
    model model-url hf-repo hf-file docker-repo ctx-size batch-size ubatch-size parallel gpu-layers split-mode
    tensor-split device cpu-moe n-cpu-moe cache-type-k cache-type-v kv-unified no-kv-unified lora lora-scaled
    spec-draft-model spec-draft-hf spec-draft-n-max spec-type
""")
