"""What is kept of an answer: enough to see how it changes, from version to version of a question or of tonnage."""

from typing import Any

from msgspec import Struct

from tonnage.kernel.message import Message
from tonnage.kernel.version import __version__

SAVED_VERBS = ("train", "serve", "plan", "max", "compare")
WORDS = {0: "fits", 2: "tight", 3: "does not fit", 4: "not known"}  # the exit status of the command line

BAD_INPUT = 64
MAX_REASON_LENGTH = 500  # characters


class Digest(Struct, frozen=True, kw_only=True):
    """`status`, `answer`: None until the question is answered; `answer` is in a few words. `needed_bytes`,
    `usable_bytes`: of the fullest GPU; `usd`: the price of what `usd_of` says. Figures that such an answer
    does not have are None.
    """

    tonnage: str
    command: str
    status: int | None
    answer: str | None
    needed_bytes: int | None = None
    usable_bytes: int | None = None
    usd: float | None = None
    usd_of: str | None = None


def digest(verb: str, document: dict[str, Any], status: int, command: str) -> Digest:
    """The digest of a whole answer: its document, exit status and command line."""
    figures = {"train": _estimate, "serve": _estimate, "plan": _plan, "max": _maximum, "compare": _comparison}[verb](
        document
    )
    return Digest(tonnage=__version__, command=command, status=status, **({"answer": WORDS.get(status, "")} | figures))


def unanswered(command: str) -> Digest:
    """The digest of a question whose figures are not computed yet."""
    return Digest(tonnage=__version__, command=command, status=None, answer=None)


def refused(command: str, message: str) -> Digest:
    """The digest of a question that has no answer, and why."""
    return Digest(tonnage=__version__, command=command, status=BAD_INPUT, answer=message[:MAX_REASON_LENGTH])


def _estimate(document: dict[str, Any]) -> dict[str, Any]:
    if "verdict" not in document:  # a frontier, or one's own machine
        return {}
    verdict, cost = document["verdict"], document.get("cost") or {}
    return {
        "needed_bytes": verdict["needed_bytes"],
        "usable_bytes": verdict["usable_bytes"],
        "usd": cost.get("value"),
        "usd_of": cost.get("name"),
    }


def _plan(document: dict[str, Any]) -> dict[str, Any]:
    if "pool" in document:
        usd = document.get("usd_per_hour")
        return {"answer": document["verdict"]["text"], "usd": usd, "usd_of": None if usd is None else "an hour"}
    if not document["plans"]:
        return {}
    best = document["plans"][0]
    figures = {name: best.get(name) for name in ("needed_bytes", "usable_bytes")} | {"answer": best["on"]}
    for name, of in (("cost", "the run"), ("usd_per_hour", "an hour"), ("usd_per_million_tokens", "a million tokens")):
        if best.get(name) is not None:
            return figures | {"usd": best[name], "usd_of": of}
    return figures


def _maximum(document: dict[str, Any]) -> dict[str, Any]:
    value, at = document.get("value"), document.get("at") or {}
    figures = {"needed_bytes": at.get("needed_bytes"), "usable_bytes": at.get("usable_bytes")}
    return (
        figures
        if value is None
        else figures | {"answer": f"{document.get('model') or f'{value:,}'} {document['unit']}".strip()}
    )


def _comparison(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "answer": Message(
            "{fits:,} of {count:,} fit", fits=document["counts"].get("fits", 0), count=len(document["cells"])
        )
    }
