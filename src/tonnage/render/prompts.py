"""Words that several texts share: the length of the prompts beside every TTFT, and limits that are known twice."""

from collections.abc import Mapping
from typing import Any

from tonnage.language import say

MEDIA_TOKENS = ("image_tokens", "video_tokens", "audio_tokens")


def prompt_words(question: Mapping[str, Any]) -> str:
    """Such as "1,024-token prompts"; of a trace "prompts of the trace"; nothing where the question has no prompts."""
    if "trace" in question:
        return say("prompts of the trace")
    entry = question.get("input_tokens")
    length = entry["value"] if isinstance(entry, Mapping) else entry
    if not isinstance(length, int):
        return ""
    if with_media := media_words(question, length):
        return say("prompts of {tokens}", tokens=with_media)
    return say("{tokens}-token prompts", tokens=f"{length:,}")


def media_words(question: Mapping[str, Any], text: int) -> str:
    """The tokens of a prompt by what they are of, such as "1,024 text and 2,738 image tokens"; nothing where all are of
    text.
    """
    image, video, audio = (_tokens(question.get(name)) for name in MEDIA_TOKENS)
    tokens = {"text": f"{text:,}", "image": f"{image:,}", "video": f"{video:,}", "audio": f"{audio:,}"}
    if video:
        return _with_video(tokens, image, audio)
    if image and audio:
        return say("{text} text, {image} image and {audio} audio tokens", **tokens)
    if image:
        return say("{text} text and {image} image tokens", **tokens)
    return say("{text} text and {audio} audio tokens", **tokens) if audio else ""


def _with_video(tokens: Mapping[str, str], image: int, audio: int) -> str:
    if image and audio:
        return say("{text} text, {image} image, {video} video and {audio} audio tokens", **tokens)
    if image:
        return say("{text} text, {image} image and {video} video tokens", **tokens)
    if audio:
        return say("{text} text, {video} video and {audio} audio tokens", **tokens)
    return say("{text} text and {video} video tokens", **tokens)


def media_tokens(question: Mapping[str, Any]) -> int:
    """Tokens of a request's images, video and sounds, on top of its text."""
    return sum(_tokens(question.get(name)) for name in MEDIA_TOKENS)


def _tokens(entry: Any) -> int:
    return int((entry["value"] if isinstance(entry, Mapping) else entry) or 0)


def with_prompts(text: str, question: Mapping[str, Any]) -> str:
    """A name of a time to the first token, with the length of the prompts behind it."""
    prompts = prompt_words(question)
    return say("{name} ({prompts})", name=text, prompts=prompts) if prompts else text


def both_limits(estimate: str, safe: str) -> str:
    """As `serve` and `max` say it: "245 requests by the estimate, 237 requests at the high end of the error band"."""
    return say("{estimate} by the estimate, {safe} at the high end of the error band", estimate=estimate, safe=safe)
