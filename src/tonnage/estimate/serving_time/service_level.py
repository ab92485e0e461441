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
from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.spec import Load, ServingPlan

MOST_USERS = 2**20  # of one replica
STEP = 1e-3  # of a rate: it is found to so much of itself
ROUNDS = 60  # of a bisection, more than any takes
NAMES = {"ttft": TTFT, "tpot": TPOT}


class Waits(Struct, frozen=True):
    """Seconds of a load, at the percentile that is asked for."""

    ttft: float
    tpot: float

    def over(self, replica_load: ReplicaLoad) -> Bound | None:
        """The limit that is exceeded most, of its own size; None where both are kept."""
        limits: dict[Bound, float | None] = {"ttft": replica_load.ttft, "tpot": replica_load.tpot}
        past = {name: getattr(self, name) / limit for name, limit in limits.items() if limit is not None}
        name = max(past, key=lambda bound: past[bound])
        return name if past[name] > 1 else None

    def times(self, ttft: float, tpot: float) -> "Waits":
        """These waits times a factor each: ends of their error bands."""
        return Waits(self.ttft * ttft, self.tpot * tpot)


WaitsAt = Callable[[float], Waits]


def service_level(plan: ServingPlan, speed: Speed, replica_load: ReplicaLoad, question: Question) -> dict[str, Any]:
    """Fields of a ServingDocument: `service_level`, `users_at_service_level` and the `rate_at_service_level` that they
    ask, and `replicas_needed`.
    """
    is_open = replica_load.is_open
    if not replica_load.limited:
        return _replicas(plan, replica_load, h.replicas_for_rate, speed.times.largest_rate) if is_open else {}
    at = _waits(speed.replica, replica_load)
    waits = at(_of_the_fullest(replica_load))
    bound = waits.over(replica_load)
    level = level_document(waits, bound, replica_load)
    largest = _largest(at, replica_load, speed.times)
    name = "rate_at_service_level" if is_open else "users_at_service_level"
    figures: dict[str, Any] = {"service_level": level, name: _term(plan, replica_load, largest, is_open)}
    if not is_open:
        figures["rate_at_service_level"] = _rate_of_users(plan, speed.replica, replica_load, int(largest))
    if largest:
        figures |= _replicas(plan, replica_load, h.replicas_within_limits, largest)
    warn_of_limits(at, replica_load, waits, bound, largest * plan.data_parallel_size, question)
    return figures


def level_document(waits: Waits, bound: Bound | None, replica_load: ReplicaLoad) -> ServiceLevelDocument:
    """The block `service_level` of an answer."""
    return ServiceLevelDocument(
        met=not bound,
        percentile=replica_load.percentile,
        ttft_limit_seconds=UNSET if replica_load.ttft is None else replica_load.ttft,
        tpot_limit_seconds=UNSET if replica_load.tpot is None else replica_load.tpot,
        ttft_seconds=waits.ttft if waits.ttft < float("inf") else UNSET,
        tpot_seconds=waits.tpot,
        bound_by=bound or UNSET,
    )


def bound_by(replica: Replica, replica_load: ReplicaLoad) -> Bound | None:
    """The limit that this load exceeds most; None where it keeps within both."""
    return waits_of(replica, replica_load).over(replica_load)


def waits_of(replica: Replica, replica_load: ReplicaLoad) -> Waits:
    """The waits of the fullest replica, at the percentile that is asked for."""
    return _waits(replica, replica_load)(_of_the_fullest(replica_load))


def replicas_within(replica: Replica, replica_load: ReplicaLoad, served: ServingTimes) -> int:
    """The fewest replicas like this one that keep within the limits, or up with what comes; 0 where no number does."""
    total = replica_load.wanted * replica_load.busy
    if not replica_load.limited:
        return (
            int(h.replicas_for_rate.evaluate(X=total, X_max=served.largest_rate))
            if replica_load.is_open
            else replica_load.busy
        )
    largest = _largest(_waits(replica, replica_load), replica_load, served)
    return int(h.replicas_within_limits.evaluate(X=total, X_max=largest)) if largest else 0


def _largest(at: WaitsAt, replica_load: ReplicaLoad, served: ServingTimes) -> float:
    """The largest load of one replica within the limits, in requests a second or users."""
    return (
        largest_rate(at, replica_load, served.largest_rate)
        if replica_load.is_open
        else most_users(at, replica_load, served.steady.places)
    )


def _of_the_fullest(replica_load: ReplicaLoad) -> float:
    """Requests a second, or the users of the replica that has most: 9 users of 5 replicas are 2 of four, whose
    limits are kept or not.
    """
    return replica_load.wanted if replica_load.is_open else ceil(replica_load.wanted)


def _waits(replica: Replica, replica_load: ReplicaLoad) -> WaitsAt:
    name = "requests_per_second" if replica_load.is_open else "concurrency"

    def at(value: float) -> Waits:
        load: Load = replace(replica_load.load, **{name: value})
        if replica_load.percentile == "mean":
            served = times(replica.clock, replica.policy, load)
            return Waits(float("inf") if served.ttft_seconds is None else served.ttft_seconds, served.tpot_seconds)
        from tonnage.estimate.serving_time.simulated import percentile

        return Waits(*percentile(replica, replica_load, load))

    return at


def most_users(at: WaitsAt, replica_load: ReplicaLoad, places: float) -> int:
    """The most users within the limits, found by doubling and then by bisection, so that this number meets them and one
    more does not. `places`: requests that run at once. Without a limit on the first token no more users than these
    count, since the others wait.
    """
    most = MOST_USERS if replica_load.ttft is not None else max(floor(places), 1)
    low, high = 0, 1
    while high <= most and not at(high).over(replica_load):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle).over(replica_load) else (middle, high)
    return low


def largest_rate(at: WaitsAt, replica_load: ReplicaLoad, most: float) -> float:
    """The largest rate of one replica within the limits, to a thousandth of itself; the next step is past them."""
    low, high = most * STEP, most
    if at(low).over(replica_load):
        return 0.0
    for _ in range(ROUNDS):
        if high - low <= STEP * low:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if at(middle).over(replica_load) else (middle, high)
    return low


def _term(plan: ServingPlan, replica_load: ReplicaLoad, largest: float, is_open: bool) -> Term:
    limits = {name: limit for name in NAMES if (limit := getattr(replica_load, name)) is not None}
    unit, what = ("requests/s", "requests per second") if is_open else ("requests", "users")
    of_replica = Term.by(
        "of one replica",
        largest,
        unit,
        basis="analytic",
        source="Agrawal2024, sec. 2.4: capacity within a latency target",
        version="1",
        procedure="bisection over loads (estimate.service_level)",
        percentile=replica_load.percentile,
        **limits,
    )
    return Term.product(
        Message("{what} within the limits", what=what),
        unit,
        Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size),
        of_replica,
    )


def _rate_of_users(plan: ServingPlan, replica: Replica, replica_load: ReplicaLoad, users: int) -> Term:
    """What the most users within the limits ask of all replicas, each the next as soon as it has an answer."""
    load: Load = replace(replica_load.load, concurrency=users)
    rate = times(replica.clock, replica.policy, load).requests_per_second if users else 0.0
    of_replica = Term.by(
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
        "requests per second within the limits",
        "requests/s",
        Term.of("replicas", g.replicas, n_copies=plan.data_parallel_size),
        of_replica,
    )


def _replicas(plan: ServingPlan, replica_load: ReplicaLoad, formula: Any, of_one: float) -> dict[str, Any]:
    """Replicas, and accelerators, for all requests or users, of which one replica answers so many."""
    needed = Term.of("replicas needed", formula, X=replica_load.wanted * replica_load.busy, X_max=of_one)
    ranks = Term.of("accelerators of a replica", g.ranks_of_replica, n=plan.world_size // plan.data_parallel_size)
    return {
        "replicas_needed": needed,
        "accelerators_needed": Term.product("accelerators needed", "accelerators", needed, ranks),
    }


def warn_of_limits(
    at: WaitsAt,
    replica_load: ReplicaLoad,
    waits: Waits,
    bound: Bound | None,
    largest: float,
    question: Question,
) -> None:
    """Which limit binds, and the best that there is."""
    is_open = replica_load.is_open
    if not bound:
        return
    limit = getattr(replica_load, bound)
    now = getattr(waits, bound)
    is_now = "grows without end" if now == float("inf") else f"is {human(now, 'seconds')}"
    verdict = Message(
        "--{bound} {limit} is not met: the {names} ({percentile}) {is_now}. ",
        bound=bound,
        limit=human(limit, "seconds"),
        names=NAMES[bound],
        percentile=replica_load.percentile,
        is_now=is_now,
    )
    if largest:
        what = (
            Message("{largest:.3g} requests a second", largest=largest)
            if is_open
            else Message("{largest:,.0f} users", largest=largest)
        )
        question.warn(Message("{said}{what} are served within the limits.", said=verdict, what=what))
        return
    least = at(1) if not is_open else at(replica_load.wanted * STEP)
    past = least.over(replica_load) or bound
    question.warn(
        Message(
            "{said}With one request at a time the {names} is {value}: no number of users is served within the "
            "limits. Use more tensor ranks, narrower weights or a faster accelerator.",
            said=verdict,
            value=human(getattr(least, past), "seconds"),
            names=NAMES[past],
        )
    )
