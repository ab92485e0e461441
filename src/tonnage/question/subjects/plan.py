"""Options of a search for plans that serve users."""

from typing import Annotated

from tonnage.kernel.errors import InvalidInput
from tonnage.question.forms import number, size, word
from tonnage.question.option import SEARCH, Option, Options, Usual, described, option

# ---- Of a search for plans that serve users.


@described
class ServingPlanOptions(Options, frozen=True, kw_only=True):
    """Options of a search for serving plans; None is the default, which the answer names."""

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
            usual=Usual(SEARCH, "cost, accelerators, tpot, ttft, goodput", "NAME", "cost"),
        ),
    ] = None
    vary: Annotated[
        str | None,
        option(
            "engine, kv-cache, batch, disaggregation, or all: also search these",
            word,
            unit="names",
            default="none of them",
            usual=Usual(SEARCH, "engine, kv-cache, batch, disaggregation or all", "NAMES"),
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
            usual=Usual(SEARCH, "at most so many", "N"),
        ),
    ] = None
    budget: Annotated[
        float | str | None,
        option(
            "the most that all machines may cost: 20/h, 500/day, 15k/month; a bare number is USD an hour",
            word,
            unit="USD",
            default="any",
            usual=Usual(SEARCH, "the most it may cost: 20/h, 500/day, 15k/month", "USD"),
        ),
    ] = None
    top: Annotated[
        int | None,
        option(
            "how many plans are shown",
            size,
            unit="plans",
            default="5",
            usual=Usual(SEARCH, "plans that are shown", "N"),
        ),
    ] = None
    pareto: Annotated[
        bool | None,
        option("every plan that none beats in cost, time of a token and tokens a second together", default="off"),
    ] = None


# ---- Of a search for plans of training.

TOP = 5
MOST_TOP = 100


@described
class SearchOptions(Options, frozen=True, kw_only=True):
    """Options of a search for training plans; None is the default."""

    goal: Annotated[
        str | None,
        option(
            "fastest, cheapest or fewest (accelerators)",
            word,
            unit="name",
            default="fastest of one machine; of several cheapest, or fewest where no price is known",
            usual=Usual(SEARCH, "fastest (one machine), cheapest (several), fewest", "NAME", ""),
        ),
    ] = None
    top: Annotated[
        int | None,
        option(
            "plans, or machines, that are shown",
            size,
            unit="plans",
            default="5",
            usual=Usual(SEARCH, "plans, or machines, that are shown", "N"),
        ),
    ] = None
    max_accelerators: Annotated[
        int | None,
        option(
            "of a machine that is named without a number",
            size,
            unit="accelerators",
            default="4096",
            usual=Usual(SEARCH, "of a machine without a number", "N"),
        ),
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


# ---- Of a pool of unlike machines.

POOL = (
    Option(
        "inventory",
        "the pool: nodes, what others hold of them, jobs; YAML, TOML or JSON (docs/commands/plan_pool.md)",
        word,
        unit="file",
    ),
    Option("serve", "MODEL is served", default="on"),
    Option("train", "MODEL is trained", default="off"),
    Option(
        "split",
        "of a served model: pipeline (its layers over unlike accelerators), replicas, or auto",
        word,
        unit="name",
        default="auto: replicas where one node holds it",
    ),
    Option(
        "goal",
        "of a pipeline that serves: throughput (to the users asked about) or latency (the shortest token of one user "
        "alone)",
        word,
        unit="name",
        default="throughput",
    ),
    Option("stages", "stages of the pipeline", size, unit="stages", default="searched"),
    Option("offload", "host memory may be used, at the time that it takes", default="off"),
    Option("leave", "nodes or groups that leave the pool, commas between: what moves where?", word, unit="names"),
    Option("join", "spare groups of the inventory that join it, commas between", word, unit="names"),
    Option("time_limit", "how long may be searched", number, unit="seconds", default="60"),
    Option("gap", "share of the value that may be left unproven", number, unit="0 to 1", default="0"),
)
