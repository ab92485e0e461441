"""The command that starts an engine as a plan has it."""

from shlex import quote

from tonnage.architectures import Model
from tonnage.estimate.answer.launch_model import draft_place, file_name, loaded, place, to_be_named
from tonnage.estimate.answer.launch_nodes import spread
from tonnage.runtimes import Start, serving_runtime
from tonnage.spec import Cluster, ServingPlan


def launch_command(model: Model, plan: ServingPlan, cluster: Cluster) -> str:
    """One line for a shell, or several where the engine is told by its environment and a file, and comments on what
    it leaves to the user. What the engine's default is, is not said.
    """
    model_place, engine = loaded(model, plan, cluster.accelerator), serving_runtime(plan.engine, plan.engine_version)
    if engine.launch is None:
        return f"# How {plan.engine} is started is not known."
    start = Start(
        model=model,
        plan=plan,
        cluster=cluster,
        engine=engine.version,
        name=model_place.name,
        place=place(model),
        file=quote(file_name(model_place.name, model, plan)),
        draft=draft_place(plan),
        words=list(model_place.words),
        spread=spread(model, plan, cluster),
        notes=list(model_place.notes),
    )
    variable = engine.longer_variable if plan.context > (model.context or plan.context) else ""
    command = f"{variable} {engine.launch(start)}".lstrip()
    notes = [*start.notes, *to_be_named(engine, start.name, start.draft if start.draft in command else "")]
    return "\n".join([command, *(f"# {note}" for note in notes)])
