"""The optimizer's states on one rank, each named."""

from functools import lru_cache

from tonnage.architectures import Model
from tonnage.estimate.step.communication import copies
from tonnage.formulas import memory as f
from tonnage.kernel.term import Term
from tonnage.numerics.optimizers import Optimizer, optimizer, role_of
from tonnage.numerics.precisions import Recipe


def optimizer_states(name: str, recipe: Recipe, model: Model, parameters: Term) -> list[Term]:
    """One Term for each state of the optimizer, for the parameters that this rank updates.

    States that are not one number a parameter (factors, blocks, low ranks) are counted tensor by tensor over the model,
    and spread over ranks like its parameters.
    """
    chosen = optimizer(name)
    if recipe.moment_bytes and len(chosen.matrix) == 2:
        pairs = zip(chosen.matrix, recipe.moment_bytes, strict=True)
        return [copies(state.name, width, parameters, recipe.source) for state, width in pairs]
    if chosen.elementwise:
        return [
            copies(state.name, recipe.update_bytes if state.width is None else state.width, parameters, chosen.source)
            for state in chosen.matrix
        ]
    totals = _totals(chosen, model, recipe.update_bytes)
    count = model.num_parameters()
    return [
        Term.product(
            state,
            "bytes",
            Term.of(
                "bytes per parameter, over all tensors",
                f.mean_bytes_per_parameter,
                source=chosen.source,
                M=total,
                N=count,
            ),
            parameters,
        )
        for state, total in totals.items()
    ]


def foreach_copies(name: str, recipe: Recipe, parameters: Term) -> list[Term]:
    """What torch's foreach implementation makes of all parameters at once: the square roots of Adam's second moments.

    torch, optim/adam.py: _multi_tensor_adam. Optimizers of one state update in place.
    """
    chosen = optimizer(name)
    if len(chosen.matrix) < 2 or not chosen.elementwise:
        return []
    return [copies("square roots of all second moments", recipe.update_bytes, parameters, chosen.source)]


@lru_cache(maxsize=64)
def _totals(chosen: Optimizer, model: Model, update_bytes: float) -> dict[str, float]:
    totals: dict[str, float] = {}
    for weight, count in model.weighted():
        states = chosen.states(
            weight.rows,
            weight.columns,
            copies=weight.copies * count,
            heads=weight.heads,
            role=role_of(weight.part, weight.columns),
            update_bytes=update_bytes,
        )
        for state, size in states.items():
            totals[state] = totals.get(state, 0) + size
    return totals
