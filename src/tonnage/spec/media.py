"""Images, videos and sounds of a request, as a model takes them in."""

from msgspec import Struct


class Encoded(Struct, frozen=True, kw_only=True):
    """One image, the video or the sounds of a request: `tokens` in the prompt; a tower sees `sequences` of `patches`
    each, of which none attends to another; `rows` of them pass its projector. `why`: how it comes to that.
    """

    tokens: int
    sequences: int
    patches: int
    rows: int
    why: str = ""


class Media(Struct, frozen=True, kw_only=True):
    """What each request holds beside its text: `images` alike of `width` x `height` pixels, `video_seconds` of a video
    of such frames, of which the model sees `video_frames`, and `audio_seconds` of sound; `image`, `video`, `audio`:
    what becomes of one image, of the video, and of the sounds; `prompt_tokens`: of the whole prompt, text and all.
    """

    images: int = 0
    width: int = 0
    height: int = 0
    video_seconds: float = 0.0
    video_fps: float = 0.0
    video_frames: int = 0
    audio_seconds: float = 0.0
    image: Encoded | None = None
    video: Encoded | None = None
    audio: Encoded | None = None
    prompt_tokens: int = 1

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind a request holds, as engines limit them; kinds of which there are none are left out."""
        items = (("image", self.images), ("video", int(self.video is not None)), ("audio", int(self.audio is not None)))
        return {name: count for name, count in items if count}

    @property
    def image_tokens(self) -> int:
        """Tokens of all images in the prompt."""
        return self.images * self.image.tokens if self.image else 0

    @property
    def video_tokens(self) -> int:
        """Tokens of the video in the prompt, with those between its frames."""
        return self.video.tokens if self.video else 0

    @property
    def audio_tokens(self) -> int:
        """Tokens of the sounds in the prompt."""
        return self.audio.tokens if self.audio else 0

    @property
    def tokens(self) -> int:
        """Tokens that images, video and sounds take in the prompt."""
        return self.image_tokens + self.video_tokens + self.audio_tokens
