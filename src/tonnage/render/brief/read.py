"""What was read of another tool's file or command, in the short text: its format, counts of its keys, and those that
were not understood.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from tonnage.language import say, worded
from tonnage.render.brief.layout import Page

NO_FILES = ("the command", "the text", "standard input")  # names of sources that cannot be read again
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


def model_shown(document: Mapping[str, Any]) -> str:
    """The model as people know it: its name, or the file that gives its dimensions alone."""
    if not is_unnamed(document):
        return str(document["question"]["model"]["value"])
    read = document["read"]
    fields = read["asks"].get("model") or read["asks"]
    file = say("the model of {file}", file=say(PurePath(read["file"]).name))
    layers, hidden = fields.get("num_hidden_layers"), fields.get("hidden_size")
    if not layers or not hidden:
        return file
    return say("{file} ({layers} layers, hidden {hidden})", file=file, layers=layers, hidden=hidden)


def is_unnamed(document: Mapping[str, Any]) -> bool:
    """Whether another tool's file gives the model by its dimensions, without a name that can be typed."""
    read = document.get("read")
    return read is not None and not isinstance(read["asks"].get("model"), str)


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
