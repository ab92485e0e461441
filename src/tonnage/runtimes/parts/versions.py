"""Earlier versions of an engine: the newest known at or below the one that is asked for."""

import re

from tonnage.kernel.errors import UnknownName, shown
from tonnage.kernel.message import Message, listed
from tonnage.runtimes.parts.serving import ServingRuntime


def at_version(newest: ServingRuntime, asked: str) -> ServingRuntime:
    """The rules of that version; the newest's where none is asked, and for what came after it.

    UnknownName for text that is no version, and for one that is older than all whose source was read. Between builds
    that were read (llama.cpp's "b4000") lie hundreds, of which nobody knows where the rules changed: an earlier one is
    asked for by its own number.
    """
    if not asked.strip() or asked == newest.version:
        return newest
    wanted = number_of(asked)
    known = known_versions(newest)
    if wanted is None:
        such = Message("such as {known}", known=known[0]) if known else "such as 1.0"
        raise UnknownName(
            Message(
                "version of {newest}: a number is needed, {such}. Got {asked}.",
                newest=newest.name,
                such=such,
                asked=shown(asked),
            )
        )
    if not newest.older:
        return newest
    is_build = len(wanted) == 1
    if is_build != (len(number_of(newest.version) or ()) == 1):
        raise UnknownName(
            Message(
                "version of {newest}: the rules known are those of {known}. Got {asked}.",
                newest=newest.name,
                known=listed(known),
                asked=shown(asked),
            )
        )
    fitting = [
        each
        for each in (newest, *newest.older.values())
        if _covers(each, wanted, exact=is_build and each is not newest)
    ]
    if not fitting:
        raise UnknownName(
            Message(
                "version of {newest}: the rules known are those of {known}; nothing is known of others. Got {asked}.",
                newest=newest.name,
                known=listed(known),
                asked=shown(asked),
            )
            if is_build
            else Message(
                "version of {newest}: the rules known are those of {known}; nothing is known of older ones. "
                "Got {asked}.",
                newest=newest.name,
                known=listed(known),
                asked=shown(asked),
            )
        )
    return max(fitting, key=lambda each: number_of(each.version) or ())


def _covers(rules: ServingRuntime, wanted: tuple[int, ...], exact: bool) -> bool:
    """Whether the rules hold at a version; "0.5" is the last of its kind, so that 0.5.9 is not too new for it."""
    since = (number_of(rules.version) or ())[: len(wanted)]
    return since == wanted if exact else since <= wanted


def known_versions(newest: ServingRuntime) -> list[str]:
    """Versions whose rules are known, the newest first; none where an engine's have no number."""
    return [each.version.rpartition(" ")[2] for each in (newest, *newest.older.values()) if number_of(each.version)]


def number_of(text: str) -> tuple[int, ...] | None:
    """ "vLLM 0.6.4.post1", "V1 0.8.x", "v0.19", "llama.cpp b4000" -> (0, 6, 4), (0, 8), (0, 19), (4000,); None where
    no version stands.
    """
    found = re.search(r"(?<![\d.])(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    if found:
        return tuple(int(part) for part in found.groups() if part)
    build = re.search(r"(?<![\w.])b(\d{3,6})(?!\w)", text)
    return (int(build[1]),) if build else None
