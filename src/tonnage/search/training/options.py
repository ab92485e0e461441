"""What is said about a search for plans of training."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.question.subjects.plan import SearchOptions


class TrainingQuestion(Struct, frozen=True, kw_only=True, eq=False):
    """The whole question. `on`: names of machines, none for the catalogue; `vary`: values of other options to try;
    `reserve_bytes`: of each accelerator.
    """

    on: tuple[str, ...] = ()
    options: TrainingOptions = TrainingOptions()
    run: RunOptions = RunOptions()
    money: BillOptions = BillOptions()
    search: SearchOptions = SearchOptions()
    vary: Mapping[str, Sequence[Any]] = {}
    reserve_bytes: int = 0
