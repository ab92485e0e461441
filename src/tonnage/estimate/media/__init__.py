"""Images, videos and sounds of the requests of a served model: tokens and towers' work by each model's own rule."""

from tonnage.estimate.inputs import Question
from tonnage.spec import Media

USUAL_SIZE = "1024x1024"


def note_media(media: Media | None, question: Question) -> None:
    """What a request holds beside text, with its tokens and how they come about."""
    if media is None:
        return
    if media.image is not None:
        question.put("images", media.images, "given")
    if media.image is not None or media.video is not None:
        size = f"{media.width}x{media.height}"
        question.put("image_size", size, "default" if size == USUAL_SIZE else "given")
    if media.image is not None:
        question.put("image_tokens", media.image_tokens, "model", media.image.why)
    if media.video is not None:
        question.put("video_seconds", media.video_seconds, "given")
        if media.video_fps:
            question.put("video_fps", media.video_fps, "given")
        question.put("video_frames", media.video_frames, "model")
        question.put("video_tokens", media.video_tokens, "model", media.video.why)
    if media.audio is not None:
        question.put("audio_seconds", media.audio_seconds, "given")
        question.put("audio_tokens", media.audio_tokens, "model", media.audio.why)
