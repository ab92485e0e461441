"""Limits on what users wait: whether a load keeps within them, the largest that does, and how many replicas a load
needs.
"""

from collections.abc import Callable
from math import ceil, floor
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.documents.serving import Bound, ServiceLevelDocument
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import ReplicaLoad
from tonnage.estimate.serving_time.speed import Replica, Speed
from tonnage.estimate.serving_time.times import ServingTimes, times
from tonnage.formulas import service as h
from tonnage.formulas import serving as g
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.spec import Load, ServingPlan

MOST_USERS = 2**20  # of one replica
STEP = 1e-3  # of a rate: it is found to so much of itself
ROUNDS = 60  # of a bisection, more than any takes
NAMES = {"ttft": "time to the first token", "tpot": "time of each later token"}


class Waits(Struct, frozen=True):
    """Seconds of a load, at the percentile that is asked for."""

    ttft: float
    tpot: float

    def over(self, asked: ReplicaLoad) -> Bound | None:
        """The limit that is exceeded most, of its own size; None where both are kept."""
        limits: dict[Bound, float | None] = {"ttft": asked.ttft, "tpot": asked.tpot}
        past = {name: getattr(self, name) / limit for name, limit in limits.items() if limit is not None}
        name = max(past, key=lambda each: past[each])
        return name if past[name] > 1 else None


WaitsAt = Callable[[float], Waits]


def service_level(plan: ServingPlan, speed: Speed, asked: ReplicaLoad, question: Question) -> dict[str, Any]:
    """Fields of a ServingDocument: `service_level`, `users_at_service_level` and the `rate_at_service_level` that they
    ask, and `replicas_needed`.
    """
    is_open = asked.is_open
    if not asked.limited:
        return _replicas(plan, asked, h.replicas_for_rate, speed.times.largest_rate) if is_open else {}
    at = _waits(speed.replica, asked)
    found = at(_of_the_fullest(asked))
    bound = found.over(asked)
    level = ServiceLevelDocument(
        met=not bound,
        percentile=asked.percentile,
        ttft_limit_seconds=UNSET if asked.ttft is None else asked.ttft,
        tpot_limit_seconds=UNSET if asked.tpot is None else asked.tpot,
        ttft_seconds=found.ttft if found.ttft < float("inf") else UNSET,
        tpot_seconds=found.tpot,
        bound_by=bound or UNSET,
    )
    largest = _largest(at, asked, speed.times)
    name = "rate_at_service_level" if is_open else "users_at_service_level"
    figures: dict[str, Any] = {"service_level": level, name: _term(plan, asked, largest, is_open)}
    if not is_open:
        figures["rate_at_service_level"] = _rate_of_users(plan, speed.replica, asked, int(largest))
    if largest:
        figures |= _replicas(plan, asked, h.replicas_within_limits, largest)
    _tell(at, asked, found, bound, largest * plan.data_parallel_size, is_open, question)
    return figures


def bound_by(replica: Replica, asked: ReplicaLoad) -> Bound | None:
    """The limit that this load exceeds most; None where it keeps within both."""
    return _waits(replica, asked)(_of_the_fullest(asked)).over(asked)


def replicas_within(replica: Replica, asked: ReplicaLoad, found: ServingTimes) -> int:
    """The fewest replicas like this one that keep within the limits, or up with what comes; 0 where no number does."""
    total = asked.wanted * asked.busy
    if not asked.limited:
        return int(h.replicas_for_rate.evaluate(X=total, X_max=found.largest_rate)) if asked.is_open else asked.busy
    largest = _largest(_waits(replica, asked), asked, found)
    return int(h.replicas_within_limits.evaluate(X=total, X_max=largest)) if largest else 0


def _largest(at: WaitsAt, asked: ReplicaLoad, found: ServingTimes) -> float:
    """Of one replica, requests a second or users."""
    return _largest_rate(at, asked, found.largest_rate) if asked.is_open else _most_users(at, asked, found)


def _of_the_fullest(asked: ReplicaLoad) -> float:
    """Requests a second, or the users of the replica that has most: 9 users of 5 replicas are 2 of four, whose
    limits are kept or not.
    """
    return asked.wanted if asked.is_open else ceil(asked.wanted)


def _waits(replica: Replica, asked: ReplicaLoad) -> WaitsAt:
    name = "requests_per_second" if asked.is_open else "concurrency"

    def at(value: float) -> Waits:
        load: Load = replace(asked.load, **{name: value})
        if asked.percentile == "mean":
            found = times(replica.clock, replica.policy, load)
            return Waits(float("inf") if found.ttft_seconds is None else found.ttft_seconds, found.tpot_seconds)
        from tonnage.estimate.serving_time.simulated import percentile

        return Waits(*percentile(replica, asked, load))

    return at


def _most_users(at: WaitsAt, asked: ReplicaLoad, found: ServingTimes) -> int:
    """The most users of one replica within the limits: doubled until one is past them, then halved towards; so it is
    known of this number and of one more. Without a limit on the first token, those who wait do not count: no more
    than run at once.
    """
    most = MOST_USERS if asked.ttft is not None else max(floor(found.steady.places), 1)
    low, high = 0, 1
    while high <= most and not at(high).over(asked):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle).over(asked) else (middle, high)
    return low


def _largest_rate(at: WaitsAt, asked: ReplicaLoad, most: float) -> float:
    """The largest rate of one replica within the limits, to a thousandth of itself; the next step is past them."""
    low, high = most * STEP, most
    if at(low).over(asked):
        return 0.0
    for _ in range(ROUNDS):
        if high - low <= STEP * low:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).over(asked) else (middle, high)
    return low


def _term(plan: ServingPlan, asked: ReplicaLoad, largest: float, is_open: bool) -> Term:
    limits = {name: limit for name in NAMES if (limit := getattr(asked, name)) is not None}
    unit, what = ("requests/s", "requests a second") if is_open else ("requests", "users")
    each = Term.by(
        "of one replica",
        largest,
        unit,
        basis="analytic",
        source="Agrawal2024, sec. 2.4: capacity within a latency target",
        version="1",
        procedure="bisection over loads (estimate.service_level)",
        percentile=asked.percentile,
        **limits,
    )
    return Term.product(
        Message("{what} within the limits", what=what),
        unit,
        Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size),
        each,
    )


def _rate_of_users(plan: ServingPlan, replica: Replica, asked: ReplicaLoad, users: int) -> Term:
    """What the most users within the limits ask of all replicas, each the next as soon as it has an answer."""
    load: Load = replace(asked.load, concurrency=users)
    rate = times(replica.clock, replica.policy, load).requests_per_second if users else 0.0
    each = Term.by(
        "of one replica",
        rate,
        "requests/s",
        basis="analytic",
        source="Little1961, L = lambda W",
        version="1",
        procedure="steady state of users (estimate.load.steady)",
        users=users,
    )
    return Term.product(
        "requests a second within the limits",
        "requests/s",
        Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size),
        each,
    )


def _replicas(plan: ServingPlan, asked: ReplicaLoad, formula: Any, of_one: float) -> dict[str, Any]:
    """Replicas, and accelerators, for all requests or users, of which one replica answers so many."""
    needed = Term.of("replicas needed", formula, X=asked.wanted * asked.busy, X_max=of_one)
    ranks = Term.of("accelerators of a replica", g.ranks_of_replica, n=plan.world_size // plan.data_parallel_size)
    return {
        "replicas_needed": needed,
        "accelerators_needed": Term.product("accelerators needed", "accelerators", needed, ranks),
    }


def _tell(
    at: WaitsAt,
    asked: ReplicaLoad,
    found: Waits,
    bound: Bound | None,
    largest: float,
    is_open: bool,
    question: Question,
) -> None:
    """Which limit binds, and the best that there is."""
    if not bound:
        return
    limit = getattr(asked, bound)
    now = getattr(found, bound)
    is_now = "grows without end" if now == float("inf") else f"is {human(now, 'seconds')}"
    said = Message(
        "--{bound} {limit} is not met: the {names} ({percentile}) {is_now}. ",
        bound=bound,
        limit=human(limit, "seconds"),
        names=NAMES[bound],
        percentile=asked.percentile,
        is_now=is_now,
    )
    if largest:
        what = (
            Message("{largest:.3g} requests a second", largest=largest)
            if is_open
            else Message("{largest:,.0f} users", largest=largest)
        )
        question.warn(Message("{said}{what} are served within the limits.", said=said, what=what))
        return
    least = at(1) if not is_open else at(asked.wanted * STEP)
    past = least.over(asked) or bound
    question.warn(
        Message(
            "{said}With one request at a time it is {value} for the {names}, so that no number of users is "
            "served within the limits: more tensor ranks, narrower weights or a faster accelerator are "
            "needed.",
            said=said,
            value=human(getattr(least, past), "seconds"),
            names=NAMES[past],
        )
    )
