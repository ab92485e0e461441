"""Earlier versions of an engine: the newest known at or below the one that is asked for."""

import re

from tonnage.errors import UnknownName, shown
from tonnage.runtimes._base import ServingRuntime


def at_version(newest: ServingRuntime, asked: str) -> ServingRuntime:
    """The rules of that version; the newest's where none is asked, and for what came after it.

    UnknownName for text that is no version, and for one that is older than all whose source was read.
    """
    if not asked.strip() or asked == newest.version:
        return newest
    wanted = number_of(asked)
    known = [newest, *newest.older.values()]
    if wanted is None or (len(known) == 1 and wanted < (0,)):
        raise UnknownName(f"version of {newest.name}: a number is needed, such as {known_versions(newest)[0]}. Got {shown(asked)}.")  # fmt: skip
    if len(known) == 1:
        return newest
    fitting = [each for each in known if (number_of(each.version) or ()) <= wanted]
    if not fitting:
        raise UnknownName(f"version of {newest.name}: the rules known are those of {', '.join(known_versions(newest))}; nothing is known of older ones. Got {shown(asked)}.")  # fmt: skip
    return max(fitting, key=lambda each: number_of(each.version) or ())


def known_versions(newest: ServingRuntime) -> list[str]:
    """Versions whose rules are known, the newest first."""
    return [version for each in (newest, *newest.older.values()) if (version := each.version.rpartition(" ")[2])]


def number_of(text: str) -> tuple[int, ...] | None:
    """ "vLLM 0.6.4.post1", "V1 0.8.x", "v0.19" -> (0, 6), (0, 8), (0, 19); None where no version stands."""
    found = re.search(r"(?<![\d.])(\d{1,4})\.(\d{1,4})", text)
    return (int(found[1]), int(found[2])) if found else None
