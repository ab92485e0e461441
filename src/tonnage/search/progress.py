"""How far a search is, for whoever follows it: named counts of what is done, and of how much, where that is known
before the end.

>>> with followed(lambda what, done, of: print(what, done, "of", of)):
...     expect("cells", 2)
...     advance("cells")
...     advance("cells")
cells 1 of 2
cells 2 of 2

A search that nobody follows only looks whether somebody does. What is counted, by its name (docs/web_jobs_and_saved.md
has them for users):

machines        kinds of accelerators in each size that a plan to train looks at; `of` grows where it has to look at
                more of them
plans           plans of those machines that were decided, whatever became of them, of all of the space
estimated       of these, the ones that no bound turned away
configurations  of a plan to serve: machine, engine, precisions and parallel sizes
cells           of a comparison
estimates       of the search for the largest value
programs        integer programs of a placement on a pool
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Tell = Callable[[str, int, int | None], None]  # what is counted, how many are done, of how many
Hear = Callable[[Any], None]  # a document of the best plan so far


class _Follower:
    def __init__(self, tell: Tell, hear: Hear | None = None):
        self.tell, self.hear = tell, hear
        self.done: dict[str, int] = {}
        self.of: dict[str, int] = {}


_FOLLOWER: ContextVar[_Follower | None] = ContextVar("follower", default=None)


@contextmanager
def followed(tell: Tell, hear: Hear | None = None) -> Iterator[None]:
    """`tell` hears of every step inside. It is called often: it decides itself how much of it is passed on. `hear`:
    of each plan that is better than all before it, the first one as soon as there is one.
    """
    before = _FOLLOWER.set(_Follower(tell, hear))
    try:
        yield
    finally:
        _FOLLOWER.reset(before)


def expect(what: str, more: int) -> None:
    """Add `more` to the number that is to be done."""
    if (follower := _FOLLOWER.get()) is not None:
        follower.of[what] = follower.of.get(what, 0) + more


def advance(what: str, by: int = 1) -> None:
    """Add `by` to the number that is done."""
    if (follower := _FOLLOWER.get()) is not None:
        follower.done[what] = done = follower.done.get(what, 0) + int(by)
        follower.tell(what, done, follower.of.get(what))


def find(document: Callable[[], Any]) -> None:
    """Tell of a plan that is better than all before it; `document` is made only where somebody listens."""
    if (follower := _FOLLOWER.get()) is not None and follower.hear is not None:
        follower.hear(document())
