"""What a plan must hold, in words, and which of many do."""

from typing import Any

import numpy as np

from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.kernel.units import human
from tonnage.search.removed import Tally
from tonnage.search.serving.rows import Rows
from tonnage.search.serving.space import Space

FORMAT = "an engine loads the precision on the accelerator"
WEIGHTS = "the weights alone fit the accelerator"
MEMORY = "weights, cache and all else fit the accelerator"
KNOWN = "the times are known"
ROOM = "the cache holds a request"
ANSWERED = "as many requests are answered as come"
ALLOWED = "is one that the model and the engine allow"
BEATEN = "it can be among the best, by a bound"
NAMES = {"ttft": TTFT, "tpot": TPOT}


def rule(error: TonnageError) -> str:
    """The constraint that an invalid plan breaks, by the field that its error names first."""
    name = str(error).partition(" ")[0].strip(":")
    return f"{name} {ALLOWED}"


def level(name: str, limit: float) -> str:
    return Message("{names} at most {limit}", names=NAMES[name], limit=human(limit, "seconds"))


def budget(limit: float) -> str:
    return Message("at most {limit} an hour", limit=human(limit, "USD"))


def holding(rows: Rows, space: Space, tally: Tally) -> Any:
    """Which plans keep all that is asked, one constraint after the other; what each removes is counted."""
    shape = rows.ttft.shape
    left = tally.hold(MEMORY, np.ones(shape, dtype=bool), np.broadcast_to(rows.needed <= rows.safe, shape))
    left = tally.hold(KNOWN, left, rows.known)
    left = tally.hold(ROOM, left, rows.room)
    left = tally.hold(ANSWERED, left, np.isfinite(rows.ttft))
    if space.goal.budget is not None:
        left = tally.hold(budget(space.goal.budget), left, np.broadcast_to(rows.usd <= space.goal.budget, shape))
    for name, limit in (("ttft", space.ttft), ("tpot", space.tpot)):
        if limit is not None:
            with np.errstate(invalid="ignore"):
                left = tally.hold(level(name, limit), left, getattr(rows, name) / limit <= 1)
    return left
