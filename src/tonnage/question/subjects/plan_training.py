"""Of a search for plans of training."""

from typing import Annotated

from tonnage.kernel.errors import InvalidInput
from tonnage.question.forms import size, word
from tonnage.question.option import Options, described, option

TOP = 5
MOST_TOP = 100


@described
class SearchOptions(Options, frozen=True, kw_only=True):
    """What was said about the search; None is the default."""

    goal: Annotated[
        str | None,
        option(
            "fastest, cheapest or fewest (accelerators)",
            word,
            unit="name",
            default="fastest of one machine; of several cheapest, or fewest where no price is known",
        ),
    ] = None
    top: Annotated[int | None, option("plans, or machines, that are shown", size, unit="plans", default="5")] = None
    max_accelerators: Annotated[
        int | None, option("of a machine that is named without a number", size, unit="accelerators", default="4096")
    ] = None
    pareto: Annotated[
        bool | None, option("also the machines that no other beats in time, money and number", default="off")
    ] = None
    exhaustive: Annotated[
        bool | None,
        option(
            "estimate every valid plan, also those that a bound shows to be worse: the same answer, slower",
            default="off",
        ),
    ] = None

    @property
    def shown(self) -> int:
        top = TOP if self.top is None else self.top
        if not 1 <= top <= MOST_TOP:
            raise InvalidInput("{@top} must be from 1 to {most_top}. Got {top}.", most_top=MOST_TOP, top=top)
        return top
