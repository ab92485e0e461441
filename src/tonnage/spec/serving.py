"""A plan of serving, and what users ask of it."""

from typing import Any

from msgspec import Struct

from tonnage.formulas.run import accelerators_of_plan
from tonnage.kernel.formula import Number
from tonnage.spec.media import Media
from tonnage.spec.plan import Plan, StatedLinks


class Drafting(Struct, frozen=True, kw_only=True):
    """Speculative decoding."""

    #: Tokens drafted ahead in each step; 0: nothing is drafted.
    draft_tokens: int = 0
    #: Probability that a drafted token is accepted, 0 to 1.
    acceptance: Number = 0
    #: The least and the highest that was published of it; None: it was given.
    acceptance_low: Number | None = None
    acceptance_high: Number | None = None
    #: How tokens are drafted: eagle3, eagle, mtp, medusa, ngram or draft; empty: a draft model where one is named, else
    #: the model's own layers of multi-token prediction, else n-grams.
    speculative: str = ""
    #: The model that drafts, or the checkpoint of the head that does.
    draft_model: str = ""


class Denoising(Struct, frozen=True, kw_only=True):
    """How a diffusion language model makes answers of `answer_tokens` to prompts of `prompt_tokens`."""

    #: Passes that denoise one answer, of all its blocks together.
    steps: int
    #: Tokens that are denoised together.
    block: int
    #: What a pass finds cached: block (all blocks before), prefix or dual (Fast-dLLM), window or none (nothing).
    cache: str
    prompt_tokens: int
    answer_tokens: int

    @property
    def is_cached(self) -> bool:
        return self.cache in ("block", "prefix", "dual")

    @property
    def pass_tokens(self) -> int:
        """Tokens of a request in the largest pass that denoises."""
        return self.block if self.cache == "block" else self.prompt_tokens + self.answer_tokens


class ServedAdapters(Struct, frozen=True, kw_only=True):
    """LoRA adapters that are served beside the model."""

    #: Adapters that are held at the same time.
    lora_adapters: int = 0
    #: Largest rank of an adapter.
    lora_rank: int = 0
    #: Adapters that the running requests use; 0: all that are held.
    lora_active: int = 0
    #: Adapters in host memory, from which others come when requests ask for them; 0: those that are held.
    lora_on_host: int = 0


class HostMemory(Struct, frozen=True, kw_only=True):
    """Weights that stay in host memory."""

    #: Layers on the accelerator, the last ones, the head counting as one (llama.cpp's -ngl); None: all.
    layers_on_accelerator: int | None = None
    #: Layers, the first ones, whose experts stay in host memory (llama.cpp's -ncmoe).
    expert_layers_on_host: int = 0
    #: Bytes of the weights of each rank that stay in host memory (vLLM's cpu_offload_gb).
    weights_on_host_bytes: int = 0
    #: Bytes a second of host memory, measured; None: not known.
    host_bandwidth: Number | None = None
    #: Experts of each layer on the accelerators; the engine keeps the others in host memory (SGLang's
    #: --kt-num-gpu-experts).
    gpu_experts: int = 0
    #: How those are stored and multiplied, or the type of their GGUF file (--kt-method); empty: by the checkpoint.
    host_method: str = ""
    #: Cores that multiply them (--kt-cpuinfer); None: as many as belong to the bandwidth.
    host_cores: Number | None = None
    #: Tokens from which a pass loads them onto the accelerators, layer by layer (--kt-gpu-prefill-token-threshold); 0:
    #: none does.
    gpu_prefill_tokens: int = 0


class KVTier(Struct, frozen=True, kw_only=True):
    """Where KV caches of prefixes are kept that have no room on the accelerators."""

    #: host, disk or store; empty: nowhere.
    kv_offload: str = ""
    #: Bytes for each replica, all ranks together; None: the default.
    kv_offload_bytes: int | None = None
    #: Bytes a second that a node reads from its disks; None: its own drives.
    kv_read_bandwidth: float | None = None


class ServingPlan(Plan, frozen=True, kw_only=True):
    """How one replica serves a model. A replica has tensor x attention data x pipeline ranks, and experts are dealt to
    all of a stage. Settings are None where the engine's own default holds.
    """

    #: Tokens of a request, input and output.
    context: Number
    #: Requests of one replica at once.
    concurrency: Number = 1

    #: Ranks that share each matrix.
    tensor_parallel_size: Number = 1
    #: Pipeline stages.
    pipeline_parallel_size: int = 1
    #: Ranks that share the experts of a layer.
    expert_parallel_size: Number = 1
    #: Groups of tensor ranks that each keep the attention of the whole model for their own part of the requests, and
    #: share the experts: SGLang's DP attention, TensorRT-LLM's enable_attention_dp, vLLM's data-parallel ranks under
    #: expert parallelism.
    attention_data_parallel_size: Number = 1
    #: Copies of experts of each layer beside its own experts, so that ranks have equal work (EPLB).
    redundant_experts: int = 0
    #: Replicas.
    data_parallel_size: Number = 1
    #: Layers of each pipeline stage, in order; empty: as the engine splits them (vLLM: VLLM_PP_LAYER_PARTITION).
    chunk_layers: tuple[int, ...] = ()

    #: Precision of the weights; None: the checkpoint's own.
    weights: str | None = None
    #: Precision of the KV cache.
    kv_cache: str | None = None

    engine: str = "vllm"
    #: Release of the engine; empty: the newest known.
    engine_version: str = ""
    #: The tool that runs the engine, such as aphrodite; empty: none.
    engine_tool: str = ""
    #: Tokens of one pass at most.
    max_num_batched_tokens: int | None = None
    #: Requests of one pass at most.
    max_num_seqs: int | None = None
    #: Share of the memory that the engine may take, 0 to 1.
    gpu_memory_utilization: float | None = None
    #: Whether the engine captures no CUDA graphs.
    enforce_eager: bool = False
    #: Whether a long prefill is split over several passes.
    chunked_prefill: bool | None = None
    #: Passes between two looks at new requests (SGLang's scheduler_recv_interval).
    poll_passes: int = 1
    #: Whether kernels of routed experts route, sort and sum by themselves (SGLang's --moe-runner-backend
    #: flashinfer_trtllm), None: as the engine chooses.
    fused_experts: bool | None = None
    #: Whether the KV cache of equal prefixes is shared.
    prefix_caching: bool | None = None
    #: Bytes of each accelerator that others hold.
    reserve_bytes: int = 0
    #: What the site's own runs correct (estimate.site.corrections); None: nothing.
    site: Any = None
    #: How answers are denoised; None: the model makes one token after the other.
    denoising: Denoising | None = None
    #: Images and sounds of each request; None: text alone.
    media: Media | None = None

    drafting: Drafting = Drafting()
    adapters: ServedAdapters = ServedAdapters()
    host: HostMemory = HostMemory()
    tier: KVTier = KVTier()
    links: StatedLinks = StatedLinks()

    @property
    def world_size(self) -> Number:
        return accelerators_of_plan.evaluate(
            t=self.tensor_parallel_size,
            p=self.pipeline_parallel_size,
            c=1,
            d=self.attention_data_parallel_size * self.data_parallel_size,
        )


class Load(Struct, frozen=True, kw_only=True):
    """What users ask of one replica: requests that run at once, each followed by the next when it ends, or requests
    that arrive by themselves; with neither, as many run as the replica holds (an offline batch).
    """

    #: Tokens of a prompt.
    input_tokens: Number
    #: Tokens of the output.
    output_tokens: Number
    #: Requests that run at once; None: not said.
    concurrency: Number | None = None
    #: Requests that arrive a second; None: not said.
    requests_per_second: Number | None = None
    #: Tokens of a prompt that the engine has already (its prefix cache).
    cached_tokens: Number = 0
    #: Lengths are uniform from (1 - spread) of these to these (the random range of benchmarks); 0: all alike.
    spread: float = 0
    #: Whether users whose lengths are all alike stay in step, as those of a benchmark that began at once do.
    in_step: bool = True
    #: Squared coefficient of variation of the times between arrivals; 1: Poisson.
    burstiness: float = 1
