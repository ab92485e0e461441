"""Seconds in which towers turn the images and sounds of a request into tokens: the same kernels as of a pass of the
language model, over patches that see each other. What the host does before (decoding and resizing images) is not in it.
"""

from collections.abc import Iterator

from msgspec import Struct

from tonnage.architectures import Branch, Model
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.rates import ServingRates
from tonnage.estimate.serving_time.work import kv_bytes, tower_works
from tonnage.formulas.media import encoder_core_flops, encoder_matrix_flops
from tonnage.ops import Convolution
from tonnage.spec import Cluster, Encoded, Media, ServingPlan


class Encoding(Struct, frozen=True, kw_only=True):
    """The towers' part of one request. `flops`: of all ranks together."""

    spent: Spent
    flops: float


def encoding(
    model: Model, plan: ServingPlan, peaks: tuple[str, ...], cluster: Cluster, rates: ServingRates
) -> Encoding | None:
    """What the towers do for one request; None where it has text alone, or where nobody can say."""
    if plan.media is None or not is_timed(model, plan.media):
        return None
    alone = plan.with_fields(
        pipeline_parallel_size=1,
        chunk_layers=(),
        expert_parallel_size=1,
        attention_data_parallel_size=1,
        draft_tokens=0,
        weights_on_host_bytes=0,
        layers_on_accelerator=None,
    )
    total, flops = Spent(*[0.0] * len(Spent._fields)), 0.0
    for branch, encoded, times in encoded_branches(model, plan.media):
        inner, outer = tower_works(model, alone, peaks, kv_bytes(plan), branch, layers_run(model, branch))
        patches, rows = times * encoded.sequences * encoded.patches, times * encoded.rows
        for work, tokens in ((inner, patches), (outer, rows)):
            clock = PassTime((work,), alone, cluster, branch.hidden_size, rates)
            part = clock.spent(tokens, tokens * encoded.patches, 0, 0)._replace(engine=0.0)
            total = Spent._make(a + b for a, b in zip(total, part, strict=True))
        flops += _flops(model, branch, encoded, times)
    return Encoding(spent=total, flops=flops)


def is_timed(model: Model, media: Media) -> bool:
    """Whether the layers of all towers that are asked for are counted by patches."""
    return not any(
        branch.kind == "vision" and _is_convolutional(branch) for branch, _, _ in encoded_branches(model, media)
    )


def _is_convolutional(branch: Branch) -> bool:
    return any(isinstance(op, Convolution) and op.kernel > 1 for block in branch.blocks for op in block.ops)


def encoded_branches(model: Model, media: Media) -> Iterator[tuple[Branch, Encoded, int]]:
    """The towers at work, what one item makes of them, and how many items there are."""
    for branch in model.branches:
        if branch.kind == "vision" and media.image is not None:
            yield branch, media.image, media.images
        if branch.kind == "vision" and media.video is not None:
            yield branch, media.video, 1
        if branch.kind == "audio" and media.audio is not None:
            yield branch, media.audio, 1


def layers_run(model: Model, branch: Branch) -> int:
    """Layers of a tower that run: LLaVA reads the last but one (vision_feature_layer -2), and engines stop there."""
    layer = model.config.get("vision_feature_layer")
    if branch.kind == "vision" and isinstance(layer, int) and -branch.num_layers < layer < 0:
        return branch.num_layers + 1 + layer
    return branch.num_layers


def _flops(model: Model, branch: Branch, encoded: Encoded, times: int) -> float:
    """FLOP of a tower for all its items."""
    flops = 0.0
    patches, rows = times * encoded.sequences * encoded.patches, times * encoded.rows
    for block, count in zip(branch.blocks, branch.counts(0, layers_run(model, branch)), strict=True):
        matrices = sum(weight.num_parameters for weight in block.weights() if weight.linear)
        flops += count * encoder_matrix_flops.evaluate(N=matrices, T=patches)
        for op in block.ops:
            for core in op.core():
                seen = min(encoded.patches, core.window or encoded.patches) if core.per_key else 1
                flops += count * encoder_core_flops.evaluate(C=core.flops, T=patches, s=seen)
    for ops, tokens in ((branch.before, patches), (branch.after, rows)):
        matrices = sum(w.num_parameters for op in ops if not op_is_unused(op) for w in op.weights() if w.linear)
        flops += encoder_matrix_flops.evaluate(N=matrices, T=tokens)
    return flops


def op_is_unused(op: object) -> bool:
    """Whether a projector reads the patches before it, as SigLIP's pooling head, whose weights are stored alone."""
    return str(getattr(op, "name", "")).startswith("head.")
