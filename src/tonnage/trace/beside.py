"""Predicted and real memory side by side: totals, categories at the peak, stages.

Fair rules: each side is taken at its own peak. Categories of ours that the real file does not distinguish stand
together with its own words under "not told". Bytes are as requested; what blocks hold besides is a row of its own, so
that the rows sum to what is allocated. A difference is predicted less real; its share is of the real figure.
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

ROUNDING = "rounding"  # what blocks hold beside what was asked for


class Row(Struct, frozen=True):
    """One figure of both, in bytes; None where a side does not tell it."""

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


class Beside(Struct, frozen=True, kw_only=True):
    """`totals`: peaks of allocated and reserved; `categories`: at the peaks, as requested; `stages`: allocated at
    stages that both name. `notes`: what the real file cannot tell.
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
        """As JSON has it."""
        made: dict[str, Any] = msgspec.json.decode(encode(self))
        for part in ("totals", "categories", "stages"):
            made[part] = [row.to_dict() for row in getattr(self, part)]
        return made

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """(what, predicted, real, difference, percent) as texts; an empty one before each part."""
        for part, name in (
            (self.totals, ""),
            (self.categories, "at the peak"),
            (self.stages, "allocated at the end of"),
        ):
            if part and name:
                yield (f"{name}:", "", "", "", "")
            for row in part:
                yield (row.name, _bytes(row.predicted), _bytes(row.real), _signed(row.difference), _percent(row.share))


def beside(recording: Recording, replay: Replay, foreign: Foreign) -> Beside:
    """Compares a replayed recording with what a file tells of a real run."""
    totals = [Row("peak reserved", replay.peak_reserved_bytes, foreign.reserved_peak)]
    if foreign.allocated_peak is not None or foreign.reserved_peak is None:
        totals.insert(0, Row("peak allocated", replay.peak_allocated_bytes, foreign.allocated_peak))
    categories = () if foreign.allocated_peak is None else tuple(_categories(recording, replay, foreign))
    return Beside(
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
    made: Counter[str] = Counter()
    for number in events.live_at(replay.peak_position):
        made[events.allocations[number].category] += events.allocations[number].bytes
    told = [category for category in CATEGORIES if category in foreign.told]
    for category in told:
        yield Row(category, made[category], foreign.by_category.get(category, 0))
    rest = _without(made, told), _without(foreign.by_category, told)
    if any(rest):
        yield Row(NOT_TOLD, *rest)
    held = replay.peak_allocated_bytes - sum(made.values())
    real = (foreign.allocated_peak or 0) - sum(foreign.by_category.values())
    if held or real:
        yield Row(ROUNDING, held, real)


def _without(by_category: Mapping[str, int], told: Sequence[str]) -> int:
    return sum(size for category, size in by_category.items() if category not in told)


def _stages(replay: Replay, foreign: Foreign) -> Iterator[Row]:
    """Stages that both name. Where a name comes again, as with microbatches, its last moment counts."""
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
