"""What autograd keeps: one layer of each kind and one micro-batch, then as often as a stage holds it."""

from functools import lru_cache

from msgspec import Struct

from tonnage.architectures import Block
from tonnage.breakdown import Term
from tonnage.estimate._rank import Stage, layer_count
from tonnage.formula import Number
from tonnage.formulas import memory as f
from tonnage.ops import Kernels, Op, Saved


class Batch(Struct, frozen=True, eq=False):
    """One micro-batch on one rank. `w`: bytes of an activation; `sequence_parallel` cuts what tensor parallelism copies."""

    s: Number
    b: Number
    c: Number
    t: Number
    w: float
    sequence_parallel: bool


@lru_cache(maxsize=4096)
def saved_tensors(block: Block, kernels: Kernels) -> tuple[tuple[Op, tuple[Saved, ...]], ...]:
    """What each op of a layer keeps."""
    return tuple((op, op.saved(kernels)) for op in block.ops)


@lru_cache(maxsize=4096)
def widest(block: Block, kernels: Kernels) -> float:
    """Numbers a token inside the widest operation of a layer: what it keeps that tensor parallelism cuts."""
    inner = 0.0
    for _, tensors in saved_tensors(block, kernels):
        inner = max(inner, sum(saved.elements for saved in tensors if saved.split != "whole" and not saved.core))
    return inner


def saved_term(saved: Saved, batch: Batch) -> Term:
    """One kept tensor, for one layer and one micro-batch."""
    w = batch.w if saved.bytes_per_element is None else saved.bytes_per_element
    sizes = {"x": saved.elements, "w": w, "s": batch.s, "b": batch.b, "c": batch.c}
    if saved.per_key:
        return Term.of(saved.name, f.saved_scores_bytes, **sizes, t=batch.t)
    if saved.split == "whole" and not batch.sequence_parallel:
        return Term.of(saved.name, f.saved_bytes, **sizes)
    return Term.of(saved.name, f.saved_split_bytes, **sizes, t=batch.t)


class LayerActivations(Struct, frozen=True, eq=False):
    """One layer and one micro-batch: what is kept under the policy, and what recomputing brings back for one layer."""

    kept: Term
    brought_back: Term


def layer_activations(block: Block, batch: Batch, kernels: Kernels, recompute: str, hidden: int) -> LayerActivations:
    """The activations of one layer under `recompute`: none, selective (drops the core of attention) or full."""
    everything = [
        (saved, saved_term(saved, batch)) for _, tensors in saved_tensors(block, kernels) for saved in tensors
    ]
    if recompute == "full":
        kept = Term.sum("one layer's input", saved_term(Saved("layer input", hidden), batch))
        return LayerActivations(
            kept, Term.sum("one layer, recomputed", *(term for _, term in everything), unit="bytes")
        )
    dropped = [term for saved, term in everything if saved.core and recompute == "selective"]
    kept_terms = [term for saved, term in everything if not (saved.core and recompute == "selective")]
    return LayerActivations(
        Term.sum("one layer", *kept_terms, unit="bytes"), Term.sum("attention core, recomputed", *dropped, unit="bytes")
    )


def stage_activations(stage: Stage, layers: dict[Block, LayerActivations], in_flight: Term) -> Term:
    """The layers of a stage, for every micro-batch in flight."""
    parts = [
        Term.product(f"{block.name}s", "bytes", layer_count(count), in_flight, layers[block].kept)
        for block, count in stage.layers
    ]
    return Term.sum("layers", *parts, unit="bytes")


def loose_activations(stage: Stage, batch: Batch, kernels: Kernels) -> Term:
    """What the ops outside the layers keep (the final norm, the head's input), for one micro-batch."""
    parts = [saved_term(saved, batch) for op in stage.ops for saved in op.saved(kernels)]
    return Term.sum("before and after the layers", *parts, unit="bytes")


def brought_back(stage: Stage, layers: dict[Block, LayerActivations]) -> Term:
    """The largest layer that recomputation brings back."""
    terms = [layers[block].brought_back for block, _ in stage.layers]
    return Term.max("recomputed layer", *terms) if terms else Term.sum("recomputed layer", unit="bytes")


def backward_gradients(stage: Stage, batch: Batch, kernels: Kernels, hidden: int) -> Term:
    """Gradients flowing back through the widest operation: one for each tensor that it cut, and the residual's."""
    inner = max((widest(block, kernels) for block, _ in stage.layers), default=0.0)
    return Term.sum(
        "gradients of activations",
        saved_term(Saved("widest operation", inner, "tensor"), batch),
        saved_term(Saved("residual stream", hidden), batch),
    )
