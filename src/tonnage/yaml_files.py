"""YAML files of rows, read within bounds: a small file can unfold into one that no memory holds, or nest too deep for a parser."""

from pathlib import Path
from typing import Any

from tonnage.errors import InvalidInput, shown

LARGEST = 64_000_000  # bytes of a file; 10,000 rows take about 10 MB
DEEPEST = 32
MOST_VALUES = 1_000_000  # with every alias written out


def load(path: Path) -> Any:
    """What the file holds; InvalidInput where it cannot be read, is no YAML, or unfolds beyond the bounds."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if path.stat().st_size > LARGEST:
            raise InvalidInput(f"{path} is larger than {LARGEST // 10**6} MB.")
        text = path.read_text(encoding="utf-8")
        _check(yaml.parse(text, Loader=loader), str(path))
        return yaml.load(text, loader)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None
    except InvalidInput:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise InvalidInput(f"{path} is not YAML: {' '.join(str(error).split())[:300]}") from None


def _check(events: Any, where: str) -> None:
    """Depth, and the number of values that the aliases stand for, before anything is built."""
    import yaml

    sizes: dict[str, int] = {}  # of what an anchor names
    opened: list[tuple[str | None, int]] = []  # anchors of what is not closed yet, and the count at its start
    count = rows = 0
    for event in events:
        rows += len(opened) == 1 and not isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, count))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, start = opened.pop()
            if anchor:
                sizes[anchor] = count - start + 1
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in opened):
                raise InvalidInput(f"{where}, row {rows}: {shown(event.anchor)} refers to itself.")
            count += sizes.get(str(event.anchor), 1)
        count += 1
        if len(opened) > DEEPEST:
            raise InvalidInput(f"{where}, row {rows}: it is nested more than {DEEPEST} deep.")
        if count > MOST_VALUES:
            raise InvalidInput(f"{where}, row {rows}: its aliases unfold into more than {MOST_VALUES:,} values.")
