"""Edit a file of another tool: change values, keep comments, order and unknown keys.

Values are put where the old ones stood, by the marks of the YAML parser, which reads JSON too. Keys that the file has
not come behind the last of their section.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.interchange.reading import flattened
from tonnage.interchange.source import Source, text_source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed

KINDS = ("json", "yaml")
_PLAIN = re.compile(r"[A-Za-z][\w./-]*")
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


class _Place(Struct, frozen=True):
    """Where a value stands: from `start` to `end` in the text; `indent` of its key, `is_flow`: between braces. Of a
    section, `end` is where another key goes.
    """

    start: int
    end: int
    indent: int
    is_flow: bool
    is_empty: bool = False


def edited(source: Source, written: str) -> str:
    """The text of `source` with the values of a file that was written. InvalidInput where it is no JSON or YAML with
    one document, or a value that would have to change is no scalar.
    """
    if source.kind not in KINDS or len(source.documents) != 1 or not source.tree:
        raise InvalidInput(
            "{file} is edited where it is JSON or YAML with one mapping: write a new file without --edit.",
            file=source.name,
        )
    new = flattened(text_source(written, f"new.{source.kind}").tree)
    old = flattened(source.tree)
    places, sections = _places(source.text)
    changes: list[tuple[int, int, str]] = []
    lists = [key for key, value in new.items() if key in old and old[key] != value and key not in places]
    if lists:
        raise InvalidInput(
            "{file}: {keys} would have to change, and are lists or sections: change them by hand.",
            file=source.name,
            keys=listed(lists),
        )
    added: dict[str, dict[str, Any]] = {}
    for key, value in new.items():
        if key in old:
            if old[key] != value:
                text = json.dumps(value) if source.kind == "json" else _scalar(value)
                changes.append((places[key].start, places[key].end, text))
            continue
        section, name = _owner(key, sections)
        _nest(added.setdefault(section, {}), name.split("."), value)
    for section, entries in added.items():
        place = sections[section]
        changes.append((place.end, place.end, _entries(entries, place, source.text)))
    text = source.text
    for start, end, value in sorted(changes, key=lambda change: change[0], reverse=True):
        text = text[:start] + value + text[end:]
    return text


def _owner(key: str, sections: Mapping[str, _Place]) -> tuple[str, str]:
    """The innermost section of a key that the file has, and the rest of the name."""
    parts = key.split(".")
    for count in range(len(parts) - 1, 0, -1):
        section = ".".join(parts[:count])
        if section in sections:
            return section, ".".join(parts[count:])
    return "", key


def _nest(tree: dict[str, Any], parts: Sequence[str], value: Any) -> None:
    """Put a value into sections of sections."""
    for part in parts[:-1]:
        tree = tree.setdefault(part, {})
    tree[parts[-1]] = value


def _entries(entries: Mapping[str, Any], section: _Place, text: str) -> str:
    """Keys with their values as they stand in a section."""
    if section.is_flow:
        before = ", " if text[section.start : section.end].count("\n") == 0 else f",\n{' ' * section.indent}"
        rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in entries.items()]
        first = "" if section.is_empty else before
        return first + before.join(rows)
    import yaml

    block = yaml.safe_dump(dict(entries), default_flow_style=False, sort_keys=False, allow_unicode=True)
    begins = "" if not section.end or text[: section.end].endswith("\n") else "\n"
    return begins + "".join(f"{' ' * section.indent}{line}\n" for line in block.splitlines())


def _scalar(value: Any) -> str:
    """As JSON has it, which YAML reads alike; a text of letters stays without quotes."""
    is_plain = isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_plain else json.dumps(value)


def _places(text: str) -> tuple[dict[str, _Place], dict[str, _Place]]:
    """Key -> where its scalar stands; section -> where another key of it goes. Inside lists nothing is looked for."""
    import yaml

    scalars: dict[str, _Place] = {}
    sections: dict[str, _Place] = {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = iter(list(yaml.parse(text, Loader=loader)))
    for event in events:
        if isinstance(event, yaml.MappingStartEvent):
            _mapping(text, events, event, "", scalars, sections)
            break
    return scalars, sections


def _mapping(
    text: str, events: Iterator[Any], start: Any, path: str, scalars: dict[str, _Place], sections: dict[str, _Place]
) -> int:
    """Take down a mapping that has begun; returns where its last value ends."""
    import yaml

    is_flow, is_empty = bool(start.flow_style), True
    begin = _start(start)
    indent, last = start.start_mark.column, begin + is_flow
    for key in events:
        if isinstance(key, yaml.MappingEndEvent):
            sections[path] = _Place(begin, _behind(text, last, is_flow), indent, is_flow, is_empty)
            return _end(key) if is_flow else last
        indent, is_empty = key.start_mark.column, False
        name = f"{path}.{getattr(key, 'value', '')}" if path else str(getattr(key, "value", ""))
        value = next(events)
        if isinstance(value, yaml.ScalarEvent):
            last = _end(value)
            scalars[name] = _Place(_start(value), last, indent, is_flow)
        elif isinstance(value, yaml.MappingStartEvent):
            last = _mapping(text, events, value, name, scalars, sections)
        else:
            last = _skipped(events, value)
    return last


def _start(event: Any) -> int:
    return int(event.start_mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


def _skipped(events: Iterator[Any], start: Any) -> int:
    """Where a list ends: one that is no block has its bracket there, a block its last scalar."""
    import yaml

    depth = int(isinstance(start, yaml.CollectionStartEvent))
    end = _end(start)
    while depth:
        event = next(events)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.ScalarEvent) or (depth == 0 and getattr(start, "flow_style", False)):
            end = _end(event)
    return end


def _behind(text: str, last: int, is_flow: bool) -> int:
    """Where a further key goes: behind the last value; of a block, behind its line."""
    if is_flow:
        return last
    line = text.find("\n", last)
    return len(text) if line < 0 else line + 1
