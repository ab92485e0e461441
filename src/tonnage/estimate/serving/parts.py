"""Parts of a replica's memory: llama.cpp's compute and host buffers, and adapters that an engine holds."""

from functools import lru_cache

from tonnage.architectures import Block, Model
from tonnage.estimate.serving.token_batch import Limits
from tonnage.estimate.step.rank import Stage, layer_count
from tonnage.formulas import engines as e
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import MLP, Attention, Head, LatentAttention, MoE
from tonnage.runtimes import Cells
from tonnage.spec import ServingPlan

ROWS_CUT = (
    "o_proj",
    "out_proj",
    "down_proj",
    "dense_4h_to_h",
    "c_proj",
    "wo",
    "w2",
    "fc2",
)  # whose inputs tensor ranks share


def compute_buffer(model: Model, plan: ServingPlan, stage: Stage, limits: Limits, cells: Cells) -> Term:
    """The largest moment of a graph over one micro-batch: attention, a feed-forward layer, or the head."""
    h, T = model.hidden_size, limits.tokens
    s = _seen(plan, cells)
    moments = []
    heads = max((_heads(block) for block, _ in stage.layers), default=0)
    if heads and cells.flash:
        moments.append(Term.of("mask of attention", e.mask_buffer_bytes, s=s, h=h, T=T))
    elif heads:
        moments.append(Term.of("scores of attention", e.scores_buffer_bytes, a=heads, s=s, h=h, T=T))
    inner = max((_inner(block) for block, _ in stage.layers), default=0)
    moments.append(
        Term.of("feed-forward layer", e.layer_buffer_bytes, x=inner, s=s if heads and cells.flash else 0, h=h, T=T)
    )
    head = next((op for op in stage.ops if isinstance(op, Head)), None)
    if head is not None and stage.is_last:
        moments.append(Term.of("logits", e.head_buffer_bytes, V=head.vocab_size, h=h, T=T))
    return Term.max("activations", *moments)


def _seen(plan: ServingPlan, cells: Cells) -> Number:
    """Cells that attention runs over."""
    return e.cells(s=plan.context, B=cells.multiple) * (plan.concurrency if cells.unified else 1)


def host_buffers(model: Model, plan: ServingPlan, limits: Limits, cells: Cells) -> tuple[Term, ...]:
    """What llama.cpp keeps in host memory beside weights: inputs of a batch, and outputs."""
    h, T = model.hidden_size, limits.tokens
    return (
        Term.of("inputs of a batch", e.host_input_bytes, s=_seen(plan, cells), h=h, T=T),
        Term.of("outputs", e.output_buffer_bytes, V=model.vocab_size, h=h, R=plan.concurrency),
    )


@lru_cache(maxsize=1024)
def _heads(block: Block) -> int:
    return max((op.heads for op in block.ops if isinstance(op, Attention | LatentAttention)), default=0)


@lru_cache(maxsize=1024)
def _inner(block: Block) -> int:
    """Numbers of a token inside a feed-forward layer: gate and value, or of chosen experts also their outputs."""
    widest = 0
    for op in block.ops:
        if isinstance(op, MLP):
            widest = max(widest, op.intermediate_size * (1 + op.gated))
        elif isinstance(op, MoE):
            inner = op.intermediate_size * (1 + op.gated)
            widest = max(widest, op.top_k * max(inner, op.intermediate_size + (op.latent_size or op.hidden_size)))
    return widest


def adapters(plan: ServingPlan, stage: Stage, t: Number, width: float) -> Term:
    """Low-rank pairs beside every matrix of the layers but routed experts; tensor ranks share the side that they
    share of the matrix.
    """
    parts = [
        Term.product(
            Message("{block}s", block=block.name),
            "bytes",
            layer_count(count),
            Term.of(
                "one layer",
                e.adapter_bytes,
                A=plan.adapters.lora_adapters,
                rank=plan.adapters.lora_rank,
                x=_adapted(block, t),
                w=width,
            ),
        )
        for block, count in stage.layers
    ]
    return Term.sum("adapters", *parts, unit="bytes")


def _adapted(block: Block, t: Number) -> Number:
    """Numbers that the matrices of a layer take and give, on one of t tensor ranks."""
    total: Number = 0
    for weight in block.weights():
        if not weight.quantizable or weight.split == "expert":
            continue
        cut = t if weight.split in ("tensor", "kv") else 1
        rows_whole = weight.name.rpartition(".")[0].endswith(ROWS_CUT) or weight.name.endswith(ROWS_CUT)
        total += weight.columns / cut + weight.rows if rows_whole else weight.columns + weight.rows / cut
    return total
