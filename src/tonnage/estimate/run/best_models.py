"""A run beside the best one for its compute: what parameters and data Chinchilla's and Kaplan's laws give it, and
what training beyond costs.
"""

from msgspec import UNSET

from tonnage.architectures import Model
from tonnage.documents.run import BestModelDocument
from tonnage.estimate.run.scaling import Optimum, Overtraining, optima, overtraining
from tonnage.formulas.rules import compute_rule
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan


def best_models(model: Model, plan: TrainingPlan, tokens: Term) -> list[BestModelDocument[Term]]:
    """By each fit the best model for the compute of a run, and with it, of a dense model, what the run costs over the
    best that is as good. None for what the laws are not of: encoders, adapters, training on preferences. They were
    fitted to dense models: experts get no cost.
    """
    kinds = {branch.kind for branch in model.branches}
    if plan.tuning.method != "full" or plan.post_training.objective != "sft" or "encoder" in kinds:
        return []
    active = model.num_active_parameters()
    decoders = [branch for branch in model.branches if branch.kind == "decoder"]
    dense = active == sum(weight.num_parameters * count for branch in decoders for weight, count in branch.weighted())
    compute = compute_rule(N=active, D=tokens.value)
    excess = overtraining(active, tokens.value) if dense else {}
    return [_best(name, optimum, excess.get(name)) for name, optimum in optima(compute).items()]


def _best(name: str, optimum: Optimum, this: Overtraining | None) -> BestModelDocument[Term]:
    return BestModelDocument(
        fit=name,
        parameters=optimum.parameters,
        tokens=optimum.tokens,
        loss=optimum.loss or UNSET,
        loss_of_this=this.loss if this else UNSET,
        same_loss_compute=this.same_loss_compute if this else UNSET,
        factor=this.factor if this else UNSET,
    )
