"""What a split backward keeps between its halves: gradients of the results of products and norms, from which weights'
are made later.

PyTorch, torch/distributed/pipelining/_backward.py: stage_backward_input stores what reaches the nodes before each
parameter, and keeps the graph below them, with all that the layer saved.
"""

from tonnage.architectures import Block
from tonnage.estimate.plan.schedule import waiting_for_weights
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.rank import layer_count
from tonnage.estimate.step.views import StageView, WalkedStep
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import Norm
from tonnage.tape import Extent, Work


def waiting(rank: StageView, point: Point) -> list[Term]:
    """Gradients that wait, of all layers of a stage, in backward; nothing where backward is in one piece."""
    count = waiting_for_weights(rank.plan, rank.stage.rank)
    if count is None or point.moment == "loss" or point.is_last:
        return []
    return [
        Term.product(
            Message("gradients inside {block}s that wait for those of weights", block=block.name),
            "bytes",
            layer_count(number),
            count,
            one(rank.step, block),
        )
        for block, number in rank.counts.items()
    ] + [
        Term.product(
            Message("tensors of {block}s made again, which gradients of weights wait for", block=block.name),
            "bytes",
            layer_count(rank.counts[block]),
            count,
            again,
        )
        for block, again in rank.step.made_again.items()
        if block in rank.counts
    ]


def one(step: WalkedStep, block: Block) -> Term:
    """What one layer keeps of one micro-batch for the gradients of its weights."""
    width = step.recipe.activation_bytes
    parts = [
        step.sizes.term(work.name, work.outer * work.copies, width, _extent(work))
        for work in step.layers[block].work
        if work.wgrad
    ]
    norms = [
        step.sizes.term(op.name, op.width, width, Extent("token", "whole")) for op in block.ops if isinstance(op, Norm)
    ]
    return Term.sum("one layer", *parts, *norms, unit="bytes")


def _extent(work: Work) -> Extent:
    """A product's result; one whose weight is cut by rows is whole on every rank before it is reduced."""
    if work.per.unit == "row":
        return Extent("row", "expert" if work.is_cut else "whole")
    return Extent(work.per.unit, "tensor" if work.is_cut else "gathered")
