"""The next best moves of a training run: changes of its plan, each estimated again, never canned."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.advice import Advice, Chosen
from tonnage.estimate.advice.changed_run import ChangedRun, Planned, RentOf, RunChanges
from tonnage.estimate.advice.chosen import chosen_of, free_ladders, given_options
from tonnage.estimate.advice.faster import faster
from tonnage.estimate.advice.larger_cards import with_cheaper_machine
from tonnage.estimate.advice.moves import (
    Changes,
    Ladder,
    Suggestions,
    Values,
    best_moves,
    cheapest,
    paid,
)
from tonnage.estimate.bands import highest
from tonnage.estimate.layers.losses import HOLD_LOGITS
from tonnage.estimate.memory import TrainingMemory
from tonnage.estimate.options.framework_options import OFFLOADS
from tonnage.estimate.options.lighter import lighter_kernels
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.larger_machines import doublings, elsewhere, other_machines
from tonnage.numerics.precisions import TRAINING_RECIPES
from tonnage.runtimes import training_runtime
from tonnage.spec import Cluster, TrainingPlan

SHORTEST = 256  # tokens: no shorter sequence is proposed
# How many times the machine a larger one may be, and groups of how many ranks it may have beside the machine's own:
# more is proposed only
# where nothing fits with less.
MANY = ((32, 0), (32, 128), (256, 128), (2048, 128))
LEAST_PART = 0.8  # of the bytes that are needed now, what other machines hold at least to be tried
OFFLOADED = frozenset(OFFLOADS)
# Recipes that keep less for each parameter, the mildest first.
NARROWER = {
    "fp32": ("bf16-mixed", "bf16-mixed-16bit-gradients", "bf16"),
    "tf32": ("bf16-mixed", "bf16-mixed-16bit-gradients", "bf16"),
    "bf16-mixed": ("bf16-mixed-16bit-gradients", "bf16"),
    "fp16-mixed": ("fp16-mixed-16bit-gradients",),
}


def training_advice(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions,
    plan: TrainingPlan,
    memory: TrainingMemory,
    usable: int,
    rent: RentOf,
    run: RunChanges | None = None,
) -> Suggestions:
    """If it does not fit, or only perhaps: what would. If it fits: what the room that is left would carry. `run`: the
    changes of it that were estimated already.
    """
    now = Planned.of_step(memory.step, cluster)
    run = run or changes_of(model, cluster, options, plan, memory, rent)
    needed = memory.memory.value
    high = highest(plan, cluster, needed)
    if high <= usable:
        return Suggestions(moves=faster(run, needed, usable))
    costs = paid(now.pace, lambda: rent(cluster))
    advice = Suggestions(moves=[])
    for times, widest in MANY:
        run = run if widest == run.widest else RunChanges(model, cluster, options, now, widest, rent)
        ladders = list(_ladders(run, times))
        advice = best_moves(ladders, run.ask, ceil(needed), usable, high, costs)
        if advice.moves:
            if all(map(_offloads, advice.moves)):  # slow: more accelerators and other methods come first
                others = [ladder for ladder in ladders if _is_without_offload(ladder)]
                without = best_moves(others, run.ask, ceil(needed), usable, high, costs)
                advice = Suggestions(moves=[*without.moves, *advice.moves[:1]])
            break
    reserve = cluster.accelerator.memory.usable_bytes - usable
    least = needed * LEAST_PART * cluster.size
    if advice.moves or advice.nearest is None:
        larger = other_machines(cluster, least)
        return with_cheaper_machine(advice, larger, run.on, rent, ceil(needed), reserve, costs)
    smallest = next((other.name for other in elsewhere(cluster, least) if run.fits_on(other, reserve)), None)
    return Suggestions(moves=[], nearest=replace(advice.nearest, smallest_machine=smallest))


def _offloads(move: Advice) -> bool:
    return not OFFLOADED.isdisjoint(move.change)


def _is_without_offload(ladder: Ladder) -> bool:
    return (
        ladder.changes in ("nothing", "machine", "method")
        and bool(ladder.steps)
        and OFFLOADED.isdisjoint(ladder.steps[0])
    )


def changes_of(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions,
    plan: TrainingPlan,
    memory: TrainingMemory,
    rent: RentOf,
) -> RunChanges:
    """Changes of a run with groups as wide as its machine."""
    return RunChanges(model, cluster, options, Planned.of_step(memory.step, cluster), MANY[0][1], rent)


def chosen_change(run: RunChanges, needed: int, usable: int) -> Chosen | None:
    """The cheapest change that makes a run fit, of options that were not given; None where none does.

    Global batch, numerics and machine stay, and nothing is offloaded.
    """
    given = given_options(run.options)

    def ask(change: dict[str, Any]) -> ChangedRun | None:
        changed = run.ask(change)
        if changed is None or changed.changes != "nothing":
            return None
        moved = changed.planned.plan.differences(run.plan)
        return None if given.keys() & moved.keys() else changed

    outcome = cheapest(free_ladders(_ladders(run, 1), given, OFFLOADS), ask, needed, usable)
    return chosen_of(run.said_shortly(outcome.planned), needed, run.now.seconds) if outcome else None


def _ladders(run: RunChanges, times: int) -> Iterator[Ladder]:
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
    fewer = {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(plan.tuning.method, ())
    yield _ladder("method", [each for each in fewer if each in training_runtime(plan.runtime).trains], "method")


def _free(run: RunChanges) -> Iterator[Ladder]:
    """Changes that cost little or no speed."""
    plan, runtime = run.plan, run.runtime
    now = {"attention": plan.kernels.attention, "loss": plan.loss, "liger": plan.kernels.liger}
    default = {"attention": now["attention"], "loss": training_runtime(plan.runtime).losses[0], "liger": False}
    for name, values in lighter_kernels(plan.runtime):
        if now[name] == default[name] and now[name] not in values:
            yield _ladder(name, values)
    if plan.loss in runtime.untiled_losses and plan.post_training.objective in HOLD_LOGITS:
        yield _ladder("loss", ("tiled",))
    if plan.tensor_parallel_size > 1 and runtime.sequence_parallel and not plan.sequence_parallel:
        yield _ladder("sequence_parallel", (True,))
    if not run.sharded:
        yield _ladder("zero_stage", [stage for stage in runtime.zero_stages if stage > plan.zero_stage])
    if run.cluster.size > 1 and run.become:
        yield Ladder(run.sharded or (run.become,))


def _offload(plan: TrainingPlan) -> Iterator[Ladder]:
    """What host memory may hold instead, the least traffic first; how much of it there is, is asked with each plan."""
    runtime = training_runtime(plan.runtime)
    if plan.offload.offload_optimizer == "none" and "cpu" in runtime.offload_optimizer:
        alone = {"offload_optimizer": "cpu"}
        both = {**alone, "offload_parameters": "cpu"}
        if runtime.offloads_together:
            yield Ladder((both,))
        else:
            yield Ladder((alone, both) if "cpu" in runtime.offload_parameters else (alone,))
    if plan.offload.offload_activations == "none" and "cpu" in runtime.offload_activations:
        yield _ladder("offload_activations", ("cpu",))


def _machines(run: RunChanges, times: int) -> Ladder:
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


def _ladder(name: str, values: Sequence[Any], changes: Changes = "nothing") -> Ladder:
    return Ladder(Values(name, values), changes)
