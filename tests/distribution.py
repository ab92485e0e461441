"""Which of pytest-xdist's workers runs which test: a file whole, the files that took longest first.

A file stays on one worker, so that what its tests share is made once; all files of the page do, so that they share one
server and one browser. Short files come last, so that the workers end together.
"""

import json
from collections import Counter
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

RECORD = Path(__file__).with_name("durations.json")  # written by scripts/durations.py
TOGETHER = ("tests/page/",)
PER_CASE = 0.1  # seconds of a case of a file that is not in the record


def recorded_seconds(record: Path = RECORD) -> dict[str, float]:
    """Seconds of each file as recorded; nothing where there is no record."""
    if not record.exists():
        return {}
    return {name: entry["seconds"] for name, entry in json.loads(record.read_text())["files"].items()}


class LongestFirst(LoadFileScheduling):
    def __init__(self, config, log=None, seconds: dict[str, float] | None = None) -> None:
        super().__init__(config, log)
        self.seconds = recorded_seconds() if seconds is None else seconds
        self._of_unit: dict[str, float] = {}

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), super()._split_scope(nodeid))

    def _assign_work_unit(self, node) -> None:
        expected = {scope: self._expected(scope) for scope in self.workqueue}
        self.workqueue.move_to_end(max(expected, key=expected.__getitem__), last=False)
        super()._assign_work_unit(node)

    def _expected(self, scope: str) -> float:
        """Seconds that the tests of this unit will take."""
        if scope not in self._of_unit:
            cases = Counter(case.partition("::")[0] for case in self.workqueue[scope])
            self._of_unit[scope] = sum(self.seconds.get(file, PER_CASE * count) for file, count in cases.items())
        return self._of_unit[scope]
