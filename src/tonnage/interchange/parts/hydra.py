"""Overrides of Hydra: key=value, +key=value, and ~key."""

from collections.abc import Sequence
from typing import Any

from tonnage.kernel.errors import TonnageError
from tonnage.user_files import yaml_text


def assigned(words: Sequence[str]) -> dict[str, Any]:
    """The keys and values of words that are overrides. A list or mapping is read as YAML has it."""
    overrides: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.lstrip("+").partition("=")
        if equals and name and not name.startswith(("-", "$", ">")):
            overrides[name.strip()] = plain(value)
        elif word and not word.startswith(("$", ">", "2>", "&>", "~")):
            overrides[word] = None if word.startswith("+") else "true"
    return overrides


def plain(value: str) -> Any:
    """The value that a text stands for."""
    text = value.strip()
    if text in ("null", "None", "", "~") or text.startswith("${"):
        return None
    if text[:1] in ("[", "{") and text[-1:] in ("]", "}"):
        try:
            return yaml_text.parse(f"value: {text}", "an override").get("value")
        except TonnageError:
            return text
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text
