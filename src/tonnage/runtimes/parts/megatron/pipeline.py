"""Pipelines of Megatron-core: which layers a stage has, what is in flight, and what the schedule's own variables still
name.

Sources: Megatron-core, megatron/core/pipeline_parallel/schedules.py; megatron/core/transformer/transformer_block.py,
get_num_layers_to_build; megatron/core/transformer/pipeline_parallel_layer_layout.py.
"""

import re

from msgspec import Struct

from tonnage.architectures import Block
from tonnage.kernel.errors import InvalidPlan
from tonnage.ops import Attention, LatentAttention, MoE
from tonnage.spec import TrainingPlan
from tonnage.tape import TENSOR, TOKEN, Extent


class Chunk(Struct, frozen=True):
    """What one virtual stage of a rank runs: `first` and `layers`, its decoder layers; prediction layers; embedding,
    loss.
    """

    first: int
    layers: int
    draft_layers: int = 0
    embedding: bool = False
    loss: bool = False


class Stale(Struct, frozen=True):
    """Shards of the stream that the schedule names beside the micro-batch at work, in its forward and in its
    backward.
    """

    forward: int
    backward: int


def stale(rank: int, stages: int, virtual: int = 1, overlap: bool = True) -> Stale:
    """1F1B: a stage that is not the last still names the gradient it received; one that is not the first the gradient
    that it sent and, in forward, the input before. In backward the gradient it received is the one in use, which the
    layer's moment has.

    Interleaved schedules with overlapped communication hold one more input and one more gradient.
    """
    if stages == 1:
        return Stale(0, 0)
    more = 2 if virtual > 1 and overlap else 0
    return Stale((0 if rank == 0 else 2) + (0 if rank == stages - 1 else 1) + more, (0 if rank == 0 else 1) + more)


def chunks_in_flight(
    rank: int, stages: int, microbatches: int, virtual: int = 1, group: int | None = None, overlap_experts: bool = False
) -> int:
    """Forward passes of a chunk that wait for their backward at the peak; a chunk is what one virtual stage of the
    rank runs.
    """
    if stages == 1:
        return 1
    if virtual == 1:
        return min(stages - rank, microbatches)
    return min(_warmup(rank, stages, virtual, group, overlap_experts) + 1, microbatches * virtual)


def passes_in_flight(
    rank: int, stages: int, microbatches: int, virtual: int = 1, group: int | None = None, overlap_experts: bool = False
) -> tuple[int, ...]:
    """How many of the passes in flight each chunk of the rank has: chunks take turns, `group` micro-batches at a
    time.
    """
    counts = [0] * virtual
    size = group or stages
    for index in range(chunks_in_flight(rank, stages, microbatches, virtual, group, overlap_experts)):
        counts[index // size % virtual] += 1
    return tuple(counts)


def _warmup(rank: int, stages: int, virtual: int, group: int | None, overlap_experts: bool) -> int:
    return 2 * (stages - rank - 1) + (virtual - 1) * (group or stages) + (1 if overlap_experts else 0)


def even_layout(
    layers: int,
    stages: int,
    virtual: int = 1,
    first: int | None = None,
    last: int | None = None,
    with_embedding: bool = False,
    with_loss: bool = False,
) -> tuple[tuple[Chunk, ...], ...]:
    """Chunks of each rank. `first`, `last`: --decoder-first/last-pipeline-num-layers, over all chunks of that rank;
    `with_embedding`,
    `with_loss`: --account-for-embedding/loss-in-pipeline-split, which count as a layer each."""
    if (with_embedding or with_loss) and (first is not None or last is not None):
        raise InvalidPlan("Megatron takes account_for_* or sizes of the first and last stage, not both.")
    counted = layers + with_embedding + with_loss
    left, others = counted - (first or 0) - (last or 0), stages - (first is not None) - (last is not None)
    if others and left % others:
        raise InvalidPlan(
            "{left} layers cannot be split evenly over {others} pipeline stages.", left=left, others=others
        )
    per_stage = left // others if others else 0
    ranks = [per_stage] * stages
    ranks[0] = first if first is not None else per_stage
    ranks[-1] = last if last is not None else ranks[-1]
    if any(count % virtual for count in ranks):
        raise InvalidPlan(
            "layers of a pipeline stage must be a multiple of {@virtual_pipeline_size} {virtual}. Got {ranks}.",
            virtual=virtual,
            ranks=ranks,
        )
    rows: list[list[Chunk]] = [[] for _ in range(stages)]
    start = 0
    for index in range(stages * virtual):
        rank, is_first, is_last = index % stages, index == 0, index == stages * virtual - 1
        count = ranks[rank] // virtual - (is_first and with_embedding) - (is_last and with_loss)
        rows[rank].append(Chunk(start, count, embedding=is_first, loss=is_last))
        start += count
    return tuple(tuple(row) for row in rows)


def parsed_layout(text: str, stages: int) -> tuple[tuple[Chunk, ...], ...]:
    """Chunks of each rank from --pipeline-model-parallel-layout: "Et*3|(tt|)*29,m|L": E embedding, t layer, m
    prediction, L loss.
    """
    parts = _expanded(text).split("|")
    if len(parts) % stages or not set("".join(parts)) <= set("EtmL"):
        raise InvalidPlan(
            "pipeline layout {text!r} must have a multiple of {stages} stages, of E, t, m and L.",
            text=text,
            stages=stages,
        )
    rows: list[list[Chunk]] = [[] for _ in range(stages)]
    start = 0
    for index, part in enumerate(parts):
        rows[index % stages].append(Chunk(start, part.count("t"), part.count("m"), "E" in part, "L" in part))
        start += part.count("t")
    return tuple(tuple(row) for row in rows)


def _expanded(text: str) -> str:
    text = text.replace(",", "").replace(" ", "")
    while match := re.search(r"\(([^()]*)\)\*(\d+)|([EtmL|])\*(\d+)", text):
        inner, times, one, again = match.groups()
        text = (
            text[: match.start()]
            + (inner * int(times) if inner is not None else one * int(again))
            + text[match.end() :]
        )
    return text


def against_overlap(plan: TrainingPlan) -> tuple[str, ...]:
    """The options of a plan as which Megatron-core refuses overlap_moe_expert_parallel_comm (transformer_config.py,
    __post_init__): it recomputes no whole layers, and cuts the stages of a pipeline into chunks.
    """
    against = {
        "recompute": plan.recompute == "full",
        "virtual_pipeline_size": plan.pipeline_parallel_size > 1 and plan.virtual_pipeline_size == 1,
    }
    return tuple(name for name, refused in against.items() if refused)


# ---- What Megatron-core can move to the host from forward to backward.
#
# Source: Megatron-core 0.16 and newer, megatron/core/pipeline_parallel/fine_grained_activation_offload.py
# (--offload-modules).

SMALLEST = 1024 * 1024  # tensors of fewer elements stay (min_offloaded_tensor_size)
MODULES = ("attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act")
Tensors = tuple[tuple[float, Extent], ...]


def offloadable(block: Block, modules: tuple[str, ...]) -> Tensors:
    """Numbers a unit and extent of each tensor that these modules of one layer send away.

    The last group of each module on a rank stays, and one group is on its way in either direction.
    """
    from tonnage.tape.megatron import CUT_ROW, ROW

    tensors: list[tuple[float, Extent]] = []
    for op in block.ops:
        if isinstance(op, Attention | LatentAttention):
            tensors += _of_attention(op, modules)
        if isinstance(op, MoE):
            width = op.latent_size or op.hidden_size
            tensors += [(op.hidden_size, TOKEN)] if "mlp_norm" in modules else []
            tensors += [(width, ROW)] if "expert_fc1" in modules else []
            tensors += [(op.intermediate_size * (2 if op.gated else 1), CUT_ROW)] if "moe_act" in modules else []
    return tuple(tensors)


def _of_attention(op: Attention | LatentAttention, modules: tuple[str, ...]) -> list[tuple[float, Extent]]:
    if isinstance(op, Attention):
        inner = (op.query_width, op.key_width, op.value_width)
        out = op.out_width
    else:
        keys = op.heads * (op.qk_nope_head_dim + op.qk_rope_head_dim)
        out = op.heads * op.v_head_dim
        inner = (keys, keys, out)
    tensors: list[tuple[float, Extent]] = [
        (op.hidden_size, TOKEN) for name in ("attn_norm", "qkv_linear") if name in modules
    ]
    if "core_attn" in modules:
        tensors += [(size, TENSOR) for size in inner]
        tensors += [(out, TENSOR)] if "attn_proj" in modules else []
    return tensors
