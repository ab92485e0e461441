"""What a case gets: the device, what is done already, where rows go."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.store import Store
from tonnage.measure.device import Device
from tonnage.measure.environment import key
from tonnage.measure.rows import Row, figure_row

TOOL = "benchmarks/gpu/run.py"


@dataclass(kw_only=True)
class Context:
    """`items`: those still to do; `deadline`: of time.monotonic, after which no further item is begun."""

    device: Device
    environment: dict[str, Any]
    store: Store
    items: tuple[str, ...]
    deadline: float
    name: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def folder(self) -> Path:
        return self.store.folder

    def id(self, item: str) -> str:
        return f"{key(self.environment)}-{item}"

    def late(self) -> bool:
        return time.monotonic() >= self.deadline

    def emit(self, row: Row) -> None:
        self.store.append(row)

    def figure(
        self,
        item: str,
        kind: str,
        config: dict[str, Any],
        measured: tuple[str, float, str],
        also: Iterable[tuple[str, Any, str]] = (),
        note: str = "",
    ) -> None:
        """A row of one figure."""
        self.emit(figure_row(self.id(item), kind, config, self.environment, measured, also, TOOL, note))

    def unsupported(self, item: str, reason: str) -> None:
        """This device or this PyTorch cannot: it is not tried again."""
        self.store.failed(self.id(item), "unsupported", reason)
