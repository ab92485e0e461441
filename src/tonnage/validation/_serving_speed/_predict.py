"""Times of serving: the one place where rows meet the estimator."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import MissingDatum
from tonnage.estimate.inference._pool import pool_tokens
from tonnage.estimate.inference._rates import ServingRates
from tonnage.estimate.inference.times import ServingTimes, serving_times
from tonnage.formula import Number
from tonnage.spec import Cluster, Load, ServingPlan


def room(model: Model, plan: ServingPlan, cluster: Cluster) -> Number | None:
    """Tokens of cache of the replica that a row is about, by the newest version of its engine: rows write versions in words of their own."""
    found = pool_tokens(model, replace(plan, engine_version=""), cluster)
    return None if found is None or found < plan.context else found


def predict_times(
    model: Model, plan: ServingPlan, load: Load, cluster: Cluster, rounds: int | None = None, rates: ServingRates | None = None,
    pool: Number | None = None,
) -> ServingTimes:  # fmt: skip
    """Times of one replica under this load."""
    if load.concurrency is None and load.requests_per_second is None and pool is None:
        raise MissingDatum("how many requests ran at once is not said, and the memory that bounds them is not known")
    return serving_times(
        model, replace(plan, engine_version=""), load, cluster, pool_tokens=pool, rounds=rounds, rates=rates
    )
