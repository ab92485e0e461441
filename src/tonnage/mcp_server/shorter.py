"""A document that is short enough to be read whole by an assistant: a part of the document that `--json` prints,
with nothing added or changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

LEVELS = {"memory": 2}  # of a breakdown below its first line
OTHERS = 1
LONGEST = 12  # entries of a list, the first ones
LEFT_OUT = frozenset({"phases", "ranks", "timeline", "inputs", "formula", "source", "combine", "why", "columns"})
SAYS = (
    f"This is a part of the document: without ranks and phases; memory down to {LEVELS['memory']} levels and "
    f"other breakdowns to {OTHERS}, "
    f'without inputs, sources and formulas; the first {LONGEST} entries of a list. Ask with "detail": "full" '
    "for all of it."
)


def shorter(document: Any, levels: int = OTHERS) -> Any:
    """The part that is kept; `levels`: how many a breakdown still has.

    >>> shorter(
    ...     {
    ...         "memory": {"name": "weights", "value": 8, "combine": "leaf", "inputs": {"N": 4}, "children": []},
    ...         "ranks": [1, 2],
    ...     }
    ... )
    {'memory': {'name': 'weights', 'value': 8}}
    """
    if isinstance(document, Mapping):
        return {
            name: shorter(item, _levels(name, levels))
            for name, item in document.items()
            if _kept(name, document, levels)
        }
    if isinstance(document, Sequence) and not isinstance(document, str):
        return [shorter(item, levels) for item in document[:LONGEST]]
    return document


def _levels(name: str, levels: int) -> int:
    return levels - 1 if name == "children" else LEVELS.get(name, levels)


def _kept(name: str, document: Mapping[str, Any], levels: int) -> bool:
    if "combine" in document and name in ("children", "text"):  # of a breakdown's node
        return name == "children" and levels > 0 and bool(document[name])
    return name not in LEFT_OUT
