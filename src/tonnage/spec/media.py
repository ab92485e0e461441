"""Images and sounds of a request, as a model takes them in."""

from msgspec import Struct


class Encoded(Struct, frozen=True, kw_only=True):
    """One image, or the sounds of a request: `tokens` in the prompt; a tower sees `sequences` of `patches` each, of
    which none attends to another; `rows` of them pass its projector. `why`: how it comes to that.
    """

    tokens: int
    sequences: int
    patches: int
    rows: int
    why: str = ""


class Media(Struct, frozen=True, kw_only=True):
    """What each request holds beside its text: `images` alike of `width` x `height` pixels, and `audio_seconds` of
    sound; `image`, `audio`: what becomes of one image, and of the sounds; `prompt_tokens`: of the whole prompt, text
    and all.
    """

    images: int = 0
    width: int = 0
    height: int = 0
    audio_seconds: float = 0.0
    image: Encoded | None = None
    audio: Encoded | None = None
    prompt_tokens: int = 1

    @property
    def image_tokens(self) -> int:
        """Tokens of all images in the prompt."""
        return self.images * self.image.tokens if self.image else 0

    @property
    def audio_tokens(self) -> int:
        """Tokens of the sounds in the prompt."""
        return self.audio.tokens if self.audio else 0

    @property
    def tokens(self) -> int:
        """Tokens that images and sounds take in the prompt."""
        return self.image_tokens + self.audio_tokens
