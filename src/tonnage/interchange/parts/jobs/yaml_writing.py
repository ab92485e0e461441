"""Writes plain data as YAML, without PyYAML's anchors and with long commands as blocks."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"(?:--?)?[A-Za-z_/.$][\w./$()@+=-]*(?::(?=\S)[\w./$()@+=-]*)*(?: [\w./$()@+=-]+)*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", "~", ".inf", ".nan")


class Block(str):
    """A text that is written as it stands, over several lines."""


def dump(value: Mapping[str, Any]) -> str:
    return "\n".join(_mapping(value, "")) + "\n"


def _mapping(value: Mapping[str, Any], before: str) -> Iterator[str]:
    for name, inner in value.items():
        yield from _item(f"{before}{_scalar(name)}:", inner, before)


def _item(start: str, value: Any, before: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield start
        yield from _mapping(value, f"{before}  ")
    elif isinstance(value, list | tuple) and value:
        yield start
        for one in value:
            yield from _element(one, f"{before}  ")
    elif isinstance(value, Block):
        yield f"{start} |-"
        yield from (f"{before}  {line}".rstrip() for line in value.splitlines())
    else:
        yield f"{start} {_scalar(value)}"


def _element(value: Any, before: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        first, *rest = _mapping(value, f"{before}  ")
        yield f"{before}- {first.removeprefix(before + '  ')}"
        yield from rest
    elif isinstance(value, Block):
        yield f"{before}- |-"
        yield from (f"{before}  {line}".rstrip() for line in value.splitlines())
    else:
        yield f"{before}- {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS and len(value) < 200:
        return str(value)
    return json.dumps(value, ensure_ascii=False)
