"""tests/durations.json: seconds of every test file and of the slowest cases, of the last run of each file.

`scripts/durations.py` runs the whole suite and records it; with arguments of pytest, such as paths and `-n 2`, it
records the files that run and keeps the figures of the others. `--show` runs nothing and prints the slowest tenth of
the files.
"""

import json
import os
import platform
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "durations.json"
SLOW_CASE = 5.0  # seconds from which a case is recorded by itself


class Durations:
    """Adds up the seconds that setup, call and teardown of each case take; a plug-in of pytest, of the main process
    under xdist.
    """

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def updated(record: dict, seconds: Counter[str]) -> dict:
    """The record with the figures of these cases in place of the older ones of their files; files that are gone go."""
    files: dict[str, list[float]] = defaultdict(list)
    slow: dict[str, dict[str, float]] = defaultdict(dict)
    for case, taken in seconds.items():
        file, _, name = case.partition("::")
        files[file].append(taken)
        if taken >= SLOW_CASE:
            slow[file][name] = round(taken, 1)
    date = datetime.now(UTC).date().isoformat()
    entries = {name: entry for name, entry in record.get("files", {}).items() if (ROOT / name).exists()}
    for file, times in files.items():
        entries[file] = {"seconds": round(sum(times), 1), "cases": len(times), "date": date}
        if slow[file]:
            entries[file]["slow"] = dict(sorted(slow[file].items(), key=lambda item: -item[1]))
    ordered = dict(sorted(entries.items(), key=lambda item: (-item[1]["seconds"], item[0])))
    return {
        "machine": machine(),
        "seconds": round(sum(entry["seconds"] for entry in ordered.values())),
        "files": ordered,
    }


def show(record: dict) -> None:
    """Prints the slowest tenth of the files with their slowest cases."""
    files = record["files"]
    shown = list(files.items())[: max(1, len(files) // 10)]
    share = sum(entry["seconds"] for _, entry in shown) / max(record["seconds"], 1)
    print(
        f"{record['seconds']:,} s in {len(files)} files; the slowest {len(shown)} take {share:.0%} of them "
        f"({record['machine']})"
    )
    for name, entry in shown:
        print(f"{entry['seconds']:8.1f} s  {entry['cases']:5} cases  {name}")
        for case, taken in list(entry.get("slow", {}).items())[:3]:
            print(f"{'':10} {taken:6.1f} s  {case}")


def main(arguments: list[str], path: Path = RECORD) -> int:
    record = json.loads(path.read_text()) if path.exists() else {}
    code = 0
    if "--show" not in arguments:
        durations = Durations()
        code = int(pytest.main(arguments, plugins=[durations]))
        record = updated(record, durations.seconds)
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    show(record)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
