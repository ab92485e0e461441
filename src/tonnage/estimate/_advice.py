"""The next best moves of a training run: changes of its plan, each estimated again, never canned."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.estimate._checks import expert_counts
from tonnage.estimate._faster import faster
from tonnage.estimate._host import host_memory
from tonnage.estimate._larger import Machines, doublings, elsewhere
from tonnage.estimate._moves import Changes, Found, Ladder, Settled, Values, bare, best_moves, ordered, paid
from tonnage.estimate._offload_options import ABLE
from tonnage.estimate._question import Question
from tonnage.estimate._schedule import schedule_takes_microbatches
from tonnage.estimate.bands import highest
from tonnage.estimate.bill import Rent
from tonnage.estimate.plans import training_plan
from tonnage.estimate.time import Timing, timing_of
from tonnage.estimate.training import Step, TrainingMemory
from tonnage.estimate.training_options import TrainingOptions
from tonnage.formulas.time import tokens_per_second
from tonnage.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, TrainingPlan

# What follows from other choices unless it is said: a move says it wherever it moves.
DERIVED = ("data_parallel_size", "num_microbatches")
FIELDS = tuple(name for name in TrainingOptions.__struct_fields__ if name in TrainingPlan.__struct_fields__)
SHORTEST = 256  # tokens: no shorter sequence is proposed
# How many times the machine a larger one may be, and groups of how many ranks it may have beside the machine's own: more is proposed only
# where nothing fits with less.
MANY = ((32, 0), (32, 128), (256, 128), (2048, 128))
# Recipes that keep less for each parameter, the mildest first.
NARROWER = {
    "fp32": ("bf16-mixed", "bf16-mixed-16bit-gradients", "bf16"),
    "tf32": ("bf16-mixed", "bf16-mixed-16bit-gradients", "bf16"),
    "bf16-mixed": ("bf16-mixed-16bit-gradients", "bf16"),
    "fp16-mixed": ("fp16-mixed-16bit-gradients",),
}


RentOf = Callable[[Cluster], Rent | None]  # what a cluster costs an hour; None where no price is known


def training_advice(
    model: Model, cluster: Cluster, options: TrainingOptions, plan: TrainingPlan, made: TrainingMemory, usable: int, rent: RentOf
) -> Found:  # fmt: skip
    """If it does not fit, or only perhaps: what would. If it fits: what the room that is left would carry."""
    now = Planned({}, cluster, plan, made.fullest.stage.step)
    run = Run(model, cluster, options, now, MANY[0][1], rent)
    needed = made.memory.value
    high = highest(plan, cluster, needed)
    if high <= usable:
        return Found(moves=faster(run, needed, usable))
    costs = paid(now.pace, lambda: rent(cluster))
    found = Found(moves=[])
    for times, widest in MANY:
        run = Run(model, cluster, options, now, widest, rent)
        found = best_moves(_ladders(run, times), run.ask, ceil(needed), usable, high, costs)
        if found.moves:
            break
    if found.moves or found.nearest is None:
        return found
    reserve = cluster.accelerator.memory.usable_bytes - usable
    smallest = next((other.name for other in elsewhere(cluster) if run.fits_on(other, reserve)), None)
    return Found(moves=[], nearest=found.nearest | {"smallest_machine": smallest})


class Planned(Struct, frozen=True, eq=False, dict=True):
    """A change, and the plan that it leads to. What its step takes is asked before what it needs: that takes longer to find."""

    change: dict[str, Any]
    machine: Cluster
    plan: TrainingPlan
    step: Step

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
        return float(tokens_per_second.evaluate(D=self.plan.global_batch_size * self.plan.sequence_length, tau=self.seconds))  # fmt: skip


class Run:
    """The user's run, and changes of it that hold its global batch. `widest`: of its groups, if more than the machine has; 0: it is not."""

    def __init__(
        self, model: Model, cluster: Cluster, options: TrainingOptions, now: Planned, widest: int, rent: RentOf
    ):
        self.model, self.cluster, self.options, self.now, self.widest, self.rent = model, cluster, options, now, widest, rent  # fmt: skip
        self.plan = now.plan
        self.machines = Machines(cluster)
        self.become = _must_become(self.plan, options, widest)
        self.runtime = training_runtime("fsdp2" if self.become else self.plan.runtime)  # which it may become

    def ask(self, change: dict[str, Any]) -> Settled | None:
        """The change with every option that it moves, and its bytes; None if it is no plan."""
        planned = self.planned(change)
        return self.settled(planned) if planned else None

    def planned(self, change: dict[str, Any]) -> Planned | None:
        """The plan of a change; None if it is none."""
        machine = self.machines.of(change.get("on"))
        try:
            plan = self._held(machine, {name: value for name, value in change.items() if name != "on"})
            return Planned(change, machine, plan, Step(self.model, plan, machine)) if plan else None
        except TonnageError:
            return None

    def settled(self, planned: Planned) -> Settled | None:
        """What it needs, and every option that it moves; None if it cannot be."""
        machine, plan = planned.machine, planned.plan
        try:
            said = self._said(planned)
            made = planned.step.walk()
            if any(getattr(plan, name) != "none" for name in ABLE) and self._overfills(plan, machine, made):
                return None
            needed = ceil(made.needed)
        except TonnageError:
            return None
        grown: Changes = "nothing" if plan.global_batch_size == self.plan.global_batch_size else "workload"
        said = bare(said, self.plan, lambda rest: self._plan(machine, rest))
        said |= {} if planned.change.get("on") is None else {"on": machine.name}
        made_of = ordered(said, TrainingOptions)
        return Settled(
            made_of, needed, grown, highest(plan, machine, needed), lambda: planned.seconds, plan.global_batch_size,
            lambda: planned.pace, lambda: self.rent(machine),
        )  # fmt: skip

    def _said(self, planned: Planned) -> dict[str, Any]:
        """Every option that the user has to give for this plan."""
        change, plan = planned.change, planned.plan
        fields = [name for name in FIELDS if name != "runtime_version" or "runtime" not in change]
        said = {name: getattr(plan, name) for name in fields if getattr(plan, name) != getattr(self.plan, name)}
        said |= {name: value for name, value in change.items() if name != "on"}  # qlora, say, is lora on another base
        again = self._plan(planned.machine, said)
        return said | {
            name: getattr(plan, name)
            for name in fields
            if getattr(plan, name) != getattr(again, name) and name not in change
        }

    def _plan(self, machine: Cluster, said: dict[str, Any]) -> TrainingPlan:
        return training_plan(self.model, machine, replace(self.options, **said), Question())

    def fits_on(self, machine: Cluster, reserve: int) -> bool:
        """Whether the run as it was asked about fits other accelerators."""
        try:
            plan = training_plan(self.model, machine, self.options, Question())
            needed = ceil(Step(self.model, plan, machine).walk().needed)
        except TonnageError:
            return False
        return highest(plan, machine, needed) <= machine.accelerator.memory.usable_bytes - reserve

    def _overfills(self, plan: TrainingPlan, machine: Cluster, made: Any) -> bool:
        """Does what is offloaded need more host memory than a node has?"""
        host = host_memory(self.model, plan, machine, made)
        return host.capacity is not None and host.memory.value > host.capacity

    def _held(self, machine: Cluster, change: dict[str, Any]) -> TrainingPlan | None:
        """The changed plan with the same global batch, or with more replicas' share of it where that cannot be."""
        freed: dict[str, Any] = dict.fromkeys(DERIVED)
        if "runtime" in change:
            freed["zero_stage"] = None
        plan = training_plan(self.model, machine, replace(self.options, **{**freed, **change}), Question())
        if "num_microbatches" in change:
            return plan
        count, rest = divmod(self.plan.global_batch_size, plan.micro_batch_size * plan.data_parallel_size)
        if rest and self.options.global_batch_size is not None:
            return None
        held = replace(plan, num_microbatches=self.plan.num_microbatches if rest else count)
        if schedule_takes_microbatches(held):
            return held
        # the schedule takes another number: the one of the runtime's own batch, unless the user gave the batch
        return plan if self.options.global_batch_size is None and self.options.num_microbatches is None else None


def _ladders(run: Run, times: int) -> Iterator[Ladder]:
    """Kinds of changes that free memory, what costs least speed first."""
    yield from _free(run)
    plan, runtime, size = run.plan, run.runtime, max(run.cluster.size, run.widest)
    halves = [size for size in reversed(doublings(1, plan.micro_batch_size)) if size < plan.micro_batch_size]
    yield _ladder("micro_batch_size", [each for each in halves if plan.micro_batch_size % each == 0])
    if runtime.expert_parallel and expert_counts(run.model):
        yield _ladder("expert_parallel_size", doublings(2 * plan.expert_parallel_size, size))
    yield _ladder("recompute", {"none": ("selective", "full"), "selective": ("full",)}.get(plan.recompute, ()))
    yield from _offload(plan)
    if runtime.tensor_parallel:
        yield _ladder("tensor_parallel_size", doublings(2 * plan.tensor_parallel_size, run.machines.node_size))
    if runtime.context_parallel:
        yield _ladder("context_parallel_size", doublings(2 * plan.context_parallel_size, size))
    if runtime.pipeline:
        yield _ladder("pipeline_parallel_size", doublings(2 * plan.pipeline_parallel_size, size))
    yield _machines(run, times)
    shorter = [plan.sequence_length // cut for cut in doublings(2, plan.sequence_length // SHORTEST)]
    yield _ladder("sequence_length", shorter, "workload")
    peaks = run.cluster.accelerator.dense_flops
    narrower = [
        name for name in NARROWER.get(plan.precision, ()) if not peaks or TRAINING_RECIPES[name].compute in peaks
    ]
    yield _ladder("precision", narrower, "numerics")
    yield _ladder("optimizer", ("adamw-8bit",) if plan.optimizer == "adamw" else (), "numerics")
    fewer = {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(plan.method, ())
    yield _ladder("method", [each for each in fewer if each in training_runtime(plan.runtime).trains], "method")


def _free(run: Run) -> Iterator[Ladder]:
    """Changes that cost little or no speed."""
    plan, runtime = run.plan, run.runtime
    if plan.attention != "flash":  # sdpa may have no fused kernel for these heads
        yield _ladder("attention", ("flash",))
    own = training_runtime(plan.runtime)
    if plan.loss == own.losses[0]:
        yield _ladder("loss", own.losses[1:])
    if own.liger and not plan.liger:
        yield _ladder("liger", (True,))
    if plan.tensor_parallel_size > 1 and runtime.sequence_parallel and not plan.sequence_parallel:
        yield _ladder("sequence_parallel", (True,))
    yield _ladder("zero_stage", [stage for stage in runtime.zero_stages if stage > plan.zero_stage])
    if run.cluster.size > 1 and run.become:
        yield Ladder((run.become,))


def _offload(plan: TrainingPlan) -> Iterator[Ladder]:
    """What host memory may hold instead, the least traffic first; how much of it there is, is asked with each plan."""
    if plan.offload_optimizer == "none" and "cpu" in ABLE["offload_optimizer"].get(plan.runtime, ()):
        alone = {"offload_optimizer": "cpu"}
        both = {**alone, "offload_parameters": "cpu"}
        yield Ladder({"megatron": (alone,), "deepspeed": (alone, both)}.get(plan.runtime, (both,)))
    if plan.offload_activations == "none" and "cpu" in ABLE["offload_activations"].get(plan.runtime, ()):
        yield _ladder("offload_activations", ("cpu",))


def _machines(run: Run, times: int) -> Ladder:
    """More accelerators: first the node's own, then whole nodes. `on` counts them until the move is settled."""
    plan = run.plan
    shared = plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.context_parallel_size
    spread = plan.pipeline_parallel_size * plan.expert_parallel_size * plan.expert_tensor_parallel_size
    steps = (
        {"on": count, **run.become}
        for count in run.machines.larger(times)
        if count % shared == 0 and count % spread == 0
    )
    return Ladder(tuple(steps), "machine")


def _must_become(plan: TrainingPlan, options: TrainingOptions, widest: int) -> dict[str, Any]:
    """What a run changes to so that more accelerators hold less each: of a runtime that copies everything, or that is estimated on one
    alone; and where nothing else fits, of one that cuts no matrices. Recomputation, method and precision stay as they are, where they were a runtime's own."""
    runtime = training_runtime(plan.runtime)
    uncut = runtime.one_accelerator or (widest and not runtime.tensor_parallel)
    if plan.runtime not in ("ddp", "transformers") and not uncut:
        return {}
    become: dict[str, Any] = {"runtime": "fsdp2", "model_code": "transformers"}
    if plan.recompute == "full":
        become["recompute"] = "full"
    if options.method is None and plan.method != "full":
        become["method"] = plan.method
    if options.precision is None and plan.precision != training_runtime("fsdp2").default_precision:
        become["precision"] = plan.precision
    return become


def _ladder(name: str, values: Sequence[Any], changes: Changes = "nothing") -> Ladder:
    return Ladder(Values(name, values), changes)
