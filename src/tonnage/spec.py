"""What the user asks about: accelerators, nodes, a cluster, a plan. Frozen, keyword-only, in base units."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tonnage.formulas.run import accelerators_of_plan, tokens_per_step
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, listed


class Fact(Struct, frozen=True, kw_only=True):
    """Where a figure comes from, and the day on which that source said so."""

    source: str
    as_of: str


class Link(Struct, frozen=True, kw_only=True):
    """A way between two places: bytes per second in one direction, per accelerator. `joins`: how many accelerators
    it joins, fewer than a machine has (a bridge) or more (a torus through many hosts); 0: all of a node.
    `mesh_links`: links of each accelerator that lead straight to others, 0 where a switch is between them; `mesh`:
    how they lead there, "full" to each of the others, "cube" as in a DGX-1.
    """

    name: str
    bytes_per_second: float
    topology: str = ""
    joins: int = 0
    mesh: str = ""
    mesh_links: int = 0


class Memory(Struct, frozen=True, kw_only=True):
    """The memory of one accelerator.

    `reported_bytes` is what the driver shows, `runtime_bytes` the total that the runtime gives programs
    (cudaMemGetInfo, torch's total_memory), each None where nobody published it; `context_bytes` is what a process of
    PyTorch holds outside of its allocator; `system_bytes` is what the operating system keeps of a memory that processor
    and accelerator share.
    """

    nominal_bytes: int
    reported_bytes: int | None = None
    runtime_bytes: int | None = None
    context_bytes: int | None = None
    system_bytes: int = 0
    bytes_per_second: float | None = None
    kind: str = ""
    unified: bool = False

    @property
    def usable_bytes(self) -> int:
        """What a program can ask for: as the runtime gives it, else as the driver reports it, else nominal, less the
        system's part.
        """
        return (self.runtime_bytes or self.reported_bytes or self.nominal_bytes) - self.system_bytes

    @property
    def usable_from(self) -> Literal["runtime", "driver", "nominal"]:
        """Which of the three figures `usable_bytes` starts from."""
        if self.runtime_bytes:
            return "runtime"
        return "driver" if self.reported_bytes else "nominal"


class Accelerator(Struct, frozen=True, kw_only=True):
    """One accelerator as its runtime shows it: a GPU, one die of a package that shows two, a TPU chip, a MIG slice."""

    name: str
    vendor: str
    kind: str
    generation: str
    memory: Memory
    dense_flops: Mapping[str, float]
    sparse_flops: Mapping[str, float] = {}
    scale_up: Link | None = None
    host_link: Link | None = None
    tdp_watts: float | None = None
    default_node: str | None = None
    sources: Mapping[str, Fact] = {}
    why: Mapping[str, str] = {}
    variants: tuple[str, ...] = ()
    note: str = ""

    def peak(self, precision: str) -> float:
        """Dense FLOP/s in `precision`; MissingDatum where no source gives it: it is never a ratio of another."""
        if precision not in self.dense_flops:
            known = listed(self.dense_flops) or "none"
            raise MissingDatum(
                Message(
                    "no source gives the dense {precision} peak of {name}. Known precisions: {known}.",
                    precision=precision,
                    name=self.name,
                    known=known,
                )
            )
        return self.dense_flops[precision]

    def fact(self, path: str) -> Fact | None:
        """The source of a figure, looked up by the longest key that begins its dotted path."""
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            found = self.sources.get(".".join(parts[:end]))
            if found:
                return found
        return None


class Node(Struct, frozen=True, kw_only=True):
    """A machine, or a domain of machines joined by the scale-up link: what is inside, and what leads out of it.

    `accelerators_per_host`: of a domain, those that one operating system has; None: all.
    """

    name: str
    accelerator: str
    accelerators: int
    accelerators_per_host: int | None = None
    inside: Link | None = None
    outside: Link | None = None
    host_memory_bytes: int | None = None
    cpus: str = ""
    storage: str = ""
    provider: str = ""
    power_watts: float | None = None
    sources: Mapping[str, Fact] = {}
    why: Mapping[str, str] = {}
    note: str = ""


class Cluster(Struct, frozen=True, kw_only=True):
    """Equal accelerators in equal nodes. `note`: what a name left open, and how it was taken."""

    accelerator: Accelerator
    num_nodes: int = 1
    accelerators_per_node: int = 1
    node: Node | None = None
    note: str = ""

    @property
    def size(self) -> int:
        return self.num_nodes * self.accelerators_per_node

    @property
    def accelerators_per_host(self) -> int:
        """Those of a node that one operating system has: engines are started once on each host."""
        own = self.node.accelerators_per_host if self.node is not None else None
        return min(own or self.accelerators_per_node, self.accelerators_per_node)

    @property
    def num_hosts(self) -> int:
        return self.num_nodes * -(-self.accelerators_per_node // self.accelerators_per_host)

    @property
    def is_part_of_node(self) -> bool:
        """Whether fewer accelerators are used than each node has."""
        return self.node is not None and self.accelerators_per_node < self.node.accelerators

    @property
    def name(self) -> str:
        parts = [str(self.num_nodes)] if self.num_nodes > 1 else []
        if self.accelerators_per_node > 1 or parts:
            parts.append(str(self.accelerators_per_node))
        return "x".join([*parts, self.accelerator.name])


AttentionKernel = Literal[
    "flash", "sdpa", "efficient", "eager", "triton"
]  # triton: FlashAttention of 2022, as llm-foundry wrote it


class TrainingPlan(Struct, frozen=True, kw_only=True):
    """How one training step is spread. Numbers may be arrays with one entry per plan, but for the pipeline's two sizes.

    `data_parallel_size` counts replicas that see different sequences; ZeRO shards over them and over context ranks.
    `model_code`: whose code the layers are, empty: the runtime's own. `mtp_layers`: of multi-token prediction.
    `method`: full, lora, dora or freeze; `lora_targets`: names joined by commas, empty for all linear layers;
    `base_weights`: the precision of a quantised base, or nothing; `upcast_base`: its norms, embedding and head are in
    fp32; `trainable_layers`: of freeze, counted from the last. `offload_optimizer` and the two after it: none, cpu or
    nvme. From `reduce_bucket_size` on: DeepSpeed's settings, by its own names, in elements; `overlap_comm`: None as the
    stage has it. `data_loader_workers`: processes of each rank.
    `models_beside`: others
    that do not train, and their parameters; `teacher_hidden_size`: numbers of a teacher's hidden states, for a token;
    `engine_memory_share`: of an engine that generates on the same accelerators. `replicate_size`: groups of ranks that
    shard on their own (HSDP). `expandable_segments`: of PyTorch's allocator.
    `expert_imbalance`: tokens of the fullest expert rank over the mean. `straggler_slowdown`: how many times longer a
    slow node takes,
    `straggler_share`: of nodes that are slow, 1: there is one in any case. `pipeline_schedule`: of
    estimate.plan.schedule.SCHEDULES; 1f1b with several chunks is interleaved. `product_share`: of the 16-bit peak that
    large products were measured to reach on this machine.
    `packing`: a row has several sequences, which do not see each other. `keep_outputs`: the training loop holds the
    logits until the next step. `chunk_layers`: of each virtual stage, in the order in which a token passes them; empty:
    as the runtime splits them. `cuda_graph` and the three after it change time alone.
    """

    sequence_length: Number
    micro_batch_size: Number = 1
    num_microbatches: Number = 1
    tensor_parallel_size: Number = 1
    sequence_parallel: bool = True
    pipeline_parallel_size: int = 1
    virtual_pipeline_size: int = 1
    pipeline_schedule: str = "1f1b"
    context_parallel_size: Number = 1
    expert_parallel_size: Number = 1
    expert_tensor_parallel_size: Number = 1
    data_parallel_size: Number = 1
    zero_stage: int = 3
    recompute: str = "none"
    attention: AttentionKernel | None = None
    dropout: bool = False
    attention_dropout: bool = False
    loss: str = "full"
    precision: str = "bf16-mixed"
    optimizer: str = "adamw"
    optimizer_implementation: str = "fused"
    runtime: str = "fsdp2"
    model_code: str = ""
    objective: str = "sft"
    models_beside: tuple[tuple[str, int], ...] = ()
    teacher_hidden_size: int = 0
    engine_memory_share: float = 0
    method: str = "full"
    lora_rank: int = 0
    lora_targets: str = ""
    lora_dropout: bool = False
    base_weights: str = ""
    upcast_base: bool = False
    trainable_layers: int | None = None
    first_stage_layers: int | None = None
    last_stage_layers: int | None = None
    chunk_layers: tuple[int, ...] = ()
    recompute_modules: str = ""
    expert_capacity_factor: float | None = None
    expert_imbalance: Number = 1
    straggler_slowdown: Number = 1
    straggler_share: Number = 1
    product_share: float | None = None
    mtp_layers: int = 0
    context_parallel_method: str = ""
    runtime_version: str = ""
    offload_optimizer: str = "none"
    offload_parameters: str = "none"
    offload_activations: str = "none"
    optimizer_offload_fraction: Number = 1
    host_update_bandwidth: Number | None = None
    offload_modules: str = ""
    data_loader_workers: Number = 0
    reduce_bucket_size: Number = 500_000_000
    allgather_bucket_size: Number = 500_000_000
    overlap_comm: bool | None = None
    contiguous_gradients: bool = True
    sub_group_size: Number = 1_000_000_000
    stage3_prefetch_bucket_size: Number = 50_000_000
    stage3_max_live_parameters: Number = 1_000_000_000
    stage3_max_reuse_distance: Number = 1_000_000_000
    stage3_param_persistence_threshold: Number = 100_000
    stage3_gather_16bit_weights_on_model_save: bool = False
    zero_hpz_partition_size: Number = 1
    zero_quantized_weights: bool = False
    zero_quantized_nontrainable_weights: bool = False
    zero_quantized_gradients: bool = False
    replicate_size: Number = 1
    compile: bool = False
    float8: str = "none"
    float8_all_gather: bool = False
    async_tensor_parallel: bool = False
    optimizer_in_backward: bool = False
    expandable_segments: bool = True
    cuda_graph: str = "none"
    tp_comm_overlap: bool = False
    overlap_moe_expert_parallel_comm: bool = False
    moe_token_dispatcher_type: str = "alltoall"
    liger: bool = False
    packing: bool = False
    keep_outputs: bool = False

    @property
    def world_size(self) -> Number:
        return accelerators_of_plan.evaluate(
            t=self.tensor_parallel_size,
            p=self.pipeline_parallel_size,
            c=self.context_parallel_size,
            d=self.data_parallel_size,
        )

    @property
    def global_batch_size(self) -> Number:
        return self.micro_batch_size * self.num_microbatches * self.data_parallel_size

    @property
    def tokens_per_step(self) -> Number:
        return tokens_per_step.evaluate(
            s=self.sequence_length, b=self.micro_batch_size, m=self.num_microbatches, d=self.data_parallel_size
        )


class ServingPlan(Struct, frozen=True, kw_only=True):
    """How one replica serves a model: parallel sizes, lengths, what weights and cache are stored in, and the engine's
    settings, None where the engine's own default holds. `concurrency` counts the requests of one replica;
    `reserve_bytes` is what others hold of each accelerator.

    `attention_data_parallel_size`: groups of tensor ranks that each keep the attention of the whole model for their own
    part of the requests, and share the experts (SGLang's DP attention, TensorRT-LLM's enable_attention_dp, vLLM's data
    parallel ranks under expert parallelism): a replica has tensor x attention data x pipeline ranks, and experts are
    dealt to all of a stage.
    `layers_on_accelerator`: of the last ones, the head counting as one (llama.cpp's -ngl); `expert_layers_on_host`: the
    first layers, whose experts stay in host memory (-ncmoe); `weights_on_host_bytes`: of each rank (cpu_offload_gb).
    `poll_passes`: passes between two looks at what has come (scheduler_recv_interval). `draft_tokens`: guessed ahead in
    each step, each taken with the probability `acceptance`, by `draft_model`, or by the model's own layers of
    multi-token prediction. `lora_adapters`: held at the same time.
    `chunk_layers`: of each pipeline stage, in order; empty: as the engine splits them (vLLM takes them as
    VLLM_PP_LAYER_PARTITION).
    """

    context: Number
    concurrency: Number = 1
    tensor_parallel_size: Number = 1
    pipeline_parallel_size: int = 1
    expert_parallel_size: Number = 1
    attention_data_parallel_size: Number = 1
    data_parallel_size: Number = 1
    weights: str | None = None
    kv_cache: str | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    gpu_memory_utilization: float | None = None
    enforce_eager: bool = False
    reserve_bytes: int = 0
    engine: str = "vllm"
    engine_version: str = ""
    chunked_prefill: bool | None = None
    poll_passes: int = 1
    prefix_caching: bool | None = None
    draft_tokens: int = 0
    acceptance: Number = 0
    draft_model: str = ""
    lora_adapters: int = 0
    lora_rank: int = 0
    layers_on_accelerator: int | None = None
    expert_layers_on_host: int = 0
    weights_on_host_bytes: int = 0
    host_bandwidth: Number | None = None
    chunk_layers: tuple[int, ...] = ()

    @property
    def world_size(self) -> Number:
        return accelerators_of_plan.evaluate(
            t=self.tensor_parallel_size,
            p=self.pipeline_parallel_size,
            c=1,
            d=self.attention_data_parallel_size * self.data_parallel_size,
        )


class Load(Struct, frozen=True, kw_only=True):
    """What users ask of one replica: tokens of a prompt and of its answer, and either requests that run at once, each
    followed by the next when it ends, or requests that arrive by themselves a second; with neither, as many run as the
    replica holds (an offline batch).

    `cached_tokens`: of a prompt that the engine has already (its prefix cache). `spread`: lengths are uniform from (1 -
    spread) of these to these (what benchmarks call a random range); 0: all alike. `burstiness`: squared coefficient of
    variation of the times between arrivals, 1 is Poisson's.
    """

    input_tokens: Number
    output_tokens: Number
    concurrency: Number | None = None
    requests_per_second: Number | None = None
    cached_tokens: Number = 0
    spread: float = 0
    burstiness: float = 1
