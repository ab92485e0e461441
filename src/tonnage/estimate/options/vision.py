"""Images of the sequences of a training run, and whether the vision tower trains."""

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.media import USUAL_SIZE
from tonnage.estimate.media.asked import check_tower, has_tower, images_asked
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable, shown
from tonnage.kernel.message import Message
from tonnage.ops import Convolution
from tonnage.spec import Vision

STATES = ("trained", "frozen")


def vision_of(model: Model, length: int, method: str, o: TrainingOptions, q: Question) -> Vision:
    """What each sequence holds of images, checked against the model and the length of a sequence."""
    state = _state(model, method, o, q)
    if o.images is None:
        if o.image_size is not None:
            raise NotApplicable(
                Message("{@image_size} is of {@images}: add it. Got {size}.", size=shown(o.image_size)),
                "image_size",
                ("images",),
            )
        return Vision(vision_tower=state)
    if o.objective not in (None, "sft"):
        raise InvalidPlan(
            "{@images} are estimated with {@objective} sft. Got {objective}: leave one out.", objective=o.objective
        )
    media = images_asked(model, o.images, o.image_size or USUAL_SIZE)
    _check_counted(model)
    image = media.image
    assert image is not None
    if media.image_tokens >= length:
        raise InvalidPlan(
            "{@images}: {images} images of {tokens:,} tokens leave no text in a sequence of {length:,} tokens. "
            "Nearest: {most}.",
            images=media.images,
            tokens=image.tokens,
            length=length,
            most=(length - 1) // image.tokens,
        )
    size = f"{media.width}x{media.height}"
    q.put("images", media.images, "given")
    q.put("image_size", size, "default" if o.image_size is None else "given")
    q.put("image_tokens", media.image_tokens, "model", image.why)
    return Vision(
        images=media.images,
        image_tokens=media.image_tokens,
        image_sequences=media.images * image.sequences,
        image_patches=image.patches,
        image_rows=media.images * image.rows,
        vision_tower=state,
    )


def _check_counted(model: Model) -> None:
    """MissingDatum of towers whose activations are not those of patches."""
    tower = next(branch for branch in model.branches if branch.kind == "vision")
    if model.family == "mllama":
        raise MissingDatum(
            "{model}: training on images is not estimated where the text attends to them in layers of its own.",
            model=model.name,
        )
    if any(isinstance(op, Convolution) and op.kernel > 1 for block in tower.blocks for op in block.ops):
        raise MissingDatum(
            "{model}: training on images is not estimated with a tower of convolutions, which see images of several "
            "sizes.",
            model=model.name,
        )


def _state(model: Model, method: str, o: TrainingOptions, q: Question) -> str:
    """trained or frozen; of other methods than full the plan says it by these alone."""
    if o.vision_tower is None:
        if o.images is not None and has_tower(model, "vision"):
            usual = "trained" if method == "full" else "frozen"
            q.put("vision_tower", usual, "default", Message("method {method}", method=method))
        return "trained"
    check_tower(model, "vision")
    if o.vision_tower not in STATES:
        raise InvalidPlan("{@vision_tower} must be trained or frozen. Got {state}.", state=shown(o.vision_tower))
    if o.vision_tower == "trained" and method != "full":
        raise InvalidPlan(
            "{@vision_tower} trained is estimated with {@method} full: beside adapters and below the last layers the "
            "tower is frozen. Got {@method} {method}.",
            method=method,
        )
    state: str = q.put("vision_tower", o.vision_tower, "given")
    return state if method == "full" else "trained"
