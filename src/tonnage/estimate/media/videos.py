"""Tokens of a video by the rule of each family's own processor: how many frames it takes, and what becomes of them.

Sources: transformers 5.24, models/*/{video_processing,processing}_*.py, with whose functions tests/trace/
test_image_tokens.py compares these. Pixels are those of the released checkpoints: Qwen2-VL and 2.5-VL have one setting
for images and frames (preprocessor_config.json), Qwen3-VL 25,165,824 pixels for all frames together (its count of a
prompt is that of QwenLM/Qwen3-VL issue 1795). Words between frames are counted as the models' tokenizers cut them:
each digit, mark and word by itself. A video has at least as many frames as the processor takes.
"""

from collections.abc import Callable, Mapping
from math import ceil, floor

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.media.images import gemma4, positive, section, smart_resize
from tonnage.kernel.message import Message
from tonnage.spec.media import Encoded

SOURCE_FPS = 30  # of the video itself: only the digits of times between frames follow from it
USUAL_FPS = 2.0  # qwen-vl-utils, vision_process.py: FPS; fps of the processors of Qwen3-VL and GLM-4V
USUAL_FRAMES = 32  # vllm/multimodal/media/video.py: VideoMediaIO, num_frames
LEAST_FRAMES, MOST_FRAMES = 4, 768  # min_frames and max_frames of Qwen's processors
GLM_SECONDS = 300  # max_duration of Glm4vVideoProcessor


class VideoRule(Struct, frozen=True, kw_only=True):
    """`fps`: frames a second that the processor takes where nobody says it, 0 where it takes `usual` frames of every
    video; `frames`: how many of a video of seconds at fps; `encode`: what becomes of that many frames of height and
    width. `sampled`: whether fps can be said at all.
    """

    encode: Callable[[Model, int, float, int, int], Encoded]
    frames: Callable[[float, float], int]
    fps: float = USUAL_FPS
    usual: int = USUAL_FRAMES
    sampled: bool = True

    def frames_of(self, seconds: float, fps: float | None) -> int:
        """Frames of a video of this length that the model sees."""
        rate = fps or self.fps
        return self.frames(seconds, rate) if rate else self.usual


# ---- Frames


def _pairs(seconds: float, fps: float) -> int:
    """Qwen2VLVideoProcessor.sample_frames: 4 to 768 frames, in pairs."""
    return floor(min(max(seconds * fps, LEAST_FRAMES), MOST_FRAMES) / 2) * 2


def _bounded(seconds: float, fps: float) -> int:
    """Qwen3VLVideoProcessor.sample_frames: 4 to 768 frames."""
    return min(max(int(seconds * fps), LEAST_FRAMES), MOST_FRAMES)


def _first_minutes(seconds: float, fps: float) -> int:
    """Glm4vVideoProcessor.sample_frames: as many as those of five minutes, in pairs."""
    frames = max(floor(min(seconds, GLM_SECONDS) * fps), 1)
    return frames + frames % 2


def _sampled(seconds: float, fps: float) -> int:
    """default_sample_indices_fn of transformers/video_utils.py."""
    return max(int(seconds * fps), 1)


# ---- What becomes of them


def _times(seconds: float, frames: int) -> list[float]:
    """Seconds at which frames are, spread over the whole video."""
    last = max(seconds - 1 / SOURCE_FPS, 0.0)
    return [last * index / max(frames - 1, 1) for index in range(frames)]


def _digits(number: float) -> int:
    return len(str(int(number)))


def _patches(side: int, merge: int, frames: int, high: int, wide: int, words: int = 0) -> Encoded:
    """Two frames are a patch deep, and each pair of frames is a sequence of its own for the tower."""
    pairs, patches = ceil(frames / 2), (high // side) * (wide // side)
    return Encoded(
        tokens=pairs * patches // merge**2 + words,
        sequences=pairs,
        patches=patches,
        rows=pairs * patches // merge**2,
        why=Message(
            "{frames} frames resized to {wide}x{high}: {merged} patches of {side} of two frames to a token",
            frames=frames,
            wide=wide,
            high=high,
            merged=merge**2,
            side=side,
        ),
    )


def _sides(model: Model, patch: int) -> tuple[int, int]:
    vision = section(model, "vision_config")
    return positive(vision, "patch_size", patch), positive(vision, "spatial_merge_size", 2)


def each_frame(patch: int, least: int, most: int) -> Callable[[Model, int, float, int, int], Encoded]:
    """Qwen2-VL: `least` to `most` pixels of each frame; no words between frames."""

    def encode(model: Model, frames: int, seconds: float, height: int, width: int) -> Encoded:
        side, merge = _sides(model, patch)
        high, wide = smart_resize(height, width, side * merge, least, most)
        return _patches(side, merge, frames, high, wide)

    return encode


def all_frames(
    patch: int, least: int, most: int, words: Callable[[float, int], int]
) -> Callable[[Model, int, float, int, int], Encoded]:
    """Qwen3-VL, GLM-4V: `least` to `most` pixels of all frames together; `words`: tokens between the frames."""

    def encode(model: Model, frames: int, seconds: float, height: int, width: int) -> Encoded:
        side, merge = _sides(model, patch)
        factor = side * merge
        if min(height, width) < factor:
            scale = max(factor / height, factor / width)
            height, width = int(height * scale), int(width * scale)
        high, wide = smart_resize(height, width, factor, least, most, frames, round(frames / 2) * 2)
        return _patches(side, merge, frames, high, wide, words(seconds, frames))

    return encode


def _qwen3_words(seconds: float, frames: int) -> int:
    """ "<12.5 seconds>" before each pair of frames, at their mean time, and a token on either side of them."""
    times = _times(seconds, frames)
    times += times[-1:] * (frames % 2)
    means = [(first + second) / 2 for first, second in zip(times[::2], times[1::2], strict=True)]
    return sum(5 + _digits(float(f"{mean:.1f}")) + 2 for mean in means)


def _glm_words(seconds: float, frames: int) -> int:
    """The second behind each pair of frames, of which a token holds three digits, and a token on either side."""
    return sum(2 + ceil(_digits(time) / 3) for time in _times(seconds, frames)[::2])


def internvl(model: Model, frames: int, seconds: float, height: int, width: int) -> Encoded:
    """A tile a frame; "Frame12: " before it, a line's end behind it, and a token on either side."""
    vision = section(model, "vision_config")
    patches = (positive(vision, "image_size", 448) // positive(vision, "patch_size", 14)) ** 2
    ratio = model.config.get("downsample_ratio", 0.5)
    ratio = ratio if isinstance(ratio, int | float) and 0 < ratio <= 1 else 0.5
    frame_tokens = int(patches * ratio**2)
    digits = sum(frames - 10**power + 1 for power in range(_digits(frames)))
    return _of_frames(frames, frame_tokens, patches + 1, frame_tokens, frames * (2 + 3) + digits + frames - 1)


def llava_onevision(model: Model, frames: int, seconds: float, height: int, width: int) -> Encoded:
    """Frames of one size whose features are pooled by two, and a token behind the last."""
    vision = section(model, "vision_config")
    side = positive(vision, "image_size", 384) // positive(vision, "patch_size", 14)
    return _of_frames(frames, ceil(side / 2) ** 2, side**2, side**2, 1)


def gemma_4(model: Model, frames: int, seconds: float, height: int, width: int) -> Encoded:
    """At most 70 tokens a frame (max_soft_tokens); "01:25 " before it, a blank behind it, a token on either side."""
    frame = gemma4(model, height, width, most=70)
    words = sum(max(_digits(time // 60), 2) + 3 + 1 + 2 for time in _times(seconds, frames)) + frames - 1
    return _of_frames(frames, frame.tokens, frame.patches, frame.rows, words)


def _of_frames(frames: int, frame_tokens: int, patches: int, rows: int, words: int) -> Encoded:
    return Encoded(
        tokens=frames * frame_tokens + words,
        sequences=frames,
        patches=patches,
        rows=frames * rows,
        why=Message(
            "{frames} frames of {each} tokens, and {words} between them", frames=frames, each=frame_tokens, words=words
        ),
    )


QWEN2 = VideoRule(frames=_pairs, encode=each_frame(14, 56 * 56, 12_845_056))
QWEN2_OMNI = VideoRule(frames=_pairs, encode=each_frame(14, 128 * 28 * 28, 768 * 28 * 28))
QWEN3_OMNI = VideoRule(frames=_pairs, encode=each_frame(16, 128 * 32 * 32, 768 * 32 * 32))
QWEN3 = VideoRule(frames=_bounded, encode=all_frames(16, 4096, 25_165_824, _qwen3_words))
GLM4V = VideoRule(frames=_first_minutes, encode=all_frames(14, 112 * 112, 28 * 28 * 2 * 30_000, _glm_words))
INTERNVL = VideoRule(frames=_sampled, encode=internvl, fps=0)

#: By the class that a checkpoint names.
VIDEO_RULES: Mapping[str, VideoRule] = {
    "Qwen2VLForConditionalGeneration": QWEN2,
    "Qwen2_5_VLForConditionalGeneration": QWEN2,
    "Qwen2_5OmniModel": QWEN2_OMNI,
    "Qwen2_5OmniForConditionalGeneration": QWEN2_OMNI,
    "Qwen2_5OmniThinkerForConditionalGeneration": QWEN2_OMNI,
    "Qwen3VLForConditionalGeneration": QWEN3,
    "Qwen3VLMoeForConditionalGeneration": QWEN3,
    "Qwen3_5ForConditionalGeneration": QWEN3,
    "Qwen3_5MoeForConditionalGeneration": QWEN3,
    "Qwen3OmniMoeForConditionalGeneration": QWEN3_OMNI,
    "Qwen3OmniMoeThinkerForConditionalGeneration": QWEN3_OMNI,
    "Glm4vForConditionalGeneration": GLM4V,
    "Glm4vMoeForConditionalGeneration": GLM4V,
    "InternVLForConditionalGeneration": INTERNVL,
    "InternVLChatModel": INTERNVL,
    "LlavaOnevisionForConditionalGeneration": VideoRule(frames=_sampled, encode=llava_onevision, fps=0),
    "Gemma4ForConditionalGeneration": VideoRule(frames=_sampled, encode=gemma_4, fps=0, sampled=False),
}
#: Classes whose processors take images and no video.
WITHOUT_VIDEO = (
    "LlavaForConditionalGeneration",
    "LlavaNextForConditionalGeneration",
    "PixtralForConditionalGeneration",
    "Mistral3ForConditionalGeneration",
    "Gemma3ForConditionalGeneration",
    "Gemma3nForConditionalGeneration",
    "Llama4ForConditionalGeneration",
    "MllamaForConditionalGeneration",
    "Phi3VForCausalLM",
    "Phi4MultimodalForCausalLM",
    "Phi4MMForCausalLM",
)
