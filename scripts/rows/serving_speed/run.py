"""What is known of one run of an engine: what its row says, what its source's scripts imply, and what nobody says."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from rows.source import Row
from rows.training.config import Config


class Run:
    """One row on its way to a question.

    `plan`, `load`: fields of ServingPlan and Load; `gpus`: of the replica, 0: as many as the plan has ranks; `rounds`:
    requests that each user of a benchmark sends, None: it goes on for ever; `precision`: what the weights are in, in
    the source's words; `quantization`: a quantization_config in place of the model's own. `notes`: what was taken that
    the row does not say; `is_guessed`: something of it nobody says; `from_measured`: inputs that were taken from the
    figures of the row. `completeness`: where it is another than the row says.
    """

    def __init__(self, row: Row):
        self.row, self.config = row, Config(row.config)
        self.plan: dict[str, Any] = {}
        self.load: dict[str, Any] = {}
        self.rounds: int | None = None
        self.gpus = 0
        self.precision = ""
        self.quantization: Mapping[str, Any] | None = None
        self.notes: list[str] = []
        self.whence: dict[str, str] = {}
        self.guesses: dict[str, str] = {}
        self.from_measured: dict[str, str] = {}
        self.completeness = ""

    def note(self, text: str) -> None:
        """Something that was taken and that the source's own scripts or documents say."""
        self.notes.append(text)

    def imply(self, name: str, why: str) -> None:
        """Where an input comes from that the source's own scripts or documents say."""
        self.whence[name] = why

    def guess(self, about: str, why: str) -> None:
        """Something that was taken and that nobody says: an input, or what else it is about."""
        self.guesses[about] = f"{self.guesses[about]}; {why}" if about in self.guesses else why

    def take_from_measured(self, name: str, why: str) -> None:
        """An input that was taken from the figures that the row is compared with."""
        self.from_measured[name] = why

    @property
    def is_guessed(self) -> bool:
        return bool(self.guesses)

    @property
    def engine(self) -> str:
        return str(self.plan.get("engine", ""))

    @property
    def ranks(self) -> int:
        """Of the plan, as far as it is known."""
        sizes = ("tensor_parallel_size", "pipeline_parallel_size", "attention_data_parallel_size", "data_parallel_size")
        ranks = 1
        for name in sizes:
            ranks *= int(self.plan.get(name) or 1)
        return ranks


class Source(Struct, frozen=True, kw_only=True):
    """One publication. `pattern`: of the row's source. `rules`: what its rows mean and its scripts imply.
    `accelerator`: the catalogue's name of one that its rows name in other words.
    """

    name: str
    pattern: str
    rules: Callable[[Run], None]
    accelerators: Mapping[str, str] = {}
