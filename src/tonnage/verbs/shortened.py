"""A short part of a document that has no form of its own for that: of searches, tables and lists."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tonnage.documents.answer import LONGEST
from tonnage.documents.document import builtins, encode

LEFT_OUT = "left_out"
# Of the first level: whole answers inside others, and what says how a table is read.
NOT_SHOWN = frozenset({"best", "columns", "ranks", "phases"})
BESIDE = ("settings", "workloads")  # what goes first where the document is too long
FEW = (12, 4, 1)  # entries of every list, the first ones; of the longest list as many as there is room for
EMPTY: tuple[Any, ...] = (None, "", [], {})
ENOUGH = 8  # entries of the longest list, for which others are cut


def shortened(document: Any) -> dict[str, Any]:
    """Return the summary of a document, at most 8 kB: figures without their trees, inputs of the question without
    their reasons; where that is too long the first entries of lists, those of the longest
    without the keys that say nothing.
    `left_out`: key -> how many entries of it are not there.
    """
    whole = builtins(document)
    closed = {name: _closed(item) for name, item in whole.items() if name not in NOT_SHOWN or not _is_large(item)}
    if not _is_long(closed):
        return closed
    longest = max((name for name, item in closed.items() if isinstance(item, list)), key=_size_in(closed), default="")
    left_out = Counter({name: len(closed.pop(name)) for name in BESIDE if name in closed and name != longest})
    closed[longest] = [_told(entry) for entry in closed.get(longest, ())]
    for few in FEW:
        shown = _with_room(closed, longest, few, left_out.copy())
        if len(shown.get(longest, ())) >= min(ENOUGH, len(closed[longest])) and not _is_long(shown):
            break
    return _without_inputs(shown)


def _closed(item: Any) -> Any:
    """Without breakdowns, and reasons of inputs."""
    if isinstance(item, Mapping):
        if "combine" in item and "children" in item:
            return {name: item[name] for name in ("name", "value", "unit")}
        reason = "why" if "from" in item and "value" in item else ""
        return {name: _closed(value) for name, value in item.items() if name != reason}
    return [_closed(value) for value in item] if isinstance(item, list) else item


def _is_large(item: Any) -> bool:
    return isinstance(item, Mapping | list) and len(item) > 0


def _cut(item: Any, few: int, left_out: Counter[str], name: str = "entries") -> Any:
    """The first entries of every list inside."""
    if isinstance(item, Mapping):
        return {key: _cut(value, few, left_out, key) for key, value in item.items()}
    if not isinstance(item, list):
        return item
    if len(item) > few:
        left_out[name] += len(item) - few
    return [_cut(value, few, left_out, name) for value in item[:few]]


def _told(entry: Any) -> Any:
    """An entry of the longest list without what it does not say."""
    return {name: value for name, value in entry.items() if value not in EMPTY} if isinstance(entry, Mapping) else entry


def _with_room(document: Mapping[str, Any], longest: str, few: int, left_out: Counter[str]) -> dict[str, Any]:
    """With so `few` entries of every list, and of the longest as many as there is room for."""
    cut = {name: _cut(item, few, left_out, name) for name, item in document.items() if name != longest}
    entries = [_cut(entry, few, left_out) for entry in document[longest]]
    rest = cut | {longest: [], LEFT_OUT: {**left_out, longest: len(entries)}}
    room = LONGEST - len(encode(rest))
    shown_count = 0
    while shown_count < len(entries) and (room := room - len(encode(entries[shown_count])) - 1) >= 0:
        shown_count += 1
    if shown_count < len(entries):
        left_out[longest] = len(entries) - shown_count
    shown = {name: entries[:shown_count] if name == longest else cut[name] for name in document}
    return shown | ({LEFT_OUT: dict(left_out)} if left_out else {})


def _without_inputs(document: dict[str, Any]) -> dict[str, Any]:
    """Without inputs of the question, the longest first: texts of any length are given as some."""
    question = dict(document.get("question", {}))
    left_out: dict[str, int] = dict(document.get(LEFT_OUT, {}))
    while question and _is_long(document):
        del question[max(question, key=_size_in(question))]
        left_out["question"] = left_out.get("question", 0) + 1
        document = {**document, "question": question, LEFT_OUT: left_out}
    return document


def _size_in(items: Mapping[str, Any]) -> Any:
    return lambda name: len(encode(items[name]))


def _is_long(document: Any) -> bool:
    return len(encode(document)) > LONGEST
