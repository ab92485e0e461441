"""Weights of one rank of an engine as they lie in memory: as stored, what the allocator rounds up, and tables of
positions.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.serving.weights.storage import OUTSIDE, Storage, WeightPlace
from tonnage.estimate.step.rank import Group, Shares, Stage, layer_count, share
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import is_any
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import PRECISIONS
from tonnage.ops import Embedding, TokenCache, Weight
from tonnage.runtimes import ServingRuntime


def beside_weights(model: Model, engine: ServingRuntime, stage: Stage, stored: Storage, shares: Shares) -> list[Term]:
    """What holding the weights takes beyond their bytes."""
    terms = []
    if engine.rounds_tensors:
        parts = [
            _slack(op.weights(), stored, stored.ops.get(op, OUTSIDE), engine, shares)
            for op in stage.ops + stage.tower_ops
        ]
        for block, count in stage.layers + stage.towers:
            one = _slack(block.weights(), stored, stored.blocks.get(block, (OUTSIDE,))[0], engine, shares)
            if is_any(one.value > 0):
                parts.append(Term.product(Message("{block}s", block=block.name), "bytes", layer_count(count), one))
        rounded = [part for part in parts if is_any(part.value > 0)]
        if rounded:
            terms.append(Term.sum("rounded up by the allocator", *rounded, unit="bytes"))
    if engine.absorbed and (copies := _absorbed(stage, stored, engine, shares)):
        terms.append(Term.sum("absorbed MLA weights (W_UK, W_UV)", *copies, unit="bytes"))
    if model.tied and stage.is_last and any(name in stored.name for name in engine.own_heads):
        own = Term.of("head, not tied in this format", g.batch_bytes, x=model.hidden_size, w=2, T=model.vocab_size)
        terms.append(own)
    if any(name in stored.name for name in engine.scratch):
        widest = max(
            (weight.rows * weight.columns for block, _ in stage.layers for weight in block.weights() if weight.linear),
            default=0,
        )
        terms.append(
            Term.of(
                "room for the largest matrix in 16 bits",
                f.fixed_bytes,
                basis="rule",
                source=engine.source,
                M=2 * widest,
            )
        )
    if engine.rotary_tables:
        terms += [
            Term.of(
                "RoPE tables",
                g.rotary_table_bytes,
                s=positions,
                x=numbers,
                w=4 if model.dtype == "float32" else 2,
            )
            for positions, numbers in rotary_tables(model)
        ]
    return terms


ALL_WEIGHTS = "all of them"  # the child that has every weight where some stay in host memory
BESIDE = (
    "rounded up by the allocator",
    "absorbed MLA weights (W_UK, W_UV)",
    "head, not tied in this format",
    "room for the largest matrix in 16 bits",
    "RoPE tables",
)


def as_stored(weights: Term) -> Term:
    """The weights of a rank without what holding them takes beyond their bytes: what is read to load them, also of
    those that stay in host memory.
    """
    weights_total = next((term for term in weights.children if term.name == ALL_WEIGHTS), weights)
    more = sum(term.value for _, term in weights_total.walk() if term.name in BESIDE)
    return (
        Term.of("weights as stored", g.read_bytes, M=weights_total.value, U=more) if is_any(more > 0) else weights_total
    )


def _absorbed(stage: Stage, stored: Storage, engine: ServingRuntime, shares: Shares) -> list[Term]:
    """Copies in 16 bits of quantised projections that decoding multiplies into queries and outputs."""
    copies = []
    for block, count in stage.layers:
        place = stored.blocks.get(block, (OUTSIDE,))[0]
        for weight in block.weights():
            named = weight.name.removesuffix(".weight").endswith(engine.absorbed)
            if named and weight.linear and stored.bytes_of(weight, place) < 2 * weight.num_parameters:
                held = share(Group(weight.split, weight.heads, weight.num_parameters), shares).value
                one = Term.of(weight.name, g.batch_bytes, x=1, w=2, T=held)
                copies.append(Term.product(Message("{block}s", block=block.name), "bytes", layer_count(count), one))
    return copies


def _slack(
    weights: Iterable[Weight], stored: Storage, place: WeightPlace, engine: ServingRuntime, shares: Shares
) -> Term:
    """What each tensor of an op or a layer gets beyond its bytes; projections of one input are one tensor where the
    engine fuses them.
    """
    sizes: dict[str, Any] = {}
    for weight in weights:
        if not weight.num_parameters:  # the rows of no idle experts
            continue
        split = "tensor" if weight.split == "vocab" else weight.split
        part = share(Group(split, weight.heads, weight.num_parameters), shares).value / weight.num_parameters
        name = _fused(weight.name, engine)
        sizes[name] = sizes.get(name, 0) + _packed(weight, stored, place) * part
    terms = [Term.of(name, g.allocator_slack_bytes, M=size) for name, size in sizes.items()]
    return Term.sum("one layer", *(term for term in terms if is_any(term.value > 0)), unit="bytes")


def _packed(weight: Weight, stored: Storage, place: WeightPlace) -> float:
    """Bytes of the largest tensor that a weight is in: scales and zeros are tensors of their own."""
    size = stored.bytes_of(weight, place)
    if size >= 2 * weight.num_parameters or stored.name not in PRECISIONS:
        return size
    return min(size, weight.num_parameters * PRECISIONS[stored.name].element_bits / 8)


def _fused(name: str, engine: ServingRuntime) -> str:
    """The tensor that a weight is in: "q_proj", "k_proj" and "v_proj" of one module are one."""
    module, _, last = name.removesuffix(".weight").rpartition(".")
    for names in engine.fused_names:
        if last in names:
            return f"{module}.{'+'.join(names)}{'' if name.endswith('.weight') else '.bias'}"
    return name


def rotary_tables(model: Model) -> list[tuple[int, int]]:
    """(positions, numbers each) of every table: one for each kind of rotation. Positions are those up to which it is
    scaled.
    """
    text = model.config.get("text_config")
    config: Mapping[str, Any] = text if isinstance(text, Mapping) else model.config
    longest = config.get("max_position_embeddings")
    if not isinstance(longest, int) or longest <= 0 or not _rotates(model, config):
        return []
    rotations = config.get("rope_parameters") or config.get("rope_scaling") or {}
    nested = (
        [table for table in rotations.values() if isinstance(table, Mapping)] if isinstance(rotations, Mapping) else []
    )
    tables = nested or [rotations if isinstance(rotations, Mapping) else {}]
    if not nested and ("rope_local_base_freq" in config or model.family.startswith("gemma3")):
        tables = [*tables, {}]  # layers with a window rotate by a base of their own, unscaled
    width = _rotated_width(config)
    return [(_positions(longest, one), int(width * _fraction(config, one))) for one in tables] if width else []


def _positions(longest: int, scaling: Mapping[str, Any]) -> int:
    """vllm/model_executor/layers/rotary_embedding: linear_scaling_rope.py, yarn_scaling_rope.py."""
    kind, factor = scaling.get("rope_type") or scaling.get("type"), scaling.get("factor")
    if not isinstance(factor, int | float):
        return longest
    if kind == "linear":
        return int(longest * factor)
    original = scaling.get("original_max_position_embeddings")
    return int(original * factor) if kind == "yarn" and isinstance(original, int) else longest


def _rotated_width(config: Mapping[str, Any]) -> int:
    own = config.get("qk_rope_head_dim") or config.get("head_dim")
    if isinstance(own, int):
        return own
    hidden, heads = config.get("hidden_size"), config.get("num_attention_heads")
    return hidden // heads if isinstance(hidden, int) and isinstance(heads, int) and heads else 0


def _fraction(config: Mapping[str, Any], scaling: Mapping[str, Any]) -> float:
    part = scaling.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    return part if isinstance(part, int | float) and "qk_rope_head_dim" not in config else 1


def _rotates(model: Model, config: Mapping[str, Any]) -> bool:
    """Whether positions are rotations: attention without a table of learned positions, and without slopes."""
    main = model.decoder
    cached = any(isinstance(cache, TokenCache) for block in main.blocks for op in block.ops for cache in op.caches())
    tables = [op for op in main.before if isinstance(op, Embedding) and op.split != "vocab"]
    positions = config.get("position_embeddings", "rotary")
    return (
        cached
        and not tables
        and positions == "rotary"
        and not config.get("alibi")
        and model.family not in ("bloom", "mpt", "gpt2", "opt")
    )
