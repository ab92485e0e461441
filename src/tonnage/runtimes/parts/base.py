"""What a framework decides about memory: which copies it keeps, for how long, which buffers it adds. Data, by
version.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tonnage.kernel.registry import Registry
from tonnage.ops import Kernels
from tonnage.spec import AttentionKernel
from tonnage.tape import Own

# Which copy of a parameter a state is: the copy that is multiplied, the master, the accumulated gradient.
Copy = Literal["compute", "master", "gradient"]
# How a pipeline deals out layers: evenly, the earlier stages with one more; the first with none of the rest; table and
# head counting as a
# layer each; by cost, a stage being full when it has more than its part.
Split = Literal["even", "rest later", "ends weigh", "cost"]
NEVER = 9  # a ZeRO stage that does not exist: this state is never sharded
LAST_LISTED = 100  # the place in lists of what names none
PLACES = ("none", "cpu", "nvme")  # where offloaded states may live
PEFT_CODE = "transformers"  # the code of the models that peft and TRL work on

# The moments of a step at which memory can peak.
Moment = Literal["loss", "first layer of backward", "last layer of backward", "optimizer step"]
LAST: tuple[Moment, ...] = ("last layer of backward",)
BACKWARD: tuple[Moment, ...] = ("first layer of backward", *LAST)
STEP_ALONE: tuple[Moment, ...] = ("optimizer step",)
METHODS = ("full", "lora", "dora", "qlora", "freeze")  # what trains; all but the first with peft
PEFT_METHODS = (*METHODS, "ia3")  # where peft itself wraps the model
ALWAYS: tuple[Moment, ...] = ("loss", *BACKWARD, *STEP_ALONE)
# Options that only some runtimes have, and that all others refuse (estimate.options.framework_options): of layers and
# their parallelism, and of how states are sharded. A runtime that has one names it in `options` of its facts.
OF_STEP = (
    "recompute_modules",
    "context_parallel_method",
    "expert_capacity_factor",
    "mtp_layers",
    "cuda_graph",
    "tp_comm_overlap",
    "overlap_moe_expert_parallel_comm",
    "moe_token_dispatcher_type",
)
OF_SHARDING = (
    "reduce_bucket_size",
    "allgather_bucket_size",
    "sub_group_size",
    "stage3_prefetch_bucket_size",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_param_persistence_threshold",
    "zero_hpz_partition_size",
    "contiguous_gradients",
    "stage3_gather_16bit_weights_on_model_save",
    "zero_quantized_weights",
    "zero_quantized_nontrainable_weights",
    "zero_quantized_gradients",
    "overlap_comm",
)


class State(Struct, frozen=True):
    """A copy of the parameters that the runtime keeps."""

    name: str
    copy: Copy
    #: The ZeRO stage from which it is sharded.
    sharded_from: int


class Transient(Struct, frozen=True):
    """Memory that comes and goes with one unit of work."""

    name: str
    #: Bytes per parameter of the unit, or per logit.
    bytes_per_element: float


class Bucket(Struct, frozen=True, kw_only=True):
    """A flat buffer that holds gradients once more while they are reduced."""

    name: str
    copy: Copy
    #: ZeRO stages that have it.
    stages: tuple[int, ...]
    #: Moments at which it is there.
    moments: tuple[Moment, ...]
    #: Its size; 0: no limit.
    elements: int = 0
    #: Whether it is allocated at that size whatever it carries; else it is as large as its gradients.
    whole: bool = False


class Several(Struct, frozen=True, kw_only=True):
    """The other runtime that a runtime is on several accelerators."""

    #: The other one's name.
    runtime: str
    #: Says that the other one is estimated.
    warning: str
    #: Stands beside its name in the question.
    reason: str
    #: What it is called in errors.
    shown: str


class TrainingRuntime(Struct, frozen=True, kw_only=True):
    """How a framework spends memory in training. The optimizer's own states come with the optimizer."""

    name: str
    version: str
    source: str
    #: Copies of the weights.
    weights: tuple[State, ...]
    #: Copies of the gradients.
    gradients: tuple[State, ...]
    #: Master copies of the weights.
    masters: tuple[State, ...] = ()
    #: The ZeRO stage from which optimizer states are sharded.
    optimizer_sharded_from: int
    default_zero_stage: int
    #: ZeRO stages that it has.
    zero_stages: tuple[int, ...]
    #: Whether it shards nothing on one accelerator, and by `default_zero_stage` on several.
    shards_on_several: bool = False
    #: Its own kernels.
    kernels: Kernels
    #: How layers are written, of tape.CODES.
    code: str = "eager"
    #: What its layers differ in by version.
    own: Own | None = None
    #: Whether it gathers and reduces unit by unit, as FSDP2 (estimate.frameworks.fsdp2_units).
    shards_units: bool = False
    #: Whether embedding, norm and head are one unit.
    root_unit: bool = False
    #: Whether the last layer is not resharded after its forward.
    keeps_last: bool = False
    #: Whether groups of shards may be replicated (HSDP).
    replicates: bool = False
    #: How a pipeline deals out layers.
    split: Split = "even"
    #: Whether it deals them out to all chunks as if each were a rank, so that they may be unequal.
    splits_chunks: bool = False
    #: Pipeline schedules that it has (estimate.plan.schedule).
    schedules: tuple[str, ...] = ("1f1b", "interleaved-1f1b")
    #: By schedule how many micro-batches it takes, where not any number (estimate.plan.pipeline_boxes).
    microbatch_rules: Mapping[str, str] = {}
    #: Earlier versions, by name.
    older: Mapping[str, "TrainingRuntime"] = {}
    #: The format of `tonnage export` that starts it; "": none.
    export: str = ""
    #: Whether layers can be compiled.
    compiles: bool = False
    #: Whether the optimizer can step as gradients come.
    steps_in_backward: bool = False
    #: Its training recipe where nobody names one.
    default_precision: str = "bf16-mixed"
    #: Whether its layers multiply in fewer than 16 bit where the training recipe says so (Transformer Engine's).
    multiplies_narrow: bool = False
    #: How float8 GEMMs may be scaled.
    float8: tuple[str, ...] = ("none",)
    #: Whose code the layers may be, its own first.
    model_codes: tuple[str, ...] = ("transformers",)
    #: Whether gradients are allocated once; else backward makes them and zero_grad frees them.
    gradients_persist: bool
    #: How the whole loss is computed, of estimate.layers.layers.LOSSES.
    loss: str = "upcast"
    #: Whether, under autocast, weights that adapters stand beside are as wide as those that train.
    wide_base: bool = False
    #: The precision of a run on a quantised base, where it refuses a mixed one.
    plain_base: str = ""
    #: Kinds of loss that the user may choose.
    losses: tuple[str, ...] = ("full",)
    #: How tools of reinforcement learning compute log-probabilities without tiles: kind of loss, and which of
    #: estimate.layers.losses.LOSSES it is.
    untiled_losses: dict[str, str] = {}
    #: Whether each tensor rank holds its part of the vocabulary.
    logits_split: bool
    #: Parts of the sequence that a chunked loss takes one after the other; 0: the runtime has none.
    loss_chunks: int = 0
    #: Whether these parts must be equal.
    equal_chunks: bool = True
    #: Units of parameters alive at once when ZeRO-3 gathers them: the one in use and those fetched ahead.
    gathers: int = 0
    #: Whether ZeRO-2 keeps gathered units from forward to backward.
    stays_gathered: bool = False
    #: Copies of one unit's gradients while they are reduced.
    reduces: tuple[Transient, ...] = ()
    #: Whether autocast keeps a copy of the weights in the compute type from forward to backward.
    casts: bool = False
    #: Methods that it has; (): full alone.
    trains: tuple[str, ...] = ()
    #: Whether the head is quantised with the layers of a 4-bit base.
    quantises_head: bool = False
    #: Whether routed experts are quantised with the layers of a 4-bit base; bitsandbytes alone replaces linear layers,
    #: and transformers 5 holds the experts of a layer in one parameter.
    quantises_experts: bool = False
    #: What its own scripts recompute in backward.
    recompute: str = "none"
    #: The same on several accelerators; "": what it recomputes on one.
    recompute_on_several: str = ""
    #: Whether gradients are summed whole on each rank, and reduced after the last micro-batch alone.
    reduces_once: bool = False
    #: Model types for which it can take Liger Kernel.
    liger: tuple[str, ...] = ()
    #: Whether users prepare a quantised base with peft's prepare_model_for_kbit_training.
    upcasts_base: bool = False
    #: Whether a loop of the user's own may run it, which holds the model's outputs.
    keeps_outputs: bool = False
    #: Whether it leaves PyTorch's allocator without expandable segments, and what that keeps is known.
    classic_allocator: bool = False
    #: Whether what it does on several accelerators is not estimated.
    one_accelerator: bool = False
    #: Buffers of gradients while they are reduced.
    buckets: tuple[Bucket, ...] = ()
    #: Copies that the optimizer's step makes of the gradients of what the rank updates.
    step: tuple[Bucket, ...] = ()
    tensor_parallel: bool = True
    pipeline: bool = True
    context_parallel: bool = True
    expert_parallel: bool = True
    sequence_parallel: bool = True
    #: The name that a Framework of estimate/frameworks/ registers itself by; "": plain PyTorch.
    framework: str = ""
    #: Its place in lists of runtimes, the most common first; those of one place by name.
    listed: int = LAST_LISTED
    #: Options of ours that not every runtime has, and this one does.
    options: tuple[str, ...] = ()
    #: Whose model code it runs besides its own, and how the tape writes that: one of tape.CODES.
    flavours: Mapping[str, str] = {}
    #: Model codes whose attention is known to keep packed sequences apart.
    packs: tuple[str, ...] = (PEFT_CODE,)
    # whether frameworks of reinforcement learning pack completions that it trains on, where nobody says otherwise
    packs_completions: bool = False
    #: TRL's trainers run on it, so that other models may stand beside the trained one.
    takes_objectives: bool = False
    #: Why objectives that generate are not estimated on it, where it has them; what is nearest.
    why_alone: str = ""
    #: Its own code can recompute by operation.
    selective_op: bool = False
    #: Beginning of a generation's name (`ampere`): its default attention kernel, and the source.
    attention_by_generation: Mapping[str, tuple[AttentionKernel, str]] = {}
    #: What it is on more than one accelerator, where that is another runtime.
    on_several: Several | None = None
    #: Places that optimizer states may live in: "cpu" (host memory), "nvme" (disks).
    offload_optimizer: tuple[str, ...] = ("none",)
    #: The same of the weights.
    offload_parameters: tuple[str, ...] = ("none",)
    #: The same of activations.
    offload_activations: tuple[str, ...] = ("none",)
    #: Weights, gradients and optimizer states move to the host together (FSDP2's CPUOffloadPolicy).
    offloads_together: bool = False
    #: The ZeRO stage from which gradients go where the optimizer is.
    gradients_offloaded_from: int = NEVER
    #: The ZeRO stage from which a part of the optimizer states may stay on the accelerator.
    offload_fraction_from: int = NEVER
    #: What the settings are given to that start a plan; "": they are not written here.
    launch_program: str = ""
    #: Values of options that these settings have words for, beside sizes, ZeRO and recomputation.
    launch_words: Mapping[str, tuple[str, ...]] = {}
    #: TRL's file for accelerate (trl/accelerate_configs) under which it trains adapters.
    trl_config: str = ""
    #: Values of options that TRL's command has words for, beside methods, objectives and bases.
    trl_words: Mapping[str, tuple[str, ...]] = {}
    #: Its code makes the model on the accelerator and reads checkpoints tensor by tensor.
    makes_on_accelerator: bool = False
    #: Each rank saves its own shard.
    saves_shards: bool = False
    #: Below this ZeRO stage a checkpoint has the weights twice: the model's, and those that the optimizer updates.
    saves_twice_below: int = 0
    #: Whether somebody published how fast its kernels are.
    is_timed: bool = True
    #: Its attention kernels are those of the accelerator's generation; else FlashAttention-2's before Blackwell.
    newest_attention: bool = False
    #: Tensor ranks hand parts of the hidden states to the next pipeline stage, with sequence parallelism or without.
    scatters_stages: bool = False


TRAINING_RUNTIMES: Registry[TrainingRuntime] = Registry("training runtime")
