"""What is said about a search for plans of training."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidInput

TOP = 5
MOST_TOP = 100


class SearchOptions(Struct, frozen=True, kw_only=True):
    """What was said about the search; None is the default.

    - goal [name]: fastest, cheapest or fewest accelerators (default: cheapest where machines are compared and a price is known, else fastest)
    - top [plans]: plans, or machines, that are shown (default: 5)
    - max_accelerators [accelerators]: of a machine that is named without a number (default: 4096)
    - pareto [switch]: also the machines that no other beats in time, money and number: no machine is passed over for being slower or dearer than the best (default: off)
    - exhaustive [switch]: estimate every valid plan, also those that a bound shows to be worse: the same answer, slower (default: off)
    """

    goal: str | None = None
    top: int | None = None
    max_accelerators: int | None = None
    pareto: bool | None = None
    exhaustive: bool | None = None

    @property
    def shown(self) -> int:
        top = TOP if self.top is None else self.top
        if not 1 <= top <= MOST_TOP:
            raise InvalidInput(f"top must be from 1 to {MOST_TOP}. Got {top}.")
        return top


class Asked(Struct, frozen=True, kw_only=True, eq=False):
    """The whole question. `on`: names of machines, none for the catalogue; `vary`: values of other options to try; `reserve_bytes`: of each accelerator."""

    on: tuple[str, ...] = ()
    options: TrainingOptions = TrainingOptions()
    run: RunOptions = RunOptions()
    money: BillOptions = BillOptions()
    search: SearchOptions = SearchOptions()
    vary: Mapping[str, Sequence[Any]] = {}
    reserve_bytes: int = 0
