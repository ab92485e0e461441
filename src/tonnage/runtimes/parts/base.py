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
ALWAYS: tuple[Moment, ...] = ("loss", *BACKWARD, *STEP_ALONE)
# Options that only some runtimes have: of the layers and their parallelism, and of how states are sharded.
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
    """A copy of the parameters that the runtime keeps: which, and from which ZeRO stage on it is sharded."""

    name: str
    copy: Copy
    sharded_from: int


class Transient(Struct, frozen=True):
    """Memory that comes and goes with one unit of work, in bytes per parameter of the unit, or per logit."""

    name: str
    bytes_per_element: float


class Bucket(Struct, frozen=True, kw_only=True):
    """A flat buffer that holds gradients once more while they are reduced, under these ZeRO stages and at these
    moments.

    `elements`: its size; `whole`: it is allocated at that size whatever it carries, else it is as large as its
    gradients, and at most `elements` (0: no limit).
    """

    name: str
    copy: Copy
    stages: tuple[int, ...]
    moments: tuple[Moment, ...]
    elements: int = 0
    whole: bool = False


class Several(Struct, frozen=True, kw_only=True):
    """A runtime that is another one on several accelerators: that one's name, and what users are told.

    `warning`: that the other one is estimated; `reason`: beside its name in the question; `shown`: its name in
    errors.
    """

    runtime: str
    warning: str
    reason: str
    shown: str


class TrainingRuntime(Struct, frozen=True, kw_only=True):
    """How a framework spends memory in training.

    `weights`, `gradients`, `masters`: copies of the parameters; the optimizer's own states come with the optimizer and
    are sharded from `optimizer_sharded_from` on. `gradients_persist`: they are allocated once; else backward makes them
    and zero_grad frees them. `gathers`: units of parameters alive at once when ZeRO-3 gathers them (the one in use, and
    those fetched ahead); `stays_gathered`: under ZeRO-2 the gathered units are kept from forward to backward.
    `reduces`: copies of one unit's gradients while they are reduced. `code`: how layers are written, of tape.CODES;
    `model_codes`: by whom they may be, its own first; `losses`: kinds of it that the user may choose; `loss`: how the
    whole one is, of estimate.layers.layers.LOSSES; `logits_split`: each tensor rank holds its part of the vocabulary;
    `loss_chunks`: a chunked loss takes so many parts of the sequence, one after the other (0: the runtime has none),
    which must be `equal_chunks` or may not.
    `own`: what its layers differ in by version. `shards_units`: FSDP2 gathers and reduces unit by unit
    (estimate.frameworks.fsdp2_units); `root_unit`: table, norm and head are one; `keeps_last`: the last layer is not
    resharded after its forward. `replicates`: groups of shards may be replicated (HSDP). `split`: how a pipeline deals
    out layers; `splits_chunks`: to all of its chunks as if each were a rank, so that they may be unequal; `schedules`:
    of it (estimate.plan.schedule);
    `microbatch_rules`: how many micro-batches a schedule takes, where not any number (estimate.plan.microbatches).
    `older`: earlier versions by name. `compiles`: layers can be compiled; `steps_in_backward`: the optimizer can step
    as gradients come;
    `default_precision`: its recipe where none is named;
    `float8`: how products may be scaled.
    `step`: copies that the optimizer's step makes of the gradients of what the rank updates. `casts`: autocast keeps a
    copy of the weights in the compute type from forward to backward.
    `trains`: methods that it has, () for full alone; `quantises_head`: with the layers of a 4-bit base; `recompute`:
    what its own scripts run again in backward. `liger`: model types for which it can take Liger's kernels.
    `upcasts_base`: its users prepare a quantised base with peft's prepare_model_for_kbit_training; `keeps_outputs`: a
    loop of the user's own may run it, which holds the model's outputs. `classic_allocator`: it leaves PyTorch's
    allocator without expandable segments, and what that keeps is known. `one_accelerator`: what it does on several is
    not estimated.
    """

    name: str
    version: str
    source: str
    weights: tuple[State, ...]
    gradients: tuple[State, ...]
    masters: tuple[State, ...] = ()
    optimizer_sharded_from: int
    default_zero_stage: int
    zero_stages: tuple[int, ...]
    kernels: Kernels
    code: str = "eager"
    own: Own | None = None
    shards_units: bool = False
    root_unit: bool = False
    keeps_last: bool = False
    replicates: bool = False
    split: Split = "even"
    splits_chunks: bool = False
    schedules: tuple[str, ...] = ("1f1b", "interleaved-1f1b")
    microbatch_rules: Mapping[str, str] = {}
    older: Mapping[str, "TrainingRuntime"] = {}
    compiles: bool = False
    steps_in_backward: bool = False
    default_precision: str = "bf16-mixed"
    float8: tuple[str, ...] = ("none",)
    model_codes: tuple[str, ...] = ("transformers",)
    gradients_persist: bool
    loss: str = "upcast"
    wide_base: bool = False  # under autocast, weights that adapters stand beside are as wide as those that train
    plain_base: str = ""  # the precision of a run on a quantised base, where a mixed one is refused
    losses: tuple[str, ...] = ("full",)
    logits_split: bool
    loss_chunks: int = 0
    equal_chunks: bool = True
    gathers: int = 0
    stays_gathered: bool = False
    reduces: tuple[Transient, ...] = ()
    casts: bool = False
    trains: tuple[str, ...] = ()
    quantises_head: bool = False
    recompute: str = "none"
    liger: tuple[str, ...] = ()
    upcasts_base: bool = False
    keeps_outputs: bool = False
    classic_allocator: bool = False
    one_accelerator: bool = False
    buckets: tuple[Bucket, ...] = ()
    step: tuple[Bucket, ...] = ()
    tensor_parallel: bool = True
    pipeline: bool = True
    context_parallel: bool = True
    expert_parallel: bool = True
    sequence_parallel: bool = True
    # The file of its framework: estimate/frameworks/NAME.py registers a Framework by this name. "": plain PyTorch.
    framework: str = ""
    listed: int = LAST_LISTED
    """Its place in lists of runtimes, the most common first; those of one place by name."""
    options: tuple[str, ...] = ()
    """Options of ours that not every runtime has, and this one does."""
    flavours: Mapping[str, str] = {}
    """Whose model code it runs besides its own, and how the tape writes that: one of tape.CODES."""
    packs: tuple[str, ...] = (PEFT_CODE,)
    """Model codes whose attention is known to keep packed sequences apart."""
    takes_objectives: bool = False
    """TRL's trainers run on it, so that other models may stand beside the trained one."""
    selective_op: bool = False
    """Its own code can recompute by operation."""
    attention_by_generation: Mapping[str, tuple[AttentionKernel, str]] = {}
    """Beginning of a generation's name (`ampere`): its default attention kernel, and the source."""
    on_several: Several | None = None
    """What it is on more than one accelerator, where that is another runtime."""
    # What may live in host memory ("cpu") or on disks ("nvme").
    offload_optimizer: tuple[str, ...] = ("none",)
    offload_parameters: tuple[str, ...] = ("none",)
    offload_activations: tuple[str, ...] = ("none",)
    offloads_together: bool = False
    """Weights, gradients and optimizer states move to the host together (FSDP2's CPUOffloadPolicy)."""
    gradients_offloaded_from: int = NEVER
    """The ZeRO stage from which gradients go where the optimizer is."""
    offload_fraction_from: int = NEVER
    """The ZeRO stage from which a part of the optimizer states may stay on the accelerator."""
    launch_program: str = ""
    """What the settings are given to that start a plan; "": they are not written here."""
    launch_words: Mapping[str, tuple[str, ...]] = {}
    """Values of options that these settings have words for, beside sizes, ZeRO and recomputation."""
    trl_config: str = ""
    """TRL's file for accelerate (trl/accelerate_configs) under which it trains adapters."""
    trl_words: Mapping[str, tuple[str, ...]] = {}
    """Values of options that TRL's command has words for, beside methods, objectives and bases."""
    makes_on_accelerator: bool = False
    """Its code makes the model on the accelerator and reads checkpoints tensor by tensor."""
    saves_shards: bool = False
    """Each rank saves its own shard."""
    saves_twice_below: int = 0
    """Below this ZeRO stage a checkpoint has the weights twice: the model's, and those that the optimizer updates."""
    is_timed: bool = True
    """Whether somebody published how fast its kernels are."""
    newest_attention: bool = False
    """Its attention kernels are those of the accelerator's generation; else FlashAttention-2's before Blackwell."""
    scatters_stages: bool = False
    """Tensor ranks hand parts of the hidden states to the next pipeline stage, with sequence parallelism or without."""


TRAINING_RUNTIMES: Registry[TrainingRuntime] = Registry("training runtime")
