"""What a framework decides about memory: which copies it keeps, for how long, which buffers it adds. Data, by version."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tonnage.ops import Kernels
from tonnage.registry import Registry

# Which copy of a parameter a state is: the copy that is multiplied, the master, the accumulated gradient.
Copy = Literal["compute", "master", "gradient"]
NEVER = 9  # a ZeRO stage that does not exist: this state is never sharded


class State(Struct, frozen=True):
    """A copy of the parameters that the runtime keeps: which, and from which ZeRO stage on it is sharded."""

    name: str
    copy: Copy
    sharded_from: int


class Transient(Struct, frozen=True):
    """Memory that comes and goes with one unit of work, in bytes per parameter of the unit, or per logit."""

    name: str
    bytes_per_element: float


# cross_entropy on logits.float(), as transformers' ForCausalLMLoss has it: outputs.logits stays alive through backward
UPCAST_LOSS = (
    Transient("logits", 2),
    Transient("log-probabilities in fp32", 4),
    Transient("gradient of log-probabilities in fp32", 4),
    Transient("gradient of logits in fp32", 4),
)


class TrainingRuntime(Struct, frozen=True, kw_only=True):
    """How a framework spends memory in training.

    `weights`, `gradients`, `masters`: copies of the parameters; the optimizer's own states come with the optimizer and are
    sharded from `optimizer_sharded_from` on. `gradients_persist`: they are allocated once; else backward makes them and
    zero_grad frees them. `gathers`: units of parameters alive at once when ZeRO-3 gathers them (the one in use, and those
    fetched ahead); `stays_gathered`: under ZeRO-2 the
    gathered units are kept from forward to backward. `reduces`: copies of one unit's gradients while they are reduced. `logits`: copies of the logits alive
    when the loss's backward begins; `logits_split`: each tensor rank holds its part of the vocabulary.
    `casts`: autocast keeps a copy of the weights in the compute type from forward to backward. `bucket_copies`: flat buckets
    that hold gradients once more, each of `bucket_elements` at most (0: all gradients).
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
    gradients_persist: bool
    logits: tuple[Transient, ...]
    logits_split: bool
    gathers: int = 0
    stays_gathered: bool = False
    reduces: tuple[Transient, ...] = ()
    casts: bool = False
    bucket_elements: int = 0
    bucket_copies: int = 0
    tensor_parallel: bool = True
    pipeline: bool = True
    context_parallel: bool = True
    expert_parallel: bool = True
    sequence_parallel: bool = True


TRAINING_RUNTIMES: Registry[TrainingRuntime] = Registry("training runtime")


class ServingRuntime(Struct, frozen=True, kw_only=True):
    """How an engine spends memory in serving.

    `memory_share`: part of the accelerator's memory that it takes (gpu_memory_utilization). `overhead_*`: fixed amounts in
    bytes that were measured, on one rank and on each of many. `tiers`: (memory of the accelerator from which on, tokens of
    one forward pass, requests that run at once), largest first; 0: as many as the plan has. `block_tokens`: a request's
    cache is rounded up to blocks of so many tokens. `logits_bytes`: all copies of one logit in the sampler. `state_bytes`: an element of a
    recurrent state where the model's config does not say; None: as wide as activations. `kv_cache`: what it can hold keys
    and values in besides the activations' type: its own word, and the precision; `kv_cache_source`: where that is listed.
    """

    name: str
    version: str
    source: str
    memory_share: float
    tiers: tuple[tuple[int, int, int], ...]
    block_tokens: int
    overhead_single: Mapping[str, int]
    overhead_parallel: Mapping[str, int]
    overhead_source: str
    logits_bytes: float
    state_bytes: float | None = None
    kv_cache: Mapping[str, str] = {}
    kv_cache_source: str = ""


SERVING_RUNTIMES: Registry[ServingRuntime] = Registry("serving engine")
