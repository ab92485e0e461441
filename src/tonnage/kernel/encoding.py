"""Documents as JSON. A Message is its English text in it, unless a face words it."""

from collections.abc import Callable
from typing import Any

import msgspec

from tonnage.kernel.message import Message, Quantity, Series, plain


def encode(document: Any, word: Callable[[str], str] = plain) -> bytes:
    """The JSON of a document; `word` puts its Messages into the language of a face."""

    if word is plain:
        return msgspec.json.encode(document, enc_hook=_english)

    def text_of(value: Any) -> str:
        return plain(word(value)) if isinstance(value, Message) else _english(value)

    return msgspec.json.encode(document, enc_hook=text_of)


def _english(value: Any) -> str:
    """What msgspec does not know by itself: a Message."""
    if isinstance(value, Message):
        return str.__str__(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def builtins(document: Any) -> Any:
    """A document as dictionaries and lists, as a reader of its JSON gets it; its Messages keep their data."""
    return _lists(msgspec.to_builtins(document, builtin_types=(Message, Quantity, Series)))


def _lists(value: Any) -> Any:
    """JSON has no tuples, and texts alone as keys."""
    if isinstance(value, dict):
        return {name if isinstance(name, str) else str(name): _lists(item) for name, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value
