"""python scripts/rows FILE... [> rows.yaml]: rows of sources as rows of tonnage's own form (docs/rows.md), on stdout.

Hyper-parameters come from the row, then from rows of kind `params` in the files given and in
validation/sources/params.yaml, then from the catalogue. Rows that cannot be read are named on stderr, and stay in the
output with the reason. `python scripts/rows --rebuild` writes validation/*.yaml from validation/sources/*.yaml;
`--check` says which of them differ.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rows.convert import all_converted
from rows.source import Malformed, read, references_of
from rows.write import text
from tonnage.kernel.errors import TonnageError

VALIDATION = Path(__file__).resolve().parents[2] / "validation"
SOURCES = VALIDATION / "sources"
PARAMS = SOURCES / "params.yaml"
HEADER = "Written by scripts/rows from validation/sources/{name}: do not edit (make rows). Form: docs/rows.md"


def rows_of(files: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of these files in tonnage's own form, and a line for each that could not be read."""
    malformed: list[Malformed] = []
    found = read(files, malformed)
    references = references_of([*read([str(PARAMS)]), *found])
    made = all_converted(found, references)
    unread = [f"{each.id}: {each.reason}" for each in malformed]
    return made, [*unread, *(f"{row['id']}: {row['skipped']}" for row in made if "skipped" in row)]


def rebuilt() -> dict[Path, str]:
    """What each file of validation/ should hold."""
    return {
        VALIDATION / path.name: text(rows_of([str(path)])[0], HEADER.format(name=path.name))
        for path in sorted(SOURCES.glob("*.yaml"))
    }


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 64
    if arguments[0] in ("--rebuild", "--check"):
        every = rebuilt()
        stale = [path for path, made in every.items() if not path.exists() or path.read_text(encoding="utf-8") != made]
        for path in stale:
            if arguments[0] == "--rebuild":
                path.write_text(every[path], encoding="utf-8")
            print(f"{path.relative_to(VALIDATION.parent)}: {'written' if arguments[0] == '--rebuild' else 'differs'}")
        return int(bool(stale) and arguments[0] == "--check")
    try:
        made, unread = rows_of(arguments)
    except TonnageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 64
    print(text(made), end="")
    for line in unread:
        print(f"no question: {line}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
