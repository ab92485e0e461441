"""Bytes of a training checkpoint: what is needed to go on training (document D, rule D7)."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.memory import Step
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.optimizer import optimizer_states
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.numerics.precisions import TRAINING_RECIPES, Recipe
from tonnage.runtimes import training_runtime
from tonnage.spec import PipelineLayout, TrainingPlan

NEEDED = "checkpoint"
# On one rank a state is whole, however the run shards it.
WHOLE = dict.fromkeys(
    (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "virtual_pipeline_size",
        "context_parallel_size",
        "expert_parallel_size",
        "expert_tensor_parallel_size",
        "data_parallel_size",
        "replicate_size",
    ),
    1,
) | {"layout": PipelineLayout()}


def state_bytes(model: Model, plan: TrainingPlan) -> Number:
    """Weights, gradients and optimizer of the whole run, each kept once: what full sharding deals out."""
    (rank,) = Step(model, replace(plan, **WHOLE), None).walk().ranks
    parts = ("weights", "gradients", "optimizer")
    return max(sum(phase.child(part).value for part in parts) for phase in rank.phases)


def checkpoint_bytes(model: Model, plan: TrainingPlan) -> Term:
    """Weights as the optimizer updates them and the optimizer's states, of all that trains: with adapters not the
    base.
    """
    parameters, recipe = _saved(model, plan)
    weights = copies("weights", recipe.update_bytes, parameters, recipe.source)
    return Term.sum(NEEDED, weights, *optimizer_states(plan.optimizer, recipe, model, parameters))


def saved_bytes(model: Model, plan: TrainingPlan) -> Term:
    """What the runtime writes of it: what lies on disks, and what writing and reading take their time for.

    Megatron-core (dist_checkpointing of the model and of the distributed optimizer) and DeepSpeed below ZeRO-3
    (mp_rank_*_model_states.pt and zero_pp_rank_*_optim_states.pt) save the weights twice: as the model has them, and as
    the optimizer updates them.
    """
    needed = checkpoint_bytes(model, plan)
    parameters, recipe = _saved(model, plan)
    twice = plan.zero_stage < training_runtime(plan.runtime).saves_twice_below
    if not twice or plan.tuning.method != "full" or recipe.update_bytes == recipe.compute_bytes:
        return needed
    second = copies("weights as the model has them", recipe.compute_bytes, parameters, recipe.source)
    return Term.sum(Message("as {runtime} saves it", runtime=plan.runtime), *needed.children, second)


def checkpoint_formats(model: Model, plan: TrainingPlan, saved: Term) -> tuple[Term, ...]:
    """Files with more or less in them than what is needed, of all that trains: what the runtime saves, weights alone
    in two types.
    """
    parameters, recipe = _saved(model, plan)
    widths = dict.fromkeys((recipe.update_bytes, recipe.compute_bytes))
    alone = [
        copies(Message("weights alone in {width:.0f} bit", width=8 * width), width, parameters, recipe.source)
        for width in widths
    ]
    return (*([saved] if saved.name != NEEDED else []), *alone)


def _saved(model: Model, plan: TrainingPlan) -> tuple[Term, Recipe]:
    """Parameters that are saved, and the types they have."""
    if plan.tuning.method == "full":
        return Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1), TRAINING_RECIPES[
            plan.precision
        ]
    step = Step(model, replace(plan, **WHOLE), None)
    (rank,) = step.walk().ranks
    return rank.stage.trained, step.updates
