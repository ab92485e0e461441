"""Runs cases under a budget of time: those never tried first, each only where it can be expected to end in time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from gpu.cases import Case
from gpu.harness import Outcome

LEAST_LIMIT = 30.0  # seconds that the cheapest case may take before it counts as hung


@dataclass(kw_only=True)
class Pace:
    """How much longer cases take here than was reckoned: the estimates are of an H100."""

    ratios: list[float] = field(default_factory=list)

    def note(self, case: Case, seconds: float) -> None:
        self.ratios.append(seconds / case.seconds)

    def expected(self, case: Case) -> float:
        return case.seconds * (max(1.0, median(self.ratios[-9:])) if len(self.ratios) >= 3 else 1.0)


@dataclass(kw_only=True)
class Summary:
    done: list[str] = field(default_factory=list)
    failed: dict[str, Outcome] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    """For lack of time."""


def todo(
    cases: Iterable[Case], done: set[str], failures: Iterable[str], key: str
) -> list[tuple[Case, tuple[str, ...]]]:
    """Cases with the items that have no row yet; those that failed before come last."""
    failed = set(failures)
    left = [(case, tuple(item for item in case.items if f"{key}-{item}" not in done)) for case in cases]
    left = [(case, items) for case, items in left if items]
    return sorted(left, key=lambda each: f"{key}-{each[0].name}" in failed)


def run(
    left: Iterable[tuple[Case, tuple[str, ...]]],
    budget: float,
    clock: Callable[[], float],
    start: Callable[[Case, tuple[str, ...], float], Outcome],
    failed: Callable[[Case, Outcome], Any],
    say: Callable[[str], Any] = lambda line: None,
) -> Summary:
    """`clock`: seconds since the whole began; `start` runs items of a case within so many seconds. What has no time
    left is skipped, and a cheaper case after it may still run.
    """
    pace, summary = Pace(), Summary()
    for case, items in left:
        before = clock()
        remaining, expected = budget - before, pace.expected(case) * _share(case, items)
        if expected > remaining:
            summary.skipped.append(case.name)
            continue
        outcome = start(case, items, min(remaining, max(LEAST_LIMIT, 4 * expected)))
        taken = clock() - before
        say(f"{clock():6.1f} s  {outcome.status:<8} {taken:5.1f} s  {case.name}")
        if outcome.status == "done":
            summary.done.append(case.name)
            pace.note(case, taken / _share(case, items))
        else:
            summary.failed[case.name] = outcome
            failed(case, outcome)
    return summary


def _share(case: Case, items: tuple[str, ...]) -> float:
    """A case of many items that has only some left takes less, though never less than its start."""
    return max(len(items) / len(case.items), 0.2)
