"""Rows as YAML: the parts of a row on lines of their own, and what is inside a part on one."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from tonnage.kernel.message import Message, plain

# Parts of a row that are written over several lines, an entry each.
SPREAD = ("implied", "guessed", "from_measured")


class _Dumper(yaml.CSafeDumper if hasattr(yaml, "CSafeDumper") else yaml.SafeDumper):  # type: ignore[misc]
    """Without anchors, so that every row stands for itself."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_multi_representer(Message, lambda dumper, message: dumper.represent_str(plain(message)))


def text(rows: Iterable[Mapping[str, Any]], header: str = "") -> str:
    """The file."""
    return "".join(f"# {line}\n" for line in header.splitlines()) + "".join(map(_row, rows))


def _row(row: Mapping[str, Any]) -> str:
    lines = [line for name, value in row.items() for line in _part(name, value)]
    return "- " + "\n  ".join(lines) + "\n"


def _part(name: str, value: Any) -> list[str]:
    if name == "also":
        return [f"{name}:", *(f"  - {_inline(each)}" for each in value)]
    if name in SPREAD:
        return [f"{name}:", *(f"  {_inline(key)}: {_inline(each)}" for key, each in value.items())]
    return [f"{name}: {_inline(value)}"]


def _inline(value: Any) -> str:
    dumped = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9)
    return (
        str(dumped)
        .removesuffix("\n")
        .removesuffix("\n...")
        .strip()
        .replace("{'on': ", "{on: ")
        .replace(", 'on': ", ", on: ")
    )
