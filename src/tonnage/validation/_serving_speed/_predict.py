"""Times of serving: the one place where rows meet the estimator."""

from tonnage.architectures import Model
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving_time.pool import pool_tokens
from tonnage.estimate.serving_time.rates import ServingRates
from tonnage.estimate.serving_time.times import ServingTimes, serving_times
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.kernel.formula import Number
from tonnage.spec import Cluster, Load, ServingPlan


def room(model: Model, plan: ServingPlan, cluster: Cluster, load: Load) -> Number | None:
    """Tokens of cache of the replica that a row is about, as an answer caps them; None where nothing bounds them, where the memory is not known, and where
    it would not hold one request: the run was measured, so that it did."""
    chip = cluster.accelerator
    try:
        made = serving_memory(model, plan, chip)
        found = pool_tokens(model, plan, cluster, made, chip.memory.usable_bytes - plan.reserve_bytes, load)
    except TonnageError:
        return None
    return None if found is None or found < load.input_tokens + load.output_tokens else found


def predict_times(
    model: Model, plan: ServingPlan, load: Load, cluster: Cluster, rounds: int | None = None, rates: ServingRates | None = None,
    pool: Number | None = None,
) -> ServingTimes:  # fmt: skip
    """Times of one replica under this load."""
    if load.concurrency is None and load.requests_per_second is None and pool is None:
        raise MissingDatum("how many requests ran at once is not said, and the memory that bounds them is not known")
    return serving_times(model, plan, load, cluster, pool_tokens=pool, rounds=rounds, rates=rates)
