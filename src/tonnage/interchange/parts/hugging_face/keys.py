"""How keys of the Hugging Face family and of DeepSpeed are read: files that others name, "auto", usual values."""

from collections.abc import Iterable
from typing import Any

from tonnage.interchange.reading import AUTO, Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

UNREADABLE = "the file cannot be read here: what it says is not known"
NOT_ESTIMATED = "not estimated"  # where the key itself says what


def put_file(values: dict[str, Any], key: str, source: Source) -> Source | None:
    """Add what the file says that a key names, below the key; None where there is no such file."""
    path = values.get(key)
    if not isinstance(path, str) or not path or path == AUTO:
        return None
    if path.lstrip().startswith("{"):
        put_mapping(values, key)
        return None
    try:
        file = source.sibling(path)
    except InvalidInput:
        return None
    values |= {f"{key}.{name}": value for name, value in flattened(tree_of(file)).items()}
    return file


def tree_of(source: Source) -> Any:
    """The mapping that a file has; InvalidInput where its top level is something else."""
    documents = source.documents
    if len(documents) == 1 and documents[0] is None:
        return {}
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("{file} must have names and values at its top level.", file=source.name)
    return source.tree


def put_mapping(values: dict[str, Any], key: str) -> None:
    """Take apart a mapping that is written as JSON in one word of a command."""
    text = values.get(key)
    if isinstance(text, str) and text.lstrip().startswith("{"):
        from tonnage.user_files import json_text

        try:
            tree = json_text.parse(text.encode(), key)
        except InvalidInput:
            return
        if isinstance(tree, dict):
            del values[key]
            values |= {f"{key}.{name}": value for name, value in flattened(tree).items()}


def expect(r: Reading, keys: Iterable[str], *usual: Any, why: str) -> None:
    """Keys that change nothing where they have a usual value, are null or "auto"; another may change memory or time."""
    for key in keys:
        if key not in r.values:
            continue
        value = r.values[key]
        if value is None or value == AUTO or any(_is_same(value, one) for one in usual):
            r.ignore([key])
        else:
            r.unsure(key, why)


def expect_section(r: Reading, section: str, why: str, switch: str = "enabled") -> None:
    """A section that changes nothing unless its switch is on, and is not estimated then."""
    keys = [*r.under(f"{section}."), section]
    on = r.flag(f"{section}.{switch}") if r.has(f"{section}.{switch}") else False
    for key in keys:
        if key in r.values and r.values[key] in (None, False):
            r.ignore([key])
        elif key in r.values and (on or not r.has(f"{section}.{switch}")):
            r.unsure(key, why)
        else:
            r.ignore([key])


def assume_auto(r: Reading, key: str, value: Any, option: str = "", why: str = "") -> None:
    """What "auto" stands for."""
    r.values[key] = None
    r.assume(key, value, option, why=why)


def default_of(tool: str, version: str) -> str:
    return Message("default of {tool} {version}", tool=tool, version=version)


def _is_same(value: Any, usual: Any) -> bool:
    """Equal, also where a number or a switch is written as a text."""
    if isinstance(value, str):
        return value.lower() == str(usual).lower()
    if isinstance(value, bool) or isinstance(usual, bool):
        return value is usual
    return bool(value == usual)
