"""A plan of training: how one step is spread over accelerators, and what a run sets."""

from typing import Any, Literal

from msgspec import Struct

from tonnage.formulas.run import accelerators_of_plan, tokens_per_step
from tonnage.kernel.formula import Number
from tonnage.spec.media import Media
from tonnage.spec.plan import Plan, StatedLinks

AttentionKernel = Literal[
    "flash", "sdpa", "efficient", "eager", "triton"
]  # triton: FlashAttention of 2022, as llm-foundry wrote it


class PipelineLayout(Struct, frozen=True, kw_only=True):
    """Layers of each pipeline stage, where the user says them."""

    #: Layers of the first stage; None: as even as can be.
    first_stage_layers: int | None = None
    #: Layers of the last stage; None: as even as can be.
    last_stage_layers: int | None = None
    #: Layers of each virtual stage, in the order in which a token passes them; empty: as the runtime splits them.
    chunk_layers: tuple[int, ...] = ()


class Tuning(Struct, frozen=True, kw_only=True):
    """Which weights train: all of them, adapters beside them, or the last layers."""

    #: full, lora, dora, ia3 or freeze.
    method: str = "full"
    #: Rank of the adapters.
    lora_rank: int = 0
    #: Linear layers with adapters, names joined by commas; empty: all but the head.
    lora_targets: str = ""
    #: Of ia3 those of these layers whose inputs are scaled, and not their outputs; names joined by commas.
    scaled_inputs: str = ""
    #: Whether there is dropout before the adapters.
    lora_dropout: bool = False
    #: Precision of a quantised base, such as nf4; empty: the base is not quantised.
    base_weights: str = ""
    #: Whether a base that is not quantised is in fp32 below adapters, and cast for every product.
    wide_base: bool = False
    #: Whether norms, embedding and head of a quantised base are in fp32.
    upcast_base: bool = False
    #: Layers that train with method freeze, counted from the last.
    trainable_layers: int | None = None

    @property
    def has_adapters(self) -> bool:
        """Whether weights beside the model train, and none of its own."""
        return self.method in ("lora", "dora", "ia3")


class Vision(Struct, frozen=True, kw_only=True):
    """Images of each sequence, or the frames of its video, and what the vision tower sees of them: `image_sequences`
    of `image_patches` each, of which none attends to another; `image_rows` of them pass its projector and are tokens
    of the sequence.
    """

    #: The images or the video, as a request of the served model holds them; None: text alone.
    media: Media | None = None
    images: int = 0
    #: Tokens that all images, or the video, take of a sequence.
    image_tokens: int = 0
    image_sequences: int = 0
    image_patches: int = 0
    image_rows: int = 0
    #: Whether the tower and its projector train where all else does: trained or frozen.
    vision_tower: str = "trained"

    @property
    def sees(self) -> bool:
        """Whether sequences hold more than text."""
        return bool(self.image_sequences)


class PostTraining(Struct, frozen=True, kw_only=True):
    """What training is for, and what runs beside the model for it."""

    #: sft (or pre-training), dpo, online-dpo, grpo, dapo, rloo, ppo, distillation, gkd or contrastive.
    objective: str = "sft"
    #: Models that run beside and do not train (reference, teacher, ...), each with its parameters.
    models_beside: tuple[tuple[str, int], ...] = ()
    #: Hidden size of the teacher, in numbers a token; 0: no teacher.
    teacher_hidden_size: int = 0
    #: Share of the memory that an engine takes which generates on the same accelerators.
    engine_memory_share: float = 0
    #: Hard negatives of a sample of contrastive training.
    negatives: int = 0
    #: Whether embeddings of the whole batch are made first, and each micro-batch runs again for its gradients.
    cached_embeddings: bool = False


class Rollout(Struct, frozen=True, kw_only=True):
    """What a step generates before it trains, and where; only of objectives that generate."""

    #: Prompts of one step; 0: nothing is generated.
    prompts_per_step: int = 0
    #: Completions of one prompt.
    num_generations: int = 1
    #: Mean tokens of a prompt.
    prompt_length: Number = 0
    #: Tokens at which a completion is cut.
    max_completion_length: Number = 0
    #: Mean tokens of a completion after the cut.
    mean_completion_length: Number = 0
    #: Standard deviation of completion lengths before the cut, over their mean.
    completion_spread: float = 0
    #: Serving runtime that generates.
    rollout_engine: str = "vllm"
    #: Release of that runtime; empty: the newest known.
    rollout_engine_version: str = ""
    #: Accelerators that generate and do not train; 0: those that train generate, too.
    rollout_accelerators: int = 0
    #: Ranks that share each matrix of the engine; None: the tool's own number, or the fewest that run enough requests.
    rollout_tensor_parallel_size: int | None = None
    #: Ranks of an engine by default of the tool that is named; 0: no tool, or it has no default.
    usual_rollout_ranks: int = 0
    #: Where that default stands.
    usual_rollout_source: str = ""
    #: Requests that a replica of the engine runs at once; None: the engine's own limit.
    rollout_max_num_seqs: int | None = None
    #: Part of the memory that an engine takes which sleeps while training runs; None: half, or what training leaves.
    rollout_memory_share: float | None = None
    #: Whether training states go to the host while the engine generates; None: where they do not fit beside it.
    rollout_offload: bool | None = None
    #: Steps that rollouts may be older than the weights they train.
    async_steps: int = 0
    #: Turns of a rollout that calls tools.
    rollout_turns: int = 1
    #: Seconds that a tool takes between two turns.
    tool_seconds: float = 0
    #: How often a step trains on its rollouts.
    ppo_epochs: int = 1
    #: Share of the micro-batches that have completions of the student; others have texts that are there.
    lmbda: float = 1.0
    #: Whether completions are packed into micro-batches, not padded to the longest.
    sequence_packing: bool = False


class Offload(Struct, frozen=True, kw_only=True):
    """What leaves the accelerator; places are none, cpu or nvme."""

    #: Place of the optimizer states, and of sharded gradients.
    offload_optimizer: str = "none"
    #: Place of the shards of the weights.
    offload_parameters: str = "none"
    #: Place of the tensors that are kept for backward.
    offload_activations: str = "none"
    #: Share of the optimizer states that is offloaded, 0 to 1.
    optimizer_offload_fraction: Number = 1
    #: Bytes a second that the processors of a node read and write in the update; None: not known.
    host_update_bandwidth: Number | None = None
    #: Megatron's modules whose inputs are offloaded, names joined by commas.
    offload_modules: str = ""


class Kernels(Struct, frozen=True, kw_only=True):
    """Which kernels run the layers."""

    #: None: the runtime's own.
    attention: AttentionKernel | None = None
    #: torch.compile of layers and loss.
    compile: bool = False
    #: Scales of float8 GEMMs: none, tensorwise or rowwise.
    float8: str = "none"
    #: Whether weights are gathered in float8.
    float8_all_gather: bool = False
    #: Whether GEMMs and collectives overlap in symmetric memory (torchtitan).
    async_tensor_parallel: bool = False
    #: Whether Liger Kernel replaces norms, RoPE, feed-forward layers and loss.
    liger: bool = False


class Imbalance(Struct, frozen=True, kw_only=True):
    """Ranks that have more to do, or are slower, than the others."""

    #: Tokens of the fullest expert rank over the mean.
    expert_imbalance: Number = 1
    #: How many times longer a slow node takes.
    straggler_slowdown: Number = 1
    #: Share of nodes that are slow; 1: one is in any case.
    straggler_share: Number = 1
    #: Whether a benchmark's gate deals experts out in turn, so that those of a token lie side by side.
    experts_in_turn: bool = False


class MegatronSettings(Struct, frozen=True, kw_only=True):
    """Settings that Megatron-core alone has, by its own names."""

    #: Modules that recompute selective recomputes, names joined by commas.
    recompute_modules: str = ""
    #: How ranks share a sequence (--cp-comm-type): p2p, a2a or allgather; empty: p2p.
    context_parallel_method: str = ""
    #: Tokens that an expert has room for, over the mean; None: no limit.
    expert_capacity_factor: float | None = None
    #: Layers of multi-token prediction that train (--mtp-num-layers).
    mtp_layers: int = 0
    #: none, full, or the modules that CUDA graphs replay, joined by commas. Changes time alone, as all below.
    cuda_graph: str = "none"
    #: Whether tensor ranks communicate while they compute.
    tp_comm_overlap: bool = False
    #: Whether expert ranks communicate while they compute.
    overlap_moe_expert_parallel_comm: bool = False
    #: alltoall, or flex (DeepEP, HybridEP), which does not wait for sizes.
    moe_token_dispatcher_type: str = "alltoall"


class DeepSpeedSettings(Struct, frozen=True, kw_only=True):
    """Settings of DeepSpeed's ZeRO and ZeRO++, by its own names."""

    #: Elements reduced at a time.
    reduce_bucket_size: Number = 500_000_000
    #: Elements gathered at a time after a step.
    allgather_bucket_size: Number = 500_000_000
    #: Whether gradients are reduced during backward; None: in stage 3 alone.
    overlap_comm: bool | None = None
    #: Whether gradients are copied to a bucket of full size.
    contiguous_gradients: bool = True
    #: Stage 3: parameters of a rank that are updated at a time.
    sub_group_size: Number = 1_000_000_000
    #: Stage 3: elements fetched ahead at a time.
    stage3_prefetch_bucket_size: Number = 50_000_000
    #: Stage 3: parameters that are gathered at most.
    stage3_max_live_parameters: Number = 1_000_000_000
    #: Stage 3: parameters that are used again within so many are not released.
    stage3_max_reuse_distance: Number = 1_000_000_000
    #: Stage 3: tensors with fewer elements stay whole.
    stage3_param_persistence_threshold: Number = 100_000
    #: Stage 3: whether rank 0 gathers the weights to save them.
    stage3_gather_16bit_weights_on_model_save: bool = False
    #: Ranks that share a second shard of the weights (hpZ); 1: there is none.
    zero_hpz_partition_size: Number = 1
    #: Whether weights are gathered in 8 bits (qwZ).
    zero_quantized_weights: bool = False
    #: Whether weights that do not train are stored in 8 bits.
    zero_quantized_nontrainable_weights: bool = False
    #: Whether gradients are reduced in 4 bits (qgZ).
    zero_quantized_gradients: bool = False


class TrainingPlan(Plan, frozen=True, kw_only=True):
    """How one training step is spread. Numbers may be arrays with one entry per plan, but for the pipeline's two sizes.

    The sizes stand in the plan itself; what has a subject of its own stands in a group.
    """

    #: Tokens of a sequence.
    sequence_length: Number
    #: Sequences of one forward pass of one replica.
    micro_batch_size: Number = 1
    #: Micro-batches of one replica in a step.
    num_microbatches: Number = 1

    #: Ranks that share each matrix.
    tensor_parallel_size: Number = 1
    #: Whether norms and residuals are cut over tensor ranks.
    sequence_parallel: bool = True
    #: Pipeline stages.
    pipeline_parallel_size: int = 1
    #: Chunks of layers on each stage.
    virtual_pipeline_size: int = 1
    #: One of estimate.plan.schedule.SCHEDULES; 1f1b with several chunks is interleaved.
    pipeline_schedule: str = "1f1b"
    #: Ranks that share a sequence.
    context_parallel_size: Number = 1
    #: Ranks that share the experts of a layer.
    expert_parallel_size: Number = 1
    #: Ranks that share one expert.
    expert_tensor_parallel_size: Number = 1
    #: Replicas that see different sequences; ZeRO shards over them and over context ranks.
    data_parallel_size: Number = 1
    #: What they shard: 0 nothing, 1 optimizer states, 2 gradients too, 3 weights too.
    zero_stage: int = 3
    #: Groups of ranks that shard on their own (HSDP).
    replicate_size: Number = 1

    #: What is recomputed in backward: none, selective, selective-op or full.
    recompute: str = "none"
    #: Whether hidden states have dropout.
    dropout: bool = False
    #: Whether attention probabilities have dropout.
    attention_dropout: bool = False
    #: How logits become a loss: full, chunked, fused or tiled.
    loss: str = "full"
    #: Whether a row has several sequences, which do not see each other.
    packing: bool = False
    #: Mean tokens of the sequences that share a row and do not see each other; None: a row is one sequence.
    mean_packed_length: Number | None = None
    #: Whether the training loop holds the logits until the next step.
    keep_outputs: bool = False
    #: Training recipe of numerics.precisions.
    precision: str = "bf16-mixed"
    optimizer: str = "adamw"
    #: torch's implementation of the optimizer: fused, foreach or for-loop.
    optimizer_implementation: str = "fused"
    #: Whether the optimizer steps as soon as a gradient is there.
    optimizer_in_backward: bool = False

    runtime: str = "fsdp2"
    #: Release of the runtime; empty: the newest known.
    runtime_version: str = ""
    #: Whose code the layers are; empty: the runtime's own.
    model_code: str = ""
    #: Whether PyTorch's allocator has expandable segments.
    expandable_segments: bool = True
    #: Processes of each rank that load data.
    data_loader_workers: Number = 0
    #: Share of the 16-bit peak that large GEMMs were measured to reach on this machine; None: not measured.
    product_share: float | None = None
    #: What the site's own runs correct (estimate.site.corrections); None: nothing.
    site: Any = None

    layout: PipelineLayout = PipelineLayout()
    tuning: Tuning = Tuning()
    vision: Vision = Vision()
    post_training: PostTraining = PostTraining()
    rollout: Rollout = Rollout()
    offload: Offload = Offload()
    kernels: Kernels = Kernels()
    imbalance: Imbalance = Imbalance()
    links: StatedLinks = StatedLinks()
    megatron: MegatronSettings = MegatronSettings()
    deepspeed: DeepSpeedSettings = DeepSpeedSettings()

    @property
    def trains_tower(self) -> bool:
        """Whether the vision tower trains: beside adapters, and below the last layers, nothing of it does."""
        return self.tuning.method == "full" and self.vision.vision_tower == "trained"

    @property
    def world_size(self) -> Number:
        return accelerators_of_plan.evaluate(
            t=self.tensor_parallel_size,
            p=self.pipeline_parallel_size,
            c=self.context_parallel_size,
            d=self.data_parallel_size,
        )

    @property
    def attended_length(self) -> Number:
        """Tokens of a sequence that attention sees."""
        return self.sequence_length if self.mean_packed_length is None else self.mean_packed_length

    @property
    def global_batch_size(self) -> Number:
        return self.micro_batch_size * self.num_microbatches * self.data_parallel_size

    @property
    def tokens_per_step(self) -> Number:
        return tokens_per_step.evaluate(
            s=self.sequence_length, b=self.micro_batch_size, m=self.num_microbatches, d=self.data_parallel_size
        )
