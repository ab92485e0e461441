"""What layers take on one kind of accelerators, and a run of them as a stage."""

from functools import cached_property
from itertools import accumulate
from math import inf
from typing import NamedTuple

from msgspec import Struct

SLACK = 1 + 1e-9  # of a limit: what rounding leaves of a sum that should equal it


class Costs(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What layers take on one kind of accelerators: seconds and bytes of each layer, of a stage besides, and of the
    first and the last one.

    `kept`: bytes of each layer for every micro-batch in flight. `usable`: of one accelerator; `most`: stages that the
    kind has room for.
    `host_bytes`: of each accelerator's part of host memory that weights may be in, of `weights` bytes a layer;
    `host_rate`: bytes a second in which they come.
    """

    seconds: tuple[float, ...]
    bytes: tuple[float, ...]
    usable: float
    most: int
    kept: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    fixed_seconds: float = 0.0
    fixed_bytes: float = 0.0
    first_seconds: float = 0.0
    first_bytes: float = 0.0
    last_seconds: float = 0.0
    last_bytes: float = 0.0
    host_bytes: float = 0.0
    host_rate: float = inf

    @cached_property
    def sums(self) -> tuple[list[float], list[float], list[float], list[float]]:
        """Running sums over layers: seconds, bytes, kept bytes, weights."""
        rows = (
            self.seconds,
            self.bytes,
            self.kept or (0.0,) * len(self.seconds),
            self.weights or (0.0,) * len(self.seconds),
        )
        seconds, held, in_flight, weights = ([0.0, *accumulate(row)] for row in rows)
        return seconds, held, in_flight, weights


class StageLayers(NamedTuple):
    """A stage: its kind, and its layers from `start` to before `stop`; `on_host`: bytes of their weights that are in
    host memory.
    """

    kind: int
    start: int
    stop: int
    on_host: float = 0.0

    @property
    def layers(self) -> int:
        return self.stop - self.start
