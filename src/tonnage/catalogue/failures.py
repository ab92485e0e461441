"""Published rates of failures: catalogue/failures/*.toml, a file for each cluster or run."""

from functools import cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import DAY

KIND = "failures"
LARGEST_RUN = "llama-3"  # of generations of which nobody published all that interrupts a run

Lost = Literal["process", "node", "several nodes"]


class Cause(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the failures; `loses`: what is gone with one, and the memory and the drives of it."""

    name: str
    failures: float
    loses: Lost


class FailureRate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Failures that somebody counted: of so many accelerators, in so many days. `counts`: what was counted; `default`:
    what is taken of its generation.
    """

    name: str
    accelerator: str
    generation: str
    failures: float
    accelerators: int
    days: float
    counts: str
    source: str
    as_of: str
    aliases: list[str] = []
    default: bool = False
    cause: tuple[Cause, ...] = ()

    @property
    def seconds(self) -> float:
        """The time in which they were counted."""
        return self.days * DAY

    def share(self, *lost: Lost) -> float:
        """The part of the failures that loses one of these; of causes that were not published InvalidInput."""
        if not self.cause:
            raise InvalidInput("no causes of the failures of {name} are known.", name=self.name)
        every = sum(each.failures for each in self.cause)
        return sum(each.failures for each in self.cause if each.loses in lost) / every


def failure_rates() -> tuple[str, ...]:
    """The names of all, by name."""
    return tuple(toml_files.names(KIND))


@cache
def failure_rate(name: str) -> FailureRate:
    """The rate of this name or alias; UnknownName for one that there is not."""
    path = toml_files.find(KIND, name)
    if path is None:
        raise unknown("failure rate", name, failure_rates())
    return load(path)


@cache
def rate_of_generation(generation: str) -> FailureRate:
    """What is taken of accelerators of this generation: its own, else that of the largest run."""
    own = (failure_rate(name) for name in failure_rates())
    return next((rate for rate in own if rate.default and rate.generation == generation), failure_rate(LARGEST_RUN))


def load(path: Path) -> FailureRate:
    """A file."""
    rate = toml_files.read(path, FailureRate)
    toml_files.date(rate.as_of, f"{path}: as_of")
    for value, name in ((rate.failures, "failures"), (rate.accelerators, "accelerators"), (rate.days, "days")):
        if not value > 0:
            raise InvalidInput("{path}: {name} must be above 0. Got {value:g}.", path=path, name=name, value=value)
    return rate
