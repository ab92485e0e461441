"""What training is for: one model on its own, or others beside it - a reference, a reward model, a critic, a teacher.

Source: TRL 1.16, trl/trainer/{dpo,grpo,distillation}_trainer.py; for PPO Ouyang2022, sec. 3.5: policy, reference, reward model and value
function, the last of which trains too.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.breakdown import Term
from tonnage.errors import InvalidPlan, TonnageError
from tonnage.estimate._communication import copies
from tonnage.estimate._question import Question
from tonnage.formula import Number
from tonnage.formulas import memory as f
from tonnage.registry import unknown
from tonnage.runtimes import TrainingRuntime
from tonnage.spec import TrainingPlan

if TYPE_CHECKING:
    from tonnage.estimate._states import States
    from tonnage.estimate.plans import TrainingOptions


class Objective(Struct, frozen=True):
    """`sequences`: of one sample; `beside`: models that do not train; `critic`: a value model trains beside the policy."""

    sequences: int = 1
    beside: tuple[str, ...] = ()
    critic: bool = False


OBJECTIVES = {
    "sft": Objective(),
    "dpo": Objective(sequences=2, beside=("reference model",)),  # chosen and rejected in one pass
    "grpo": Objective(),  # beta 0 by default: no reference
    "ppo": Objective(beside=("reference model", "reward model"), critic=True),
    "distillation": Objective(beside=("teacher",)),
}
RUNTIMES = ("transformers", "ddp", "fsdp2", "deepspeed")


def objective_of(
    model: Model, runtime: TrainingRuntime, method: str, o: "TrainingOptions", q: Question
) -> dict[str, Any]:
    """The fields of a plan that say what training is for. Adapters that are switched off are their own reference."""
    name = q.take("objective", o.objective, "sft", "default", "the next token of the text")
    if name not in OBJECTIVES:
        raise unknown("objective", name, OBJECTIVES)
    chosen = OBJECTIVES[name]
    if name != "sft" and runtime.name not in RUNTIMES:
        raise InvalidPlan(f"runtime {runtime.name} trains one model on its own: objective must be sft. Got {name}. Those that do more: {', '.join(RUNTIMES)}.")  # fmt: skip
    if o.teacher is not None and "teacher" not in chosen.beside:
        raise InvalidPlan(f"teacher belongs to objective distillation. Got {o.teacher} with objective {name}.")
    if o.engine_memory_share is not None and name not in ("grpo", "ppo"):
        raise InvalidPlan(f"engine_memory_share belongs to objectives that generate: grpo, ppo. Got it with {name}.")
    made: dict[str, Any] = {"objective": name}
    own = model.num_parameters()
    listed = []
    for each in chosen.beside:
        if each == "reference model" and method in ("lora", "dora"):
            continue
        if each == "teacher":
            teacher = _teacher(o, q)
            made["teacher_hidden_size"] = teacher.hidden_size
        listed.append((each, teacher.num_parameters() if each == "teacher" else own))
    if listed:
        made["models_beside"] = tuple(listed)
        q.put("models_beside", ", ".join(f"{each} of {count:,} parameters" for each, count in listed), "default", "as the objective needs them")  # fmt: skip
    if name in ("grpo", "ppo"):
        share = q.take(
            "engine_memory_share", o.engine_memory_share, 0.0, "default", "no engine on the training accelerators"
        )
        if not 0 <= share < 1:
            raise InvalidPlan(
                f"engine_memory_share is a part of the accelerator's memory, from 0 to below 1. Got {share}."
            )
        made["engine_memory_share"] = share
    return made


def _teacher(o: "TrainingOptions", q: Question) -> Model:
    if o.teacher is None:
        raise InvalidPlan("objective distillation needs a teacher: name its model.")
    from tonnage.models import read

    try:
        found = read(o.teacher)
    except TonnageError as error:
        raise InvalidPlan(f"teacher: {error}") from None
    q.put("teacher", found.name, "given", found.source)
    return found


def sequences(plan: TrainingPlan) -> Number:
    """Sequences of one micro-batch."""
    return plan.micro_batch_size * OBJECTIVES[plan.objective].sequences


def models_beside(states: "States", width: float, is_sharded: bool) -> list[Term]:
    """The weights of the other models on this rank: sharded as the trained one's are."""
    shards = states.step.sharded.z if is_sharded else 1
    held = [
        (name, Term.of("parameters", f.whole_parameters, N=count, z=shards))
        for name, count in states.plan.models_beside
    ]
    return [copies(name, width, parameters) for name, parameters in held]
