"""The plans that no other beats in money (or accelerators), speed for a user and throughput together."""

from typing import Any

import numpy as np

from tonnage.search.pareto import front
from tonnage.search.serving.best import Plan, plan_at
from tonnage.search.serving.options import OF_MONEY
from tonnage.search.serving.rows import Config, Rows
from tonnage.search.serving.space import Space

HELD = 20_000  # plans beyond which what is beaten is let go


class Front:
    """A front that grows. Money counts where the search is one of money, else accelerators do."""

    def __init__(self, objective: str, space: Space):
        self.objective = objective
        self.counts_money = objective in OF_MONEY or space.goal.budget is not None
        self._figures = np.empty((0, 3))
        self._plans: list[Plan] = []

    def put(self, rows: Rows, holds: Any, config: Config, own: str, usual: str) -> None:
        """What no plan of the same block beats, first."""
        shape = rows.ttft.shape
        paid = np.broadcast_to(rows.usd if self.counts_money else rows.accelerators, shape)
        at = np.argwhere(holds)
        columns = [paid, np.broadcast_to(rows.tpot, shape), -np.broadcast_to(rows.requests, shape)]
        figures = np.stack([values[at[:, 0], at[:, 1]].astype(float) for values in columns], axis=1)
        kept = front(figures)
        plans = [plan_at(self.objective, rows, row, column, config, own, usual) for row, column in at[kept].tolist()]
        self._figures, self._plans = np.concatenate([self._figures, figures[kept]]), self._plans + plans
        if len(self._plans) > HELD:
            self._clear()

    def _clear(self) -> None:
        kept = front(self._figures)
        self._figures = self._figures[kept]
        self._plans = [plan for plan, keep in zip(self._plans, kept.tolist(), strict=True) if keep]

    @property
    def plans(self) -> list[Plan]:
        """The fastest for a user first; of plans that are equal in all three the simplest."""
        self._clear()
        best: dict[tuple[float, ...], Plan] = {}
        for figures, plan in zip(map(tuple, self._figures.tolist()), self._plans, strict=True):
            if figures not in best or plan.order < best[figures].order:
                best[figures] = plan
        return sorted(best.values(), key=lambda plan: (plan.tpot, plan.order))
