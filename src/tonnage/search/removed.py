"""Named constraints, and how many plans each took away: why nothing is left, and what came nearest."""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct


class Removed(Struct, frozen=True, kw_only=True):
    """Plans that a constraint took away, of those that the ones before it had left. `constraint`: a sentence that
    says what must hold.
    """

    constraint: str
    plans: int


class Tally:
    """Counts of a search: `considered` plans in all, and what each constraint removed, in the order in which they
    were asked.
    """

    def __init__(self) -> None:
        self.considered = 0
        self.without: dict[
            str, int
        ] = {}  # option -> plans that were estimated without it, as it does not apply to them
        self._removed: dict[str, int] = {}

    def consider(self, plans: int) -> None:
        self.considered += plans

    def remove(self, constraint: str, plans: int) -> None:
        """Also with none: a constraint that took nothing away is still one that was asked."""
        self._removed[constraint] = self._removed.get(constraint, 0) + int(plans)

    def leave_out(self, options: Iterable[str], plans: int) -> None:
        """These options do not apply to so many plans."""
        for name in options:
            self.without[name] = self.without.get(name, 0) + plans

    def hold(self, constraint: str, left: np.ndarray, holds: np.ndarray) -> np.ndarray:
        """`left` without the plans that break the constraint, which are counted."""
        self.remove(constraint, int(np.count_nonzero(left & ~holds)))
        return left & holds

    def add(self, other: "Tally") -> None:
        """The counts of another part of the same search."""
        self.considered += other.considered
        for constraint, plans in other._removed.items():
            self.remove(constraint, plans)

    @property
    def left(self) -> int:
        return self.considered - sum(self._removed.values())

    def __iter__(self) -> Iterator[Removed]:
        return (Removed(constraint=name, plans=plans) for name, plans in self._removed.items())
