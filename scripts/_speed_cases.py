"""Rows of measured speed as the fit of rates takes them: what is predicted, what was measured, and which rows belong
together.
"""

import zlib
from pathlib import Path

from _rows_for_fits import rows_for_fits
from tonnage.estimate.hardware.rates import KIN, Rates
from tonnage.estimate.memory import Step
from tonnage.estimate.step_time.step import StepTime
from tonnage.kernel.errors import TonnageError
from tonnage.validation import Row
from tonnage.validation.training import TrainingRow, measured_seconds

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "validation" / "train_speed.yaml"
FOLDS = 8
SHARED = 16  # accelerators beyond which a shared network decides (nanotron's runs on a cluster of many users)
# Rows that no fit and no headline error counts, each with why.
LEFT_OUT = {
    "published-run": "whole runs whose layout nobody gives",
    "pythia": "hours of whole runs, with restarts, evaluation and checkpoints",
    "palm": "no runtime for it",
    "maxtext": "no runtime for it",
    "litgpt": "batches are as long as their longest sample",
}


class Case:
    """One row. `measured`: seconds of a step."""

    def __init__(self, row: Row, question: TrainingRow, measured: float):
        self.row, self.question, self.measured = row, question, measured
        self.id, self.source = row.id, question.publication
        self.step = Step(question.model, question.plan, question.cluster)
        self.runtime, self.kind = question.plan.runtime, question.kind
        self.weight = 0.5 if question.is_guessed else 1.0

    @property
    def generation(self) -> str:
        """The generation whose shares it takes."""
        name = self.question.cluster.accelerator.generation
        return KIN.get(name, name)

    @property
    def cell(self) -> tuple[str, str, str]:
        """Rows that are left out together: of one source, model and accelerator."""
        return self.source, self.question.model.name, self.question.cluster.accelerator.name

    @property
    def fold(self) -> int:
        return zlib.crc32(repr(self.cell).encode()) % FOLDS

    @property
    def on_shared_network(self) -> bool:
        return self.source == "nanotron" and self.question.cluster.size > SHARED

    def seconds(self, rates: Rates) -> float:
        """As predicted with these rates."""
        return float(StepTime(self.step, rates).seconds())


def cases(completeness: str = "full", everything: bool = False, recent: bool = False) -> list[Case]:
    """The rows that say all, by inputs that are not of their own figures. `everything`: also those of LEFT_OUT and of
    shared networks; `recent`: also those of new sources that are not left out for good.
    """
    rows, found = rows_for_fits([CORPUS], "train_speed", recent=recent), []
    for row in rows:
        if row.skipped or row.completeness_class != completeness:
            continue
        try:
            question = TrainingRow(row)
            case = Case(row, question, measured_seconds(question))
        except TonnageError:
            continue
        if everything or (case.source not in LEFT_OUT and not case.on_shared_network):
            found.append(case)
    return found


def release(case: Case) -> str:
    """The month of a container, where the row names one."""
    return case.row.labels.get("release", "")
