"""Requests one by one through a replica: percentiles of what each waits, and how many keep within the limits."""

from typing import Any

from msgspec import UNSET

from tonnage.documents.serving import SimulatedDocument, WaysDocument
from tonnage.estimate.inputs import Question
from tonnage.estimate.load import Quantiles, Requests, Simulated, requests_of, simulate
from tonnage.estimate.load.options import MOST_REQUESTS, ReplicaLoad
from tonnage.estimate.serving_time.speed import Replica
from tonnage.estimate.serving_time.times import around_seconds, scheduled_seconds
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import joined, listed
from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.kernel.term import Term
from tonnage.spec import Load

PROCEDURE = "simulation of continuous batching (estimate.load.simulate)"
SOURCE = "Kwon2023, sec. 4.3; Agrawal2024, sec. 4.2"
WAYS = ("mean", "p50", "p90", "p99")
OPEN_REQUESTS = 10_000  # that arrive by themselves
FEWEST = 100  # of users: p99 of fewer says nothing


def simulated(replica: Replica, replica_load: ReplicaLoad, question: Question) -> SimulatedDocument[Term]:
    """The block `simulated` of an answer."""
    if replica.clock.plan.drafting.draft_tokens:
        raise InvalidInput(
            "a simulation gives each request a token a pass: leave out {@draft_tokens}, or {@simulate}. "
            "Got {draft_tokens}.",
            draft_tokens=replica.clock.plan.drafting.draft_tokens,
        )
    requests = requests_for(replica_load, replica_load.load)
    run = _run(replica, requests)
    question.put("num_requests", len(requests), "given" if replica_load.num_requests else "default", "of one replica")
    if replica_load.requests is None:
        question.put("seed", replica_load.seed, "default" if not replica_load.seed else "given")
    return figures(run, replica_load)


def _run(replica: Replica, requests: Requests) -> Simulated:
    """What clients see: with the way into the engine and back, which no pass has."""
    run = simulate(replica.clock, replica.policy, requests)
    pause = run.tpot.mean if (run.output_tokens > 1).any() else 0.0
    returns = requests.users is not None
    busy = min(requests.users - 1, 1) if requests.users is not None else run.busy_seconds / run.seconds
    scheduled = scheduled_seconds(replica.clock, pause, busy, returns=returns)
    return run.delayed(float(around_seconds(replica.clock, pause) + scheduled))


def requests_for(replica_load: ReplicaLoad, load: Load) -> Requests:
    """The requests of the trace that come to one replica, dealt out in turn; without a trace they are drawn."""
    trace = replica_load.requests
    if trace is None:
        return requests_of(_whole(load), replica_load.num_requests or _count(load), replica_load.seed)
    part = slice(0, None, replica_load.busy)
    return Requests(
        arrival=trace.arrival[part],
        input_tokens=trace.input_tokens[part],
        output_tokens=trace.output_tokens[part],
        cached=trace.cached[part],
    )


def _count(load: Load) -> int:
    """Ten requests of each user of a replica. InvalidInput where that is more than a simulation takes."""
    if load.concurrency is None:
        return OPEN_REQUESTS
    users = int(-(-load.concurrency // 1))
    if 10 * users > MOST_REQUESTS:
        raise InvalidInput(
            "a simulation takes 10 requests of each user, and at most {most_requests:,} of one "
            "replica: ask for at most {most_requests2:,} users of a replica, for more replicas, or "
            "give {@num_requests}. Got {users:,} users of a replica.",
            most_requests=MOST_REQUESTS,
            most_requests2=MOST_REQUESTS // 10,
            users=users,
        )
    return max(10 * users, FEWEST)


def _whole(load: Load) -> Load:
    """Users of a replica are whole ones: the fullest has them rounded up."""
    from msgspec.structs import replace

    return load if load.concurrency is None else replace(load, concurrency=int(-(-load.concurrency // 1)))


def figures(run: Simulated, replica_load: ReplicaLoad) -> SimulatedDocument[Term]:
    """Times in seconds by percentile, rates of all replicas."""
    parameters: dict[str, Any] = {"requests": len(run.arrival), "seed": replica_load.seed}
    parameters |= {} if replica_load.requests is None else {"trace": "given"}

    def term(name: str, value: float, unit: str) -> Term:
        return Term.by(
            name, value, unit, basis="analytic", source=SOURCE, procedure=PROCEDURE, version="1", **parameters
        )

    def all_ways(name: str, quantiles: Quantiles) -> WaysDocument[Term]:
        return WaysDocument(
            **{way: term(joined(", ", (name, way)), getattr(quantiles, way), "seconds") for way in WAYS}
        )

    several = bool((run.output_tokens > 1).any())
    document: SimulatedDocument[Term] = SimulatedDocument(
        ttft=all_ways(TTFT, run.ttft),
        end_to_end=all_ways("end-to-end latency", run.end_to_end),
        queueing=all_ways("queueing time", run.queueing),
        tpot=all_ways(TPOT, run.tpot) if several else UNSET,
        itl=all_ways("inter-token latency (ITL)", run.itl) if several else UNSET,
        tokens_per_second=term(
            "output tokens per second", run.output_tokens_per_second * replica_load.busy, "tokens/s"
        ),
        requests_per_second=term("requests per second", run.requests_per_second * replica_load.busy, "requests/s"),
        preemptions=term("requests sent back for want of cache", run.preemptions * replica_load.busy, "requests"),
    )
    if replica_load.limited:
        share, rate = run.goodput(replica_load.ttft, replica_load.tpot)
        document.goodput_share = term("requests within the limits", share, "")
        document.goodput = term("requests per second within the limits", rate * replica_load.busy, "requests/s")
    return document


def percentile(replica: Replica, replica_load: ReplicaLoad, load: Load) -> tuple[float, float]:
    """(TTFT, TPOT) of this load at the percentile that is asked for."""
    run = _run(replica, requests_for(replica_load, load))
    if replica_load.percentile not in WAYS:
        raise InvalidInput(
            "{@percentile} must be one of {ways}. Got {percentile}.",
            ways=listed(WAYS),
            percentile=replica_load.percentile,
        )
    tpot = getattr(run.tpot, replica_load.percentile) if (run.output_tokens > 1).any() else 0.0
    return getattr(run.ttft, replica_load.percentile), tpot
