"""Images or a video in the sequences of a training run, and whether the vision tower trains."""

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.media import USUAL_SIZE
from tonnage.estimate.media.asked import check_owners, check_tower, has_tower, images_asked, with_video
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.rollout_options import generates
from tonnage.kernel.errors import InvalidPlan, MissingDatum, shown
from tonnage.kernel.message import Message, listed
from tonnage.ops import Convolution
from tonnage.question.amounts import duration
from tonnage.spec import Media, Vision

STATES = ("trained", "frozen")
# Each row of an update has the images of its prompt, and the tower runs for each: TRL, trl/trainer/grpo_trainer.py and
# dpo_trainer.py (pixel_values of every row); veRL, verl/workers/actor/dp_actor.py (multi_modal_inputs of every row).
ABLE = ("sft", "dpo", "online-dpo", "grpo", "dapo", "rloo", "ppo")
UNABLE = ("distillation", "gkd", "contrastive")


def media_of(model: Model, o: TrainingOptions) -> Media | None:
    """The images or the video of each sequence by the model's own rule; None: text alone."""
    size = o.image_size or USUAL_SIZE
    if o.images is not None and o.video_seconds is not None:
        raise InvalidPlan(Message("training is estimated with {@images} or with {@video_seconds}: leave one out."))
    if o.images is not None:
        return images_asked(model, o.images, size)
    if o.video_seconds is None:
        return None
    return with_video(model, Media(), duration("video_seconds", o.video_seconds) or 0.0, o.video_fps, size)


def vision_of(model: Model, length: int, method: str, o: TrainingOptions, q: Question) -> Vision:
    """What each sequence holds of images or of a video, checked against the model and the length of a sequence."""
    state = _state(model, method, o, q)
    check_owners(o)
    media = media_of(model, o)
    if media is None:
        return Vision(vision_tower=state)
    if o.objective in UNABLE:
        raise InvalidPlan(
            "{@images} and {@video_seconds} are estimated with {@objective} {able}. Got {objective}: leave one out.",
            able=listed(ABLE),
            objective=o.objective,
        )
    _check_counted(model)
    _check_room(media, length, 2 if generates(o.objective or "sft") else 1)
    _note(media, o, q)
    seen = media.image or media.video
    assert seen is not None
    items = media.images if media.image else 1
    return Vision(
        media=media,
        images=media.images,
        image_tokens=media.tokens,
        image_sequences=items * seen.sequences,
        image_patches=seen.patches,
        image_rows=items * seen.rows,
        vision_tower=state,
    )


def _check_room(media: Media, length: int, text: int) -> None:
    """InvalidPlan where images or the video leave no room for so many tokens of text."""
    if media.tokens + text <= length:
        return
    if media.video is not None:
        raise InvalidPlan(
            "{frames:,} frames of a video take {tokens:,} tokens, and leave no text in a sequence of {length:,} "
            "tokens: give a shorter video, a smaller {@image_size} or {@video_fps}, or a longer {@sequence_length}.",
            frames=media.video_frames,
            tokens=media.tokens,
            length=length,
        )
    assert media.image is not None
    raise InvalidPlan(
        "{@images}: {images} images of {tokens:,} tokens leave no text in a sequence of {length:,} tokens. "
        "Nearest: {most}, or a longer {@sequence_length}, from {least:,} on.",
        images=media.images,
        tokens=media.image.tokens,
        length=length,
        least=media.tokens + text,
        most=max(length - text, 0) // media.image.tokens,
    )


def _note(media: Media, o: TrainingOptions, q: Question) -> None:
    """What a sequence holds beside text, with its tokens and how they come about."""
    if media.image is not None:
        q.put("images", media.images, "given")
    q.put("image_size", f"{media.width}x{media.height}", "default" if o.image_size is None else "given")
    if media.image is not None:
        q.put("image_tokens", media.image_tokens, "model", media.image.why)
    if media.video is not None:
        q.put("video_seconds", media.video_seconds, "given")
        if o.video_fps:
            q.put("video_fps", o.video_fps, "given")
        q.put("video_frames", media.video_frames, "model")
        q.put("video_tokens", media.video_tokens, "model", media.video.why)


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
        asked = o.images is not None or o.video_seconds is not None
        if asked and has_tower(model, "vision"):
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
