"""Buffers of ExLlama beside weights and cache: activations of the widest module of a layer with its largest matrix in
16 bits, one layer of a quantised cache in 16 bits, and RoPE tables.

ExLlamaV2 allocates the first when it loads (exllamav2/mlp.py, exllamav2/attn.py and exllamav2/linear.py:
scratch_space_fixed); ExLlamaV3 in each pass (exllamav3/modules/quant/exl3.py: reconstruct_hgemm).
"""

from tonnage.architectures import Model
from tonnage.estimate.serving.forward_peak import Limits
from tonnage.estimate.serving.weights.storage import OUTSIDE, Storage, WeightPlace
from tonnage.estimate.step.rank import Stage
from tonnage.formulas import engines as e
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import Number, minimum
from tonnage.kernel.term import Term
from tonnage.ops import MLP, Attention, Head, MoE, Op, TokenCache
from tonnage.runtimes import Cells, ServingRuntime
from tonnage.spec import ServingPlan

WIDTH = 2  # bytes of an activation: ExLlama computes in fp16
LOGITS = 6  # bytes of all copies of a logit: fp16, and fp32 for the sampler
NARROW = 1.9  # bytes of a weight below which it is quantised


def layer_buffers(
    model: Model, engine: ServingRuntime, plan: ServingPlan, stage: Stage, limits: Limits, stored: Storage, cells: Cells
) -> Term:
    """Bytes of all of them on one rank of a stage."""
    t = plan.tensor_parallel_size
    moments: list[Term] = []
    seen: dict[tuple[str, Number, Number], None] = {}
    for block, _ in stage.layers:
        place = stored.blocks.get(block, (OUTSIDE,))[0]
        for op in block.ops:
            name, numbers = _inside(op, t)
            if numbers:
                seen[name, numbers, _largest(op, place, stored, cells) / t] = None
    for name, numbers, matrix in seen:
        moments.append(_moment(name, model.hidden_size + numbers, limits.tokens, matrix, engine.source))
    head = next((op for op in stage.ops if isinstance(op, Head)), None)
    if head is not None and stage.is_last:
        sampled = minimum(plan.concurrency, limits.requests)
        logits = Term.of("logits", g.sampler_bytes, V=head.vocab_size, R=sampled, w=LOGITS, source=engine.source)
        matrix = max((_largest(op, OUTSIDE, stored, cells) for op in stage.after), default=0) / t
        moments.append(Term.sum("head", logits, *_matrix(matrix, engine.source), unit="bytes"))
    parts = [Term.max("peak of a forward pass", *moments)] if moments else []
    held = plan.concurrency * e.cells(s=plan.context, B=cells.multiple)
    if plan.kv_cache and plan.kv_cache != engine.own_kv_cache:
        numbers = max((_cached(op) for block, _ in stage.layers for op in block.ops), default=0) / t
        parts.append(
            Term.of(
                "one layer of the cache in 16 bits", g.batch_bytes, source=engine.source, x=numbers, w=WIDTH, T=held
            )
        )
    width = max((op.head_dim for block, _ in stage.layers for op in block.ops if isinstance(op, Attention)), default=0)
    if cells.rotary and width:
        parts.append(
            Term.of("RoPE tables", g.rotary_table_bytes, source=engine.source, s=plan.context, x=2 * width, w=2)
        )
    return Term.sum("activations", *parts, unit="bytes")


def _inside(op: Op, t: Number) -> tuple[str, Number]:
    """Numbers of a token inside a module beside the residual stream: its normalised input, and what it makes of it."""
    if isinstance(op, MLP):
        return "feed-forward layer", op.hidden_size + 2 * max(op.intermediate_size / t, op.hidden_size)
    if isinstance(op, MoE):
        return "experts", 2 * op.hidden_size + 2 * op.intermediate_size / t + op.num_experts
    if isinstance(op, Attention):
        queries = op.heads * op.head_dim
        return "attention", max(queries, op.hidden_size) + (2 * queries + 2 * op.kv_heads * op.head_dim) / t
    widest = max((weight.rows for weight in op.weights() if weight.linear), default=0)
    return "other modules", 2 * widest


def _largest(op: Op, place: WeightPlace, stored: Storage, cells: Cells) -> int:
    """Weights of the largest quantised matrix of an op, as far as they are unpacked at once."""
    matrices = [weight for weight in op.weights() if weight.linear or weight.part in ("head", "embedding")]
    packed = [
        min(weight.rows, cells.unpacked_columns or weight.rows) * weight.columns
        for weight in matrices
        if weight.columns > 1 and stored.bytes_of(weight, place) < NARROW * weight.num_parameters
    ]
    largest = max(packed, default=0)
    return min(largest, cells.unpacked_weights or largest)


def _cached(op: Op) -> int:
    return sum(cache.elements for cache in op.caches() if isinstance(cache, TokenCache))


def _matrix(weights: Number, source: str) -> list[Term]:
    if not weights:
        return []
    return [Term.of("largest matrix in 16 bits", f.fixed_bytes, source=source, basis="rule", M=WIDTH * weights)]


def _moment(name: str, numbers: Number, tokens: int, matrix: Number, source: str) -> Term:
    held = Term.of("activations", g.batch_bytes, source=source, x=numbers, w=WIDTH, T=tokens)
    return Term.sum(name, held, *_matrix(matrix, source), unit="bytes")
