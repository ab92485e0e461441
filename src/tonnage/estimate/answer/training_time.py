"""How long a training run takes, for an answer: a step, what follows from it, and the same plan on more or fewer
replicas.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.question import Origin
from tonnage.documents.run import InTimeDocument, RunDocument
from tonnage.estimate.bands import highest
from tonnage.estimate.inputs import Question, Unread, today
from tonnage.estimate.memory import TrainingMemory, training_memory
from tonnage.estimate.money.bill import BillOptions, rent_of_moves, usd_per_hour
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions, put_limits
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.larger_machines import Machines
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import OR, Message, joined, listed
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR, human
from tonnage.numerics.optimizers import optimizer
from tonnage.ops import Mamba2, StateCache
from tonnage.runtimes import narrow_runtimes, training_runtime
from tonnage.spec import Cluster, TrainingPlan

if TYPE_CHECKING:  # of whole runs, which an answer about a step imports none of
    from tonnage.estimate.post_training.rollout import Rollouts
    from tonnage.estimate.post_training.step import PostTrainingStep
    from tonnage.estimate.run.run import InTime, SecondsOf


def timed(
    model: Model,
    plan: TrainingPlan,
    cluster: Cluster,
    memory: TrainingMemory,
    flops: Term,
    checkpoint: Term,
    trained: TrainingOptions,
    options: RunOptions,
    money: BillOptions,
    usable: int,
    question: Question,
) -> "tuple[Timing | PostTrainingStep | None, RunDocument[Term] | None]":
    """The time of a step and what follows from it; nothing, and a note, where nobody knows it. `trained`: the options
    of the plan; `usable`: bytes of an accelerator.
    """
    if plan.post_training.objective != "sft":
        return _post_trained(model, plan, cluster, memory, checkpoint, options, money, question)
    try:
        timing = Timing.of_step(memory.step, cluster)
        figures = timing.figures(flops.value)
    except MissingDatum as error:
        question.warn(str(error))
        if options.asked:
            put_limits(options, today(), question)
        return None, None
    for note in _notes(timing, memory):
        question.warn(note)
    if band := timing.band:
        seconds = float(timing.term.value)
        figures = replace(figures, step_time_band=(seconds * band.low, seconds * band.high))
    if timing.walk.kernels.narrow and not timing.multiplies_narrow:
        figures = replace(figures, computes_in=timing.walk.kernels.wide)
    if options.asked:
        from tonnage.estimate.run.run import run as run_of
        from tonnage.estimate.run.scaling import best_models

        whole_run = run_of(
            timing.term,
            plan,
            cluster,
            options,
            question,
            checkpoint=checkpoint,
            today=today(),
            step_time_at=lambda size: _step_at(model, plan, cluster, size),
            fits_at=lambda size: _fits_at(model, plan, cluster, size, usable),
            in_time=_in_time(model, cluster, trained, options, money, usable),
            price=_price(cluster, options, money),
        )
        figures = replace(figures, **whole_run.figures, best_models=best_models(model, plan, whole_run.tokens) or UNSET)
    return timing, figures


def _post_trained(
    model: Model,
    plan: TrainingPlan,
    cluster: Cluster,
    memory: TrainingMemory,
    checkpoint: Term,
    options: RunOptions,
    money: BillOptions,
    question: Question,
) -> "tuple[PostTrainingStep | None, RunDocument[Term] | None]":
    """The time of a step that generates, or runs other models, before it trains."""
    from tonnage.estimate.post_training.measured import BAND  # supervised training needs none of it
    from tonnage.estimate.post_training.step import PostTrainingStep

    try:
        step = PostTrainingStep(model, plan, cluster, memory)
        figures = step.figures()
        if step.generates and BAND is not None:
            figures = replace(figures, step_time_band=(step.seconds * BAND.low, step.seconds * BAND.high))
    except MissingDatum as error:
        question.warn(str(error))
        if options.asked:
            put_limits(options, today(), question)
        return None, None
    _note_rollouts(step, question)
    if options.asked:
        from tonnage.estimate.run.run import run as run_of

        whole_run = run_of(
            step.term,
            step.counted_plan,
            cluster,
            options,
            question,
            checkpoint=checkpoint,
            today=today(),
            price=_price(cluster, options, money),
        )
        figures = replace(figures, **whole_run.figures)
    return step, figures


def _note_rollouts(step: "PostTrainingStep", question: Question) -> None:
    """What was taken for the rollouts, and what the time leaves out."""
    plan = step.plan
    if step.generates:
        served, _ = step.rollouts.served
        if "rollout_tensor_parallel_size" not in question:
            ranks = int(served.tensor_parallel_size)
            question.put("rollout_tensor_parallel_size", ranks, *_why_ranks(step.rollouts, ranks))
        question.put("rollout_replicas", step.rollouts.replicas, "cluster", "uses all accelerators that generate")
        completions = int(step.rollouts.count.value)
        if step.rollouts.replicas > completions:
            question.warn(
                Message(
                    "{replicas:,} replicas generate {completions:,} completions: some have none.",
                    replicas=step.rollouts.replicas,
                    completions=completions,
                )
            )
        if "rollout_memory_share" not in question and step.rollouts.sleeps:
            why = "veRL: gpu_memory_utilization 0.5, or what training leaves"
            question.put("rollout_memory_share", step.rollouts.taken, "default", why)
        stated = plan.rollout.rollout_memory_share
        if stated and step.rollouts.taken > stated:
            question.warn(
                Message(
                    "the engine needs more than {stated} of the memory for model and one completion: {taken} is taken.",
                    stated=stated,
                    taken=round(step.rollouts.taken, 2),
                )
            )
        if step.leaving:
            question.warn(
                Message(
                    "{size} of training states leave each GPU while the engine generates: the framework must offload "
                    "them.",
                    size=human(step.leaving, "bytes"),
                )
            )
        if plan.rollout.mean_completion_length == plan.rollout.max_completion_length:
            question.warn(
                Message(
                    "every completion is as long as the maximum: the time is an upper bound. "
                    "{--mean-completion-length} says the mean."
                )
            )
        question.warn(Message("rewards by code and judges are not in the time."))
        if plan.vision.sees:
            question.warn(
                "the time in which the host decodes, resizes and cuts images and sounds is not counted: no source "
                "gives it."
            )
        return
    question.warn(
        Message(
            "no error band: no published step of objective {objective} says what it ran.",
            objective=plan.post_training.objective,
        )
    )


def _why_ranks(rollouts: "Rollouts", ranks: int) -> tuple[Origin, str]:
    """Where the ranks of an engine come from, and why they were taken."""
    usual, requests = rollouts.rollout.usual_rollout_ranks, rollouts.requests_at_once
    if usual == ranks:
        return "runtime", rollouts.rollout.usual_rollout_source
    if requests is None or rollouts.runs_enough:
        why = Message("the fewest ranks that hold the model and run enough requests at once")
    else:
        why = Message("no number of ranks runs enough requests at once: {requests} run with these", requests=requests)
    if not usual:
        return "default", why
    own = Message("{source} runs too few requests", source=rollouts.rollout.usual_rollout_source)
    return "default", joined("; ", (own, why))


def _notes(timing: Timing, memory: TrainingMemory) -> Iterator[str]:
    """What the time does not count, or takes from something else."""
    plan, chip, kernels, network = timing.plan, timing.cluster.accelerator, timing.walk.kernels, timing.walk.network
    if kernels.shares.of_kernels:
        yield Message(
            "there are no published runs on {chip} to fit rates to: the time uses published times of its kernels "
            "alone.",
            chip=chip.name,
        )
    elif not kernels.is_measured:
        yield (
            Message(
                "there are no published runs on {chip} to fit rates to: the time uses the efficiency of other "
                "accelerators.",
                chip=chip.name,
            )
        )
    if network.bridge and network.bridge.link and network.inside.link:
        joins = network.bridge.link.joins
        yield (
            Message(
                "bridges join {joins} cards of {chip}: in a machine of {accelerators_per_node} larger groups "
                "talk over {link}. Where your machine differs, write machines x cards, as in "
                "{size}x{joins}x{chip}.",
                joins=joins,
                chip=chip.name,
                accelerators_per_node=timing.cluster.accelerators_per_node,
                link=network.inside.link.name,
                size=timing.cluster.size // joins,
            )
        )
    if kernels.narrow in chip.dense_flops and not timing.multiplies_narrow:
        yield Message(
            "runtime {runtime} is not known to multiply in {narrow}: its products are timed in {wide}. {options} does.",
            runtime=plan.runtime,
            narrow=kernels.narrow,
            wide=kernels.wide,
            options=listed(_narrow_options(plan), OR),
        )
    chosen = optimizer(plan.optimizer)
    if missing := chosen.unworked or ("" if chosen.work is not None else chosen.products):
        yield Message(
            "not in the time of a step: what {optimizer} does besides, {products}.",
            optimizer=plan.optimizer,
            products=missing,
        )
    if others := _unmeasured_recurrences(memory):
        yield (
            Message(
                "recurrences were measured of Mamba-2 alone: the {others} of {model} takes the rate of its "
                "scans, and may be slower. Compare it with Mamba-2 by memory, not by time.",
                others=joined(" and ", others),
                model=timing.model.name,
            )
        )


def _narrow_options(plan: TrainingPlan) -> Iterator[str]:
    """Options that multiply in fewer than 16 bit instead: one of the same runtime, other runtimes."""
    kinds = training_runtime(plan.runtime).float8
    if len(kinds) > 1:
        yield f"--float8 {kinds[1]}"
    yield from (f"--runtime {name}" for name in narrow_runtimes())


def _unmeasured_recurrences(memory: TrainingMemory) -> list[str]:
    """Cores that carry a state along the sequence otherwise than by state space duality, whose matrix form the rate
    was fitted to.
    """
    every = [op for block in memory.step.layers for op in block.ops if not isinstance(op, Mamba2)]
    carrying = [op for op in every if any(isinstance(cache, StateCache) for cache in op.caches())]
    return sorted({op.core()[0].name for op in carrying if op.core()})


def _step_at(model: Model, plan: TrainingPlan, cluster: Cluster, size: int) -> Term:
    """Seconds of a step of the same global batch on so many replicas, on as many nodes as they need."""
    wider, other = _wider(plan, cluster, size)
    return Timing(model, other, wider, assumed=True).term


def _fits_at(model: Model, plan: TrainingPlan, cluster: Cluster, size: int, usable: int) -> bool:
    """Does the plan fit on so many replicas, with the high end of the error band?"""
    wider, other = _wider(plan, cluster, size)
    return highest(other, wider, training_memory(model, other, wider).memory.value) <= usable


def _wider(plan: TrainingPlan, cluster: Cluster, size: int) -> tuple[Cluster, TrainingPlan]:
    """The same plan on so many replicas, and nodes for it."""
    micro = plan.global_batch_size // (plan.micro_batch_size * size)
    other = replace(plan, data_parallel_size=size, num_microbatches=micro)
    return Machines(cluster).of(other.world_size), other


def _in_time(
    model: Model, cluster: Cluster, trained: TrainingOptions, options: RunOptions, money: BillOptions, usable: int
) -> "InTime":
    """Finds the smallest larger machine that makes a deadline for sure with the options as they are."""

    def find(deadline: float, times: float, seconds_of: "SecondsOf") -> InTimeDocument | None:
        from tonnage.estimate.run.deadline import smallest_in_time

        def seconds_on(machine: Cluster) -> tuple[float, float] | None:
            other = training_plan(model, machine, trained, Unread())
            if highest(other, machine, training_memory(model, other, machine).memory.value) > usable:
                return None
            timing = Timing(model, other, machine, assumed=True)
            seconds = seconds_of(other, timing.term)
            return seconds, seconds * (timing.band.high if timing.band else 1)

        smallest = smallest_in_time(cluster, times, deadline, seconds_on)
        if smallest is None:
            return None
        machine, seconds = smallest
        rent = rent_of_moves(cluster, money, options.price_per_accelerator_hour)(machine)
        usd = None if rent is None else rent.usd * seconds / HOUR
        return InTimeDocument(on=machine.name, accelerators=machine.size, seconds=seconds, usd=usd)

    return find


def _price(cluster: Cluster, options: RunOptions, money: BillOptions) -> float | None:
    """USD per accelerator-hour that a budget buys at, where the user gave no price."""
    if options.budget is None or options.price_per_accelerator_hour is not None:
        return None
    return usd_per_hour(cluster, money)
