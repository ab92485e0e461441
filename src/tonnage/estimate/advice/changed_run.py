"""A training run and changes of it that hold its global batch: the plan of each, and what it needs and takes."""

from collections.abc import Callable
from functools import cached_property
from math import ceil
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.advice.moves import Changes, bare, ordered
from tonnage.estimate.bands import highest, most_needed
from tonnage.estimate.growth import growing, grown_bytes
from tonnage.estimate.host.memory import host_memory
from tonnage.estimate.inputs import Unread
from tonnage.estimate.memory import ROUNDING, Step, TrainingMemory
from tonnage.estimate.money.bill import Rent
from tonnage.estimate.options.framework_options import OFFLOADS
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.schedule import schedule_takes_microbatches
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.larger_machines import Machines
from tonnage.estimate.step.rollout_options import prompts_of, rows_of_prompt
from tonnage.estimate.step_time.time import Timing, timing_of
from tonnage.formulas.time import tokens_per_second
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.polynomial import Polynomial
from tonnage.runtimes import PEFT_CODE, USUAL_ON_SEVERAL, has_training_runtime, training_runtime
from tonnage.runtimes.parts.tool import Tool
from tonnage.spec import Cluster, TrainingPlan

# What follows from other choices unless it is said: a move says it wherever it moves.
DERIVED = ("data_parallel_size", "num_microbatches")
OF_TOOL = ("runtime", "runtime_version", "model_code")  # which a tool's name says
FIELDS = tuple(name for name in TrainingOptions.__struct_fields__ if name in TrainingPlan.field_names())


RentOf = Callable[[Cluster], Rent | None]  # what a cluster costs an hour; None where no price is known


class Planned(Struct, frozen=True, eq=False, dict=True):
    """A change, and the plan that it leads to. What its step takes is asked before what it needs: that takes longer
    to find. `grown`: the bytes but for the order of sums, where they are known without a walk.
    """

    model: Model
    change: dict[str, Any]
    machine: Cluster
    plan: TrainingPlan
    grown: float | None = None

    @classmethod
    def of_step(cls, step: Step, machine: Cluster) -> "Planned":
        """The plan of a step that was walked, without a change."""
        planned = cls(step.model, {}, machine, step.stated_plan)
        planned.__dict__["step"] = step
        return planned

    @cached_property
    def step(self) -> Step:
        return Step(self.model, self.plan, self.machine)

    @cached_property
    def memory(self) -> TrainingMemory:
        return self.step.walk()

    @cached_property
    def timing(self) -> Timing | None:
        return timing_of(self.step, self.machine)

    @cached_property
    def seconds(self) -> float | None:
        """Of a step."""
        return float(self.timing.seconds) if self.timing else None

    @property
    def seconds_a_sequence(self) -> float | None:
        return None if self.seconds is None else self.seconds / self.plan.global_batch_size

    @property
    def pace(self) -> float | None:
        """Tokens a second."""
        if not self.seconds:
            return None
        return float(
            tokens_per_second.evaluate(D=self.plan.global_batch_size * self.plan.sequence_length, tau=self.seconds)
        )


class RunChanges:
    """The user's run, and changes of it that hold its global batch. `widest`: of its groups, if more than the
    machine has; 0: it is not.
    """

    def __init__(
        self, model: Model, cluster: Cluster, options: TrainingOptions, now: Planned, widest: int, rent: RentOf
    ):
        self.model, self.cluster, self.options, self.now, self.widest, self.rent = (
            model,
            cluster,
            options,
            now,
            widest,
            rent,
        )
        self.plan = now.plan
        self._settled: dict[Planned, ChangedRun | None] = {}
        self._asked: dict[frozenset[tuple[str, Any]], ChangedRun | None] = {}
        self.machines = Machines(cluster)
        self.tool = _tool_of(options)
        self.sharded = self._sharded()
        self.become = self.sharded[-1] if self.sharded else must_become(self.plan, options, widest)
        self.runtime = training_runtime(USUAL_ON_SEVERAL if self.become else self.plan.runtime)  # which it may become

    def _sharded(self) -> tuple[dict[str, Any], ...]:
        """With what a tool on the Trainer shards what every rank would hold, the least traffic first; empty where it
        does not, or is no such tool.
        """
        if self.tool is None or self.tool.runtime or training_runtime(self.plan.runtime).zero_stages != (0,):
            return ()
        stages = ({"zero_stage": stage} for stage in (2, 3))
        return tuple(stage for stage in stages if self.planned(stage))

    def ask(self, change: dict[str, Any]) -> "ChangedRun | None":
        """The change with every option that it moves, and its bytes; None if it is no plan."""
        key = frozenset(change.items())
        if key not in self._asked:
            planned = self.planned(change)
            self._asked[key] = self.settled(planned) if planned else None
        return self._asked[key]

    def on(self, machine: Cluster) -> "ChangedRun | None":
        """The run on other accelerators."""
        planned = self.planned({"on": machine})
        return self.settled(planned) if planned else None

    def planned(self, change: dict[str, Any]) -> Planned | None:
        """The plan of a change; None if it is none."""
        machine = self.machines.of(change.get("on"))
        try:
            plan = self._plan_of(machine, {name: value for name, value in change.items() if name != "on"})
            if plan is None:
                return None
            planned = Planned(
                self.model, change, machine, plan, grown_bytes(self.model, plan, machine, asker=self.options)
            )
            return planned if planned.grown is not None or planned.step else None
        except TonnageError:
            return None

    def settled(self, planned: Planned) -> "ChangedRun | None":
        """What it needs, and every option that it moves; None if the host's memory cannot hold what it offloads."""
        if planned not in self._settled:
            self._settled[planned] = self._settle(planned)
        return self._settled[planned]

    def _settle(self, planned: Planned) -> "ChangedRun | None":
        try:
            if any(planned.plan.field(name) != "none" for name in OFFLOADS) and self._overfills(planned):
                return None
            return ChangedRun(self, planned) if planned.grown is not None or planned.memory else None
        except TonnageError:
            return None

    def said(self, planned: Planned) -> dict[str, Any]:
        """Every option that the user has to give for this plan, without what is so now and stays so by itself."""
        machine = planned.machine
        said = bare(self._said(planned), self.plan, lambda rest: self._plan(machine, rest))
        said |= {} if planned.change.get("on") is None else {"on": machine.name}
        return ordered(said, TrainingOptions)

    def said_shortly(self, planned: Planned) -> dict[str, Any]:
        """The same without what follows from the rest by itself, such as the size of data parallelism."""
        said = self.said(planned)
        for name in DERIVED:
            rest = {other: value for other, value in said.items() if other != name}
            if name in said and self._plan(planned.machine, rest) == planned.plan:
                said = rest
        return said

    def _said(self, planned: Planned) -> dict[str, Any]:
        """Every option that the user has to give for this plan."""
        change, plan = planned.change, planned.plan
        fields = [name for name in FIELDS if name != "runtime_version" or "runtime" not in change]
        if self.tool and "runtime" not in change:  # what it runs on, and its defaults there, follow from the rest
            return self._added(planned, [name for name in fields if name not in OF_TOOL])
        changed = plan.differences(self.plan)
        options = {name: changed[name] for name in fields if name in changed}
        options |= {
            name: value for name, value in change.items() if name != "on"
        }  # qlora, say, is lora on another base
        missed = plan.differences(self._plan(planned.machine, options))
        return options | {name: missed[name] for name in fields if name in missed and name not in change}

    def _added(self, planned: Planned, fields: list[str]) -> dict[str, Any]:
        """The change, and of these fields those that do not follow from it and from the ones before."""
        said = {name: value for name, value in planned.change.items() if name != "on"}
        missed = planned.plan.differences(self._plan(planned.machine, said))
        for name in fields:
            if name in missed:
                said[name] = missed[name]
                missed = planned.plan.differences(self._plan(planned.machine, said))
        return said

    def _plan(self, machine: Cluster, said: dict[str, Any]) -> TrainingPlan:
        return training_plan(self.model, machine, replace(self.options, **said), Unread())

    def fits_on(self, machine: Cluster, reserve: int) -> bool:
        """Whether the run as it was asked about fits other accelerators."""
        try:
            plan = training_plan(self.model, machine, self.options, Unread())
            needed = ceil(Step(self.model, plan, machine).walk().needed)
        except TonnageError:
            return False
        return highest(plan, machine, needed) <= machine.accelerator.memory.usable_bytes - reserve

    def _overfills(self, planned: Planned) -> bool:
        """Does what is offloaded need more host memory than a node has?"""
        host = host_memory(self.model, planned.plan, planned.machine, planned.memory)
        return host.capacity is not None and host.memory.value > host.capacity

    def _plan_of(self, machine: Cluster, change: dict[str, Any]) -> TrainingPlan | None:
        """The changed plan that holds the global batch, as other questions found it where they did."""
        length = self.options.sequence_length
        if length is None or "sequence_length" in change:
            return self._held(machine, change)

        def find(grows: Polynomial) -> TrainingPlan | None:
            try:
                plan = self._held(machine, {**change, "sequence_length": grows})
            except TonnageError:
                return None
            return plan and replace(plan, sequence_length=0)

        piece = growing((*self._asked_about, tuple(change.items())), machine, length, self.options, find)
        if piece is None:
            return self._held(machine, change)
        plan: TrainingPlan | None = piece.found
        return plan if plan is None else replace(plan, sequence_length=length)

    @cached_property
    def _asked_about(self) -> tuple[Any, ...]:
        """What the plan of a change depends on, beside the change, the machine and the sequence length."""
        options = replace(self.options, sequence_length=None)
        return self.model, options, self.plan.global_batch_size, self.plan.num_microbatches

    def _held(self, machine: Cluster, change: dict[str, Any]) -> TrainingPlan | None:
        """The changed plan with the same global batch, or with more replicas' share of it where that cannot be."""
        freed: dict[str, Any] = dict.fromkeys(DERIVED)
        if "runtime" in change:
            freed["zero_stage"] = None
        plan = training_plan(self.model, machine, replace(self.options, **{**freed, **change}), Unread())
        if "num_microbatches" in change:
            return plan
        count, rest = divmod(self.plan.global_batch_size, plan.micro_batch_size * plan.data_parallel_size)
        if rest and self.options.global_batch_size is not None:
            return None
        held = self._with_rollouts(replace(plan, num_microbatches=self.plan.num_microbatches if rest else count))
        if schedule_takes_microbatches(held):
            return held
        # the schedule takes another number: the one of the runtime's own batch, unless the user gave the batch
        return plan if self.options.global_batch_size is None and self.options.num_microbatches is None else None

    def _with_rollouts(self, plan: TrainingPlan) -> TrainingPlan:
        """The plan whose prompts make its batch, where the user gave none: the pasted options choose as many."""
        if not plan.rollout.prompts_per_step or self.options.prompts_per_step is not None:
            return plan
        batch, made = int(plan.global_batch_size), plan.rollout
        rows = rows_of_prompt(plan.post_training.objective, made.num_generations)
        return plan.with_fields(prompts_per_step=prompts_of(batch, rows))


def _tool_of(options: TrainingOptions) -> Tool | None:
    """The tool that the options name in place of a runtime."""
    if options.runtime is None or has_training_runtime(options.runtime):
        return None
    from tonnage.estimate.options.tools import tool_of  # a run that names a runtime needs none of it

    return tool_of(options)


def is_apart(grown: float | None, bytes_: float) -> TypeGuard[float]:
    """Whether bytes that are known but for the order of sums are surely more, or surely less, than others."""
    return grown is not None and abs(grown - bytes_) > 2 * ROUNDING * max(grown, bytes_)


class ChangedRun:
    """An outcome of a change of a run: its bytes and its options are found when they are asked for."""

    times = serves = None

    def __init__(self, run: RunChanges, planned: Planned):
        self.run, self.planned = run, planned
        self.changes: Changes = (
            "nothing" if planned.plan.global_batch_size == run.plan.global_batch_size else "workload"
        )

    @cached_property
    def change(self) -> dict[str, Any]:
        return self.run.said(self.planned)

    @cached_property
    def needed(self) -> int:
        return ceil(self.planned.memory.needed)

    @cached_property
    def most(self) -> int:
        return max(self.needed, highest(self.planned.plan, self.planned.machine, self.needed))

    def fits(self, usable: int) -> bool:
        if usable not in self._fits:
            self._fits[usable] = not self.exceeds(most_needed(self.planned.plan, self.planned.machine, usable))
        return self._fits[usable]

    @cached_property
    def _fits(self) -> dict[int, bool]:
        return {}

    def exceeds(self, needed: int) -> bool:
        if is_apart(self.planned.grown, needed):
            return self.planned.grown > needed
        return self.planned.memory.exceeds(needed)

    @cached_property
    def at_least(self) -> float:
        return self.planned.memory.at_least if self.planned.grown is None else self.planned.grown

    def is_lighter(self, other: "ChangedRun", *, or_alike: bool = False) -> bool:
        mine, others = self.planned.grown, other.planned.grown
        if others is not None and is_apart(mine, others):
            return mine < others
        return not self.exceeds(other.needed if or_alike else other.needed - 1)

    def seconds(self) -> float | None:
        """Of a step."""
        return self.planned.seconds

    def pace(self) -> float | None:
        """Tokens a second."""
        return self.planned.pace

    def rent(self) -> Rent | None:
        """USD that its machines cost an hour."""
        return self.run.rent(self.planned.machine)


def must_become(plan: TrainingPlan, options: TrainingOptions, widest: int) -> dict[str, Any]:
    """What a run changes to so that more accelerators hold less each: of a runtime that copies everything, or that
    is estimated on one alone; and where nothing else fits, of one that cuts no matrices. Recomputation, method and
    precision stay as they are, where they were a runtime's own.
    """
    runtime = training_runtime(plan.runtime)
    uncut = runtime.one_accelerator or (widest and not runtime.tensor_parallel)
    copies_everything = runtime.zero_stages == (0,)
    if not copies_everything and not uncut:
        return {}
    become: dict[str, Any] = {"runtime": USUAL_ON_SEVERAL, "model_code": PEFT_CODE}
    if plan.recompute == "full":
        become["recompute"] = "full"
    if options.method is None and plan.tuning.method != "full":
        become["method"] = plan.tuning.method
    if options.precision is None and plan.precision != training_runtime(USUAL_ON_SEVERAL).default_precision:
        become["precision"] = plan.precision
    return become
