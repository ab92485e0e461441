"""Settings that start a plan in its runtime, by the runtime's own names: its framework writes them."""

from collections.abc import Mapping

from tonnage.architectures import Model
from tonnage.estimate.answer.launch import place
from tonnage.estimate.frameworks.base import framework_of
from tonnage.kernel.message import Message, joined
from tonnage.runtimes import HUB, training_runtime
from tonnage.search.training.launch.trl import trains, trl_command
from tonnage.spec import Cluster, TrainingPlan

# In the case of TRL what is yours to say.
TRL = (
    "a command of TRL with peft. On several nodes each has accelerate's --num_machines, --machine_rank and "
    "--main_process_ip besides."
)
# Of a plan, what starts another run where it is not said; and what nobody needs to say.
PLAIN = {
    "method": "full",
    "optimizer": "adamw",
    "precision": "bf16-mixed",
    "loss": "full",
    "offload_optimizer": "none",
    "offload_parameters": "none",
    "offload_activations": "none",
    "base_weights": "",
    "objective": "sft",
}
# Without words for these the settings would start a run of another kind: then there are none.
KINDS = ("method", "objective")


def launch_settings(model: Model, plan: TrainingPlan, cluster: Cluster | None = None) -> list[str]:
    """Options of the runtime for what a search chooses, or a command; none for a runtime that has no words here for
    such a run. `cluster`: the machine, which some programs are told.
    """
    if trains(plan):
        return trl_command(model, plan)
    runtime = training_runtime(plan.runtime)
    if not runtime.launch_program or _unwritten(plan):
        return []
    framework = framework_of(runtime)
    return [*framework.launch_settings(model, plan), *(framework.launch_machine(cluster) if cluster else ())]


def launch_lacks(model: Model, plan: TrainingPlan) -> list[str]:
    """The parts of a plan that the settings do not give, so that they alone would start another run."""
    runtime = training_runtime(plan.runtime)
    if trains(plan):
        chunks = ["loss full (TRL takes it in parts, with less memory)"] if plan.loss == "full" else []
        unnamed = [Message("the path of the checkpoint where {hub} stands", hub=HUB)] if place(model) == HUB else []
        return [*unnamed, *chunks, *_lacking(plan, runtime.trl_words, ("method", "objective", "base_weights", "loss"))]
    if not runtime.launch_program:
        return [Message("how {runtime} is started", runtime=plan.runtime)]
    if other := _unwritten(plan):
        return [Message("how {runtime} is started for {other}", runtime=plan.runtime, other=joined(" and ", other))]
    return [*_lacking(plan, runtime.launch_words), *framework_of(runtime).launch_lacks(model, plan)]


def launch_program(plan: TrainingPlan) -> str:
    """The program that takes the settings; empty where there are none."""
    if trains(plan):
        return TRL
    return "" if _unwritten(plan) else training_runtime(plan.runtime).launch_program


def _unwritten(plan: TrainingPlan) -> list[str]:
    words = training_runtime(plan.runtime).launch_words
    unwritten = [
        f"{name} {value}"
        for name in KINDS
        if (value := plan.field(name)) != PLAIN[name] and value not in words.get(name, ())
    ]
    others = plan.model_code not in ("", training_runtime(plan.runtime).model_codes[0])  # whose settings they are not
    return unwritten or ([f"model_code {plan.model_code}"] if others else [])


def _lacking(plan: TrainingPlan, words: Mapping[str, tuple[str, ...]], written: tuple[str, ...] = ()) -> list[str]:
    values = [(name, plan.field(name)) for name in PLAIN if name not in written]
    return [f"{name} {value}" for name, value in values if value != PLAIN[name] and value not in words.get(name, ())]
