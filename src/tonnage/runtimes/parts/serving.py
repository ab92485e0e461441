"""What an engine decides about memory in serving: batches, caches, fixed amounts, formats, what it refuses. Data, by
version.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.kernel.errors import UnknownName, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import Registry
from tonnage.kernel.units import KIB, MIB
from tonnage.runtimes.parts.base import LAST_LISTED
from tonnage.runtimes.parts.host_experts import HostExperts
from tonnage.runtimes.parts.plugins import Plugin
from tonnage.runtimes.parts.start import Roles, Start
from tonnage.spec import Accelerator


class Paging(Struct, frozen=True, kw_only=True):
    """How an engine deals out its KV cache in blocks."""

    #: Tokens of a block; blocks that hold a recurrent state are larger.
    block_tokens: int
    #: Forward passes in flight beyond one for each pipeline stage; a window holds their tokens besides its own.
    spare_batches: int
    #: Blocks that a recurrent state takes in a model that also has attention, whose prefixes are cached; one where all
    #: is state.
    state_copies: int
    #: Layers form groups as large as the commonest kind where it has less than so many times the layers of the rarest,
    #: else as large as the rarest.
    group_tolerance: float
    #: Whether kinds of layers share equal blocks; else each has a pool of its own.
    shares_blocks: bool = True
    #: Whether a window waits for the tokens of one forward pass, however many are in flight.
    one_batch: bool = False
    #: Whether a layer with a window gives back what it no longer sees; else it keeps every token.
    windows: bool = True


class BatchLimit(Struct, frozen=True, kw_only=True):
    """What one forward pass takes at most on some accelerators."""

    #: Tokens of a forward pass; 0: as the plan says.
    tokens: int
    #: Requests that run at once; 0: as the plan says.
    requests: int
    #: Holds on accelerators with at least so many bytes.
    memory_bytes: int = 0
    #: Holds on accelerators of this kind alone.
    kind: str = ""
    #: Holds on accelerators with this in their names alone.
    named: str = ""
    #: Holds on no accelerator with one of these in its name.
    but_named: tuple[str, ...] = ()
    #: Whether each rank has so much.
    each_rank: bool = False
    #: Whether a pass is the prompt of one request.
    one_prompt: bool = False
    #: Whether a pass has room for a whole context.
    whole_context: bool = False
    #: Holds for contexts of at most so many tokens; 0: for all.
    up_to_context: int = 0


class Step(Struct, frozen=True):
    """Defaults of SGLang on accelerators up to a size."""

    #: MiB of memory that the accelerators have less than; 0: all others.
    below_mib: int
    #: Tokens of a chunk of a prompt.
    chunk: int
    #: Largest batch whose decode step is captured, with up to three tensor ranks.
    few: int
    #: The same from four tensor ranks on.
    many: int


class Reserve(Struct, frozen=True, kw_only=True):
    """How SGLang finds the static share of the memory where nobody sets it: by tensor ranks, else what is left beside
    its reserve for activations and graphs.
    """

    #: Defaults by the size of the accelerator.
    steps: tuple[Step, ...]
    #: (Tensor ranks from, share), the most first.
    by_ranks: tuple[tuple[int, float], ...] = ()
    #: MiB of the largest accelerators that `by_ranks` is for; 0: all.
    up_to_mib: int = 0
    #: MiB that are reserved on larger ones; 0: computed.
    beyond_mib: int = 0
    #: MiB of each captured size of a prompt.
    prefill_graph_mib: int = 0
    #: MiB of all of them in a model with latent attention.
    latent_graph_mib: int = 0


class Pools(Struct, frozen=True, kw_only=True):
    """A KV cache in pools of single tokens: of full attention, of windows, of recurrent states."""

    #: Tokens of a page.
    page_tokens: int
    #: Tokens of the windows' pool over those of full attention; 0: a window is kept like all else.
    window_share: float
    #: Share of the bytes that the pool of states takes; 0: it has as many slots as requests may run.
    state_share: float
    #: Slots of a request in the pool of states.
    state_slots: int
    #: Further slots of a request whose architecture is in `tracked`.
    tracking_slots: int = 0
    #: Architectures with `tracking_slots`.
    tracked: frozenset[str] = frozenset()
    #: Tokens of a page where layers keep compressed keys beside a window.
    compressed_page_tokens: int = 256


class Eager(Struct, frozen=True, kw_only=True):
    """What an engine does in a pass that asks for each operation by itself, as its model's source is written.

    Numbers are operations that the host asks for: of an RMSNorm, of a LayerNorm; around attention's core besides its
    projections; of an activation and what is multiplied with it; of the residual's sum; of a router.
    """

    rms_norm: int
    layer_norm: int
    around_core: int
    activation: int
    residual: int
    router: int
    #: Of one expert in a loop over experts; 0: experts are grouped.
    expert: int
    #: Around grouped experts.
    grouped: int
    #: Whether the loop takes experts that no token chose as well.
    loops_over_all: bool = False
    #: Architectures whose loop passes over experts that no token chose, however the others do.
    hit_alone: frozenset[str] = frozenset()
    #: Whether keys and values are written out once for each query head before every attention.
    repeats_heads: bool = False


class Cells(Struct, frozen=True, kw_only=True):
    """A KV cache of cells that is allocated whole: for every request its full length."""

    #: Lengths are multiples of so many tokens.
    multiple: int
    #: Whether a window keeps its own tokens and those of a batch; else it is as long as the context.
    windows: bool
    #: Whether attention makes no matrix of scores.
    flash: bool
    #: Whether the token table stays in host memory.
    host_table: bool
    #: Whether several accelerators share the layers, not the matrices.
    by_layers: bool
    #: Whether attention sees the cells of all requests.
    unified: bool = False
    #: Whether buffers are those of a layer's widest module and largest matrix in 16 bits, and one layer of a quantised
    #: cache is unpacked to 16 bits (ExLlama); else they are llama.cpp's.
    unpacks: bool = False
    #: Most weights, and most output columns, of a matrix that are unpacked at once; 0: no limit.
    unpacked_weights: int = 0
    unpacked_columns: int = 0
    #: Whether RoPE tables of all positions of a request stay in memory, each head's width for cosines and for sines.
    rotary: bool = False


# What the part of the accelerator's memory that an engine is told is a part of: of all of it; of what is free before
# the model is loaded,
# for weights and cache; of what is free once the weights are loaded, for the cache alone, and activations are in the
# rest; of what is free after it ran once, for the cache alone. "nothing": it allocates what it needs.
ShareOf = Literal["total", "static", "loaded", "free", "nothing"]


# Bytes by generation. PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp: :4096:8 from Hopper on, else :4096:2:16:8 KiB.
CUBLAS_WORKSPACE: Mapping[str, int] = {"hopper": 32 * MIB, "blackwell": 32 * MIB, "": (4096 * 2 + 16 * 8) * KIB}


Purpose = Literal["generate", "embed", "rerank", "transcribe"]


class ServingRuntime(Struct, frozen=True, kw_only=True):
    """How an engine spends memory in serving. Fixed amounts are measured, in bytes."""

    name: str
    version: str
    source: str
    #: The part of `share_of` that the engine takes where nobody says; None: it has no such setting, or `reserve` says
    #: it.
    memory_share: float | None
    #: What a pass takes at most; the first that holds of an accelerator counts.
    limits: tuple[BatchLimit, ...]
    #: What frameworks of reinforcement learning call it where they generate with it; empty: they do not.
    rollout: str = ""
    #: Its KV cache in blocks; None: it has another form.
    paging: Paging | None
    #: Bytes of every rank.
    process: int
    #: Bytes of each tensor-parallel rank beyond that.
    communicators: int
    #: Bytes of CUDA graphs on a single rank, and on each of many.
    graphs: tuple[int, int]
    overhead_source: str
    #: Bytes of all copies of one logit in the sampler.
    logits_bytes: float
    #: Bytes of an element of every recurrent state where the config does not say; None: as wide as activations.
    state_bytes: float | None = None
    #: Bytes of an element of the recurrence's own state; None: as `state_bytes`.
    recurrent_bytes: float | None = None
    #: Bytes of the CUDA context, outside of the engine's share.
    context: int = 0
    #: Architectures that it does not run, with the last version that did, or "".
    dropped: Mapping[str, str] = {}
    #: Families of encoder-decoders that it runs; None: all.
    encoder_decoders: tuple[str, ...] | None = None
    #: Types of the KV cache besides that of the activations: its own word, and the precision.
    kv_cache: Mapping[str, str] = {}
    kv_cache_source: str = ""
    #: Its type of the KV cache where nobody says; "": that of the activations.
    own_kv_cache: str = ""
    #: What `memory_share` is a part of.
    share_of: ShareOf = "total"
    #: The engine's name of `memory_share`.
    setting: str = "gpu_memory_utilization"
    #: What models it serves are for.
    serves: tuple[Purpose, ...] = ("generate",)
    #: What its server keeps documents from the accelerator with; "" where nobody measured it.
    front_end: str = ""
    #: How it runs an encoder, by its rates in estimate/serving_time/encoding.toml.
    encoding: str = "fused"
    #: Documents of a pass where tokens do not bound it, or windows of sound at once.
    documents: int = 32
    #: Windows of one file that it takes at once where it is asked to, in its own examples; 1: it takes one.
    batched_windows: int = 1
    #: Whose rates its speech has in encoding.toml; "": those of its own passes.
    speech: str = ""
    #: Seconds of sound between the beginnings of two windows of a file: less than 30 where windows overlap.
    window_advance: float = 30
    #: Whether scores of the attention over sound stay on the chip ("fused").
    speech_attention: str = ""
    #: Sequences that it keeps for each window of sound unless told otherwise (beam search), and who says so.
    beams: int = 1
    beams_source: str = ""
    #: How it finds its share where nobody says; None: by `memory_share`.
    reserve: Reserve | None = None
    #: Its KV cache in pools; None: it has another form.
    pools: Pools | None = None
    #: Its KV cache in cells. Without `paging`, `pools` and `cells` every cache is a tensor of its own.
    cells: Cells | None = None
    #: Whether it loads GGUF files as they are.
    gguf: bool = False
    #: Whether it loads MLX files as they are.
    mlx: bool = False
    #: Vendors whose accelerators it runs on; (): no limit is known.
    vendors: tuple[str, ...] = ()
    #: By kind of accelerator the vendors that it runs on alone.
    backends: Mapping[str, tuple[str, ...]] = {}
    backends_source: str = ""
    #: Whether it turns GGUF files into 16 bits when it loads them.
    dequantizes_gguf: bool = False
    #: Prefixes of precisions of weights that it loads; None: nothing is known against any.
    formats: tuple[str, ...] | None = None
    formats_source: str = ""
    #: What its users call a format, where others mean another one by that word: its word, and our name.
    weight_words: Mapping[str, str] = {}
    #: By precision of weights the peak that an accelerator must have for it.
    peaks: Mapping[str, str] = {}
    #: By precision of weights the generations that have no kernels for it.
    too_old: Mapping[str, tuple[str, ...]] = {}
    too_old_source: str = ""
    #: Packages of others with which it runs on accelerators that it has no kernels for.
    plugins: tuple[Plugin, ...] = ()
    #: Its default context by the memory of all accelerators: (bytes from, tokens), the most first.
    context_steps: tuple[tuple[int, int], ...] = ()
    #: How a pipeline deals out layers.
    split: str = "even"
    #: Rows of the vocabulary's tables are filled up to a multiple of it.
    vocabulary_multiple: int = 1
    #: Where it refuses a context that the model was not made for; "": it does not.
    longer: str = ""
    #: The environment variable with which it does not refuse it.
    longer_variable: str = ""
    #: The engine that it starts; "": it runs models itself.
    passes_in: str = ""
    #: Earlier versions, by name.
    older: Mapping[str, "ServingRuntime"] = {}
    #: Peaks of which the first that an accelerator has multiplies quantised weights; (): they are expanded.
    integer_products: tuple[str, ...] = ()
    #: By type of quantised weights, operations of the ordinary lanes for each 32 products that are summed in integers.
    scale_operations: Mapping[str, int] = {}
    #: Vendors whose accelerators have its kernels for `integer_products`; (): all.
    integer_vendors: tuple[str, ...] = ()
    #: Rows up to which its kernels for vectors multiply quantised weights, which unpack none into tiles.
    vector_rows: int = 0
    #: Whether tiles of experts' products are as large as twice the mean number of their rows.
    fills_tiles: bool = False
    #: By vendor, rows up to which its kernels multiply quantised weights as they are stored; for more rows all weights
    #: are first written out in 16 bits.
    stored_rows: Mapping[str, int] = {}
    #: How its passes ask for operations one by one; None: kernels are fused as engines of serving fuse them.
    eager: Eager | None = None
    #: Rows that a product is filled up to on NVIDIA's tensor cores, and one whose weights of 4 bits are expanded.
    tile_rows: int = 1
    packed_tile_rows: int = 1
    #: Whether weights of 4 bits are expanded beside the products, by the lanes for integers (Marlin).
    expands_in_lanes: bool = False
    #: Formats of weights in which its kernels of routed experts are not optimised, and who says so.
    slow_experts: tuple[str, ...] = ()
    slow_experts_source: str = ""
    #: Whether products of quantised experts on data-centre Blackwell route, sort and sum by themselves: TensorRT-LLM's
    #: trtllm-gen kernels, which FlashInfer gives vLLM and SGLang (trtllm_fp4_block_scale_moe and its like for fp8).
    fuses_mixtures: bool = False
    #: Architectures whose experts it computes so unless told otherwise, beside all in 4 bits; None: all.
    fused_architectures: frozenset[str] | None = None
    #: Whether its times have rates of their own; else they are those of the engines of data centres on average.
    is_fitted: bool = True
    #: Times of which no published run of it says anything: their error band is as wide twice over.
    unmeasured: tuple[str, ...] = ()
    #: Whether prompts are evaluated up to their caches alone: layers that read an earlier layer's keys, and keep none,
    #: are computed for the last token of a prompt only.
    evaluates_caches: bool = False
    #: Whether a pass takes prompts beside requests that decode.
    mixes_prompts: bool = True
    #: Whether experts that all tokens share are computed beside the routed ones.
    shared_experts_beside: bool = False
    #: Products that make the inputs of a gated delta net, and kernels that copy parts of them.
    delta_net_inputs: int = 1
    delta_net_copies: int = 0
    #: Passes that are scheduled while another one runs.
    passes_ahead: int = 0
    #: Whether a pass may take a part of a prompt.
    chunks_prompts: bool = True
    #: Whether a request is let in only when its whole output fits.
    reserves_answers: bool = False
    #: Whether CUDA graphs count against the engine's share.
    graphs_in_share: bool = True
    #: Whether the CUDA context counts against the engine's share.
    context_in_share: bool = False
    #: Bytes of communicators for each tensor rank beyond the second.
    each_peer: int = 0
    #: Tensors as wide as the hidden states that are alive inside a layer.
    streams: int = 3
    #: Bytes of CUDA graphs for each layer, and more for one with experts.
    graph_layers: tuple[int, int] = (0, 0)
    #: Formats of weights in which a tied head is a tensor of its own.
    own_heads: tuple[str, ...] = ()
    #: Formats of weights in which it is one while weights are loaded.
    loading_heads: tuple[str, ...] = ()
    #: Formats of weights whose kernels keep room for the largest matrix in 16 bits.
    scratch: tuple[str, ...] = ()
    #: Projections of latent attention of which a copy in 16 bits stays where they are quantised.
    absorbed: tuple[str, ...] = ()
    #: Bytes that its libraries allocate once, by generation ("": others).
    workspace: Mapping[str, int] = {}
    #: Bytes beside the layer that is compiled.
    autotuner: int = 0
    #: Rows of logits in fp32 that the sampler keeps.
    sampler_rows: int = 0
    #: Hidden states that are held of each request that is sampled.
    sampled_streams: int = 0
    #: Pixels beyond which a frame of a video shrinks before the model's own processor, by the model's family.
    frame_pixels: Mapping[str, int] = {}
    #: Whether inputs and outputs of experts stay allocated between layers.
    keeps_expert_workspace: bool = False
    #: Formats of weights in which they do not.
    bare_experts: tuple[str, ...] = ()
    #: Whether each weight is allocated by itself, so that the allocator rounds it up.
    rounds_tensors: bool = False
    #: Projections that are one tensor.
    fused_names: tuple[tuple[str, ...], ...] = ()
    #: Whether RoPE tables of all positions are kept.
    rotary_tables: bool = False
    #: Its place in lists of engines, the most common first; those of one place by name.
    listed: int = LAST_LISTED
    #: How else people write it, in lower-case letters and digits alone.
    aliases: tuple[str, ...] = ()
    #: Options of ours that not every engine has, and this one does.
    settings: tuple[str, ...] = ()
    #: Where it says that it caches prefixes of prompts unless told otherwise; "": it does not.
    prefix_caching: str = ""
    #: Its ways to draft (speculative decoding).
    drafts: tuple[str, ...] = ()
    #: Where it says that tensor ranks must divide the heads.
    heads_rule: str = ""
    #: Where it says that a rank's part of a matrix must be whole blocks of quantised weights.
    blocks_rule: str = ""
    #: Formats of weights for which it has no kernels on Apple's accelerators.
    no_metal: tuple[str, ...] = ()
    no_metal_source: str = ""
    #: Raises InvalidPlan where it cannot hold keys and values in a precision on an accelerator.
    check_cache: Callable[["ServingRuntime", Model, str, Accelerator], None] | None = None
    #: Writes the command that starts it.
    launch: Callable[[Start], str] | None = None
    #: Slots of adapters have room for those of routed experts too.
    adapts_experts: bool = False
    #: Ranks of adapters for which it has slots; (): any.
    adapter_ranks: tuple[int, ...] = ()
    adapter_ranks_source: str = ""
    #: What carries KV caches from prefill servers to decode servers (disaggregated serving), its default first; empty:
    #: it starts no such servers.
    transfers: tuple[str, ...] = ()
    #: Where it says so.
    transfers_source: str = ""
    #: Writes the command of the router before such servers.
    router: Callable[[Roles], str] | None = None
    #: Where it keeps KV caches of prefixes beside the accelerators: host, disk, store.
    kv_tiers: tuple[str, ...] = ()
    kv_tiers_source: str = ""
    #: One server has several copies of the model, as many as a node has room for, or all of the plan.
    copies_in_server: Literal["", "one-node", "all-nodes"] = ""
    #: What a user should know of weights in a precision on an accelerator; "" where there is nothing to say.
    weights_note: Callable[[str, Accelerator], str] | None = None
    #: What a user sets for the kernels that the times are of on an accelerator, or should know of it; "": nothing.
    kernels_note: Callable[[Accelerator], str] | None = None
    #: The name of the weights' file says how they are stored.
    loads_files: bool = False
    #: Precisions that it makes of 16-bit weights while it loads them, and how it is told.
    at_load: Mapping[str, str] = {}
    #: Starts of formats that its command makes of a 16-bit checkpoint, as `launch` writes it.
    exports: tuple[str, ...] = ()
    #: Whether it holds 32-bit checkpoints in 16 bits, where nobody says otherwise.
    halves: bool = False
    #: Its option that turns the weights into another type of 16 or 32 bits.
    dtype_flag: str = ""
    #: Precisions of weights that are suggested where it does not fit, the mildest first.
    narrower_weights: tuple[str, ...] = ("fp8", "int4")
    #: Precisions of weights that are suggested where it is too slow.
    faster_weights: tuple[str, ...] = ("fp8", "awq")
    #: A precision of the cache that a search tries beside the engine's own.
    narrow_cache: str = ""
    #: The variable of its environment that says how many layers each pipeline stage has.
    partition_variable: str = ""
    #: A cache in fp8 makes it faster.
    reads_faster_cache: bool = False
    #: How it keeps routed experts in host memory; None: it does not.
    host_experts: HostExperts | None = None

    @property
    def queues(self) -> bool:
        """Whether requests wait that find no room: the engine deals out its cache as they come."""
        return self.paging is not None or self.pools is not None


SERVING_RUNTIMES: Registry[ServingRuntime] = Registry("serving engine")


# ---- Earlier versions of an engine: the newest known at or below the one that is asked for.


def at_version(newest: ServingRuntime, requested: str) -> ServingRuntime:
    """The rules of that version; the newest's where none is asked, and for what came after it.

    UnknownName for text that is no version, and for one that is older than all whose source was read. Between builds
    that were read (llama.cpp's "b4000") lie hundreds, of which nobody knows where the rules changed: an earlier one is
    asked for by its own number.
    """
    if not requested.strip() or requested == newest.version:
        return newest
    wanted = number_of(requested)
    known = known_versions(newest)
    if wanted is None:
        such = Message("such as {known}", known=known[0]) if known else "such as 1.0"
        raise UnknownName(
            Message(
                "version of {newest}: a number is needed, {such}. Got {asked}.",
                newest=newest.name,
                such=such,
                asked=shown(requested),
            )
        )
    if not newest.older:
        return newest
    is_build = len(wanted) == 1
    if is_build != (len(number_of(newest.version) or ()) == 1):
        raise UnknownName(
            Message(
                "version of {newest}: the rules known are those of {known}. Got {asked}.",
                newest=newest.name,
                known=listed(known),
                asked=shown(requested),
            )
        )
    fitting = [
        rules
        for rules in (newest, *newest.older.values())
        if _covers(rules, wanted, exact=is_build and rules is not newest)
    ]
    if not fitting:
        raise UnknownName(
            Message(
                "version of {newest}: the rules known are those of {known}; nothing is known of others. Got {asked}.",
                newest=newest.name,
                known=listed(known),
                asked=shown(requested),
            )
            if is_build
            else Message(
                "version of {newest}: the rules known are those of {known}; nothing is known of older ones. "
                "Got {asked}.",
                newest=newest.name,
                known=listed(known),
                asked=shown(requested),
            )
        )
    return max(fitting, key=lambda rules: number_of(rules.version) or ())


def _covers(rules: ServingRuntime, wanted: tuple[int, ...], exact: bool) -> bool:
    """Whether the rules hold at a version; "0.5" is the last of its kind, so that 0.5.9 is not too new for it."""
    since = (number_of(rules.version) or ())[: len(wanted)]
    return since == wanted if exact else since <= wanted


def known_versions(newest: ServingRuntime) -> list[str]:
    """Versions whose rules are known, the newest first; none where an engine's have no number."""
    return [rules.version.rpartition(" ")[2] for rules in (newest, *newest.older.values()) if number_of(rules.version)]


@lru_cache(maxsize=1024)
def number_of(text: str) -> tuple[int, ...] | None:
    """ "vLLM 0.6.4.post1", "V1 0.8.x", "v0.19", "llama.cpp b4000" -> (0, 6, 4), (0, 8), (0, 19), (4000,); None where
    no version stands.
    """
    match = re.search(r"(?<![\d.])(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    if match:
        return tuple(int(part) for part in match.groups() if part)
    build = re.search(r"(?<![\w.])b(\d{3,6})(?!\w)", text)
    return (int(build[1]),) if build else None
