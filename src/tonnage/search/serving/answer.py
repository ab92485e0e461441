"""The answer of a search: the best plans, why each beats the next, the best one estimated by itself, and why nothing
holds where nothing does.
"""

import shlex
from functools import cached_property
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from tonnage.documents.document import builtins
from tonnage.documents.plan_serving import (
    NearestDocument,
    RemovedServingDocument,
    ServingGoal,
    ServingPlanDocument,
    ServingPlansDocument,
)
from tonnage.documents.question import Entry
from tonnage.estimate.advice.moves import flags_of
from tonnage.estimate.answer.answers import Answer, serve
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.kernel.errors import InvalidPlan
from tonnage.question.subjects.serving import OF_LOAD
from tonnage.runtimes import serving_runtime
from tonnage.search.serving.best import Plan
from tonnage.search.serving.nearest import Nearest, nearest
from tonnage.search.serving.options import OBJECTIVES
from tonnage.search.serving.reasons import beats
from tonnage.search.serving.space import Space
from tonnage.search.serving.walk import Search


class ServingPlans(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What a search found. `plans`: the best ones; `best`: the answer of `tonnage serve` for the first of them;
    `nearest`: where nothing holds, what each limit costs.
    """

    question: dict[str, Entry]
    objective: str
    search: Search
    money: BillOptions
    nearest: tuple[Nearest, ...]
    warnings: tuple[str, ...]

    @property
    def plans(self) -> list[Plan]:
        return self.search.board.plans

    @property
    def pareto(self) -> list[Plan]:
        return self.search.front.plans if self.search.front else []

    @property
    def status(self) -> int:
        """0: a plan holds; 3: none does."""
        return 0 if self.plans else 3

    @cached_property
    def best(self) -> Answer | None:
        return estimated(self.search.space, self.plans[0], self.money) if self.plans else None

    @property
    def document(self) -> ServingPlansDocument:
        """The document that the command line, the page and the API show."""
        search, plans = self.search, self.plans
        own = search.board.own
        shows_own = own is not None and bool(plans) and plans[0].changes_weights
        return ServingPlansDocument(
            question=self.question,
            goal=cast("ServingGoal", self.objective),
            means=OBJECTIVES[self.objective],
            holds=bool(plans),
            considered=search.tally.considered,
            configurations=search.configurations,
            skipped=search.pruned,
            kept=search.tally.left,
            removed=[
                RemovedServingDocument(constraint=removal.constraint, plans=removal.plans)
                for removal in search.tally
                if removal.plans
            ],
            plans=[
                self._shown(plan, plans[place + 1] if place + 1 < len(plans) else None)
                for place, plan in enumerate(plans)
            ],
            own_precision=self._shown(own, None) if own is not None and shows_own else None,
            pareto=[self._shown(plan, None) for plan in self.pareto] if search.front else None,
            best=self.best.document if self.best else None,
            command=command(search.space, plans[0], self.money) if plans else None,
            nearest=[
                NearestDocument(
                    without=near.without,
                    text=near.text,
                    plan=self._shown(near.plan, None) if near.plan else None,
                )
                for near in self.nearest
            ],
            unpriced=sorted(search.unpriced),
            warnings=list(self.warnings),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    def _shown(self, plan: Plan, following: Plan | None) -> ServingPlanDocument:
        return shown(plan, self.search.space, beats(plan, following, self.objective) if following else None)


def shown(plan: Plan, space: Space, beats_next: str | None = None) -> ServingPlanDocument:
    """One plan as the document shows it."""
    sizes, layout, money = plan.config.sizes, plan.layout, plan.usd
    is_open = space.load.request_rate is not None
    rates, chip = serving_rates(), layout.cluster.accelerator
    compared = serving_runtime(plan.plan.engine, plan.plan.engine_version).is_compared
    return ServingPlanDocument(
        on=plan.config.kind.machine.on(layout.cluster),
        accelerators=plan.accelerators,
        machines=layout.cluster.num_nodes,
        engine=plan.config.engine,
        weights=plan.config.stored,
        changes_weights=plan.changes_weights,
        kv_cache=plan.plan.kv_cache,
        tensor_parallel_size=sizes.tensor,
        pipeline_parallel_size=sizes.pipeline,
        expert_parallel_size=sizes.expert,
        attention_data_parallel_size=sizes.groups,
        max_num_batched_tokens=plan.config.batch.tokens,
        max_num_seqs=plan.config.batch.requests,
        replicas=layout.replicas,
        prefill_replicas=layout.prefill,
        users=None if is_open else round(plan.users),
        users_per_replica=None if is_open or layout.prefill else plan.each,
        users_of_fullest_replica=None if is_open or layout.prefill else plan.fullest,
        needed_bytes=plan.needed_bytes,
        usable_bytes=plan.usable_bytes,
        ttft_seconds=plan.ttft,
        tpot_seconds=plan.tpot,
        ttft_band=rates.around("ttft_seconds", plan.ttft, chip, is_compared=compared),
        tpot_band=rates.around("tpot_seconds", plan.tpot, chip, is_compared=compared),
        end_to_end_seconds=plan.end_to_end,
        tokens_per_second=plan.tokens,
        requests_per_second=plan.requests,
        usd_per_hour=money,
        usd_per_million_tokens=None if money is None else plan.usd_per_million,
        beats_next=beats_next,
    )


def said_of(plan: Plan, space: Space) -> tuple[ServingOptions, LoadOptions]:
    """The options with which `tonnage serve` estimates this plan."""
    options = plan.config.options(space)
    if space.load.request_rate is None:
        options = replace(options, concurrency=round(plan.users))
    return options, replace(space.load, prefill_replicas=plan.layout.prefill or None)


def command(space: Space, plan: Plan, money: BillOptions) -> str:
    """The command that estimates this plan alone."""
    options, load = said_of(plan, space)
    options_said = {
        name: value
        for form in (options, load, money)
        for name, value in asdict(form).items()
        if value is not None and name not in OF_LOAD
    }
    reserve = options_said.pop("reserve_bytes")
    options_said |= {"reserve": reserve} if reserve else {}
    options_said = {
        name: shlex.quote(value) if isinstance(value, str) else value for name, value in options_said.items()
    }
    words = ["tonnage", "serve", space.model.name, "--on", plan.config.kind.machine.on(plan.layout.cluster)]
    return f"{shlex.join(words)} {flags_of(options_said)}"


def estimated(space: Space, plan: Plan, money: BillOptions) -> Answer:
    """The plan by the path of one answer; InvalidPlan, which no plan of a search raises, where that finds none."""
    options, load = said_of(plan, space)
    answer = serve(
        space.model, plan.layout.cluster, options, load, money, reserve_bytes=space.options.reserve_bytes, advise=False
    )
    if answer.fits is False:
        raise InvalidPlan("{config} does not fit by itself.", config=plan.config)
    return answer


def nearest_of(search: Search) -> tuple[Nearest, ...]:
    return () if search.board.plans else nearest(search)
