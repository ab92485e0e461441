"""What is asked of images: how many, of which size, and of a model that takes them."""

import re
from typing import Protocol

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.media.image_rules import image_rule
from tonnage.kernel.errors import InvalidInput, MissingDatum, NotApplicable, shown
from tonnage.kernel.message import Message
from tonnage.spec import Media

LARGEST_SIDE = 65_535  # of JPEG
MOST_IMAGES = 100_000
STEEPEST = 200  # smart_resize of Qwen2-VL refuses images that are longer for their width
LONGEST_VIDEO = 86_400  # seconds: a day
FASTEST = 60  # frames a second
KNOWN_VIDEOS = "Qwen2-VL, 2.5-VL, 3-VL, 3.5, Omni; InternVL; LLaVA-OneVision; Gemma 4; GLM-4.1V, GLM-4.5V"
KNOWN_IMAGES = (
    "Qwen2-VL, 2.5-VL, 3-VL, 3.5, Omni; LLaVA 1.5, NeXT, OneVision; InternVL; Llama 3.2 Vision, Llama 4; Gemma 3, 3n, "
    "4; PaliGemma; Pixtral, Mistral 3; GLM-4V; Kimi-VL, K2.5; Phi-3.5-vision, Phi-4-multimodal; MiniMax-M3; Idefics 2, "
    "SmolVLM; Aya Vision, Command A Vision; LFM2-VL; Molmo; MiniCPM-V; DeepSeek-VL2"
)


class SaidOfMedia(Protocol):
    """Options that say what images and videos are like, of a request or of a sequence that trains."""

    @property
    def images(self) -> int | None: ...

    @property
    def image_size(self) -> str | None: ...

    @property
    def video_seconds(self) -> float | str | None: ...

    @property
    def video_fps(self) -> float | None: ...


def check_owners(said: SaidOfMedia) -> None:
    """NotApplicable for sizes and rates of what nobody asked about."""
    if said.image_size is not None and said.images is None and said.video_seconds is None:
        raise NotApplicable(
            Message(
                "{@image_size} is of {@images} and {@video_seconds}: add one. Got {size}.", size=shown(said.image_size)
            ),
            "image_size",
            ("images", "video_seconds"),
        )
    if said.video_fps is not None and said.video_seconds is None:
        raise NotApplicable(
            Message("{@video_fps} is of {@video_seconds}: add it. Got {fps:g}.", fps=said.video_fps),
            "video_fps",
            ("video_seconds",),
        )


def images_asked(model: Model, images: int, text: str) -> Media:
    """`images` of the size that `text` says, with the tokens of one by the model's own rule; InvalidInput or
    MissingDatum where it takes none, or where its rule is not known.
    """
    if not 1 <= images <= MOST_IMAGES:
        raise InvalidInput("{@images} must be from 1 to {most:,}. Got {images}.", most=MOST_IMAGES, images=images)
    width, height = image_sides(text)
    check_tower(model, "vision")
    rule = image_rule(model)
    if rule is None:
        raise MissingDatum(
            "how many tokens {architecture} makes of an image is not described: give its prompt with {@input_tokens} "
            "alone. Described are {known}.",
            architecture=model.architecture or model.name,
            known=KNOWN_IMAGES,
        )
    if images > 1 and model.family == "mllama":
        raise MissingDatum(
            "{model}: the cross-attention of one image is counted; of more it is not known. Got {images} {@images}.",
            model=model.name,
            images=images,
        )
    return Media(images=images, width=width, height=height, image=rule(model, height, width))


def with_video(model: Model, media: Media, seconds: float, fps: float | None, text: str) -> Media:
    """The media with a video of so many seconds, of frames of the size that `text` says, by the model's own rule;
    InvalidInput or MissingDatum where it takes none, or where its rule is not known. `fps`: None: the processor's own.
    """
    from tonnage.estimate.media.videos import VIDEO_RULES, WITHOUT_VIDEO  # most requests hold none

    if not 0 < seconds <= LONGEST_VIDEO:
        raise InvalidInput(
            "{@video_seconds} must be more than 0 and at most {most:,}. Got {seconds:g}.",
            most=LONGEST_VIDEO,
            seconds=seconds,
        )
    if fps is not None and not 0 < fps <= FASTEST:
        raise InvalidInput("{@video_fps} must be more than 0 and at most {most}. Got {fps:g}.", most=FASTEST, fps=fps)
    width, height = image_sides(text)
    if not has_tower(model, "vision") or model.architecture in WITHOUT_VIDEO:
        raise InvalidInput(
            "{model} takes no video: leave out {@video_seconds}, or name a model that does, such as "
            "qwen2.5-vl-7b-instruct. Described are {known}.",
            model=model.name,
            known=KNOWN_VIDEOS,
        )
    rule = VIDEO_RULES.get(model.architecture)
    if rule is None:
        raise MissingDatum(
            "how many tokens {architecture} makes of a video is not described: give its prompt with {@input_tokens} "
            "alone. Described are {known}.",
            architecture=model.architecture or model.name,
            known=KNOWN_VIDEOS,
        )
    if fps is not None and not rule.sampled:
        raise InvalidInput(
            "{@video_fps}: the processor of {model} takes {frames} frames of every video. Leave it out.",
            model=model.name,
            frames=rule.usual,
        )
    frames = rule.frames_of(seconds, fps)
    return replace(
        media,
        width=width,
        height=height,
        video_seconds=seconds,
        video_fps=fps or 0.0,
        video_frames=frames,
        video=rule.encode(model, frames, seconds, height, width),
    )


def has_tower(model: Model, kind: str) -> bool:
    """Whether the model has a tower of this kind, vision or audio."""
    return any(branch.kind == kind for branch in model.branches)


def check_tower(model: Model, kind: str) -> None:
    """InvalidInput where the model has none."""
    if has_tower(model, kind):
        return
    if kind == "vision":
        raise InvalidInput(
            "{model} takes no images: leave out {@images}, or name a model that does, such as qwen2.5-vl-7b-instruct.",
            model=model.name,
        )
    raise InvalidInput(
        "{model} takes no sounds: leave out {@audio_seconds}, or name a model that does, such as gemma-4-e4b-it.",
        model=model.name,
    )


def image_sides(text: str) -> tuple[int, int]:
    """Width and height of "1920x1080"."""
    found = re.fullmatch(r"\s*(\d{1,9})\s*[xX×]\s*(\d{1,9})\s*", text)
    sides = tuple(map(int, found.groups())) if found else ()
    if not sides or not all(1 <= side <= LARGEST_SIDE for side in sides):
        raise InvalidInput(
            "{@image_size} must be width x height, each from 1 to {most:,} pixels, such as 1920x1080. Got {size}.",
            most=LARGEST_SIDE,
            size=shown(text),
        )
    width, height = sides
    if max(sides) > STEEPEST * min(sides):
        raise InvalidInput(
            "{@image_size}: one side must be at most {steepest} times the other. Got {size}. Nearest: {near}.",
            steepest=STEEPEST,
            size=shown(text),
            near=f"{min(width, STEEPEST * height)}x{min(height, STEEPEST * width)}",
        )
    return width, height
