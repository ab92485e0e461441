"""What an engine decides about memory in serving: batches, caches, fixed amounts, formats, what it refuses. Data, by
version.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.kernel.registry import Registry
from tonnage.kernel.units import KIB, MIB
from tonnage.runtimes.parts.base import LAST_LISTED
from tonnage.runtimes.parts.start import Start
from tonnage.spec import Accelerator


class Paging(Struct, frozen=True, kw_only=True):
    """How an engine deals out its cache: in blocks of `block_tokens` tokens, or larger ones that hold a recurrent
    state.

    `spare_batches`: forward passes in flight beyond one for each pipeline stage; a window holds their tokens besides
    its own.
    `state_copies`: blocks that a recurrent state takes in a model that also has attention, whose prefixes are cached;
    one where all is state. `group_tolerance`: layers are dealt into groups as large as the commonest kind where it has
    less than so many times the layers of the rarest, else into groups as large as the rarest. `shares_blocks`: kinds of
    layers share equal blocks; else each has a pool of its own. `one_batch`: a window waits for the tokens of one
    forward pass, however many are in flight;
    `windows`: a layer with a window gives back what it no longer sees; else it keeps every token.
    """

    block_tokens: int
    spare_batches: int
    state_copies: int
    group_tolerance: float
    shares_blocks: bool = True
    one_batch: bool = False
    windows: bool = True


class BatchLimit(Struct, frozen=True, kw_only=True):
    """Tokens of one forward pass and requests that run at once on accelerators from `memory_bytes` on; 0: as the plan
    says.

    `kind` and `named`: only accelerators of this kind, with this in their names; `but_named`: not those. `each_rank`:
    so much for each rank. `one_prompt`: a pass is the prompt of one request. `whole_context`: no fewer tokens than a
    context has;
    `up_to_context`: only contexts of at most so many tokens.
    """

    tokens: int
    requests: int
    memory_bytes: int = 0
    kind: str = ""
    named: str = ""
    but_named: tuple[str, ...] = ()
    each_rank: bool = False
    one_prompt: bool = False
    whole_context: bool = False
    up_to_context: int = 0


class Step(Struct, frozen=True):
    """Defaults of SGLang on accelerators below `below_mib` (0: all others): tokens of a chunk of a prompt, and the
    largest batch whose decoding is captured with few tensor ranks and from four on.
    """

    below_mib: int
    chunk: int
    few: int
    many: int


class Reserve(Struct, frozen=True, kw_only=True):
    """How SGLang finds the static part of a memory of which it is not told one: by tensor ranks up to a size, else what
    is left beside what it reserves for activations and graphs.

    `by_ranks`: (tensor ranks from, share), the most first, on accelerators up to `up_to_mib` (0: all); `beyond_mib`:
    reserved on larger ones; where it is 0 too, the reserve is computed. `prefill_graph_mib`: of each size of a prompt
    that is captured, `latent_graph_mib`: of all of them in a model with latent attention.
    """

    steps: tuple[Step, ...]
    by_ranks: tuple[tuple[int, float], ...] = ()
    up_to_mib: int = 0
    beyond_mib: int = 0
    prefill_graph_mib: int = 0
    latent_graph_mib: int = 0


class Pools(Struct, frozen=True, kw_only=True):
    """A cache in pools of single tokens: one of full attention, beside it one of windows that holds `window_share` of
    its tokens, and one of states that takes `state_share` of its bytes; `state_slots`: slots of a request, and
    `tracking_slots` more of one whose architecture is in `tracked`. `window_share` 0: a window is kept like all else;
    `state_share` 0: the pool of states has as many slots as requests may run.
    """

    page_tokens: int
    window_share: float
    state_share: float
    state_slots: int
    tracking_slots: int = 0
    tracked: frozenset[str] = frozenset()


class Cells(Struct, frozen=True, kw_only=True):
    """A cache of cells that is allocated whole, for every request its full length in multiples of `multiple`.

    `windows`: a window keeps its own tokens and those of a batch; else it is as long as the context. `flash`: attention
    makes no matrix of scores; `host_table`: the token table stays in host memory. `by_layers`: several accelerators
    share the layers, not the matrices.
    `unified`: attention sees the cells of all requests.
    """

    multiple: int
    windows: bool
    flash: bool
    host_table: bool
    by_layers: bool
    unified: bool = False


# What the part of the accelerator's memory that an engine is told is a part of: of all of it; of what is free before
# the model is loaded,
# for weights and cache; of what is free after it ran once, for the cache alone. "nothing": it allocates what it needs.
ShareOf = Literal["total", "static", "free", "nothing"]


# Bytes by generation. PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp: :4096:8 from Hopper on, else :4096:2:16:8 KiB.
CUBLAS_WORKSPACE: Mapping[str, int] = {"hopper": 32 * MIB, "blackwell": 32 * MIB, "": (4096 * 2 + 16 * 8) * KIB}


class ServingRuntime(Struct, frozen=True, kw_only=True):
    """How an engine spends memory in serving.

    `memory_share`: the part of the accelerator's memory that it takes (gpu_memory_utilization), of `share_of`; None: it
    has no such setting, or `reserve` says it; `setting`: its name there. `limits`: the first that holds of an
    accelerator counts. `paging`, `pools`, `cells`: how it deals out its cache; all None where every cache is a tensor
    of its own. `context`, `process`, `communicators`, `graphs`: fixed amounts in bytes that were measured: outside of
    its share, of every rank, of each tensor-parallel rank beyond that, and of captured graphs on a single rank and on
    each of many. `logits_bytes`: all copies of one logit in the sampler. `state_bytes`: an element of every state where
    the config does not say, `recurrent_bytes`: of the recurrence's own alone; None: as wide as activations. `dropped`:
    architectures that it does not run, with the last version that did, or nothing; `encoder_decoders`: families of
    those that it runs; None: all.
    `kv_cache`: what it can hold keys and values in besides the activations' type: its own word, and the precision;
    `kv_cache_source`: where that is listed; `own_kv_cache`: what it takes where nobody says, nothing: the activations'
    type.
    `gguf`: it loads such files as they are; `dequantizes_gguf`: it turns them into 16 bits when it loads them.
    `vendors`: whose accelerators it runs on, (): no limit is known; `backends`: of accelerators of this kind, whose it
    runs on alone, with `backends_source`. `formats`: prefixes of precisions that it
    loads, None: nothing is known against any; `peaks`: the peak that an accelerator must have for one; `too_old`:
    generations that have no kernels for one. `context_steps`: its default context by all accelerators' memory: (bytes
    from, tokens), the most first.
    `integer_products`: peaks of which the first that an accelerator has multiplies quantised weights; (): they are
    expanded.
    `mixes_prompts`: a pass takes prompts and tokens that decode; `chunks_prompts`: it may take a part of a prompt;
    `reserves_answers`: a request is let in only when its whole answer fits. `split`: how a pipeline deals out layers.
    `vocabulary_multiple`: rows of a table are filled up to it.
    `longer`: where it refuses a context that the model was not made for, `longer_variable`: with which it does not.
    `passes_in`: the engine that it starts. `older`: earlier versions by name.

    What its own way of running a model costs: `graphs_in_share`, `context_in_share`: whether captured graphs and the
    accelerator's context are counted against its share; `each_peer`: of communicators for each tensor rank beyond the
    second; `graph_layers`: of captured graphs for each layer, and more for one with experts. `streams`: tensors as wide
    as the hidden state that are alive inside a layer. `own_heads`, `loading_heads`: formats of weights in which a tied
    head is a tensor of its own, always or while weights are loaded; `scratch`: those whose kernels keep room for the
    largest matrix in 16 bits; `absorbed`: projections of latent attention of which a copy in 16 bits stays where they
    are quantised. `workspace`: what its libraries allocate once on accelerators of these generations ("": others);
    `autotuner`: a buffer beside the layer that is compiled. `sampler_rows`: of logits in fp32 that the sampler keeps;
    `sampled_streams`: hidden states of the requests that are sampled. `keeps_expert_workspace`: experts' inputs and
    outputs stay allocated between layers, but for weights in `bare_experts`.
    `rounds_tensors`: each weight is allocated by itself, so that the allocator rounds it up; `fused_names`: projections
    that are one tensor;
    `rotary_tables`: cosines and sines of all positions are kept.
    """

    name: str
    version: str
    source: str
    memory_share: float | None
    limits: tuple[BatchLimit, ...]
    paging: Paging | None
    process: int
    communicators: int
    graphs: tuple[int, int]
    overhead_source: str
    logits_bytes: float
    state_bytes: float | None = None
    recurrent_bytes: float | None = None
    context: int = 0
    dropped: Mapping[str, str] = {}
    encoder_decoders: tuple[str, ...] | None = None
    kv_cache: Mapping[str, str] = {}
    kv_cache_source: str = ""
    own_kv_cache: str = ""
    share_of: ShareOf = "total"
    setting: str = "gpu_memory_utilization"
    reserve: Reserve | None = None
    pools: Pools | None = None
    cells: Cells | None = None
    gguf: bool = False
    vendors: tuple[str, ...] = ()
    backends: Mapping[str, tuple[str, ...]] = {}
    backends_source: str = ""
    dequantizes_gguf: bool = False
    formats: tuple[str, ...] | None = None
    formats_source: str = ""
    peaks: Mapping[str, str] = {}
    too_old: Mapping[str, tuple[str, ...]] = {}
    too_old_source: str = ""
    context_steps: tuple[tuple[int, int], ...] = ()
    split: str = "even"
    vocabulary_multiple: int = 1
    longer: str = ""
    longer_variable: str = ""
    passes_in: str = ""
    older: Mapping[str, "ServingRuntime"] = {}
    integer_products: tuple[str, ...] = ()
    mixes_prompts: bool = True
    chunks_prompts: bool = True
    reserves_answers: bool = False
    graphs_in_share: bool = True
    context_in_share: bool = False
    each_peer: int = 0
    streams: int = 3
    graph_layers: tuple[int, int] = (0, 0)
    own_heads: tuple[str, ...] = ()
    loading_heads: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    absorbed: tuple[str, ...] = ()
    workspace: Mapping[str, int] = {}
    autotuner: int = 0
    sampler_rows: int = 0
    sampled_streams: int = 0
    keeps_expert_workspace: bool = False
    bare_experts: tuple[str, ...] = ()
    rounds_tensors: bool = False
    fused_names: tuple[tuple[str, ...], ...] = ()
    rotary_tables: bool = False
    listed: int = LAST_LISTED
    """Its place in lists of engines, the most common first; those of one place by name."""
    aliases: tuple[str, ...] = ()
    """How else people write it, in lower-case letters and digits alone."""
    settings: tuple[str, ...] = ()
    """Options of ours that not every engine has, and this one does."""
    heads_rule: str = ""
    """Where it says that tensor ranks must divide the heads."""
    blocks_rule: str = ""
    """Where it says that a rank's part of a matrix must be whole blocks of quantised weights."""
    no_metal: tuple[str, ...] = ()
    """Formats of weights for which it has no kernels on Apple's accelerators."""
    no_metal_source: str = ""
    check_cache: Callable[["ServingRuntime", Model, str, Accelerator], None] | None = None
    """Raises InvalidPlan where it cannot hold keys and values in a precision on an accelerator."""
    launch: Callable[[Start], str] | None = None
    """Writes the command that starts it."""
    copies_in_server: Literal["", "one-node", "all-nodes"] = ""
    """One server has several copies of the model, as many as a node has room for, or all of the plan."""
    weights_note: Callable[[str, Accelerator], str] | None = None
    """What a user should know of weights in a precision on an accelerator; "" where there is nothing to say."""
    loads_files: bool = False
    """The name of the weights' file says how they are stored."""
    at_load: Mapping[str, str] = {}
    """Precisions that it makes of 16-bit weights while it loads them, and how it is told."""
    dtype_flag: str = ""
    """Its option that turns the weights into another type of 16 or 32 bits."""
    faster_weights: tuple[str, ...] = ("fp8", "awq")
    """Precisions of weights that are suggested where it is too slow."""
    narrow_cache: str = ""
    """A precision of the cache that a search tries beside the engine's own."""
    partition_variable: str = ""
    """The variable of its environment that says how many layers each pipeline stage has."""
    reads_faster_cache: bool = False
    """A cache in fp8 makes it faster."""

    @property
    def queues(self) -> bool:
        """Whether requests wait that find no room: the engine deals out its cache as they come."""
        return self.paging is not None or self.pools is not None


SERVING_RUNTIMES: Registry[ServingRuntime] = Registry("serving engine")
