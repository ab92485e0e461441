"""The whole answer of `train`: the question as understood, the verdict, the breakdown, the next move."""

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.documents.advice import Advice, NearestMiss
from tonnage.documents.answer import Slopes
from tonnage.documents.run import RunDocument
from tonnage.estimate.answer.form import Answer, about, missed_host, put_band, usable_bytes, warn_of_towers
from tonnage.estimate.answer.notes import warn_of_training, warn_where_nothing_fits
from tonnage.estimate.bands import highest, lowest, training_band
from tonnage.estimate.host.memory import HostMemory, host_memory
from tonnage.estimate.inputs import Question, today
from tonnage.estimate.memory import TrainingMemory, training_memory
from tonnage.estimate.money.bill import Bill, BillOptions, bill, rent_of_moves, usd_per_hour
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.checkpoint import checkpoint_bytes, disks, saved_bytes
from tonnage.estimate.run.larger_machines import Machines
from tonnage.estimate.step.method import model_flops
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import MissingDatum, NotApplicable
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, joined
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.numerics.optimizers import optimizer
from tonnage.ops import Mamba2, StateCache
from tonnage.spec import Cluster, TrainingPlan

# ---- How long a training run takes, for an answer: a step, what follows from it, and the same plan on more or fewer
# replicas.


def timed(
    model: Model,
    plan: TrainingPlan,
    cluster: Cluster,
    memory: TrainingMemory,
    flops: Term,
    checkpoint: Term,
    options: RunOptions,
    money: BillOptions,
    usable: int,
    question: Question,
) -> tuple[Timing | None, RunDocument[Term] | None]:
    """The time of a step and what follows from it; nothing, and a note, where nobody knows it. `usable`: bytes of an
    accelerator.
    """
    try:
        timing = Timing(model, plan, cluster, memory.step, assumed=True)
        figures = timing.figures(flops.value)
    except MissingDatum as error:
        question.warn(str(error))
        return None, None
    for note in _notes(timing, memory):
        question.warn(note)
    if band := timing.band:
        seconds = float(timing.term.value)
        figures = replace(figures, step_time_band=(seconds * band.low, seconds * band.high))
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
            price=_price(cluster, options, money),
        )
        figures = replace(figures, **whole_run.figures, best_models=best_models(model, plan, whole_run.tokens) or UNSET)
    return timing, figures


def _notes(timing: Timing, memory: TrainingMemory) -> Iterator[str]:
    """What the time does not count, or takes from something else."""
    plan, chip, kernels, network = timing.plan, timing.cluster.accelerator, timing.walk.kernels, timing.walk.network
    if not kernels.is_measured:
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
    work = [work_item for layer in timing.walk.step.layers.values() for work_item in layer.work]
    if kernels.narrow in chip.dense_flops and not any(kernels.is_narrow(work_item) for work_item in work):
        yield Message(
            "runtime {runtime} is not known to multiply in {narrow}: its products are timed in 16 bit.",
            runtime=plan.runtime,
            narrow=kernels.narrow,
        )
    if products := optimizer(plan.optimizer).products:
        yield (
            Message(
                "the products of {optimizer} are not in the time of a step, but the bytes that it reads and "
                "writes are. It does {products}.",
                optimizer=plan.optimizer,
                products=products,
            )
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


def _price(cluster: Cluster, options: RunOptions, money: BillOptions) -> float | None:
    """USD per accelerator-hour that a budget buys at, where the user gave no price."""
    if options.budget is None or options.price_per_accelerator_hour is not None:
        return None
    return usd_per_hour(cluster, money)


if TYPE_CHECKING:  # of suggestions, which an answer without them imports none of
    from tonnage.documents.advice import Chosen
    from tonnage.estimate.advice.changed_run import RunChanges

NO_OPTIONS, NO_RUN, NO_BILL = TrainingOptions(), RunOptions(), BillOptions()


def train(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions = NO_OPTIONS,
    run: RunOptions = NO_RUN,
    money: BillOptions = NO_BILL,
    *,
    reserve_bytes: int = 0,
    advise: bool = True,
    choose: bool | None = None,
) -> Answer:
    """Does this training run fit, where does its memory go, and how long does it take?

    `advise`: with suggestions and the slopes, for which other plans are estimated too. `choose`: where the defaults of
    what was not given do not fit, change the cheapest of it so that it does; False: keep them, and say so in the
    question (`as_is`); None: the same for a search, which varies options itself.
    """
    if model.family == "tensors":
        raise needs_family(model, "the memory of training")
    _check_run(run)
    question = about(model, cluster, advise, choose)
    plan = training_plan(model, cluster, options, question)
    usable = usable_bytes(cluster, reserve_bytes, question)
    memory = training_memory(model, plan, cluster)
    chosen, changes = None, None  # the changes that were estimated while choosing: suggestions need them again
    if choose and lowest(plan, cluster, memory.needed) > usable:
        chosen, changes = _chosen(model, cluster, options, plan, memory, usable, run, money)
    if chosen is not None:
        from tonnage.estimate.advice.chosen import beside_chosen, mark_chosen

        changes, options = None, replace(options, **chosen.change)
        question = about(model, cluster, advise, choose)
        plan = training_plan(model, cluster, options, question)
        mark_chosen(question, chosen, usable)
        usable_bytes(cluster, reserve_bytes, question)
        memory = training_memory(model, plan, cluster)
    fullest = memory.fullest
    warn_of_towers(model, question)
    warn_of_training(model, plan, memory, question)
    host = host_memory(model, plan, cluster, memory)
    _warn_of_host(host, cluster, question)
    band = put_band(training_band(plan, cluster), question)
    # Nothing larger is suggested where the hosts cannot hold what there is.
    is_full = missed_host(host) and highest(plan, cluster, memory.needed) <= usable
    moves, nearest = (
        _moves(model, cluster, options, plan, memory, usable, run, money, changes)
        if advise and not is_full
        else ((), None)
    )
    if chosen is not None and moves:
        moves = tuple(beside_chosen(moves, chosen, TrainingOptions))
    low = band.around(memory.memory.value)[0] if band else memory.memory.value
    if advise and low > usable and not moves:
        warn_where_nothing_fits(model, plan, cluster, usable, question)
    flops, saved = model_flops(model, plan, memory.step), saved_bytes(model, plan)
    timing, figures = timed(model, plan, cluster, memory, flops, saved, run, money, usable, question)
    step = timing.term if timing else None
    billed = _bill(model, plan, cluster, options, figures, step, run, money, question)
    room = disks(model, plan, cluster, saved, run, money, question, figures)
    return Answer(
        verb="train",
        question=question.entries,
        chosen=chosen,
        needed_bytes=ceil(memory.memory.value),
        usable_bytes=usable,
        memory=fullest.peak.named(
            Message("memory at the peak: {peak}{where}", peak=fullest.peak.name, where=_where(fullest.rank, plan))
        ),
        ranks=tuple(_stage_term(memory, rank, plan) for rank in range(len(memory.ranks))),
        phases=fullest.phases,
        slopes=_training_slopes(model, plan, cluster, memory) if advise else None,
        flops=flops,
        run=figures,
        bill=billed,
        disks=room,
        step_time=step,
        pieces=timing.pieces if timing else None,
        traffic=timing.traffic if timing and cluster.size > 1 else None,
        checkpoint=checkpoint_bytes(model, plan),
        host=host,
        advice=moves,
        nearest_miss=nearest,
        warnings=tuple(question.warnings),
        band=band.around(memory.memory.value) if band else None,
    )


def _chosen(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions,
    plan: TrainingPlan,
    memory: TrainingMemory,
    usable: int,
    run: RunOptions,
    money: BillOptions,
) -> "tuple[Chosen | None, RunChanges]":
    """What is chosen of what was not given, and the changes that were estimated for it."""
    from tonnage.estimate.advice.training import changes_of, chosen_change  # a run that fits needs none of it

    rent = rent_of_moves(cluster, money, run.price_per_accelerator_hour)
    changes = changes_of(model, cluster, options, plan, memory, rent)
    return chosen_change(changes, ceil(memory.needed), usable), changes


def _moves(
    model: Model,
    cluster: Cluster,
    options: TrainingOptions,
    plan: TrainingPlan,
    memory: TrainingMemory,
    usable: int,
    run: RunOptions,
    money: BillOptions,
    changes: "RunChanges | None",
) -> tuple[tuple[Advice, ...], NearestMiss | None]:
    """What makes it fit or better, and the nearest miss where nothing makes it fit. `changes`: those that were
    estimated already.
    """
    from tonnage.estimate.advice.training import training_advice  # an answer without suggestions needs none of it

    rent = rent_of_moves(cluster, money, run.price_per_accelerator_hour)
    advice = training_advice(model, cluster, options, plan, memory, usable, rent, changes)
    return tuple(advice.moves), advice.nearest


def _bill(
    model: Model,
    plan: TrainingPlan,
    cluster: Cluster,
    options: TrainingOptions,
    figures: RunDocument[Term] | None,
    step: Term | None,
    run: RunOptions,
    money: BillOptions,
    question: Question,
) -> Bill | None:
    """Of the run, or of one step where nobody says how long the run is; None where no time is known."""
    lasts = (figures.seconds if figures else UNSET) or step
    if lasts is None:
        return None
    tokens = figures.tokens.value if figures and figures.tokens else plan.global_batch_size * plan.sequence_length
    return bill(
        cluster,
        lasts,
        "the run" if figures and figures.seconds else "a step",
        money,
        question,
        price=run.price_per_accelerator_hour,
        today=today(),
        edge_time=lambda device: _edge_seconds(model, device, options, tokens),
    )


def _edge_seconds(model: Model, device: str, options: TrainingOptions, tokens: Number) -> tuple[float | None, str]:
    from tonnage.estimate.advice.edge import edge_seconds

    return edge_seconds(model, device, options, tokens)


def _check_run(run: RunOptions) -> None:
    """What is said of a whole run needs its length."""
    if run.stray:
        raise NotApplicable(
            (
                Message(
                    "{stray} is of a whole run, which needs a length: give tokens, epochs with "
                    "{@dataset_tokens}, {@max_steps}, or a budget.",
                    stray=run.stray,
                )
            ),
            run.stray,
            ("tokens", "epochs", "max_steps", "budget", "budget_accelerator_hours"),
        )


def _warn_of_host(host: HostMemory, cluster: Cluster, question: Question) -> None:
    """Host memory decides nothing, but a run ends without it all the same."""
    if host.capacity is None or host.memory.value <= host.capacity or cluster.node is None:
        return
    phase = max(host.memory.children, key=lambda phase_term: phase_term.value)
    question.warn(
        Message(
            "host memory does not suffice {phase}: a node needs {memory}, and {node} has {capacity}.",
            phase=phase.name,
            memory=human(host.memory.value, "bytes"),
            node=cluster.node.name,
            capacity=human(host.capacity, "bytes"),
        )
    )


def _where(rank: int, plan: TrainingPlan) -> str:
    """The pipeline stage that decides: of several alike the first."""
    stages = plan.pipeline_parallel_size
    return Message(", on pipeline stage {rank} of {stages}", rank=rank, stages=stages) if stages > 1 else ""


def _stage_term(memory: TrainingMemory, rank: int, plan: TrainingPlan) -> Term:
    return memory.ranks[rank].peak.named(
        Message("pipeline stage {rank} of {stages}", rank=rank, stages=plan.pipeline_parallel_size)
    )


def _training_slopes(model: Model, plan: TrainingPlan, cluster: Cluster, memory: TrainingMemory) -> Slopes:
    """Documents C5 and C6: what one more sequence in the micro-batch, and one more token in each, add."""
    wider = training_memory(model, replace(plan, micro_batch_size=plan.micro_batch_size + 1), cluster)
    longer = training_memory(model, replace(plan, sequence_length=plan.sequence_length + 1), cluster)
    return Slopes(bytes_per_sequence=wider.needed - memory.needed, bytes_per_token=longer.needed - memory.needed)
