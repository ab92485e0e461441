"""Error bands of estimates: how far published measurements lie from them, by kind of run.

The figures are in `_bands.py`, which `scripts/fit_bands.py` writes from the corpus of measurements; a band is a pair of factors of
the estimate. What no measurement is near to has none.
"""

from math import ceil, floor

from msgspec import Struct

from tonnage.spec import Cluster, TrainingPlan

ALL = "all runtimes"


class Band(Struct, frozen=True, kw_only=True):
    """Low and high as factors of an estimate, between which eight of ten measurements lie, each judged by those of other sources.

    `kind`: the runs it is about; `rows`, `sources`: how many measurements made it, from how many sources.
    """

    kind: str
    low: float
    high: float
    rows: int
    sources: int

    @property
    def what(self) -> str:
        """Whose measurements these are."""
        sources = f"{self.sources} sources" if self.sources > 1 else "one source"
        return f"of {self.rows} published runs with {self.kind}, from {sources}, eight in ten lie inside"

    def around(self, needed: float) -> tuple[int, int]:
        """The band in bytes."""
        return floor(needed * self.low), ceil(needed * self.high)


def band_of(runtime: str, vendor: str = "NVIDIA", method: str = "full") -> Band | None:
    """The band of the measurements nearest in kind: of this runtime, else of all; None for machines or methods that none is about."""
    from tonnage.estimate import _bands

    table = _bands.TRAIN_MEMORY
    if vendor not in table.vendors or method not in table.methods:
        return None
    return table.runtimes.get(runtime) or table.all


class Table(Struct, frozen=True, kw_only=True):
    """All bands of one quantity, and the machines and methods that its measurements are about."""

    all: Band | None
    runtimes: dict[str, Band]
    vendors: tuple[str, ...]
    methods: tuple[str, ...]


def training_band(plan: TrainingPlan, cluster: Cluster) -> Band | None:
    """The band of a training run's memory."""
    return band_of(plan.runtime, cluster.accelerator.vendor, getattr(plan, "method", "full"))


def highest(plan: TrainingPlan, cluster: Cluster, needed: float) -> int:
    """The bytes that must be usable for the run to fit for sure: the band's high end, or what is needed where there is none."""
    band = training_band(plan, cluster)
    return band.around(needed)[1] if band else ceil(needed)
