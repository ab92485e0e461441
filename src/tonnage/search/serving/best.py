"""Which plans are the best: an objective, and where that is the same the simpler plan. The order is total, so that a
search has one answer.
"""

from math import inf
from typing import Any

import numpy as np
from msgspec import Struct

from tonnage.search.serving.rows import Config, Layout, Rows
from tonnage.spec import ServingPlan

SAME = 2e-8  # of each other: values that may round to the same DIGITS
DIGITS = 9
NEAR = "near"  # the objective of a search for times as near to what was asked for as they can be
# Where two plans are equal, the first of these that differs decides; the last ones only make the order total.
SIMPLER = (
    "keeps the checkpoint's own precision",
    "keeps the cache as wide as the activations",
    "runs on the engine that is usual there",
    "leaves the engine's batch limits as they are",
    "keeps prompts and answers on the same replicas",
    "uses fewer kinds of parallelism",
    "has smaller replicas",
    "uses fewer accelerators",
    "costs less",
    "gives each token sooner",
)


class Plan(Struct, frozen=True, kw_only=True, eq=False):
    """One plan with its figures. `value`: of the objective, smaller is better; `each`: users of a replica, or
    requests a second; `fullest`: requests of the replica that has most, whose times these are.
    """

    config: Config
    layout: Layout
    plan: ServingPlan
    value: float
    needed_bytes: int
    usable_bytes: int
    each: float
    fullest: int
    users: float
    ttft: float
    tpot: float
    end_to_end: float
    requests: float
    tokens: float
    usd_per_million: float
    changes_weights: bool
    usual_engine: bool

    @property
    def accelerators(self) -> int:
        return self.layout.cluster.size

    @property
    def usd(self) -> float | None:
        return None if np.isnan(self.layout.usd) else self.layout.usd

    @property
    def has_uneven_users(self) -> bool:
        """Whether one replica has more users than another. Requests that come by themselves are shared evenly, and
        so is what parts of replicas share.
        """
        return self.users > 0 and not self.layout.prefill and self.fullest != self.each

    @property
    def simplicity(self) -> tuple[float, ...]:
        """One number for each of SIMPLER; smaller is simpler."""
        usd = self.layout.usd if self.usd is not None else float("inf")
        known = plainness(self.config, self.changes_weights, self.usual_engine, self.layout.prefill > 0)
        return (*known, self.accelerators, significant(usd), significant(self.tpot))

    @property
    def same(self) -> tuple[Any, ...]:
        """The key by which two plans are the same."""
        config, layout = self.config, self.layout
        on = config.kind.machine.on(layout.cluster)
        return (
            on,
            config.engine,
            config.stored,
            self.plan.kv_cache,
            config.sizes,
            config.batch,
            layout.prefill,
            self.users,
        )

    @property
    def order(self) -> tuple[Any, ...]:
        kind = self.config.kind
        last = (kind.machine.name, self.config.engine, self.config.stored, self.config.sizes, self.users)
        return (significant(self.value), *self.simplicity, *map(str, last))


def plainness(config: Config, changes_weights: bool, usual_engine: bool, is_split: bool) -> tuple[int, ...]:
    """The part of an order that is known before anything is computed."""
    sizes, batch = config.sizes, config.batch
    limits = (batch.tokens is not None) + (batch.requests is not None)
    return (
        int(changes_weights),
        int(config.kind.kv_cache is not None),
        int(not usual_engine),
        limits,
        int(is_split),
        sizes.parallelisms,
        sizes.ranks,
    )


def significant(value: float) -> float:
    """Rounded so that what arithmetic leaves at the end of a number decides nothing."""
    return float(f"{value:.{DIGITS - 1}e}")


def objective_values(name: str, rows: Rows) -> Any:
    """The values of an objective, of which smaller is better."""
    values = {
        "cost": lambda: rows.usd,
        "accelerators": lambda: rows.accelerators,
        "tpot": lambda: rows.tpot,
        "ttft": lambda: rows.ttft,
        "end-to-end": lambda: rows.end_to_end,
        "goodput": lambda: -rows.requests,
        "token-cost": lambda: rows.usd_per_million,
        NEAR: lambda: rows.past,
    }[name]()
    return np.broadcast_to(values, rows.ttft.shape).astype(float)


def best_of(name: str, rows: Rows, holds: Any, config: Config, own: str, usual: str) -> Plan | None:
    """The best plan of a block; within a configuration fewer accelerators, a lower price and a shorter token break
    ties.
    """
    values = np.where(holds, objective_values(name, rows), np.inf)
    least = values.min(initial=np.inf)
    if not np.isfinite(least):
        return None
    row, column = _first(np.argwhere(values <= least + SAME * abs(least)), rows)
    return plan_at(name, rows, row, column, config, own, usual)


def _first(tied: Any, rows: Rows) -> tuple[int, int]:
    """The position of the first plan in the order, of plans of one configuration that are equal in the objective."""
    at, users = tied[:, 0], tied[:, 1]
    prefill = np.array([layout.prefill > 0 for layout in rows.layouts])[at]
    keys = (users, rows.tpot[at, users], rows.usd[at, 0], rows.accelerators[at, 0], prefill)
    row, column = tied[np.lexsort(keys)[0]].tolist()
    return row, column


def plan_at(name: str, rows: Rows, row: int, column: int, config: Config, own: str, usual: str) -> Plan:
    def at(values: Any) -> float:
        return float(np.broadcast_to(values, rows.ttft.shape)[row, column])

    return Plan(
        config=config,
        layout=rows.layouts[row],
        plan=rows.plan,
        value=at(objective_values(name, rows)),
        needed_bytes=round(at(rows.needed)),
        usable_bytes=rows.usable,
        each=at(rows.each),
        fullest=round(at(rows.fullest)),
        users=at(rows.users),
        ttft=at(rows.ttft),
        tpot=at(rows.tpot),
        end_to_end=at(rows.end_to_end),
        requests=at(rows.requests),
        tokens=at(rows.tokens),
        usd_per_million=at(rows.usd_per_million),
        changes_weights=config.stored != own,
        usual_engine=config.engine == usual,
    )


class Board:
    """The best plans so far: the best of each kind, of which `top` are wanted, and the best that keeps the
    checkpoint's own precision.
    """

    def __init__(self, top: int, by_kind: bool):
        self.top, self.by_kind = top, by_kind
        self._best: dict[Any, Plan] = {}
        self.own: Plan | None = None
        self._edge: tuple[Any, ...] | None = None

    def put(self, plan: Plan | None) -> None:
        if plan is None:
            return
        if not plan.changes_weights and (self.own is None or plan.order < self.own.order):
            self.own = plan
        kind = self._kind(plan.config, plan.layout.prefill > 0)
        if kind not in self._best or plan.order < self._best[kind].order:
            self._best[kind] = plan
            plans = self.plans
            if len(plans) == self.top:
                self._edge = plans[-1].order

    def _kind(self, config: Config, is_split: bool) -> Any:
        if self.by_kind:
            return config.kind.machine.name, config.engine, config.stored, is_split
        return config, is_split

    def can_improve(self, config: Config, least: tuple[float, ...], is_split: bool) -> bool:
        """Whether a plan of this configuration, whose order begins with at least so much, can still be among the
        best.
        """
        if not least[1] and (self.own is None or least <= self.own.order[: len(least)]):
            return True
        held = self._best.get(self._kind(config, is_split))
        beaten = [order for order in (self._edge, held.order if held else None) if order is not None]
        return all(least <= order[: len(least)] for order in beaten)

    def most(self, config: Config, keeps_weights: bool) -> float:
        """The value above which no plan of this configuration, with prompts on replicas of their own, is among the
        best.
        """
        held = self._best.get(self._kind(config, True))
        beaten = min(self._edge[0] if self._edge else inf, held.value if held else inf)
        own = (self.own.value if self.own else inf) if keeps_weights else -inf
        return max(beaten, own)

    @property
    def plans(self) -> list[Plan]:
        """Each once: a cluster that was given may be among those of an accelerator whose number is searched."""
        different: dict[Any, Plan] = {}
        for plan in sorted(self._best.values(), key=lambda plan: plan.order):
            different.setdefault(plan.same, plan)
            if len(different) == self.top:
                break
        return list(different.values())
