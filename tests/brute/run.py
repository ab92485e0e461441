"""The brute force, whole or a part of it: `python -m brute.run --help`, with tests/ on the path (`make brute`).

It prints counts by family, and each class of fault once, with the command line of one case that shows it.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime

os.environ["TONNAGE_CHECK_TERMS"] = "1"  # before tonnage is imported
os.environ["TONNAGE_LANG"] = "en"
os.environ["HF_HUB_OFFLINE"] = "1"

from brute.cases import command, eased, numbers, sizes
from brute.check import Outcome, run_case

EASED = 5  # times that a random command line is tried, each time without the option that was refused


class Report:
    """Counts of cases, statuses and faults, and one reproducer for each class of fault."""

    def __init__(self) -> None:
        self.cases: Counter[str] = Counter()
        self.statuses: Counter[int | None] = Counter()
        self.faults: Counter[tuple[str, str]] = Counter()
        self.reproducers: dict[tuple[str, str], str] = {}
        self.slowest: list[tuple[float, str]] = []

    def add(self, other: "Report") -> None:
        self.cases += other.cases
        self.statuses += other.statuses
        self.faults += other.faults
        self.reproducers = {**other.reproducers, **self.reproducers}
        self.slowest = sorted(self.slowest + other.slowest, reverse=True)[:5]

    def ran(self, family: str, words: tuple[str, ...]) -> Outcome:
        """Run one case, and count it."""
        if os.environ.get("TONNAGE_BRUTE_TRACE"):
            print(time.strftime("%X"), *words, file=sys.stderr, flush=True)
        start = time.perf_counter()
        outcome = run_case(words)
        self.slowest = sorted([*self.slowest, (time.perf_counter() - start, outcome.reproducer)], reverse=True)[:5]
        self.cases[family] += 1
        self.statuses[outcome.status] += 1
        for kind, what in dict.fromkeys(outcome.faults):
            key = (kind, fault_class(what))
            self.faults[key] += 1
            self.reproducers.setdefault(key, f"{outcome.reproducer}    # {what}")
        return outcome

    def count(self, kind: str) -> int:
        """Faults of one kind: exceptions, or violations."""
        return sum(times for (each, _), times in self.faults.items() if each == kind)

    def lines(self) -> list[str]:
        cases = ", ".join(f"{family} {count:,}" for family, count in sorted(self.cases.items()))
        statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(self.statuses.items(), key=str))
        found = [
            f"cases {self.cases.total():,} ({cases})",
            f"statuses {statuses}",
            f"exceptions {self.count('exception'):,}",
            f"violations {self.count('violation'):,}",
        ]
        found += [f"slow: {seconds:.1f} s  {words}" for seconds, words in self.slowest if seconds > 5]
        for (kind, what), times in self.faults.most_common():
            found += [f"{kind} x {times:,}: {what}", f"    {self.reproducers[kind, what]}"]
        return found


def fault_class(what: str) -> str:
    """A fault without its numbers: faults that differ by these alone are counted as one."""
    return re.sub(r"-?\d[\d.,]*(?:e[+-]?\d+)?", "N", what)[:220]


def run_part(families: tuple[str, ...], seed: str, part: int, parts: int) -> Report:
    """Run every `parts`-th case of these families, from `part`."""
    report = Report()
    for family in families:
        for number in numbers(family, part, parts):
            words: tuple[str, ...] | None = command(family, number, seed)
            for _ in range(EASED if family == "random" else 1):
                if words is None:
                    break
                outcome = report.ran(family, words)
                words = eased(words, outcome.error) if outcome.status == 64 else None
    return report


def today() -> str:
    """The seed of a day."""
    return datetime.now(UTC).date().isoformat()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="brute.run", description=__doc__)
    parser.add_argument("--seed", default=today(), help="of what is drawn (default: the date)")
    parser.add_argument("--family", action="append", choices=list(sizes()), help="these alone (default: all)")
    parser.add_argument("--slice", default="0/1", help="part/parts: every parts-th case, from part (default: 0/1, all)")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    part, parts = map(int, given.slice.split("/"))
    families = tuple(given.family or sizes())
    pieces = given.processes * (1 if given.processes == 1 else 16)  # small pieces, so that none waits for the last
    report, start = Report(), time.perf_counter()
    if given.processes == 1:
        report.add(run_part(families, given.seed, part, parts))
    else:
        with ProcessPoolExecutor(given.processes) as pool:
            for made in pool.map(
                run_part,
                *zip(*[(families, given.seed, part + parts * at, parts * pieces) for at in range(pieces)], strict=True),
            ):
                report.add(made)
                print(f"{report.cases.total():,} cases, {time.perf_counter() - start:,.0f} s", file=sys.stderr)
    print(f"seed {given.seed}, slice {given.slice}, {time.perf_counter() - start:,.0f} s")
    print("\n".join(report.lines()))
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
