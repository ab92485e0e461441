"""Bytes of a training checkpoint: what is needed to go on training (document D, rule D7)."""

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.estimate._communication import copies
from tonnage.estimate._optimizer import optimizer_states
from tonnage.formulas import memory as f
from tonnage.precisions import TRAINING_RECIPES
from tonnage.spec import TrainingPlan


def checkpoint_bytes(model: Model, plan: TrainingPlan) -> Term:
    """Weights as the optimizer updates them and the optimizer's states, of the whole model."""
    recipe = TRAINING_RECIPES[plan.precision]
    parameters = Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1)
    weights = copies("weights", recipe.update_bytes, parameters, recipe.source)
    return Term.sum("checkpoint", weights, *optimizer_states(plan.optimizer, recipe, model, parameters))
