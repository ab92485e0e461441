"""Choose the rows of new sources that are left out of fits and bands for good: `left_out` of validation/recent/*.yaml.

Of the rows of a publication that nobody has decided on, those whose ids have the least hashes, at least a quarter of
them: nobody chooses, and nothing in a row but its name counts. A mark is never changed, so a row that was left out
once stays so, and one that a fit has read is never called unseen.

python scripts/leave_out.py [FILE ...]      without files: all of validation/recent
"""

import hashlib
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from _rows_for_fits import RECENT

SHARE = 0.25


def place(identity: str) -> str:
    """What orders rows: a hash of the row's id."""
    return hashlib.sha256(identity.encode()).hexdigest()


def chosen(rows: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Of each row without a mark, whether it is left out."""
    waiting: dict[str, list[str]] = {}
    for row in rows:
        if "left_out" not in row:
            waiting.setdefault(row.get("labels", {}).get("publication", ""), []).append(row["id"])
    found: dict[str, bool] = {}
    for names in waiting.values():
        ordered = sorted(names, key=place)
        count = math.ceil(SHARE * len(names))
        found |= {name: number < count for number, name in enumerate(ordered)}
    return found


def marked(text: str, found: Mapping[str, bool]) -> str:
    """The file with the marks of these rows, each in a line after its id."""

    def with_mark(head: re.Match[str]) -> str:
        name = str(yaml.safe_load(head[1]))
        return f"{head[0]}\n  left_out: {str(found[name]).lower()}" if name in found else head[0]

    return re.sub(r"^- id: (.*)$", with_mark, text, flags=re.MULTILINE)


def main(files: Iterable[str]) -> None:
    for path in [Path(name) for name in files] or sorted(RECENT.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        found = chosen(yaml.safe_load(text))
        path.write_text(marked(text, found), encoding="utf-8")
        print(f"{path.name}: {sum(found.values())} of {len(found)} rows without a mark are left out")


if __name__ == "__main__":
    main(sys.argv[1:])
