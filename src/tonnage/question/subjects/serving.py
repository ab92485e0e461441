"""Options of a served model on a machine."""

from typing import Annotated

from tonnage.kernel.units import parse_bytes, parse_rate
from tonnage.question.choices import engines, precisions
from tonnage.question.forms import count, length, number, size, word
from tonnage.question.option import LOAD, PARALLELISM, SERVING, Options, Usual, described, option
from tonnage.question.subjects.model import INTER_NODE, INTRA_NODE
from tonnage.spec.media import Media

# Fields that no face has: what the load says, for the plan (estimate.load.media).
OF_LOAD = ("request_lengths", "media", "replicas_of_prompts")


@described
class ServingOptions(Options, frozen=True, kw_only=True):
    """Options of a served model; None is the default, which `answer.question` names with its reason."""

    context: Annotated[
        int | None,
        option(
            "tokens of a request, prompt and answer; 32k is 32768",
            length,
            short=("--ctx",),
            unit="tokens",
            default="the model's own",
            usual=Usual(LOAD, "tokens of a request", "TOKENS", place=-1),
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        option(
            "requests held at the same time, by all replicas together",
            size,
            short=("--users", "--max-concurrency"),
            unit="requests",
            default="one a replica",
            usual=Usual(LOAD, "requests at the same time", "N", flag="--users", place=-2),
        ),
    ] = None
    weights: Annotated[
        str | None,
        option(
            "how weights are stored: bf16, fp8, int8, awq, nf4, mxfp4, q4_k, ...",
            word,
            short=("--quantization",),
            unit="precision",
            default="the checkpoint's own",
            known=precisions,
            usual=Usual(SERVING, "bf16, fp8, awq, q4_k_m, ...", "PRECISION", "the checkpoint's"),
        ),
    ] = None
    kv_cache: Annotated[
        str | None,
        option(
            "how keys and values are stored: auto, or what the engine has: fp8, fp8_e5m2, nvfp4; int8, int4, int2",
            word,
            unit="precision",
            default="as wide as activations",
            known=("auto", "bf16", "fp8", "fp8_e5m2", "nvfp4", "int8", "int4"),
            usual=Usual(SERVING, "auto, bf16, fp8, int8, ...", "PRECISION", "as activations"),
        ),
    ] = None
    tensor_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share each matrix",
            size,
            short=("--tp",),
            unit="ranks",
            default="the node, as far as heads divide",
            usual=Usual(PARALLELISM, "ranks that share each matrix (--tp)", "N", "the node"),
        ),
    ] = None
    pipeline_parallel_size: Annotated[
        int | None,
        option(
            "pipeline stages",
            size,
            short=("--pp",),
            unit="ranks",
            default="1",
            usual=Usual(PARALLELISM, "pipeline stages (--pp)", "N"),
        ),
    ] = None
    expert_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share a layer's experts",
            size,
            short=("--ep",),
            unit="ranks",
            default="1",
            usual=Usual(PARALLELISM, "ranks that share a layer's experts (--ep)", "N"),
        ),
    ] = None
    max_num_batched_tokens: Annotated[
        int | None,
        option(
            "tokens of one forward pass", length, short=("--batched-tokens",), unit="tokens", default="the engine's own"
        ),
    ] = None
    max_num_seqs: Annotated[
        int | None,
        option(
            "requests that the engine runs at once",
            size,
            unit="requests",
            default="the engine's own",
            usual=Usual(SERVING, "requests run at once", "N", "the engine's"),
        ),
    ] = None
    gpu_memory_utilization: Annotated[
        float | None,
        option(
            "part of the memory that the engine takes",
            number,
            unit="0 to 1",
            default="vllm's 0.92",
            usual=Usual(SERVING, "share of the memory it takes", "X"),
        ),
    ] = None
    enforce_eager: Annotated[bool | None, option("without CUDA graphs (vllm, sglang)")] = None
    reserve_bytes: int = 0
    request_lengths: tuple[int, int] | None = None  # of the load: tokens of a prompt, images and all, and of an answer
    media: Media | None = None  # of the load's images and sounds, by the model's own rule (estimate.media)
    replicas_of_prompts: int = 0  # of the load: replicas that compute prompts alone, on which no user's cache stays
    calibrated: Annotated[
        bool | None,
        option("correct TTFT, TPOT and latency by your own runs, which `tonnage calibrate` lists", default="off"),
    ] = None
    engine: Annotated[
        str | None,
        option(
            "engine that serves the model; a tool such as lm-studio or vllm-ascend leads to its own",
            word,
            unit="name",
            default="vllm; llama.cpp for GGUF, on CPUs and Apple",
            choices=engines,
            lists_choices=True,
            usual=Usual(SERVING, "vllm, sglang, ...", "NAME", "vllm; llama.cpp for GGUF", place=-1),
        ),
    ] = None
    engine_version: Annotated[
        str | None,
        option(
            "an earlier version of the engine, whose rules differ: 0.5.5 of sglang, b4000 of llama.cpp",
            word,
            unit="version",
            default="the newest",
        ),
    ] = None
    attention_data_parallel_size: Annotated[
        int | None,
        option(
            "groups of ranks that each keep the attention for their own requests and share the experts",
            size,
            short=("--dp-attention",),
            unit="groups",
            default="1",
        ),
    ] = None
    redundant_experts: Annotated[
        int | None,
        option(
            "copies of a layer's most used experts, which ranks hold beside their own (EPLB)",
            count,
            unit="experts",
            default="0",
        ),
    ] = None
    layers_on_accelerator: Annotated[
        int | None,
        option(
            "layers, the head counted as one, that are on the accelerator (llama.cpp)",
            count,
            short=("--n-gpu-layers", "-ngl"),
            unit="layers",
            default="all",
        ),
    ] = None
    expert_layers_on_host: Annotated[
        int | None,
        option(
            "layers whose experts stay in host memory (llama.cpp)",
            size,
            short=("--n-cpu-moe",),
            unit="layers",
            default="none",
        ),
    ] = None
    gpu_experts: Annotated[
        int | None,
        option(
            "experts of each layer on the GPU; the others stay in host memory (ktransformers)",
            count,
            short=("--kt-num-gpu-experts",),
            unit="experts",
            default="none",
        ),
    ] = None
    host_method: Annotated[
        str | None,
        option(
            "how experts in host memory are stored (ktransformers): AMXINT4, AMXINT8, RAWINT4, FP8, BF16, ... or the "
            "type of a GGUF file",
            word,
            short=("--kt-method",),
            unit="method",
            default="the checkpoint's 4 bits, else AMXINT4",
        ),
    ] = None
    host_cores: Annotated[
        int | None,
        option(
            "cores that multiply experts in host memory (ktransformers)",
            size,
            short=("--kt-cpuinfer",),
            unit="cores",
            default="as many as belong to the host's bandwidth",
        ),
    ] = None
    gpu_prefill_tokens: Annotated[
        int | None,
        option(
            "tokens from which a prompt's experts are loaded onto the GPU, layer by layer (ktransformers)",
            size,
            short=("--kt-gpu-prefill-token-threshold",),
            unit="tokens",
            default="none are",
        ),
    ] = None
    host_memory: Annotated[
        int | None,
        option("memory of each host", parse_bytes, unit="bytes", default="the catalogue's, where it is known"),
    ] = None
    weights_on_host: Annotated[
        int | None,
        option(
            "weights of each rank that stay in host memory (vllm, sglang)", parse_bytes, unit="bytes", default="none"
        ),
    ] = None
    speculative: Annotated[
        str | None,
        option(
            "how tokens are drafted (speculative decoding)",
            word,
            unit="method",
            default="none",
            choices=("eagle3", "eagle", "mtp", "medusa", "p-eagle", "dflash", "ngram", "suffix", "draft"),
            lists_choices=True,
            usual=Usual(SERVING, "speculative decoding: eagle3, mtp, ngram, ...", "METHOD"),
        ),
    ] = None
    draft_model: Annotated[
        str | None,
        option(
            "the model that drafts, or the checkpoint of the head that does (speculative decoding)",
            word,
            short=("--spec-draft-model",),
            unit="name",
            default="the model's own prediction layers; the published head",
        ),
    ] = None
    draft_tokens: Annotated[
        int | None,
        option(
            "tokens guessed ahead in each step",
            size,
            short=("--num-speculative-tokens",),
            unit="tokens",
            default="none; with --speculative as its documentation shows",
            usual=Usual(SERVING, "tokens guessed ahead in each step", "N", "none"),
        ),
    ] = None
    acceptance: Annotated[
        float | None, option("probability that a guessed token is taken", number, unit="0 to 1", default="as published")
    ] = None
    denoising_steps: Annotated[
        int | None,
        option(
            "passes that denoise one answer, of a diffusion language model",
            size,
            unit="passes",
            default="as many as its tokens",
        ),
    ] = None
    block_length: Annotated[
        int | None,
        option(
            "tokens of an answer that are denoised together, of a diffusion language model",
            size,
            unit="tokens",
            default="the model's own",
        ),
    ] = None
    denoising_cache: Annotated[
        str | None,
        option(
            "what passes that denoise find cached: Fast-dLLM's prefix or dual, for LLaDA and Dream",
            word,
            unit="name",
            default="the engine's own",
            choices=("none", "window", "block", "prefix", "dual"),
        ),
    ] = None
    lora_adapters: Annotated[
        int | None,
        option(
            "adapters held at the same time",
            size,
            short=("--max-loras",),
            unit="adapters",
            default="none",
            usual=Usual(SERVING, "LoRA adapters held at the same time", "N"),
        ),
    ] = None
    lora_rank: Annotated[
        int | None, option("rank of the adapters", size, short=("--max-lora-rank",), unit="rank", default="16")
    ] = None
    lora_active: Annotated[
        int | None,
        option(
            "adapters that the running requests use at the same time",
            size,
            unit="adapters",
            default="all that are held",
        ),
    ] = None
    lora_on_host: Annotated[
        int | None,
        option(
            "adapters in host memory, all asked for equally often, from which others come to the GPU",
            size,
            short=("--max-cpu-loras", "--max-loaded-loras"),
            unit="adapters",
            default="those that are held on the GPU",
        ),
    ] = None
    kv_offload: Annotated[
        str | None,
        option(
            "where KV caches of prefixes are kept that leave the GPU, with --cache-hit-rate the time to load them",
            word,
            short=("--kv-offloading",),
            unit="place",
            default="nowhere",
            choices=("host", "disk", "store"),
            lists_choices=True,
        ),
    ] = None
    kv_offload_size: Annotated[
        int | None,
        option(
            "bytes of it for each replica",
            parse_bytes,
            short=("--kv-offloading-size",),
            unit="bytes",
            default="host: twice the KV cache of the GPUs; disk: the node's drives",
        ),
    ] = None
    storage_read_bandwidth: Annotated[
        float | str | None,
        option(
            "bytes a second that a node reads weights, and KV caches on disk, at, such as 6GB/s",
            parse_rate,
            unit="bytes/s",
            default="its own drives",
        ),
    ] = None
    inter_node_bandwidth: Annotated[float | str | None, INTER_NODE] = None
    intra_node_bandwidth: Annotated[float | str | None, INTRA_NODE] = None
    host_bandwidth: Annotated[
        float | str | None,
        option(
            "bytes a second of the host's memory, such as 89.6GB/s: the time of layers that stay there",
            parse_rate,
            unit="bytes/s",
        ),
    ] = None
