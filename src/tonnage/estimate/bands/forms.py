"""What an error band is, and tables of them."""

from collections.abc import Mapping
from math import ceil, floor

from msgspec import Struct

from tonnage.kernel.message import Message


class Band(Struct, frozen=True, kw_only=True):
    """Low and high as factors of an estimate, between which eight of ten measurements lie, each judged by those of
    other sources.

    `runtime`: runtime or engine of the runs it is about; `kind`: their method and objective, or the hardware family;
    both empty in the band of runs that nobody measured, which is made from all others;
    `rows`, `sources`: how many measurements made it, from how many publishers; `only`: the publisher, where there is
    one. `held`: the share of measurements inside a band that their own publisher had no part in; None where there is
    one publisher.
    """

    low: float
    high: float
    rows: int
    sources: int
    runtime: str = ""
    kind: str = ""
    only: str = ""
    held: float | None = None

    @property
    def what(self) -> str:
        """Whose measurements these are."""
        sources = (
            Message("{sources} sources", sources=self.sources)
            if self.sources > 1
            else Message("one source ({only})", only=self.only)
            if self.only
            else "one source"
        )
        if not self.runtime:
            return Message(
                "no published runs of this kind: as wide as {rows} runs of other kinds lie, from {sources}; eight in "
                "ten of a kind left out lie inside",
                rows=self.rows,
                sources=sources,
            )
        return Message(
            "of {rows} published runs with {runtime} and {kind}, from {sources}, eight in ten lie inside",
            rows=self.rows,
            runtime=self.runtime,
            kind=self.kind,
            sources=sources,
        )

    def around(self, needed: float) -> tuple[int, int]:
        """The band in bytes."""
        return floor(needed * self.low), ceil(needed * self.high)

    def below(self, usable: int) -> int:
        """The most whole bytes that are at most `usable` themselves and at the band's high end."""
        needed = min(floor(usable / self.high), usable)
        while needed < usable and ceil((needed + 1) * self.high) <= usable:
            needed += 1
        while needed > 0 and ceil(needed * self.high) > usable:
            needed -= 1
        return needed


class Table(Struct, frozen=True, kw_only=True):
    """All bands of one quantity by the two words that tell the kind of run, and the vendors of the machines that
    were measured. `others`: the band of runs of any other kind, on any machine.
    """

    bands: Mapping[tuple[str, str], Band]
    vendors: tuple[str, ...]
    others: Band | None = None

    def find(self, first: str, second: str, vendor: str) -> Band | None:
        return self.bands.get((first, second)) if vendor in self.vendors else None
