"""A run beside the best one for its compute: what parameters and data Chinchilla's and Kaplan's laws give it, and
what training beyond costs.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.run.scaling import Optimum, Overtraining, optima, overtraining
from tonnage.formulas.rules import compute_rule
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan


class BestModels(Struct, frozen=True):
    """By each fit the best model for the compute of a run, and with it, of a dense model, what the run costs over
    the best that is as good.
    """

    best: dict[str, Optimum]
    beside: dict[str, Overtraining]

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every breakdown, to be opened."""
        return tuple(
            term for row in self.document(lambda term: term) for term in row.values() if isinstance(term, Term)
        )

    def document(self, figure: Callable[[Term], Any]) -> list[dict[str, Any]]:
        """Its form in an answer; `figure` of a Term."""
        return [self._row(name, found, figure) for name, found in self.best.items()]

    def _row(self, name: str, found: Optimum, figure: Callable[[Term], Any]) -> dict[str, Any]:
        row: dict[str, Any] = {"fit": name, "parameters": figure(found.parameters), "tokens": figure(found.tokens)}
        if found.loss is not None:
            row["loss"] = figure(found.loss)
        if (this := self.beside.get(name)) is not None:
            same, factor = figure(this.same_loss_compute), figure(this.factor)
            row |= {"loss_of_this": figure(this.loss), "same_loss_compute": same, "factor": factor}
        return row


def best_models(model: Model, plan: TrainingPlan, tokens: Term) -> BestModels | None:
    """None for what the laws are not of: encoders, adapters, training on preferences. They were fitted to dense
    models: experts get no cost.
    """
    kinds = {branch.kind for branch in model.branches}
    if plan.method != "full" or plan.objective != "sft" or "encoder" in kinds:
        return None
    active = model.num_active_parameters()
    decoders = [branch for branch in model.branches if branch.kind == "decoder"]
    dense = active == sum(weight.num_parameters * count for branch in decoders for weight, count in branch.weighted())
    compute = compute_rule(N=active, D=tokens.value)
    return BestModels(optima(compute), overtraining(active, tokens.value) if dense else {})
