"""Hugging Face transformers: the Trainer on one accelerator (fp32 weights under autocast), and plain generation."""

from shlex import quote

from msgspec.structs import replace

from tonnage.kernel.units import GIB
from tonnage.ops import Kernels
from tonnage.runtimes.parts.base import NEVER, PEFT_METHODS, PLACES, TRAINING_RUNTIMES, Several, State, TrainingRuntime
from tonnage.runtimes.parts.serving import CUBLAS_WORKSPACE, SERVING_RUNTIMES, BatchLimit, Eager, ServingRuntime
from tonnage.runtimes.parts.start import Start

# Liger Kernel 0.8.5, transformers/monkey_patch.py: MODEL_TYPE_TO_APPLY_LIGER_FN
LIGER = (
    "deepseek_v2 deepseek_v3 deepseek_v4 exaone4 falcon_h1 gemma gemma2 gemma3 gemma3_text gemma4 "
    "gemma4_text glm4 glm4v glm4v_moe gpt_oss granite "
    "hunyuan_v1_dense hunyuan_v1_moe internvl llama llama4 llama4_text llava ministral mistral mixtral "
    "mllama mllama_text_model nemotron olmo2 olmo3 "
    "paligemma phi3 pixtral qwen2 qwen2_5_vl qwen2_5_vl_text qwen2_vl qwen2_vl_text qwen3 qwen3_5 "
    "qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe "
    "qwen3_next qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text smollm3 smolvlm"
)
TRAINING_RUNTIMES.add(
    "transformers",
    TrainingRuntime(
        name="transformers",
        version="transformers 5.24",
        source="transformers, trainer.py; transformers, loss/loss_utils.py: ForCausalLMLoss upcasts",
        weights=(State("weights", "master", NEVER),),
        gradients=(State("gradients", "gradient", NEVER),),
        optimizer_sharded_from=NEVER,
        default_zero_stage=0,
        zero_stages=(0,),
        kernels=Kernels(attention="sdpa", fused_norm=False, fused_activation=False, upcast_softmax=True),
        gradients_persist=False,
        logits_split=False,
        framework="transformers",
        listed=3,
        on_several=Several(
            runtime="ddp",
            warning="the Trainer of transformers on several accelerators runs under DDP: runtime ddp is estimated.",
            reason="transformers on several accelerators",
            shown="transformers (its Trainer, under DDP on several accelerators)",
        ),
        takes_objectives=True,
        launch_program="options of TrainingArguments of transformers' Trainer.",
        launch_words={"precision": ("fp16-mixed",)},
        trl_config="single_gpu",
        offload_activations=PLACES,  # saved_tensors_hooks of PyTorch
        casts=True,
        trains=PEFT_METHODS,
        liger=tuple(LIGER.split()),
        # PEFT, docs/source/developer_guides/quantization.md; TRL, trainer/utils.py: all but sharded bases
        upcasts_base=True,
        keeps_outputs=True,
        classic_allocator=True,
        tensor_parallel=False,
        pipeline=False,
        context_parallel=False,
        expert_parallel=False,
        sequence_parallel=False,
    ),
)


def launch(start: Start) -> str:
    start.note_nodes()
    return " ".join(["transformers serve", quote(start.name), *start.words])


# Counted in modeling_llama.py and modeling_qwen3_moe.py. RMSNorm: to fp32, a square, a mean, a sum, a root, two
# products, back to 16 bits. Around the core: ten of RoPE, two that grow the cache, two of attention, one that turns its
# output. Router: softmax, top-k, a sum, a quotient, a cast. Experts since 5.0: integrations/moe.py,
# grouped_mm_experts_forward: two sorts, a histogram and its sums, gathers, two grouped products, what is between them.
EAGER = Eager(
    rms_norm=8, layer_norm=1, around_core=15, activation=2, residual=1, router=6, expert=0, grouped=22
)  # fmt: skip
# Until 4.57 a loop: where() of an expert's tokens (three kernels), their gather, five of the expert's MLP, the gather
# of their weights, a product, and the sum into the output.
LOOP = replace(EAGER, router=10, expert=12, grouped=0)
# Until 4.53 integrations/sdpa_attention.py: repeat_kv for every model with fewer heads of keys; since, enable_gqa.
REPEATS = replace(LOOP, around_core=17, repeats_heads=True)
# Until 4.52 the loop takes every expert (modeling_qwen3_moe.py; Mixtral's and Qwen2's until 4.51); DeepSeek-V3's asks
# whether any token chose it.
ALL_EXPERTS = replace(REPEATS, loops_over_all=True, hit_alone=frozenset({"DeepseekV3ForCausalLM"}))

NEWEST = ServingRuntime(
    name="transformers",
    rollout="hf",
    version="transformers 5.24",
    source="transformers, cache_utils.py: DynamicCache",
    memory_share=None,
    share_of="nothing",
    limits=(BatchLimit(tokens=0, requests=0),),  # the whole prompts of all requests at once
    paging=None,
    process=round(0.51 * GIB),
    communicators=0,
    graphs=(0, 0),
    launch=launch,
    serves=("generate", "embed", "rerank", "transcribe"),
    encoding="eager",
    speech="eager",
    window_advance=20,  # pipelines/automatic_speech_recognition.py: 30 s of which 5 s at both ends are heard twice
    speech_attention="fused",  # models/whisper/modeling_whisper.py: sdpa
    listed=6,
    aliases=("hf", "huggingface"),
    settings=("draft_tokens", "speculative"),
    drafts=("draft", "ngram"),
    no_metal=("awq",),
    no_metal_source="transformers, docs/source/en/quantization/overview.md",
    # transformers/cli/serving/model_manager.py
    at_load={"nf4": "--quantization bnb-4bit", "int8": "--quantization bnb-8bit"},
    overhead_source="llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on an H100",
    state_bytes=4,
    # quanto packs 2 and 4 bits, HQQ 8; the last 128 tokens, which stay in 16 bits, are not counted
    kv_cache={"int8": "kv-int8", "int4": "kv-int4", "int2": "kv-int2"},
    kv_cache_source="transformers, cache_utils.py: QuantizedCache, groups of 64",
    logits_bytes=6,  # the last token's logits, in 16 bit and upcast
    # models/*/modeling_*.py: the embeddings, the layer's input, its residual and what is normed are held by callers
    streams=4,
    dequantizes_gguf=True,  # docs/source/en/gguf.md: from_pretrained dequantises the file when it loads it
    workspace=CUBLAS_WORKSPACE,
    eager=EAGER,
)

# What was otherwise before, read from the source of the wheels 4.57.1, 4.54.1, 4.53.3, 4.52.4, 4.51.3 and 4.46.3.
_V5 = replace(
    NEWEST,
    version="transformers 5.0",
    source="transformers 5.0, integrations/moe.py: grouped_mm_experts_forward; cache_utils.py: DynamicCache",
)
_V54 = replace(
    NEWEST,
    version="transformers 4.54",
    source="transformers 4.54 and 4.57, models/qwen3_moe/modeling_qwen3_moe.py: expert_hit; "
    "integrations/sdpa_attention.py: use_gqa_in_sdpa",
    eager=LOOP,
)
_V53 = replace(
    _V54,
    version="transformers 4.53",
    source="transformers 4.53, models/qwen3_moe/modeling_qwen3_moe.py: expert_hitted; "
    "integrations/sdpa_attention.py: repeat_kv",
    eager=REPEATS,
)
# modeling_utils.py: since 4.50 caching_allocator_warmup takes one segment for all weights, so that none is rounded up;
# before, each had its own.
# Which formats keep a tied head apart is read from Qwen's documentation of speed: weights of tied models are larger by
# their table.
_V50 = replace(
    NEWEST,
    version="transformers 4.50",
    source="transformers 4.51, modeling_utils.py: caching_allocator_warmup; cache_utils.py: DynamicCache",
    own_heads=("fp8",),
    eager=ALL_EXPERTS,
)
_V46 = replace(
    NEWEST,
    version="transformers 4.46",
    source="transformers 4.46, modeling_utils.py: _load_state_dict_into_meta_model; cache_utils.py: DynamicCache",
    rounds_tensors=True,
    loading_heads=("awq",),
    eager=ALL_EXPERTS,
    scratch=("gptq",),  # AutoGPTQ: a matrix at a time is turned into 16 bits; Qwen's tables show room for the largest
)
SERVING_RUNTIMES.add(
    "transformers", replace(NEWEST, older={"5.0": _V5, "4.54": _V54, "4.53": _V53, "4.50": _V50, "4.46": _V46})
)
