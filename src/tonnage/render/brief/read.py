"""What was read of another tool's file or command, in the short text: its format, counts of its keys, and those that
were not understood.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tonnage.language import say, worded
from tonnage.render.brief.layout import Page

MOST = 4  # keys that are named


def add_read(page: Page, read: Mapping[str, Any]) -> None:
    page.dim(read_line(read))
    unclear = [key for key in read["keys"] if key["status"] == "not understood"]
    if unclear:
        page.blank()
        page.field("unclear", *(_unclear(key) for key in unclear[:MOST]))
    if len(unclear) > MOST:
        page.field("", say("and {count} more: `-v` lists all keys", count=len(unclear) - MOST))


def read_line(read: Mapping[str, Any]) -> str:
    """One line on the whole: what the file was read as, and how many of its keys were used."""
    counts = Counter(key["status"] for key in read["keys"])
    tool = say("{tool} {version}", tool=read["tool"], version=read["version"])
    for carrier in reversed(read["inside"]):
        tool = say("{tool} in {carrier}", tool=tool, carrier=carrier)
    keys = [
        say("{count} used", count=counts["used"]),
        say("{count} assumed", count=counts["assumed"]),
        say("{count} change nothing", count=counts["ignored"]),
    ]
    if counts["not understood"]:
        keys.append(say("{count} not understood", count=counts["not understood"]))
    return say(
        "{file} read as {tool}: of its keys {keys}", file=say(read["file"]), tool=tool, keys=say(", ").join(keys)
    )


def key_lines(read: Mapping[str, Any]) -> list[str]:
    """Every key, for the long text: its value, what it decides, and why."""
    lines = []
    for key in read["keys"]:
        decides = say(" -> {options}", options=", ".join(key["options"])) if key["options"] else ""
        why = say(" ({why})", why=worded(key["why"])) if key["why"] else ""
        status = say(key["status"])
        lines.append(f"  {status}: {key['key']} = {key['value']}{decides}{why}")
    return lines


def _unclear(key: Mapping[str, Any]) -> str:
    text = f"`{key['key']}` = {key['value']}"
    return say("{text}: {why}", text=text, why=worded(key["why"])) if key["why"] else text
