"""Of a search for plans that serve users."""

from typing import Annotated

from tonnage.question.forms import size, word
from tonnage.question.option import Options, described, option


@described
class ServingPlanOptions(Options, frozen=True, kw_only=True):
    """What may be said about a search for a serving plan; None is the default, which the answer names."""

    goal: Annotated[
        str | None,
        option(
            "cost, accelerators, tpot, ttft, end-to-end, goodput or token-cost",
            word,
            unit="name",
            default=(
                "cost where a price is known, else accelerators; of given machines tpot, or goodput "
                "where no users are given"
            ),
        ),
    ] = None
    vary: Annotated[
        str | None,
        option(
            "engine, kv-cache, batch, disaggregation, or all: also search these",
            word,
            unit="names",
            default="none of them",
        ),
    ] = None
    max_accelerators: Annotated[
        int | None,
        option(
            "at most so many",
            size,
            short=("--max-gpus",),
            unit="accelerators",
            default="64 of a kind; a cluster as it is given",
        ),
    ] = None
    budget: Annotated[
        float | str | None,
        option(
            "the most that all machines may cost: 20/h, 500/day, 15k/month; a bare number is USD an hour",
            word,
            unit="USD",
            default="any",
        ),
    ] = None
    top: Annotated[int | None, option("how many plans are shown", size, unit="plans", default="5")] = None
    pareto: Annotated[
        bool | None,
        option("every plan that none beats in cost, time of a token and tokens a second together", default="off"),
    ] = None
