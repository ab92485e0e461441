"""What the vision tower holds in a step: pixels, what its layers keep for backward where they train, and the layer at
work.

The tower runs before the language model and its backward comes last. One that is frozen builds no graph
(torch.no_grad, or no input that has a gradient): it keeps nothing.
"""

from tonnage.architectures import Branch
from tonnage.estimate.layers.layers import block_forward
from tonnage.estimate.step.points import by_extent
from tonnage.estimate.step.rank import first_of, layer_count
from tonnage.estimate.step.views import StageView, WalkedStep
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.tape import TOKEN, Account

PIXEL_BYTES = 4  # pixel_values are float32: transformers, image_processing_utils.py


def images_kept(rank: StageView) -> list[Term]:
    """What stays of the images of a micro-batch from the tower's forward to its backward."""
    tower = rank.step.tower
    if tower is None or not rank.stage.towers:
        return []
    branch = tower.model.decoder
    pixels = max((weight.columns for op in branch.before for weight in op.weights() if weight.linear), default=0)
    parts = [tower.sizes.term("pixels", pixels, PIXEL_BYTES, TOKEN)] if pixels else []
    if rank.plan.trains_tower:
        parts += [
            Term.product(
                Message("{block}s", block=block.name), "bytes", layer_count(count), rank.in_flight, tower.kept[block]
            )
            for block, count in tower.stages[0].layers
        ]
        parts.append(_projector(rank, tower, branch))
    return [Term.sum("vision tower", *parts, unit="bytes")]


def images_at_work(rank: StageView) -> Term:
    """The fullest layer of the tower at work: with its backward where it trains."""
    tower = rank.step.tower
    assert tower is not None
    trains, width = rank.plan.trains_tower, tower.model.decoder.hidden_size
    lives: list[Account] = []
    for block, layer in tower.layers.items():
        moments = layer.moments if trains else block_forward(block, tower.setting, width, records=False)
        lives += [moment.live for moment in moments]
    live = max(lives, key=lambda account: first_of(tower.sizes.total(by_extent(account))))
    parts = [*tower.sizes.account(live, "activation"), *tower.sizes.account(live, "temporary")]
    return Term.sum("current layer of the vision tower", *parts, unit="bytes")


def _projector(rank: StageView, tower: WalkedStep, branch: Branch) -> Term:
    """Inputs of the products that follow the tower's layers: of rows, which are fewer than patches."""
    vision = rank.plan.vision
    share = vision.image_rows / (vision.image_sequences * vision.image_patches)
    columns = sum(
        weight.columns
        for op in branch.after
        if not str(getattr(op, "name", "")).startswith("head.")
        for weight in op.weights()
        if weight.linear
    )
    return tower.sizes.term("inputs of the projector", columns * share, tower.setting.types.compute, TOKEN)
