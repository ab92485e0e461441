"""Words that several texts share: the length of the prompts beside every TTFT, and limits that are known twice."""

from collections.abc import Mapping
from typing import Any

from tonnage.language import say


def prompt_words(question: Mapping[str, Any]) -> str:
    """Such as "1,024-token prompts"; of a trace "prompts of the trace"; nothing where the question has no prompts."""
    if "trace" in question:
        return say("prompts of the trace")
    entry = question.get("input_tokens")
    length = entry["value"] if isinstance(entry, Mapping) else entry
    if not isinstance(length, int):
        return ""
    media = media_tokens(question)
    if media:
        return say("prompts of {text} text and {media} image or audio tokens", text=f"{length:,}", media=f"{media:,}")
    return say("{tokens}-token prompts", tokens=f"{length:,}")


def media_tokens(question: Mapping[str, Any]) -> int:
    """Tokens of a request's images and sounds, on top of its text."""
    entries = (question.get(name) for name in ("image_tokens", "audio_tokens"))
    return sum(entry["value"] if isinstance(entry, Mapping) else entry or 0 for entry in entries if entry)


def with_prompts(text: str, question: Mapping[str, Any]) -> str:
    """A name of a time to the first token, with the length of the prompts behind it."""
    prompts = prompt_words(question)
    return say("{name} ({prompts})", name=text, prompts=prompts) if prompts else text


def both_limits(estimate: str, safe: str) -> str:
    """As `serve` and `max` say it: "245 requests by the estimate, 237 requests at the high end of the error band"."""
    return say("{estimate} by the estimate, {safe} at the high end of the error band", estimate=estimate, safe=safe)
