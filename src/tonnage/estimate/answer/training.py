"""The whole answer of `train`: the question as understood, the verdict, the breakdown, the next move."""

from math import ceil
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.documents.advice import Advice, NearestMiss
from tonnage.documents.answer import Slopes
from tonnage.documents.run import RunDocument
from tonnage.estimate.answer.form import Answer, about, missed_host, put_band, usable_bytes, warn_of_towers
from tonnage.estimate.answer.notes import check_stored, warn_of_training, warn_where_nothing_fits
from tonnage.estimate.answer.training_time import timed
from tonnage.estimate.bands import band_of_others, highest, lowest, training_band
from tonnage.estimate.host.memory import HostMemory, host_memory
from tonnage.estimate.inputs import Question, today
from tonnage.estimate.memory import TrainingMemory, training_memory
from tonnage.estimate.money.bill import Bill, BillOptions, bill, grid_value, rent_of_moves
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.run.checkpoint import checkpoint_bytes, disks, saved_bytes
from tonnage.estimate.site.terms import calibration_note
from tonnage.estimate.step.method import model_flops
from tonnage.estimate.step.rollout_options import generates
from tonnage.kernel.errors import NotApplicable
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.spec import Cluster, TrainingPlan

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
    whole = cluster
    cluster, options = _divided(cluster, options)
    question = about(model, cluster, advise, choose)
    plan = training_plan(model, cluster, options, question)
    if choose is not None:
        check_stored(model, plan, question)
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
    _note_divided(whole, cluster, options, question)
    if not plan.vision.sees:
        warn_of_towers(model, question)
    warn_of_training(model, plan, memory, usable, question)
    host = host_memory(model, plan, cluster, memory)
    _warn_of_host(host, cluster, question)
    band, others = put_band(training_band(plan, cluster), question), band_of_others(plan, cluster)
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
    timing, figures = timed(model, plan, cluster, memory, flops, saved, options, run, money, usable, question)
    if plan.site is not None:
        of_time = timing.walk.correction if timing else None
        timed_part = "the time of a step" if plan.post_training.objective == "sft" else "the time of updates"
        question.warn(calibration_note({timed_part: of_time, "memory": memory.step.correction}), first=True)
    step = timing.term if timing else None
    billed = _bill(model, plan, cluster, options, figures, step, run, money, question)
    room = disks(model, plan, cluster, saved, run, money, question, figures)
    if choose is not None:  # a search gives options of its own, such as one provider for all machines
        _put_given(question, run, money)
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
        band_of_others=others.around(memory.memory.value) if others else None,
    )


def _divided(cluster: Cluster, options: TrainingOptions) -> tuple[Cluster, TrainingOptions]:
    """The machine that trains, and the options: part of it may generate apart."""
    if options.rollout_accelerators is not None or not generates(options.objective or "sft"):
        return cluster, options
    from tonnage.estimate.options.tools import divided  # most runs generate nothing

    return divided(cluster, options)


def _note_divided(whole: Cluster, cluster: Cluster, options: TrainingOptions, question: Question) -> None:
    """Say how the machine was divided, where the user did not."""
    if cluster is not whole:
        from tonnage.estimate.options.tools import note_divided

        note_divided(whole, cluster, options, question)


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
    from tonnage.estimate.run.recovery import spare_accelerators

    return bill(
        _with_rollouts(cluster, plan),
        lasts,
        "the run" if figures and figures.seconds else "a step",
        money,
        question,
        price=run.price_per_accelerator_hour,
        today=today(),
        edge_time=lambda device: _edge_seconds(model, device, options, tokens),
        spare=spare_accelerators(run, cluster) if figures and figures.seconds else 0,
    )


def _with_rollouts(cluster: Cluster, plan: TrainingPlan) -> Cluster:
    """The accelerators that a step keeps busy: those that generate are paid as well."""
    if not plan.rollout.rollout_accelerators:
        return cluster
    from tonnage.estimate.post_training.rollout import whole_cluster

    return whole_cluster(plan.rollout, cluster)


def _edge_seconds(model: Model, device: str, options: TrainingOptions, tokens: Number) -> tuple[float | None, str]:
    from tonnage.estimate.advice.edge import edge_seconds

    return edge_seconds(model, device, options, tokens)


def _put_given(question: Question, *subjects: Struct) -> None:
    """Note what was given of a run and of money and is not noted yet, so that the question can be asked again."""
    for options in subjects:
        for name in options.__struct_fields__:
            value = getattr(options, name)
            if value is not None and name != "deadline" and name not in question:
                question.put(name, grid_value(value) if name == "grid" else value, "given")


def _check_run(run: RunOptions) -> None:
    """What is said of a whole run needs its length."""
    if run.stray:
        raise NotApplicable(
            (
                Message(
                    "{stray} is of a whole run, and nothing says how long it is: give {@tokens}, {@max_steps}, or "
                    "{@epochs} with {@dataset_tokens}; or {@budget}, which is then spent.",
                    stray=option_name(run.stray),
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
