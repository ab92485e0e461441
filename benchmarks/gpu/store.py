"""Rows and failures on disk: a line of JSON each, written whole as soon as it is there. Needs nothing but Python."""

import json
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROWS, FAILURES = "rows.jsonl", "failures.jsonl"
_YAML_ID = re.compile(r"^- id: ['\"]?([^'\"\n]+?)['\"]?\s*$", re.MULTILINE)


class Store:
    """A folder of rows. `known`: more folders, whose rows count as done."""

    def __init__(self, folder: Path, known: Iterable[Path] = ()):
        self.folder = folder
        self.known = tuple(known)
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, row: dict[str, Any]) -> None:
        _append(self.folder / ROWS, row)

    def failed(self, identity: str, status: str, message: str) -> None:
        """`status`: crashed, timeout, or unsupported, which is final."""
        made = {
            "id": identity,
            "status": status,
            "message": message[-2000:],
            "date": datetime.now(UTC).date().isoformat(),
        }
        _append(self.folder / FAILURES, made)

    def rows(self) -> list[dict[str, Any]]:
        """Of this folder's own lines; a row measured twice as it was measured last."""
        return list({row["id"]: row for row in _lines(self.folder / ROWS)}.values())

    def failures(self) -> list[dict[str, Any]]:
        return [each for folder in self._folders() for each in _lines(folder / FAILURES)]

    def done(self) -> set[str]:
        """Ids that need not be measured: rows, and what is known not to be possible."""
        found = {
            row["id"]
            for folder in self._folders()
            for path in sorted(folder.glob("*.jsonl"))
            if path.name != FAILURES
            for row in _lines(path)
        }
        for folder in self._folders():
            for path in sorted(folder.glob("*.yaml")):
                found |= set(_YAML_ID.findall(path.read_text(encoding="utf-8")))
        return found | {each["id"] for each in self.failures() if each.get("status") == "unsupported"}

    def _folders(self) -> list[Path]:
        return [folder for folder in dict.fromkeys((self.folder, *self.known)) if folder.is_dir()]

    def merge(self) -> dict[str, int]:
        """Rows into one YAML file for each device and version: file names and their rows. Needs PyYAML."""
        from tonnage.measure.environment import key
        from tonnage.measure.rows import merge

        by_file: dict[str, list[dict[str, Any]]] = {}
        for row in self.rows():
            by_file.setdefault(f"{key(row['config'])}.yaml", []).append(row)
        head = "# Measured by benchmarks/gpu/run.py; its README says what each row is for.\n"
        return {name: merge(self.folder / name, rows, head) for name, rows in sorted(by_file.items())}


def _append(path: Path, made: dict[str, Any]) -> None:
    """One write a line: a process that is killed leaves no half of one."""
    broken = path.is_file() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    line = (("\n" if broken else "") + json.dumps(made, ensure_ascii=False) + "\n").encode()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line)
        os.fsync(handle)
    finally:
        os.close(handle)


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            made = json.loads(line)
        except ValueError:  # the machine stopped in the middle of it
            continue
        if isinstance(made, dict) and isinstance(made.get("id"), str):
            found.append(made)
    return found
