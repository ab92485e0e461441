"""The search of one case: the largest value that fits for sure, the next one that does not, and what stands in
between.
"""

from bisect import bisect_right
from collections.abc import Callable

from msgspec import Struct

from tonnage.estimate.serving.limits import largest
from tonnage.kernel.message import Message
from tonnage.kernel.units import counted, human
from tonnage.search.maximum.case import Case, Limit, Outcome
from tonnage.search.maximum.serving import ServingRow


class SearchResult(Struct, frozen=True, kw_only=True):
    """`at`: the largest value that fits, `beyond`: the next one, None where there is none. `by_memory`: the largest
    that memory alone would let be, where something else binds; `perhaps`: the largest that is inside the error band;
    `by_estimate`: the largest that fits by the estimate itself.
    """

    limit: Limit
    at: Outcome | None = None
    beyond: Outcome | None = None
    by_memory: int | None = None
    perhaps: int | None = None
    by_estimate: int | None = None

    @property
    def value(self) -> int | None:
        return self.at.value if self.at else None


def search(case: Case, *, quick: bool = False) -> SearchResult:
    """An error of the least value is the user's: no other value would mend it. `quick`: the value and what binds it
    alone.
    """
    values = case.values
    first = case.ask(values[0])
    if first.error is not None:
        raise first.error
    last = len(values) - 1
    capped = bisect_right(values, case.cap[0]) - 1 if case.cap else last
    reached = largest(values, lambda value: case.ask(value).surely_over, look_beyond=case.uneven and not quick)
    if reached is None:
        perhaps, by_estimate = (None, None) if quick else _in_band(case, first, None, capped)
        return SearchResult(
            limit=first.limit or Limit(by="memory", text=_short(case, first)),
            beyond=first,
            perhaps=perhaps,
            by_estimate=by_estimate,
        )
    place = min(reached, capped) if capped >= 0 else reached
    if case.ask(values[place]).fits is not True:  # it holds again beyond
        place = largest(values[: place + 1], lambda value: case.ask(value).surely_over) or 0
        reached = place
    beyond = case.ask(values[place + 1]) if place < last else None
    at = case.ask(values[place])
    if case.cap and place == capped:
        over_cap = values[reached] if capped < reached < last else None
        return SearchResult(
            limit=case.cap[1], at=at, beyond=beyond, by_memory=over_cap if over_cap != at.value else None
        )
    limit = _limit(case, at, beyond)
    if quick:
        return SearchResult(limit=limit, at=at, beyond=beyond)
    perhaps, by_estimate = _in_band(case, at, place, capped)
    return SearchResult(
        limit=limit, at=at, beyond=beyond, by_memory=_by_memory(case, limit), perhaps=perhaps, by_estimate=by_estimate
    )


def _limit(case: Case, at: Outcome, beyond: Outcome | None) -> Limit:
    if beyond is None:
        return Limit(
            by="nothing",
            text=Message("larger than {at:,} was not tried: what is needed does not grow with it", at=at.value),
        )
    if beyond.limit is not None:
        return beyond.limit
    return Limit(by="memory", text=_short(case, beyond))


def _short(case: Case, outcome: Outcome) -> str:
    """The sentence that says which memory is too small for a value, and by how much."""
    over, usable = human(outcome.high - outcome.usable, "bytes"), human(outcome.usable, "bytes")
    unit = case.what.unit
    need = (
        Message("rank {found:,} needs", found=outcome.value)
        if unit == "rank"
        else Message("{found} needs" if outcome.value == 1 else "{found} need", found=counted(outcome.value, unit))
    )
    band = ", with the high end of the error band," if outcome.high > (outcome.needed or 0) else ""
    where = Message(" ({at})", at=at) if (at := case.where(outcome.value)) else ""
    return Message(
        "{need} {over} more{band} than the {usable} that are usable{where}",
        need=need,
        over=over,
        band=band,
        usable=usable,
        where=where,
    )


def _by_memory(case: Case, limit: Limit) -> int | None:
    """Where something else binds, what memory alone would let be."""
    if limit.by == "engine" and isinstance(case, ServingRow):
        return search(case.running_all(), quick=True).value
    if limit.by == "service level":
        place = largest(case.values, lambda value: case.ask(value).memory_over, look_beyond=case.uneven)
        return None if place in (None, len(case.values) - 1) else case.values[place or 0]
    return None


def _in_band(case: Case, largest: Outcome, place: int | None, capped: int) -> tuple[int | None, int | None]:
    """The largest value that is not too large for sure, and the largest by the estimate itself; None where no error
    band is known, or it is none of use.
    """
    if largest.low == largest.high and not case.has_bands_of_times:
        return None, None
    perhaps = _largest_by(case, lambda outcome: outcome.perhaps_over, place, capped)
    by_estimate = _largest_by(case, lambda outcome: outcome.estimate_over, place, capped)
    return (perhaps if perhaps != largest.value or place is None else None), by_estimate


def _largest_by(case: Case, over: Callable[[Outcome], float], place: int | None, capped: int) -> int | None:
    """The largest value from a place on that is not over by this measure."""
    start = place or 0
    last = largest(case.values[start:], lambda value: over(case.ask(value)), look_beyond=case.uneven)
    if last is None:
        return None
    return case.values[min(start + last, capped) if capped >= 0 else start + last]
