"""Bytes of a training checkpoint: what is needed to go on training (document D, rule D7)."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.estimate._communication import copies
from tonnage.estimate._optimizer import optimizer_states
from tonnage.estimate.training import Step
from tonnage.formula import Number
from tonnage.formulas import memory as f
from tonnage.precisions import TRAINING_RECIPES
from tonnage.spec import TrainingPlan

# On one rank a state is whole, however the run shards it.
WHOLE = dict.fromkeys(
    ("tensor_parallel_size", "pipeline_parallel_size", "virtual_pipeline_size", "context_parallel_size", "expert_parallel_size",
     "expert_tensor_parallel_size", "data_parallel_size", "replicate_size"), 1) | {"first_stage_layers": None, "last_stage_layers": None, "chunk_layers": ()}  # fmt: skip


def state_bytes(model: Model, plan: TrainingPlan) -> Number:
    """Weights, gradients and optimizer of the whole run, each kept once: what full sharding deals out."""
    (rank,) = Step(model, replace(plan, **WHOLE), None).walk().ranks
    parts = ("weights", "gradients", "optimizer")
    return max(sum(phase.child(part).value for part in parts) for phase in rank.phases)


def checkpoint_bytes(model: Model, plan: TrainingPlan) -> Term:
    """Weights as the optimizer updates them and the optimizer's states, of all that trains: with adapters not the base."""
    recipe = TRAINING_RECIPES[plan.precision]
    if plan.method == "full":
        parameters = Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1)
    else:
        step = Step(model, replace(plan, **WHOLE), None)
        (rank,) = step.walk().ranks
        parameters, recipe = rank.stage.trained, step.updates
    weights = copies("weights", recipe.update_bytes, parameters, recipe.source)
    return Term.sum("checkpoint", weights, *optimizer_states(plan.optimizer, recipe, model, parameters))
