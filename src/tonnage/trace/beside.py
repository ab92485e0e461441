"""Compares predicted with real memory: totals, categories at the peak, stages.

Rules: each side is taken at its own peak. Categories of ours that the real file does not distinguish are summed with
its own words as "not told". Bytes are as requested; the rounding of blocks is a row of its own, so that the rows sum to
the allocated bytes. A difference is predicted minus real; its share is of the real figure.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from tonnage.kernel.encoding import encode
from tonnage.kernel.units import human
from tonnage.trace.events import CATEGORIES
from tonnage.trace.foreign import NOT_TOLD, Foreign
from tonnage.trace.recording import Recording
from tonnage.trace.replay import Replay

ROUNDING = "rounding"  # bytes of blocks beyond the requested ones


class Row(Struct, frozen=True):
    """One figure of both sides, in bytes; None where a side lacks it."""

    name: str
    predicted: int | None
    real: int | None

    @property
    def difference(self) -> int | None:
        return None if self.predicted is None or self.real is None else self.predicted - self.real

    @property
    def share(self) -> float | None:
        """The difference as a share of the real figure."""
        difference = self.difference
        return None if difference is None or not self.real else difference / self.real

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "predicted_bytes": self.predicted,
            "real_bytes": self.real,
            "difference_bytes": self.difference,
            "relative_error": self.share,
        }


class MemoryComparison(Struct, frozen=True, kw_only=True):
    """`totals`: peaks of allocated and reserved; `categories`: at the peaks, as requested; `stages`: allocated at
    stages that both name. `notes`: limits of the real file.
    """

    program: str
    source: str
    format: str
    device: str
    totals: tuple[Row, ...]
    categories: tuple[Row, ...]
    stages: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        data: dict[str, Any] = msgspec.json.decode(encode(self))
        for part in ("totals", "categories", "stages"):
            data[part] = [row.to_dict() for row in getattr(self, part)]
        return data

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """(name, predicted, real, difference, percent) as texts; an empty row before each part."""
        for part, name in (
            (self.totals, ""),
            (self.categories, "at the peak"),
            (self.stages, "allocated at the end of"),
        ):
            if part and name:
                yield (f"{name}:", "", "", "", "")
            for row in part:
                yield (row.name, _bytes(row.predicted), _bytes(row.real), _signed(row.difference), _percent(row.share))


def compare_with_real(recording: Recording, replay: Replay, foreign: Foreign) -> MemoryComparison:
    """Compare a replayed recording with a file of a real run."""
    totals = [Row("peak reserved", replay.peak_reserved_bytes, foreign.reserved_peak)]
    if foreign.allocated_peak is not None or foreign.reserved_peak is None:
        totals.insert(0, Row("peak allocated", replay.peak_allocated_bytes, foreign.allocated_peak))
    categories = () if foreign.allocated_peak is None else tuple(_categories(recording, replay, foreign))
    return MemoryComparison(
        program=recording.program,
        source=foreign.source,
        format=foreign.format,
        device=foreign.device,
        totals=tuple(totals),
        categories=categories,
        stages=tuple(_stages(replay, foreign)),
        notes=foreign.notes,
    )


def _categories(recording: Recording, replay: Replay, foreign: Foreign) -> Iterator[Row]:
    events = recording.events
    predicted: Counter[str] = Counter()
    for number in events.live_at(replay.peak_position):
        predicted[events.allocations[number].category] += events.allocations[number].bytes
    distinguished = [category for category in CATEGORIES if category in foreign.told]
    for category in distinguished:
        yield Row(category, predicted[category], foreign.by_category.get(category, 0))
    rest = _without(predicted, distinguished), _without(foreign.by_category, distinguished)
    if any(rest):
        yield Row(NOT_TOLD, *rest)
    held = replay.peak_allocated_bytes - sum(predicted.values())
    real = (foreign.allocated_peak or 0) - sum(foreign.by_category.values())
    if held or real:
        yield Row(ROUNDING, held, real)


def _without(by_category: Mapping[str, int], categories: Sequence[str]) -> int:
    return sum(size for category, size in by_category.items() if category not in categories)


def _stages(replay: Replay, foreign: Foreign) -> Iterator[Row]:
    """Stages that both name. Where a name repeats, as with microbatches, its last moment counts."""
    predicted = {stage.name: stage.allocated_bytes for stage in replay.stages}
    real = {stage.name: stage.allocated_bytes for stage in foreign.stages}
    for name, size in predicted.items():
        if name in real:
            yield Row(name, size, real[name])


def _bytes(size: int | None) -> str:
    return "not told" if size is None else human(size, "bytes")


def _signed(size: int | None) -> str:
    return "" if size is None else f"{'+' if size > 0 else ''}{human(size, 'bytes')}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:+.1%}"
