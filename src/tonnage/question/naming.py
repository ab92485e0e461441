"""An error names options as the face does that shows it: --lora-rank on the command line, lora_rank in a question.

Estimates know fields and readers know options as they were typed; the name is put right where the error is shown.
"""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.kernel.message import joined, spelled
from tonnage.question.form import Form

Said = Mapping[str, tuple[str, str]]  # option -> how it was typed, and its value
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*", re.ASCII)
_COUNTS = re.compile(r"^(?:\d+x)+")  # of nodes and accelerators, before the name of one
_QUOTED = re.compile(r"'([^']+)'")
_PARTS = (re.compile(r"[,;]"), re.compile(r"[,;x= ]"))


def in_question(error: BaseException, form: Form, question: Mapping[str, Any]) -> str:
    """What an error says, with fields in place of options."""

    def field(name: str) -> str:
        option = form.flags.get(name)
        typed = name.removeprefix("--").replace("-", "_")
        if typed in question:
            return typed
        known = form.options.get(typed)
        if known is not None:
            other_names = (flag.lstrip("-").replace("-", "_") for flag in known.short)
            return next((other for other in other_names if other in question), name if option is None else known.name)
        return name if option is None or "json" not in option.faces else option.name

    text = spelled(error, field)
    texts = {name: (name, _joined(value)) for name, value in question.items() if not isinstance(value, bool | Mapping)}
    holder = "" if any(names(text, name) for name in question if "_" in name) else holder_of(text, texts)
    return joined(": ", (holder, text)) if holder and not text.startswith(f"{holder} ") else text


def holder_of(text: str, texts: Said) -> str:
    """The option whose value the error quotes, where one alone has it and the error says no name of it."""
    quoted = _QUOTED.search(text)
    if quoted is None:
        return ""
    of = [name for name, (_, value) in texts.items() if _has(value, quoted[1])]
    return texts[of[0]][0] if len(of) == 1 and not names(text, of[0]) else ""


def names(text: str, name: str) -> bool:
    """Whether a name stands in a text; such as "on" may be any word, and does not count."""
    return len(name) > 2 and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.ASCII) is not None


def _has(value: str, part: str) -> bool:
    return part in (value, repr(value)[1:-1], _COUNTS.sub("", value)) or any(
        part in (piece.strip() for piece in between.split(value)) for between in _PARTS
    )


def _joined(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
