"""The Python face of `tonnage plan`: the best plans and machines for a training run, or for users."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from tonnage.api.arguments import (
    check_mapping,
    check_number,
    check_text,
    check_whole,
    listed,
    model_of,
    names_in_text,
    option_value,
    options_by_subject,
    options_from,
    public,
    reserve_of,
    typed,
)
from tonnage.api.following import SearchProgress, progress_told
from tonnage.api.reports import Tabled, command_of
from tonnage.architectures import Model
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.search.pool.place import place as place_on
from tonnage.search.pool.placement import Placement
from tonnage.search.serving import answer as serving_answers
from tonnage.search.serving import plan_serving as search_serving
from tonnage.search.serving.machines import fixed, named
from tonnage.search.serving.options import ServingPlanOptions
from tonnage.search.training import document as training_document
from tonnage.search.training.options import SearchOptions, TrainingQuestion
from tonnage.spec import Cluster

if TYPE_CHECKING:
    from typing import Unpack

    from tonnage.api.options import AnyOptions, PlanServingOptions, PlanTrainingOptions


class TrainingPlans(training_document.TrainingPlans, Tabled):
    """`plans`: the best first, each with its whole `answer`; with the report, and the plans as data frames."""

    listed = ("plans", "front")

    def __init__(self, plans: training_document.TrainingPlans, command: str = ""):
        super().__init__(plans.found, plans.document)
        self.command = command

    def text(self, *, verbose: bool = False) -> str:
        """The lines of the command line, without colour: at most 24; `verbose`: every figure and every input (-v)."""
        if not verbose:
            from tonnage.render.brief.layout import plain_text
            from tonnage.render.brief.plan_training import plan_text
            from tonnage.search.training.launch.settings import launch_program

            program = launch_program(self.plans[0].plan) if self.plans else ""
            return plain_text(lambda width: plan_text(self, program, width))
        from tonnage.render.plans.training import plan_lines

        return "\n".join(plan_lines(self.to_dict(), self.plans[0].answer.memory if self.plans else None))

    def _unasked(self, name: str, document: Mapping[str, Any]) -> str:
        was_asked = document["question"].get("pareto", {}).get("value")
        return "pareto" if name == "front" and not was_asked else ""

    def __str__(self) -> str:
        return self.text()


class ServingPlans(serving_answers.ServingPlans, Tabled, frozen=True, kw_only=True, eq=False, dict=True):
    """`plans`: the best first; `best`: the answer of `serve` for the first; with the report, and the plans as data
    frames.
    """

    command: str = ""
    listed: ClassVar[tuple[str, ...]] = ("plans", "pareto")

    def text(self, *, formulas: bool = False, verbose: bool = False) -> str:
        """The lines of the command line, without colour: at most 24, with `verbose` every figure and every input (-v),
        with `formulas` the numbers put in besides (--formulas).
        """
        if not (formulas or verbose):
            from tonnage.render.brief.layout import plain_text
            from tonnage.render.brief.plan_serving import plan_text

            return plain_text(lambda width: plan_text(self, width))
        from tonnage.render.plans.serving import plan_lines

        return "\n".join(plan_lines(self.to_dict(), self.best, formulas=formulas))

    def _unasked(self, name: str, document: Mapping[str, Any]) -> str:
        return name if document[name] is None else ""

    def __str__(self) -> str:
        return self.text()


@public
def plan_training(
    model: str | os.PathLike[str] | Model,
    on: str | Sequence[str] = (),
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    reserve_bytes: float = 0,
    tell: Callable[[SearchProgress], object] | None = None,
    **options: "Unpack[PlanTrainingOptions]",
) -> TrainingPlans:
    """The best plans of a training run on a machine, or the best machines for it: `tonnage plan --train`.

    `on`: one name or several, in a list or with commas between; a name with a number ("8xH100-SXM-80GB") is that
    machine, a name alone any number of it, none every GPU of the catalogue. Options of the search:
    help(tonnage.SearchOptions); all others as for `train`: what is given is not varied. `vary`: values of other options
    to try, such as {"precision": ["bf16-mixed", "fp8-te"]}. `plans` are the best, each with its whole `answer`;
    `to_dict()` is the document. `tell` is called as the search goes on, with a tonnage.SearchProgress: the plans that
    are decided, and the best one so far, which is there long before the end.
    """
    if tell is not None and not callable(tell):
        raise InvalidInput(
            "tell takes a function that is called with a tonnage.SearchProgress, or None. Got {tell}.", tell=shown(tell)
        )
    names = tuple(map(_cluster_name, names_in_text(() if on is None else on, "on")))
    vary = (
        None if vary is None else {name: _varied(name, values) for name, values in check_mapping("vary", vary).items()}
    )
    command = command_of("plan", model, on=names, vary=vary, reserve_bytes=reserve_of(reserve_bytes), **options)
    training, search, run, bill = options_by_subject(options, TrainingOptions, SearchOptions, RunOptions, BillOptions)
    reserve = reserve_of(reserve_bytes)
    question = TrainingQuestion(
        on=names, options=training, run=run, money=bill, search=search, vary=vary or {}, reserve_bytes=reserve
    )
    with nullcontext() if tell is None else progress_told(tell):
        return TrainingPlans(training_document.answer(model_of(model), question), command)


@public
def plan_serving(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster | Sequence[str | Cluster] | None = None,
    *,
    reserve_bytes: float = 0,
    **options: "Unpack[PlanServingOptions]",
) -> ServingPlans:
    """The best machines and plans to serve a model to these users within these limits: `plan --serve`.

    `on`: names with commas between, or a list of names and Clusters: of a name without a count the number is searched;
    None: the whole catalogue. What is given is not varied; `weights` and `engine` may be several, with commas between.
    `to_dict()` is the document; `plans` has the best ones, `best` the answer of `serve` for the first of them.

    - help(tonnage.ServingPlanOptions): the search: goal, vary, max_accelerators, budget, top, pareto
    - help(tonnage.ServingOptions), help(tonnage.LoadOptions), help(tonnage.BillOptions): as for `serve`
    """
    command = command_of("plan", model, reserve_bytes=reserve_of(reserve_bytes), **{"serve": True, "on": on, **options})
    forms = (ServingOptions, ServingPlanOptions, LoadOptions, BillOptions)
    serving, options_of_serving, load, bill = options_by_subject(options, *forms)
    serving = replace(serving, reserve_bytes=reserve_of(reserve_bytes))
    plans = search_serving(model_of(model), _machines(on), options_of_serving, serving, load, bill)
    return ServingPlans(**{name: getattr(plans, name) for name in plans.__struct_fields__}, command=command)


def _machines(on: Any) -> Any:
    if on is None or isinstance(on, str):
        return None if on is None else named(on)
    machines = tuple(
        machine
        for item in listed(on)
        for machine in ((fixed(item),) if isinstance(item, Cluster) else named(_cluster_name(item)))
    )
    if not machines:
        raise InvalidInput(Message("{@on} takes at least one name, or None for the whole catalogue. Got none."))
    return machines


def _varied(name: str, values: Any) -> list[Any]:
    """The values of an option that is varied, as the option takes them; the search refuses a name that is no option."""
    is_option = name in TrainingOptions.__struct_fields__
    return [option_value(TrainingOptions, name, value) if is_option else value for value in listed(values)]


def _cluster_name(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise InvalidInput(
        "{@on} takes names such as h100 or 8xH100-SXM-80GB, and Clusters. Got {typed}.", typed=typed(name)
    )


class Placed(Tabled):
    """What `place` answers: the document's parts (`verdict`, `stages`, `replicas`, `jobs`, `moves`, `figures`, ...),
    the lines of the command line, the report, and what is placed as data frames.
    """

    listed = ("stages", "replicas", "jobs", "moves")

    def __init__(self, placement: Placement, command: str = ""):
        self.document, self.placed, self.status, self.command = (
            placement.document,
            placement.placed,
            placement.status,
            command,
        )
        self._found = placement

    def to_dict(self) -> dict[str, Any]:
        """The document."""
        return self._found.to_dict()

    def text(self) -> str:
        """The lines of the command line, without colour."""
        from tonnage.render.plans.pool import pool_lines

        return "\n".join(pool_lines(self.to_dict()))

    def __str__(self) -> str:
        return self.text()


@public
def place(
    inventory: str | os.PathLike[str] | Mapping[str, Any],
    model: str | os.PathLike[str] | Model | None = None,
    *,
    kind: str = "serve",
    split: str = "auto",
    goal: str = "throughput",
    stages: int | None = None,
    offload: bool = False,
    leave: str | Sequence[str] = (),
    join: str | Sequence[str] = (),
    time_limit: float | None = None,
    gap: float = 0.0,
    **options: "Unpack[AnyOptions]",
) -> Placed:
    """What goes where on a pool of unlike accelerators: `plan --inventory`. Needs the extra `placement`.

    `inventory`: a file (docs/commands/plan_pool.md), or the same as a mapping. With a `model` its layers, or replicas
    of it, are placed, to `serve` or to `train` it (`kind`), with options as for `serve` and `train`; without one the
    jobs of the inventory. `goal`: of a pipeline
    that serves: throughput, to the users asked about, or latency, of one user alone. `leave`, `join`: nodes and spare
    groups, in a list or with commas between: what moves where? `to_dict()` is the document.
    """
    if kind not in ("serve", "train"):
        raise unknown("kind of placement", str(kind), ("serve", "train"))
    if not isinstance(inventory, str | os.PathLike | Mapping):
        raise InvalidInput(
            "{@inventory} takes a path, or a mapping of its fields. Got {typed}.", typed=typed(inventory)
        )
    split, goal = check_text("split", split), check_text("goal", goal)
    stages = None if stages is None else check_whole("stages", stages)
    time_limit, gap = None if time_limit is None else check_number("time_limit", time_limit), check_number("gap", gap)
    leave, join = (
        [check_text(name, item) for item in names_in_text(nodes or (), name)]
        for name, nodes in (("leave", leave), ("join", join))
    )
    question = {
        "inventory": inventory,
        "train": True if kind == "train" else None,
        "split": None if split == "auto" else split,
        "goal": None if goal == "throughput" else goal,
        "stages": stages,
        "offload": offload or None,
        "leave": list(leave),
        "join": list(join),
        "time_limit": time_limit,
        "gap": gap or None,
        **options,
    }
    command = "" if isinstance(inventory, Mapping) else command_of("plan", model, **question)
    if kind == "train":
        run_options, load = options_from(TrainingOptions, options, LoadOptions), LoadOptions()
    else:
        run_options, load = options_by_subject(options, ServingOptions, LoadOptions)
    if model is None and options:
        raise InvalidInput(
            "options of the inventory's jobs are written there: leave out {options}.", options=next(iter(options))
        )
    where = dict(inventory) if isinstance(inventory, Mapping) else os.fspath(inventory)
    placement = place_on(
        where,
        None if model is None else model_of(model),
        run_options,
        load,
        split=split,
        objective=goal,
        stages=stages,
        offload=offload,
        leave=tuple(leave),
        join=tuple(join),
        time_limit=time_limit,
        gap=gap,
    )
    return Placed(placement, command)
