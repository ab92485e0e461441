"""The version of an engine that a row names, in the source's words, as one whose rules are known."""

from tonnage.kernel.errors import UnknownName, shown
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import number_of


def known_version(engine: str, text: str) -> tuple[str, str]:
    """The version to ask the estimator for ("" for the newest), and what was assumed ("" where the row says it)."""
    newest = serving_runtime(engine)
    if not text.strip():
        return "", f"the row names no version: the rules of {newest.version} are taken"
    try:
        serving_runtime(engine, text)
    except UnknownName:
        if number_of(text) is None:
            return "", f"{shown(text)} is no version: the rules of {newest.version} are taken"
        if not newest.older:
            return "", ""
        oldest = list(newest.older)[-1]
        return oldest, f"the rules of {newest.older[oldest].version} are taken, the oldest known"
    return text, ""
