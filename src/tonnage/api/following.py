"""What a Python program hears of a search that goes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from tonnage.documents.plan import FoundPlanDocument
from tonnage.search.progress import followed


class SearchProgress(Struct, frozen=True):
    """How far a search is. `done` of `of` plans are decided, whatever became of them; `best`: the best plan so far,
    None before there is one.
    """

    done: int
    of: int
    best: FoundPlanDocument | None = None

    @property
    def percent(self) -> float:
        """The share of all plans that are decided, 0 to 100."""
        return 100 * self.done / self.of if self.of else 0.0


@contextmanager
def progress_told(tell: Callable[[SearchProgress], object]) -> Iterator[None]:
    """`tell` hears of every better plan, and of every percent of the search inside."""
    now = SearchProgress(0, 0)

    def count(what: str, done: int, of: int | None) -> None:
        nonlocal now
        if what != "plans":
            return
        before, now = now, SearchProgress(done, of or done, now.best)
        if int(now.percent) != int(before.percent):
            tell(now)

    def hear(plan: Any) -> None:
        nonlocal now
        now = SearchProgress(now.done, now.of, plan)
        tell(now)

    with followed(count, hear):
        yield
