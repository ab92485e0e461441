"""The search itself: every configuration of every machine, the most promising first; what no bound rules out is
computed whole.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving.weights.storage import storage
from tonnage.formulas import service as h
from tonnage.kernel.errors import InvalidPlan, MissingDatum, TonnageError
from tonnage.runtimes import USUAL_ENGINE, serving_runtime
from tonnage.search.pareto import front
from tonnage.search.progress import advance, expect
from tonnage.search.removed import Tally
from tonnage.search.serving import limits as l
from tonnage.search.serving.best import NEAR, Board, Plan, best_of, plainness, plan_at, significant
from tonnage.search.serving.bounds import INFINITE, ROUNDING_MARGIN, Bounds
from tonnage.search.serving.machines import Machine
from tonnage.search.serving.options import OF_MONEY
from tonnage.search.serving.rows import Config, Layout, Rows, blocks, least_token_seconds, users_searched
from tonnage.search.serving.space import (
    Batch,
    Kind,
    Sizes,
    Space,
    batches,
    caches,
    engines,
    precisions,
    said_caches,
    sizes,
)
from tonnage.search.serving.splits import Limits, split_rows

MAX_KEPT, MAX_KEPT_LAYOUTS = 1024, 64  # configurations whose rows are kept for the next search, and layouts of one
MAX_HELD_PLANS = 20_000  # plans beyond which what is beaten is let go


class Front:
    """A front that grows. Money counts where the search is one of money, else accelerators do."""

    def __init__(self, objective: str, space: Space):
        self.objective = objective
        self.counts_money = objective in OF_MONEY or space.goal.budget is not None
        self._figures = np.empty((0, 3))
        self._plans: list[Plan] = []

    def put(self, rows: Rows, holds: Any, config: Config, own: str, usual: str) -> None:
        """Add the plans of a block that no other plan of it beats."""
        shape = rows.ttft.shape
        paid = np.broadcast_to(rows.usd if self.counts_money else rows.accelerators, shape)
        at = np.argwhere(holds)
        columns = [paid, np.broadcast_to(rows.tpot, shape), -np.broadcast_to(rows.requests, shape)]
        figures = np.stack([values[at[:, 0], at[:, 1]].astype(float) for values in columns], axis=1)
        on_front = front(figures)
        plans = [
            plan_at(self.objective, rows, row, column, config, own, usual) for row, column in at[on_front].tolist()
        ]
        self._figures, self._plans = np.concatenate([self._figures, figures[on_front]]), self._plans + plans
        if len(self._plans) > MAX_HELD_PLANS:
            self._clear()

    def _clear(self) -> None:
        on_front = front(self._figures)
        self._figures = self._figures[on_front]
        self._plans = [plan for plan, keep in zip(self._plans, on_front.tolist(), strict=True) if keep]

    @property
    def plans(self) -> list[Plan]:
        """The fastest for a user first; of plans that are equal in all three the simplest."""
        self._clear()
        best: dict[tuple[float, ...], Plan] = {}
        for figures, plan in zip(map(tuple, self._figures.tolist()), self._plans, strict=True):
            if figures not in best or plan.order < best[figures].order:
                best[figures] = plan
        return sorted(best.values(), key=lambda plan: (plan.tpot, plan.order))


NAN = float("nan")
TOGETHER = 8  # layouts whose replicas are parted at once


class Miss(Struct, frozen=True, kw_only=True):
    """What came nearest to fitting: bytes that it needs of each accelerator, and what there is. `what`: of
    everything, or of the weights alone.
    """

    config: Config
    cluster: Any
    needed_bytes: float
    usable_bytes: int
    what: str

    @property
    def ratio(self) -> float:
        return self.needed_bytes / self.usable_bytes


class Search:
    """One search. `prunes`: what bounds rule out is not computed; the answer is the same without."""

    def __init__(self, space: Space, objective: str, *, prunes: bool = True, top: int | None = None):
        self.space, self.objective = space, objective
        self.prunes = prunes
        self.tally, self.bounds = Tally(), Bounds(space)
        self.board = Board(top or space.goal.top, by_kind=len(space.machines) > 1)
        self.front = Front(objective, space) if space.goal.pareto else None
        self.pruned = self.configurations = 0
        self.answered: set[str] = set()  # machines of which some plan fits, and has times
        self.miss: Miss | None = None
        self.unpriced: list[str] = []
        self.unknown: dict[str, str] = {}
        self.refused: TonnageError | None = None
        self._own: dict[tuple[str, str | None], tuple[str, str]] = {}
        self._layouts: dict[tuple[str, int], list[Layout]] = {}

    def run(self) -> "Search":
        """Configurations in the order of the least that their objective can be: what comes after the edge of the
        best is not computed.
        """
        known = [
            (self._order(config, self._least(config)), number, config)
            for number, config in enumerate(self._configurations())
        ]
        expect("configurations", len(known))
        for least, _, config in sorted(known, key=lambda entry: entry[:2]):
            self._look_at(config, least)
            advance("configurations")
        return self

    # ---- the space ----

    def _configurations(self) -> Iterator[Config]:
        for machine in self.space.machines:
            yield from self._of_machine(machine)

    def _of_machine(self, machine: Machine) -> Iterator[Config]:
        seen: set[tuple[str, str, str | None]] = set()
        wants_price = self.objective in ("cost", "token-cost") or self.space.goal.budget is not None
        if wants_price and not self.space.prices.knows(machine.accelerator):
            self.unpriced.append(machine.accelerator.name)
            return
        for engine in engines(self.space):
            first = next(iter(said_caches(self.space)), None)
            usual = self._resolved(Kind(machine, engine, None, first))
            for weights in precisions(self.space, machine.accelerator, usual or engine or ""):
                engine_resolved = self._resolved(Kind(machine, engine, weights, None))
                if engine_resolved is None:
                    self._count_refused(Kind(machine, engine, weights, None))
                    continue
                stored = storage(self.space.model, weights).name
                for kv_cache in caches(self.space, engine_resolved):
                    if (engine_resolved, stored, kv_cache) not in seen:
                        seen.add((engine_resolved, stored, kv_cache))
                        yield from self._of_kind(Kind(machine, engine, weights, kv_cache), engine_resolved, stored)

    def _of_kind(self, kind: Kind, engine: str, stored: str) -> Iterator[Config]:
        queues = serving_runtime(engine, self.space.options.engine_version or "").queues
        if self.space.load.prefill_replicas and not queues:  # it hands no caches on
            return
        for split in sizes(self.space, kind.machine, engine):
            for batch in batches(self.space, queues):
                yield Config(kind, engine, stored, split, batch)

    def _resolved(self, kind: Kind) -> str | None:
        """The engine that runs it on one accelerator; None where none does, whatever the sizes."""
        config = Config(kind, "", "", Sizes(1, 1, 1, 1), Batch(None, None))
        options = replace(config.options(self.space), redundant_experts=None)  # copies need ranks that share experts
        try:
            return serving_plan(self.space.model, kind.machine.of(1, 1), options, Question()).engine
        except TonnageError as error:
            self.refused = self.refused or error
            return None

    def _count_refused(self, kind: Kind) -> None:
        """A precision that no engine there loads: all sizes of it."""
        engine = kind.engine or USUAL_ENGINE
        plans = sum(len(self.layouts(kind.machine, split.ranks)) for split in sizes(self.space, kind.machine, engine))
        number = plans * self._users(engine)
        self.tally.consider(number)
        self.tally.remove(l.FORMAT, number)

    def layouts(self, machine: Machine, ranks: int) -> list[Layout]:
        """Numbers of replicas of so many ranks, on machines of every size that is cheaper than larger ones; more
        replicas than users are not tried.
        """
        key = (machine.name, ranks)
        if key not in self._layouts:
            users = self.space.users if machine.fixed is None else None
            self._layouts[key] = [
                layout
                for number, clusters in machine.layouts(ranks, self.space.most)
                if users is None or number <= users
                if number > (self.space.load.prefill_replicas or 0)
                for layout in self._cheaper(number, clusters)
            ]
        return self._layouts[key]

    def _cheaper(self, replicas: int, clusters: tuple[Any, ...]) -> Iterator[Layout]:
        """The fewest machines, and more of them only where they cost less."""
        least = float("inf")
        for number, cluster in enumerate(clusters):
            usd = self.space.prices.of(cluster)
            if number == 0 or (usd is not None and usd < least):
                yield Layout(replicas, cluster, NAN if usd is None else usd)
            least = least if usd is None else min(least, usd)

    def _users(self, engine: str) -> int:
        return len(users_searched(engine, self.space.options.engine_version or "")) if self.space.searches_users else 1

    # ---- bounds ----

    def _least(self, config: Config) -> float:
        """A lower bound of the objective for this configuration."""
        if self.objective in ("cost", "accelerators"):
            return min(map(self._value, self.layouts(config.kind.machine, config.sizes.ranks)), default=float("inf"))
        if self._is_of_tokens:
            return self._at_least(config, self.bounds.token_seconds(config))
        return -float("inf")

    @property
    def _is_of_tokens(self) -> bool:
        """Whether the least time of a token says the least that the objective can be."""
        fixed_length = not self.space.searches_users and self.space.load.output_tokens is not None
        return self.objective in ("tpot", NEAR) or (
            self.objective in ("end-to-end", "goodput", "token-cost") and fixed_length
        )

    def _at_least(self, config: Config, seconds: float) -> float:
        """What the objective is at least where no token comes sooner: so many users ask no faster than they are
        answered.
        """
        if self.objective == "tpot":
            return seconds
        space, load = self.space, self.space.load
        if self.objective == NEAR:
            return seconds / space.near[1] if space.near else 0.0
        half = 1 - (load.spread or 0) / 2
        prompt, later = (load.input_tokens or 0) * half, ((load.output_tokens or 1) - 1) * half
        away = later * seconds
        if self.objective == "end-to-end":
            return away
        requests = load.request_rate or ((space.users or 0) / away if away else float("inf"))
        if self.objective == "goodput":
            return -requests / ROUNDING_MARGIN
        usd = min(
            (layout.usd for layout in self.layouts(config.kind.machine, config.sizes.ranks)), default=float("inf")
        )
        tokens = h.all_tokens_per_second.evaluate(X=requests, s=prompt, O=1 + later)
        return ROUNDING_MARGIN * float(h.usd_per_million_tokens.evaluate(USD_all=usd, tps=tokens))

    def _order(self, config: Config, least: float, is_split: bool = False) -> tuple[float, ...]:
        """A lower bound of the order of this configuration's plans."""
        own, usual = self.own(config.kind.machine)
        return (significant(least), *plainness(config, config.stored != own, config.engine == usual, is_split))

    def _can_improve(self, config: Config, least: tuple[float, ...], is_split: bool = False) -> bool:
        return self.front is not None or self.board.can_improve(config, least, is_split)

    def own(self, machine: Machine) -> tuple[str, str]:
        """What the checkpoint's own precision is called, and the engine that `tonnage serve` takes on this machine
        for it.
        """
        key = (machine.name, self.space.options.weights)
        if key not in self._own:
            named_weights = self.space.options.weights
            weights = None if named_weights is None or "," in named_weights else named_weights
            usual = self._resolved(Kind(machine, None, weights, None))
            self._own[key] = storage(self.space.model, weights).name, usual or ""
        return self._own[key]

    # ---- one configuration ----

    def _look_at(self, config: Config, least: tuple[float, ...]) -> None:
        layouts = self.layouts(config.kind.machine, config.sizes.ranks)
        if not layouts:
            return
        self.configurations += 1
        number = len(layouts) * self._users(config.engine)
        if self._splits(config):
            number = sum(map(self._ways, layouts)) + (0 if self.space.load.prefill_replicas else number)
        self.tally.consider(number)
        why = self._ruled_out(config, layouts, least)
        if why == l.BEATEN:
            self.pruned += number
        if why:
            self.tally.remove(why, number)
            return
        try:
            if self.prunes and (why := self._is_slow(config, layouts)):
                self.pruned += number if why == l.BEATEN else 0
                self.tally.remove(why, number)
                return
            self._walk(config, layouts)
        except InvalidPlan as error:
            self.refused = self.refused or error
            self.tally.remove(l.rule(error), number)
        except MissingDatum as error:
            self.unknown.setdefault(config.kind.machine.name, str(error))
            self.tally.remove(l.KNOWN, number)

    def _ruled_out(self, config: Config, layouts: list[Layout], least: tuple[float, ...]) -> str:
        """The constraint that no plan of this configuration can keep; nothing where some may."""
        chip = config.kind.machine.accelerator
        usable = chip.memory.usable_bytes - self.space.options.reserve_bytes
        if self.prunes:
            weights = self.bounds.weights_bytes(config)
            if weights > usable:
                self._missed(
                    Miss(
                        config=config,
                        cluster=layouts[0].cluster,
                        needed_bytes=weights,
                        usable_bytes=usable,
                        what="the weights alone",
                    )
                )
                return l.WEIGHTS
            budget = self.space.goal.budget
            if budget is not None and all(layout.usd > budget for layout in layouts):
                return l.budget(budget)
            if self.space.tpot is not None and self.bounds.token_seconds(config) > self.space.tpot:
                return l.level("tpot", self.space.tpot)
            splits = self._splits(config) and self._can_improve(config, _split(least), is_split=True)
            if not splits and not self._can_improve(config, least):
                return l.BEATEN
        return ""

    def _is_slow(self, config: Config, layouts: list[Layout]) -> str:
        """The constraint that the fastest pass of the configuration breaks; empty where it may keep all."""
        of_tokens = self._is_of_tokens and self.front is None
        if self.space.tpot is None and not of_tokens:
            return ""
        least = ROUNDING_MARGIN * least_token_seconds(self.space, config, layouts)
        if self.space.tpot is not None and least > self.space.tpot:
            return l.level("tpot", self.space.tpot)
        if not of_tokens or self._splits(config):
            return ""
        return "" if self._can_improve(config, self._order(config, self._at_least(config, least))) else l.BEATEN

    def _walk(self, config: Config, layouts: list[Layout]) -> None:
        own, usual = self.own(config.kind.machine)
        for rows in self._rows(config, layouts):
            if not self.space.load.prefill_replicas:
                self._judge(rows, config, own, usual)
            if self._splits(config) and rows.replica is not None:
                self._part(rows, config, own, usual)

    def _rows(self, config: Config, layouts: list[Layout]) -> Iterator[Rows]:
        """Rows of a configuration. Where no plan holds, searches with other limits ask for the same ones again."""
        space = self.space
        key = config, tuple((layout.replicas, layout.cluster.name) for layout in layouts), space.searches_rates
        if key in space.walked:
            yield from (replace(rows, near=space.near) for rows in space.walked[key])
            return
        walked = list(blocks(space, config, layouts)) if len(layouts) <= MAX_KEPT_LAYOUTS else None
        if walked is not None and len(space.walked) < MAX_KEPT and not space.searches_users:
            space.walked[key] = walked
        yield from blocks(space, config, layouts) if walked is None else walked

    def _splits(self, config: Config) -> bool:
        """Whether prompts on replicas of their own are searched too."""
        return (
            ("disaggregation" in self.space.goal.vary or bool(self.space.load.prefill_replicas))
            and serving_runtime(config.engine, self.space.options.engine_version or "").queues
            and not self.space.options.draft_tokens
            and not self.space.options.speculative
        )

    def _ways(self, layout: Layout) -> int:
        """Ways to part its replicas into prefill and decode."""
        return 1 if self.space.load.prefill_replicas else layout.replicas - 1

    def _part(self, rows: Rows, config: Config, own: str, usual: str) -> None:
        """Prompts on replicas of their own: so many layouts at once, those that can be the best first."""
        order = sorted(range(len(rows.layouts)), key=lambda row: (self._value(rows.layouts[row]), row))
        left = [row for row in order if rows.layouts[row].replicas > 1]
        while left:
            if self.prunes:
                at = [
                    row
                    for row in left
                    if self._can_improve(
                        config, self._order(config, self._value(rows.layouts[row]), is_split=True), is_split=True
                    )
                ]
                number = sum(self._ways(rows.layouts[row]) for row in left) - sum(
                    self._ways(rows.layouts[row]) for row in at
                )
                self.pruned += number
                self.tally.remove(l.BEATEN, number)
                left = at
            limits = self._split_limits(config) if self.prunes else None
            for split, number in self._split_rows(rows, config, left[:TOGETHER], limits):
                if number and limits:
                    self._count_out(limits, number)
                if split is not None:
                    self._judge(split, config, own, usual)
            left = left[TOGETHER:]

    def _split_rows(
        self, rows: Rows, config: Config, at: list[int], limits: Limits | None
    ) -> list[tuple[Rows | None, int]]:
        """As `split_rows`. At a rate of requests no limit is read, and searches with other limits ask for the same."""
        space, layouts = self.space, [rows.layouts[row] for row in at]
        if space.users is not None:
            return list(split_rows(space, rows, at, limits))
        key = config, tuple((layout.replicas, layout.cluster.name) for layout in layouts), "split"
        split = space.walked.get(key) or list(split_rows(space, rows, at, limits))
        if len(space.walked) < MAX_KEPT:
            space.walked[key] = split
        return [(some and replace(some, near=space.near), number) for some, number in split]

    def _split_limits(self, config: Config) -> Limits | None:
        """What the times of a plan of this configuration, with prompts on replicas of their own, must keep to be among
        the best; None where there is no limit.
        """
        space = self.space
        ttft, tpot, rate = space.ttft or INFINITE, space.tpot or INFINITE, 0.0
        best = (
            INFINITE if self.front is not None else self.board.most(config, config.stored == self._own_stored(config))
        )
        if best < INFINITE:
            worst = best + abs(best) * (1 - ROUNDING_MARGIN)  # plans as good to so many digits may be simpler
            if self.objective == "tpot":
                tpot = min(tpot, worst)
            elif self.objective == "ttft":
                ttft = min(ttft, worst)
            elif self.objective == NEAR and space.near:
                ttft, tpot = min(ttft, worst * space.near[0]), min(tpot, worst * space.near[1])
            elif self.objective == "end-to-end":
                rate = (space.users or 0) / worst
            elif self.objective == "goodput":
                rate = -worst
        limits = Limits(ttft, tpot, rate, (ttft, tpot, rate) != (space.ttft or INFINITE, space.tpot or INFINITE, 0.0))
        return limits if min(ttft, tpot) < INFINITE or rate else None

    def _own_stored(self, config: Config) -> str:
        return self.own(config.kind.machine)[0]

    def _count_out(self, limits: Limits, number: int) -> None:
        """So many plans cannot keep the limits."""
        if limits.beats:
            self.pruned += number
            self.tally.remove(l.BEATEN, number)
            return
        name = "tpot" if limits.tpot < INFINITE else "ttft"
        self.tally.remove(l.level(name, getattr(limits, name)), number)

    def _value(self, layout: Layout) -> float:
        """The part of a layout's objective that its cluster alone decides."""
        if self.objective == "cost":
            return layout.usd
        return float(layout.cluster.size) if self.objective == "accelerators" else -float("inf")

    def _judge(self, rows: Rows, config: Config, own: str, usual: str) -> None:
        self._note_miss(rows, config)
        if rows.unknown and not rows.known.any():
            self.unknown.setdefault(config.kind.machine.name, rows.unknown)
        if rows.known.any():
            self.answered.add(config.kind.machine.name)
        holds = l.holding(rows, self.space, self.tally)
        if not holds.any():
            return
        self.board.put(best_of(self.objective, rows, holds, config, own, usual))
        if self.front is not None:
            self.front.put(rows, holds, config, own, usual)

    def _note_miss(self, rows: Rows, config: Config) -> None:
        if (least := np.nanmin(rows.needed)) > rows.safe:
            row = int(np.argmin(np.broadcast_to(rows.needed, rows.ttft.shape)) // rows.ttft.shape[1])
            self._missed(
                Miss(
                    config=config,
                    cluster=rows.layouts[row].cluster,
                    needed_bytes=float(least * rows.usable / rows.safe),
                    usable_bytes=rows.usable,
                    what="everything",
                )
            )

    def _missed(self, miss: Miss) -> None:
        if self.miss is None or miss.ratio < self.miss.ratio:
            self.miss = miss


def _split(least: tuple[float, ...]) -> tuple[float, ...]:
    """The order of a configuration whose prompts have replicas of their own."""
    return (*least[:5], 1.0, *least[6:])
