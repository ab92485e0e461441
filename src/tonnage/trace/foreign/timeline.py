"""Memory timelines of PyTorch's profiler: export_memory_timeline, which is deprecated and still in use.

`.json`: [times, sizes by category]; `.raw.json`: rows of [time, action, bytes, category]
(torch/profiler/_memory_profiler.py, class MemoryProfileTimeline). Neither tells which free belongs to which allocation.
"""

from collections import Counter
from typing import Any

import msgspec

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.events import Category
from tonnage.trace.foreign._foreign import NOT_TOLD, Foreign
from tonnage.trace.foreign._history import checked

FORMAT = "PyTorch memory timeline"
# in the order of _CATEGORY_TO_COLORS, which numbers them: parameter, optimizer state, input, temporary, activation,
# gradient,
# autograd detail, None
COLUMNS: tuple[Category | None, ...] = (
    "parameter",
    "optimizer",
    "buffer",
    "temporary",
    "activation",
    "gradient",
    "temporary",
    None,
)
_CREATE, _INCREMENT, _DESTROY = 2, 3, 4
_PREEXISTING = 1


def from_json(data: bytes, where: str) -> Foreign:
    """Bytes by category over time. Raises InvalidInput."""
    try:
        content: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput("{where} is no memory timeline: {error}.", where=where, error=error) from None
    if not isinstance(content, list) or not content:
        raise InvalidInput("{where} is no memory timeline: it is no list, or an empty one.", where=where)
    if len(content) == 2 and all(isinstance(part, list) for part in content) and _is_table(content):
        return _summary(content[1], where)
    return _summary(_rows(content, where), where)


def _is_table(content: list[Any]) -> bool:
    times, sizes = content
    return len(times) == len(sizes) and bool(sizes) and all(isinstance(row, list) for row in sizes)


def _rows(actions: list[Any], where: str) -> list[list[int]]:
    """Sizes by category after each action; bytes of an action are signed."""
    now, rows = [0] * (1 + len(COLUMNS)), []
    for action in actions:
        if not (isinstance(action, list) and len(action) == 4 and all(isinstance(part, int) for part in action)):
            raise InvalidInput(
                "{where} is no memory timeline: an action is [time, action, bytes, category]. Got {action}.",
                where=where,
                action=str(action)[:80],
            )
        _, what, size, category = action
        if what not in (_PREEXISTING, _CREATE, _INCREMENT, _DESTROY) or not 0 <= category < len(COLUMNS):
            raise InvalidInput(
                "{where}: actions are 1 to 4 and categories 0 to {count}. Got {what} and {category}.",
                where=where,
                count=len(COLUMNS) - 1,
                what=what,
                category=category,
            )
        now[1 + category] += size
        if what != _INCREMENT or size > 0:  # a new version replaces the old one
            rows.append(now.copy())
    return rows


def _summary(rows: list[Any], where: str) -> Foreign:
    for row in rows:
        if not (isinstance(row, list) and len(row) == 1 + len(COLUMNS) and all(isinstance(size, int) for size in row)):
            raise InvalidInput(
                "{where}: a row of sizes has 0 and {count} categories. Got {row}.",
                where=where,
                count=len(COLUMNS),
                row=str(row)[:80],
            )
    peak = max(rows, key=sum)
    for total in (sum(peak), sum(rows[-1])):
        checked(total, where, "the timeline")
    sums: Counter[str] = Counter()
    distinguished: set[str] = set()
    for column, category in enumerate(COLUMNS, start=1):
        if peak[column]:
            sums[category or NOT_TOLD] += peak[column]
        if category is not None and any(row[column] for row in rows):
            distinguished.add(category)
    return Foreign(
        format=FORMAT,
        source=where,
        device="",
        allocated_peak=sum(peak),
        allocated_end=sum(rows[-1]),
        by_category=dict(sums),
        told=tuple(sorted(distinguished)),
        notes=("a memory timeline tells neither its device nor what the allocator held",),
    )
