"""What a replica can hold: the longest context of one request."""

from functools import lru_cache
from math import floor

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.errors import TonnageError
from tonnage.estimate._kept import Kept
from tonnage.estimate.serving import ServingMemory, serving_memory
from tonnage.spec import Cluster, ServingPlan

NEAR = 64  # tokens: engines round contexts up to whole blocks
LONGEST = 2**30  # tokens: longer than any model was made for


def longest_context(model: Model, plan: ServingPlan, cluster: Cluster, made: ServingMemory, usable: int) -> Term:
    """Tokens of the longest request that has a place alone, at most those that the model was made for: it is known of this length that it
    fits, and of one token more that it does not."""
    most = model.context or LONGEST
    if made.memory.value <= usable and plan.context >= most:
        found = most
    else:
        slope = max(rank.per_token.value for rank in made.ranks)
        alone = made.memory.value - (plan.concurrency - 1) * made.fullest.per_request.value
        guess = floor(plan.context - (alone - usable) / slope) if slope else most
        found = _longest(Kept(model), replace(plan, concurrency=1), Kept(cluster), usable, most, guess)
    why = "what the model was made for" if found == most else "the accelerator's memory"
    return Term.by("longest context of one request", found, "tokens", basis=made.memory.basis, source="Kwon2023, sec. 4.2", version="1",
                   procedure="bisection over contexts (estimate.serving_limits)", limit=why)  # fmt: skip


@lru_cache(maxsize=256)
def _longest(model: Kept, plan: ServingPlan, cluster: Kept, usable: int, most: int, guess: int) -> int:
    """The last context that fits, 0 where none does: first near the guess, along the straight line of what a token adds."""

    def fits(context: int) -> bool:
        try:
            memory = serving_memory(model.thing, replace(plan, context=context), cluster.thing.accelerator).memory.value
        except TonnageError:  # beyond what the engine takes at all
            return False
        return bool(memory <= usable)

    if guess < 1 and not fits(1):  # most often the weights alone are too much
        return 0
    low, high = 0, most + 1
    for near in (guess - NEAR, guess + NEAR, most):
        if low < near < high:
            low, high = (near, high) if fits(near) else (low, near)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
