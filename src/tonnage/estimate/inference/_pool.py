"""Tokens of cache that a replica has room for: what its memory answer says."""

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.estimate.serving import serving_memory
from tonnage.estimate.serving_answer import serving_figures
from tonnage.formula import Number
from tonnage.spec import Cluster, ServingPlan


def pool_tokens(model: Model, plan: ServingPlan, cluster: Cluster) -> Number | None:
    """Tokens of one replica; None where nothing grows with a request's length, or where the memory is not known."""
    accelerator = cluster.accelerator
    try:
        made = serving_memory(model, plan, accelerator)
        figures = serving_figures(model, made, plan, accelerator.memory.usable_bytes - plan.reserve_bytes)
    except TonnageError:
        return None
    tokens = figures.get("kv_capacity_tokens")
    return None if tokens is None else tokens.value / plan.data_parallel_size
