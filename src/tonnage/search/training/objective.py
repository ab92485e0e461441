"""What the best plan is: the fastest, the cheapest, or the one on the fewest accelerators."""

from typing import Literal, get_args

import numpy as np
from msgspec import Struct

from tonnage.formulas.cost import rent_usd
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import HOUR

Objective = Literal["fastest", "cheapest", "fewest"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def objective_named(text: str) -> Objective:
    for name in OBJECTIVES:
        if text == name:
            return name
    raise unknown("goal", text, OBJECTIVES)


class Goal(Struct, frozen=True, kw_only=True, eq=False):
    """What a run shall be, by the token: `slowest` [seconds] for a deadline, `dearest` [USD] for a budget, `longest`
    [accelerator-hours]; infinite where nothing is said. Seconds of a token are those of the whole run, failures and
    checkpoints in them; `usd`: an hour of an accelerator, NaN where no price is known.
    """

    objective: Objective
    slowest: float = np.inf
    dearest: float = np.inf
    longest: float = np.inf

    @property
    def is_limited(self) -> bool:
        return bool(np.isfinite([self.slowest, self.dearest, self.longest]).any())

    def value(self, seconds_per_token: np.ndarray, worlds: np.ndarray, usd: np.ndarray) -> np.ndarray:
        """Smaller is better; infinite where a limit is missed, or what decides is not known."""
        if self.objective == "fastest":
            value = seconds_per_token
        elif self.objective == "cheapest":
            cost = rent_usd.evaluate(nodes=worlds, tau=seconds_per_token, USD_hour=usd)
            value = np.where(np.isnan(cost), np.inf, cost)
        else:
            value = np.where(np.isfinite(seconds_per_token), worlds.astype(float), np.inf)
        return np.where(seconds_per_token <= self.latest(worlds, usd), value, np.inf)

    def latest(self, worlds: np.ndarray, usd: np.ndarray) -> np.ndarray:
        """Seconds of a token that the limits leave on each machine."""
        paid = self.dearest * HOUR / (worlds * usd) if np.isfinite(self.dearest) else np.full(len(worlds), np.inf)
        return np.minimum(np.minimum(self.slowest, self.longest * HOUR / worlds), np.where(np.isnan(paid), 0.0, paid))

    def limits(self, best: float, worlds: np.ndarray, usd: np.ndarray) -> np.ndarray:
        """Seconds of a token beyond which a plan of each machine is worse than `best`, a value."""
        every = np.full(len(worlds), np.inf)
        if not np.isfinite(best):
            return every
        if self.objective == "fastest":
            return np.full(len(worlds), best)
        if self.objective == "cheapest":
            return np.where(np.isnan(usd), 0.0, best * HOUR / (worlds * usd))
        return np.where(worlds > best, 0.0, np.inf)
