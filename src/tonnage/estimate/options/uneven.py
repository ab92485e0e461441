"""Ranks that have more to do, or are slower, than the others: imbalance of experts, stragglers, power limits.
Nothing of it unless it is said.
"""

from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.checks import expert_counts
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message
from tonnage.runtimes import TrainingRuntime

SLOWEST = 1000  # times


def uneven_ranks(
    model: Model, runtime: TrainingRuntime, sizes: dict[str, Any], o: TrainingOptions, q: Question
) -> dict[str, Any]:
    """The fields of a plan that say so."""
    return _imbalance(model, runtime, sizes["expert_parallel_size"], o, q) | _stragglers(o, q) | _reached(o, q)


def _imbalance(model: Model, runtime: TrainingRuntime, ranks: int, o: TrainingOptions, q: Question) -> dict[str, float]:
    """Tokens of the fullest expert rank over the mean: from balanced to all of them."""
    wanted = o.expert_imbalance
    lacks = {
        "runtime": "expert_imbalance" not in runtime.options,
        "model": not expert_counts(model),
        "expert_parallel_size": ranks == 1,
        "expert_capacity_factor": o.expert_capacity_factor is not None,
    }
    if any(lacks.values()):
        if wanted not in (None, 1):
            raise NotApplicable(
                (
                    Message(
                        "{@expert_imbalance} needs experts that several ranks of megatron share, without "
                        "{@expert_capacity_factor}: it must be 1. Got {said:g}.",
                        said=wanted,
                    )
                ),
                "expert_imbalance",
                tuple(name for name, is_lacking in lacks.items() if is_lacking)[:1],
            )
        return {}
    if wanted is not None and not 1 <= wanted <= ranks:
        raise InvalidPlan(
            "{@expert_imbalance} must be from 1 (balanced) to the {ranks} ranks that share the experts. Got {said:g}.",
            ranks=ranks,
            said=wanted,
        )
    why = "assumed: every rank's experts are sent equally many tokens"
    return {"expert_imbalance": q.take("expert_imbalance", wanted, 1, "default", why)}


def _stragglers(o: TrainingOptions, q: Question) -> dict[str, float]:
    slow, share = o.straggler_slowdown, o.straggler_share
    if slow is None:
        if share is not None:
            raise NotApplicable(
                Message(
                    "{@straggler_share} belongs to {@straggler_slowdown}, which is not said. Got {share:g}.",
                    share=share,
                ),
                "straggler_share",
                ("straggler_slowdown",),
            )
        return {}
    if not 1 <= slow <= SLOWEST:
        raise InvalidPlan(
            "{@straggler_slowdown} must be from 1 to {slowest:,}: how many times longer a slow node "
            "takes. Got {slow:g}.",
            slowest=SLOWEST,
            slow=slow,
        )
    if share is not None and not 0 <= share <= 1:
        raise InvalidPlan(
            "{@straggler_share} must be from 0 to 1: the share of nodes that are slow. Got {share:g}.",
            share=share,
        )
    why = "a slow node is there in any case"
    return {
        "straggler_slowdown": q.take("straggler_slowdown", slow),
        "straggler_share": q.take("straggler_share", share, 1, "default", why),
    }


def _reached(o: TrainingOptions, q: Question) -> dict[str, float]:
    """What large products reach on this very machine."""
    wanted = o.product_share
    if wanted is None:
        return {}
    if not 0 < wanted <= 1:
        raise InvalidPlan(
            "{@product_share} must be more than 0 and at most 1: a share of the 16-bit peak. Got {said:g}.",
            said=wanted,
        )
    return {"product_share": q.put("product_share", wanted, "given")}
