"""The next best moves of a training run: changes of its plan, each estimated again, never canned."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from math import ceil, inf
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.estimate._checks import expert_counts
from tonnage.estimate._host import host_memory
from tonnage.estimate._larger import Machines, doublings, elsewhere
from tonnage.estimate._moves import Changes, Found, Ladder, Settled, Values, best_moves, move_of, ordered, paid
from tonnage.estimate._offload_options import ABLE
from tonnage.estimate._question import Question
from tonnage.estimate.bands import highest
from tonnage.estimate.plans import training_plan
from tonnage.estimate.time import seconds_of
from tonnage.estimate.training import training_memory
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
WORTH = 0.01  # of a step's time: a move that takes more memory and saves less time is not shown
# Recipes that keep less for each parameter, the mildest first.
NARROWER = {
    "fp32": ("bf16-mixed", "bf16-mixed-16bit-gradients", "bf16"),
    "tf32": ("bf16-mixed", "bf16-mixed-16bit-gradients", "bf16"),
    "bf16-mixed": ("bf16-mixed-16bit-gradients", "bf16"),
    "fp16-mixed": ("fp16-mixed-16bit-gradients",),
}


Rent = Callable[[Cluster], float | None]  # USD that a cluster costs an hour; None where no price is known


def training_advice(
    model: Model, cluster: Cluster, options: TrainingOptions, plan: TrainingPlan, needed: float, usable: int, rent: Rent
) -> Found:
    """If it does not fit, or only perhaps: what would. If it fits: what the room that is left would carry."""
    run = _Run(model, cluster, options, plan, MANY[0][1], rent)
    high = highest(plan, cluster, needed)
    if high <= usable:
        return Found(moves=list(_room(run, ceil(needed), usable)))
    now = paid(_pace(seconds_of(model, plan, cluster), plan), lambda: rent(cluster))
    found = Found(moves=[])
    for times, widest in MANY:
        run = _Run(model, cluster, options, plan, widest, rent)
        found = best_moves(_ladders(run, times), run.ask, ceil(needed), usable, high, now)
        if found.moves:
            break
    if found.moves or found.nearest is None:
        return found
    reserve = cluster.accelerator.memory.usable_bytes - usable
    smallest = next((other.name for other in elsewhere(cluster) if run.fits_on(other, reserve)), None)
    return Found(moves=[], nearest=found.nearest | {"smallest_machine": smallest})


def _pace(seconds: float | None, plan: TrainingPlan) -> float | None:
    """Tokens a second, of steps that take so long."""
    if not seconds:
        return None
    return float(tokens_per_second.evaluate(D=plan.global_batch_size * plan.sequence_length, tau=seconds))


class _Run:
    """The user's run, and changes of it that hold its global batch. `widest`: of its groups, if more than the machine has; 0: it is not."""

    def __init__(
        self, model: Model, cluster: Cluster, options: TrainingOptions, plan: TrainingPlan, widest: int, rent: Rent
    ):
        self.model, self.cluster, self.options, self.plan, self.widest, self.rent = model, cluster, options, plan, widest, rent  # fmt: skip
        self.machines = Machines(cluster)
        self.become = _must_become(plan, options, widest)
        self.runtime = training_runtime("fsdp2" if self.become else plan.runtime)  # which it may become

    def ask(self, change: dict[str, Any]) -> Settled | None:
        """The change with every option that it moves, and its bytes; None if it is no plan."""
        on = change.get("on")
        machine = self.machines.of(on)
        try:
            plan = self._held(machine, {name: value for name, value in change.items() if name != "on"})
            if plan is None:
                return None
            fields = [name for name in FIELDS if name != "runtime_version" or "runtime" not in change]
            said = {name: getattr(plan, name) for name in fields if getattr(plan, name) != getattr(self.plan, name)}
            said |= {
                name: value for name, value in change.items() if name != "on"
            }  # qlora, say, is lora on another base
            again = training_plan(self.model, machine, replace(self.options, **said), Question())
            said |= {
                name: getattr(plan, name)
                for name in fields
                if getattr(plan, name) != getattr(again, name) and name not in change
            }
            made = training_memory(self.model, plan, machine)
            if any(getattr(plan, name) != "none" for name in ABLE) and self._overfills(plan, machine, made):
                return None
            needed = ceil(made.memory.value)
        except TonnageError:
            return None
        grown: Changes = "nothing" if plan.global_batch_size == self.plan.global_batch_size else "workload"
        said |= {} if on is None else {"on": machine.name}
        made_of = ordered({**change, **said}, TrainingOptions)
        seconds = cache(lambda: seconds_of(self.model, plan, machine))
        return Settled(
            made_of, needed, grown, highest(plan, machine, needed), seconds, plan.global_batch_size, lambda: _pace(seconds(), plan),
            lambda: self.rent(machine),
        )  # fmt: skip

    def fits_on(self, machine: Cluster, reserve: int) -> bool:
        """Whether the run as it was asked about fits other accelerators."""
        try:
            plan = training_plan(self.model, machine, self.options, Question())
            needed = ceil(training_memory(self.model, plan, machine).memory.value)
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
        count, rest = divmod(self.plan.global_batch_size, plan.micro_batch_size * plan.data_parallel_size)
        if rest == 0:
            return replace(plan, num_microbatches=count)
        if self.options.global_batch_size is not None:
            return None
        return replace(plan, num_microbatches=self.plan.num_microbatches)


def _ladders(run: _Run, times: int) -> Iterator[Ladder]:
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


def _free(run: _Run) -> Iterator[Ladder]:
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


def _machines(run: _Run, times: int) -> Ladder:
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


def _room(run: _Run, needed: int, usable: int) -> Iterator[dict[str, Any]]:
    """What the room that is left would carry, where that makes a step faster: less recomputation, larger micro-batches."""
    plan = run.plan
    lighter = {"full": ("none", "selective"), "selective": ("none",)}.get(plan.recompute, ())
    larger = [plan.micro_batch_size * factor for factor in (2, 4, 8, 16)]
    policies = [settled for policy in lighter if (settled := run.ask({"recompute": policy})) and settled.most <= usable]
    batches = takewhile(
        lambda settled: settled is not None and settled.most <= usable,
        (run.ask({"micro_batch_size": size}) for size in larger),
    )
    now = seconds_of(run.model, plan, run.cluster)
    for fitting in (policies, [settled for settled in reversed(list(batches)) if settled]):
        # a larger micro-batch leaves fewer of them, and a pipeline stands empty for longer
        found = fitting[0] if fitting and now is None else _fastest(fitting, (now or inf) / plan.global_batch_size)
        if found:
            costs = paid(_pace(now, plan), lambda: run.rent(run.cluster))
            yield move_of(found, found.changes, needed, usable, now=costs)


def _fastest(moves: Iterable[Settled], now: float) -> Settled | None:
    """The move whose step takes the fewest seconds for a sequence; None where none takes clearly fewer than `now`."""
    timed = [(took / move.sequences, move) for move in moves if move.seconds and (took := move.seconds()) is not None]
    least, found = min(timed, key=lambda pair: pair[0], default=(inf, None))
    return found if least <= (1 - WORTH) * now else None
