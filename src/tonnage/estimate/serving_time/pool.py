"""Tokens of cache that a replica has room for: the cap that answers, searches and the validator share."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.serving.memory import ServingMemory, serving_memory
from tonnage.formulas import serving as g
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, Load, ServingPlan

UNEVEN = 1.02  # a cache that takes so much more, or less, than in proportion to its tokens has windows or states


def pool_tokens(
    model: Model, plan: ServingPlan, cluster: Cluster, made: ServingMemory, usable: int, load: Load
) -> int | None:
    """Tokens of cache of one replica, for requests as long as these: a window takes less of a long one, and a state
    as much of each. None for an engine that takes as many requests as are asked for.
    """
    if not serving_runtime(plan.engine, plan.engine_version).queues:
        return None
    length, ranks = int(plan.context), made.ranks
    asked = int(load.input_tokens + load.output_tokens)
    if asked < length and any(_is_uneven(rank.per_request.value, rank.per_token.value * length) for rank in ranks):
        length, ranks = asked, serving_memory(model, replace(plan, context=asked), cluster.accelerator).ranks
    pools = [
        g.pool_tokens.evaluate(
            U=g.cache_pool_bytes.evaluate(U=usable, M=rank.besides_cache.value), M=held.per_request.value, s=length
        )
        for rank, held in zip(made.ranks, ranks, strict=True)
        if held.per_request.value
    ]
    return int(min(pools)) * int(plan.attention_data_parallel_size) if pools else None


def _is_uneven(held: float, in_proportion: float) -> bool:
    """Whether a request takes more, or less, than its tokens one by one: it has windows or states."""
    return not in_proportion or not 1 / UNEVEN < held / in_proportion < UNEVEN
