"""vLLM: takes a share of the accelerator, profiles one full forward pass, and gives what is left to the cache.

Its rules are read from the source of the 0.33 wheel; the fixed amounts were measured by others on vLLM 0.19 and H100s
(scripts/vllm_overheads.py prints their medians). They are what a process takes beyond its context: the context itself, 0.51 GiB,
is not counted against the share that vLLM takes.
"""

from tonnage.runtimes._base import SERVING_RUNTIMES, BatchLimit, Paging, ServingRuntime
from tonnage.units import GIB

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

SERVING_RUNTIMES.add(
    "vllm",
    ServingRuntime(
        name="vllm",
        version="vLLM 0.33",
        source="vLLM, vllm/config/cache.py: gpu_memory_utilization 0.92, DEFAULT_BLOCK_SIZE 16; "
        "vLLM, vllm/engine/arg_utils.py, get_batch_defaults: max_num_batched_tokens and max_num_seqs of an API server",
        memory_share=0.92,
        limits=LIMITS,
        paging=PAGING,
        context=round(0.51 * GIB),
        process=round(0.25 * GIB),
        communicators=round((2.09 - 0.25) * GIB),
        graphs=(round(0.87 * GIB), round(1.54 * GIB)),
        overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: medians of non_torch_forward_gib and "
        "cuda_graph_actual_gib over 19 runs with one rank and 10 with several",
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
        longer="vLLM, vllm/config/model.py, refuses it unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
        logits_bytes=14,  # the sampler on logits: 16 bit, fp32, probabilities, and the noise that draws from them
    ),
)
