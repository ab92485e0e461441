"""Rows of verb `train`: memory of a rank and time of a step, beside what was measured."""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.bands import training_band
from tonnage.estimate.hardware.rates import Rates, rates
from tonnage.estimate.host.traffic import check_update
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import RankMemory, Step, TrainingMemory, training_memory
from tonnage.estimate.money.bill import BillOptions, grid_value
from tonnage.estimate.money.money import run_carbon, run_energy
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions, positive
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.post_training.measured import BAND
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.estimate.run.checkpoint import saved_bytes
from tonnage.estimate.run.reliability import reliability
from tonnage.estimate.step_time.conventions import CONVENTIONS, flops_per_token
from tonnage.estimate.step_time.step import StepTime
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, shown
from tonnage.kernel.message import listed
from tonnage.kernel.term import Term
from tonnage.ops import MoE
from tonnage.spec import Cluster, TrainingPlan
from tonnage.validation.quantities import SECONDS
from tonnage.validation.rows import OUT_OF_MEMORY, Measured, Prediction, Row
from tonnage.validation.subjects import converted, machine_of, model_of

HOUR, DAY = 3600.0, 86400.0
OVERHEAD = "runtime overhead"
# Figures of a whole rank, the one that leaves least out first: error bands are about these.
WHOLE = ("process_memory", "reserved_memory", "allocated_memory")


OF_RUN = frozenset((*RunOptions.__struct_fields__, *BillOptions.__struct_fields__))


class TrainingRow:
    """A row as a question of `train`; the plan, the memory and the time are worked out when they are asked for."""

    def __init__(self, row: Row):
        self.row = row
        machine = machine_of(row.question)
        self.model: Model = model_of(row.question)
        self.cluster: Cluster = machine.cluster
        self.is_known_accelerator = machine.is_known
        fields = {name: value for name, value in row.question.items() if name not in ("model", "on", "unchecked")}
        self.run = converted(_of(fields, RunOptions), RunOptions)
        self.money = converted(_of(fields, BillOptions), BillOptions)
        fields = {name: value for name, value in fields.items() if name not in OF_RUN}
        self.options = converted(fields, TrainingOptions)
        self.given: Mapping[str, Any] = fields

    @property
    def publication(self) -> str:
        """Which publication the row is of, by the name that statistics group by."""
        return self.row.labels.get("publication", "")

    @property
    def is_guessed(self) -> bool:
        """Whether something of it is nobody's statement."""
        return bool(self.row.guessed or self.row.from_measured)

    @property
    def is_mixture(self) -> bool:
        """Whether the model has experts."""
        return any(isinstance(op, MoE) for block in self.model.decoder.blocks for op in block.ops)

    @property
    def kind(self) -> str:
        """The kind of error band that its time has: of mixtures of experts, or dense."""
        return "moe" if self.is_mixture else "dense"

    @cached_property
    def plan(self) -> TrainingPlan:
        return self.plan_of(self.options)

    def plan_of(self, options: TrainingOptions) -> TrainingPlan:
        """The plan of these options, with the fields that the row sets past the checks of `train`."""
        plan = training_plan(self.model, self.cluster, options, Question())
        unchecked = self.row.question.get("unchecked", {})
        if not unchecked:
            return plan
        if not isinstance(unchecked, Mapping) or not set(unchecked) <= set(TrainingPlan.field_names()):
            raise InvalidInput(f"question.unchecked must map fields of a plan to values. Got {shown(unchecked)}.")
        return plan.with_fields(**unchecked)

    @cached_property
    def memory(self) -> TrainingMemory:
        return training_memory(self.model, self.plan, self.cluster)

    @cached_property
    def post_training(self) -> PostTrainingStep:
        """A step with its rollouts and the models beside."""
        return PostTrainingStep(self.model, self.plan, self.cluster, self.memory)

    def seconds(self, with_rates: Rates | None = None) -> float:
        """Seconds of one optimizer step. `with_rates`: others than those that ship."""
        return float(StepTime(Step(self.model, self.plan, self.cluster), with_rates or rates()).seconds())

    @cached_property
    def step_seconds(self) -> float:
        return self.seconds()


def predict(row: Row) -> list[Prediction]:
    """A prediction for the row's figure, and one for each of those under `also`."""
    every = (row.measured, *row.also)
    try:
        question = TrainingRow(row)
        _ = question.plan
    except TonnageError as error:
        return [Prediction(skipped=str(error)) for _ in every]
    return [_predicted(measured, question) for measured in every]


def _predicted(measured: Measured, question: TrainingRow) -> Prediction:
    if measured.skipped:
        return Prediction(skipped=measured.skipped)
    try:
        if measured.quantity in WHOLE_RUN:
            return Prediction(
                value=WHOLE_RUN[measured.quantity](question) / measured.unit_size
                if measured.quantity != "goodput"
                else WHOLE_RUN["goodput"](question) * measured.unit_size,
                notes=question.row.notes,
            )
        if measured.quantity in POST_TRAINING:
            return _of_post_training(measured, question)
        return _of_memory(measured, question) if measured.quantity in MEMORY else _of_time(measured, question)
    except TonnageError as error:
        return Prediction(skipped=str(error))


def _of_memory(measured: Measured, question: TrainingRow) -> Prediction:
    memory, notes = question.memory, question.row.notes
    unit = measured.unit_size
    if measured.value == OUT_OF_MEMORY:
        return _out_of_memory(unit, question)
    value = memory_value(measured, memory, question) / unit
    if measured.quantity == "activation_share":
        value *= 100 / _baseline(measured, question)
    limit = float(measured.value)
    if measured.quantity == "fits_in":
        return Prediction(value=value, agrees=value <= limit, notes=notes)
    if measured.quantity == "needs_more_than":
        return Prediction(value=value, agrees=value > limit, notes=notes)
    band = training_band(question.plan, question.cluster) if measured.quantity in WHOLE else None
    return Prediction(value=value, band=(value * band.low, value * band.high) if band else None, notes=notes)


def _baseline(measured: Measured, question: TrainingRow) -> float:
    """Bytes of the same figure of the run that a percentage is relative to."""
    if not measured.relative_to:
        raise MissingDatum(f"{shown(measured.name)} does not say what it is relative to")
    options = converted({**question.given, **measured.relative_to}, TrainingOptions)
    plan = question.plan_of(options)
    below = memory_value(measured, training_memory(question.model, plan, question.cluster), question)
    if not below:
        raise InvalidInput(f"{shown(measured.name)}: the run that it is relative to keeps none")
    return below


def _out_of_memory(unit: float, question: TrainingRow) -> Prediction:
    """A run that ran out: whether more is predicted than a program can get on the card."""
    notes = question.row.notes
    if not question.is_known_accelerator:
        return Prediction(skipped="the row ran out of memory on a GPU that it does not name", notes=notes)
    needed = max(float(rank.peak.value) for rank in question.memory.ranks)
    usable = question.cluster.accelerator.memory.usable_bytes
    return Prediction(value=needed / unit, agrees=needed > usable, notes=notes)


def memory_value(measured: Measured, memory: TrainingMemory, question: TrainingRow) -> float:
    """The figure in bytes."""
    read = MEMORY[measured.quantity]
    if measured.rank is not None or measured.stage is not None:
        ranks_a_stage = question.cluster.size / question.plan.pipeline_parallel_size
        stage = measured.stage if measured.stage is not None else int((measured.rank or 0) // ranks_a_stage)
        return read(memory.ranks[max(min(stage, len(memory.ranks) - 1), -len(memory.ranks))])
    return max(read(rank) for rank in memory.ranks)


def _overhead(phase: Term, *words: str) -> float:
    """Bytes of what a process holds beyond its tensors, of those parts whose names have one of the words."""
    leaves = [term for child in phase.children if child.name == OVERHEAD for term in child.children]
    return sum(float(term.value) for term in leaves if any(word in term.name for word in words))


def _tensors(phase: Term) -> float:
    """What max_memory_allocated counts: the tensors, and workspaces, which PyTorch's allocator hands out too."""
    outside = sum(float(child.value) for child in phase.children if child.name == OVERHEAD)
    return float(phase.value) - outside + _overhead(phase, "workspace")


def _over_phases(read: Callable[[Term], float]) -> Callable[[RankMemory], float]:
    return lambda rank: max(read(phase) for phase in rank.phases)


def _states(rank: RankMemory) -> float:
    """Weights, gradients and optimizer, when all of them are there."""
    return max(
        sum(float(child.value) for child in phase.children if child.name in ("weights", "gradients", "optimizer"))
        for phase in rank.phases
    )


def _part(name: str) -> Callable[[RankMemory], float]:
    """A part of the states, when all of it is there."""
    return _over_phases(lambda phase: sum(float(child.value) for child in phase.children if child.name == name))


def _activations(rank: RankMemory) -> float:
    """What the layers keep for backward, for every micro-batch in flight: neither the logits nor what recomputing
    brings back."""
    sizes = [float(term.value) for phase in rank.phases for _, term in phase.walk() if term.name == "layers"]
    return max(sizes, default=0.0)


def _forward(rank: RankMemory) -> float:
    return max((float(child.value) for child in rank.phases[0].children if child.name == "activations"), default=0.0)


_process = _over_phases(lambda phase: float(phase.value))
MEMORY: Mapping[str, Callable[[RankMemory], float]] = {
    "allocated_memory": _over_phases(_tensors),
    "reserved_memory": _over_phases(lambda phase: _tensors(phase) + _overhead(phase, "reserve")),
    "process_memory": _process,
    "fits_in": _process,
    "needs_more_than": _process,
    "activation_memory": _activations,
    "activation_share": _activations,
    "state_memory": _states,
    "weights_memory": _part("weights"),
    "gradient_memory": _part("gradients"),
    "optimizer_memory": _part("optimizer"),
    "forward_memory": _forward,
    "memory_beyond_states": lambda rank: _over_phases(_tensors)(rank) - _states(rank),
}


def memory_factor(row: Row) -> float | None:
    """Measured over predicted bytes of a whole rank, of the row's figure that leaves least out; None where it has
    none."""
    best: tuple[int, float] | None = None
    for measured, prediction in zip((row.measured, *row.also), predict(row), strict=True):
        if (
            measured.quantity not in WHOLE
            or isinstance(measured.value, str)
            or not prediction.value
            or not measured.value
        ):
            continue
        rank = WHOLE.index(measured.quantity)
        if best is None or rank < best[0]:
            best = rank, measured.value / prediction.value
    return best[1] if best else None


class StepFigure:
    """A figure is `scale` x seconds of a step, or, where it is a `rate`, `scale` / seconds; a `constant` needs no
    time."""

    def __init__(self, scale: float, rate: bool = False, constant: bool = False):
        self.scale, self.rate, self.constant = scale, rate, constant

    def value(self, seconds: float) -> float:
        """The figure of a step of so many seconds."""
        if self.constant:
            return self.scale
        return self.scale / seconds if self.rate else self.scale * seconds

    def seconds(self, value: float) -> float:
        """Seconds of a step whose figure is `value`."""
        if self.constant:
            raise MissingDatum("the figure does not depend on the time of a step")
        return self.scale / value if self.rate else value / self.scale


def measured_seconds(question: TrainingRow) -> float:
    """Seconds of a step that the row's own figure stands for; MissingDatum where it stands for none."""
    measured = question.row.measured
    if isinstance(measured.value, str) or not measured.value or measured.skipped:
        raise MissingDatum("the row has no number")
    return step_figure(measured, question).seconds(float(measured.value))


def _of(fields: Mapping[str, Any], form: type[Struct]) -> dict[str, Any]:
    """Those of the fields that this form has."""
    return {name: value for name, value in fields.items() if name in form.__struct_fields__}


def _goodput(question: TrainingRow) -> float:
    """The goodput of a run; a step whose time nobody knows is taken as shorter than the time between checkpoints."""
    try:
        step = question.step_seconds
    except MissingDatum:
        step = 0.0
    saved = saved_bytes(question.model, question.plan)
    step_time = Term.by("step", step, "seconds", basis="analytic", source="", version="1", procedure="a step")
    return float(reliability(step_time, question.plan, question.run, saved, question.cluster).goodput.value)


def _energy(question: TrainingRow) -> Term:
    """Joules of the accelerator-hours that the row says."""
    hours = positive("budget_accelerator_hours", question.run.budget_accelerator_hours)
    if hours is None:
        raise MissingDatum("the row does not say its `budget_accelerator_hours`")
    cluster, money = question.cluster, question.money
    return run_energy(cluster, hours * HOUR / cluster.size, power_share=money.power_share, pue=money.pue).energy


def _carbon(question: TrainingRow) -> float:
    if question.money.grid is None:
        raise MissingDatum("the row does not say its `grid`")
    return float(run_carbon(_energy(question), grid_value(question.money.grid)).value)


WHOLE_RUN: Mapping[str, Callable[[TrainingRow], float]] = {
    "goodput": _goodput,
    "run_energy": lambda question: float(_energy(question).value),
    "run_carbon": _carbon,
}


def _of_post_training(measured: Measured, question: TrainingRow) -> Prediction:
    """A figure of a step that generates; whole steps have a band, their phases none."""
    step = question.post_training
    if measured.quantity == "rl_tokens_per_second":
        per_second = float(step.figures().tokens_per_second.value) / _parts(measured.unit, step.accelerators)
        ends = (per_second / BAND.high, per_second / BAND.low) if BAND else None
        return Prediction(value=per_second, band=ends, notes=question.row.notes)
    value = measured.times * POST_TRAINING[measured.quantity](step) / SECONDS[measured.unit]
    ends = (value * BAND.low, value * BAND.high) if BAND and measured.quantity == "rl_step_time" else None
    return Prediction(value=value, band=ends, notes=question.row.notes)


def _updates(step: PostTrainingStep) -> float:
    return sum(float(part.value) for name, part in step.parts.items() if name.startswith("update"))


def _passes(step: PostTrainingStep) -> float:
    return sum(float(part.value) for part in step.passes)


def _to_engine(step: PostTrainingStep) -> float:
    """As the frameworks count it: with what makes room for the engine."""
    moved = step.moved_to_host
    return float(step.sync.value) + (float(moved.value) if moved else 0.0)


POST_TRAINING: Mapping[str, Callable[[PostTrainingStep], float]] = {
    "rl_step_time": lambda step: step.seconds,
    "rl_tokens_per_second": lambda step: 1 / step.seconds,
    "rollout_time": lambda step: float(step.rollouts.term.value),
    "forward_time": _passes,
    "rollout_and_forward_time": lambda step: float(step.rollouts.term.value) + _passes(step),
    "update_time": _updates,
    "weight_sync_time": _to_engine,
}


def _of_time(measured: Measured, question: TrainingRow) -> Prediction:
    figure = step_figure(measured, question)
    seconds = question.step_seconds
    band = rates().bands.get(question.kind)
    error_band = None
    if band is not None and not figure.constant:
        low, high = sorted((figure.value(seconds * band.low), figure.value(seconds * band.high)))
        error_band = low, high
    return Prediction(value=figure.value(seconds), band=error_band, notes=question.row.notes)


def step_figure(measured: Measured, question: TrainingRow) -> StepFigure:
    """How a figure follows from seconds of a step; MissingDatum for what does not."""
    if measured.skipped:
        raise MissingDatum(measured.skipped)
    plan, size = question.plan, question.cluster.size
    check_update(plan)
    name, unit = measured.quantity, measured.unit
    tokens_a_step = float(plan.tokens_per_step)
    if name in ("step_time", "micro_batch_time"):
        passes = float(plan.num_microbatches) if name == "micro_batch_time" else 1.0
        return StepFigure(measured.times / passes / SECONDS[unit])
    if name == "tokens_per_second":
        return StepFigure(tokens_a_step / _parts(unit, size), rate=True)
    if name == "samples_per_second":
        return StepFigure(float(plan.global_batch_size) / _parts(unit, size), rate=True)
    if name == "flops_per_second":
        accelerators = 1 if unit.endswith("/GPU") else size
        return StepFigure(accelerators * _flops(measured, question) / measured.unit_size, rate=True)
    if name in ("mfu", "hfu"):
        return _utilization(measured, question)
    if measured.tokens is None or not measured.tokens > 0:
        raise MissingDatum(f"{shown(measured.name)}: the row does not say how many tokens")
    if name == "run_flops":
        one = flops_per_token(question.model, int(plan.sequence_length), _counting(measured))
        return StepFigure(one * measured.tokens, constant=True)
    steps = measured.tokens / tokens_a_step
    return StepFigure(steps / DAY if name == "run_days" else steps * size / HOUR)


def _parts(unit: str, size: int) -> float:
    """How many parts of the cluster a rate is about one of."""
    return size if unit.endswith("/GPU") else max(size / 8, 1.0) if unit.endswith("/node") else 1


def _counting(measured: Measured) -> str:
    if measured.counting not in CONVENTIONS:
        known = listed(CONVENTIONS)
        raise MissingDatum(f"{shown(measured.name)} needs `counting`, one of {known}. Got {shown(measured.counting)}.")
    return measured.counting


def _flops(measured: Measured, question: TrainingRow) -> float:
    """FLOP of a step of one accelerator."""
    name, plan = _counting(measured), question.plan
    one = flops_per_token(question.model, int(plan.sequence_length), name)
    if plan.tuning.has_adapters and not CONVENTIONS[name].recomputes:
        one *= 2 / 3  # gradients of a frozen weight are not made
    return one * float(plan.tokens_per_step) / question.cluster.size


def _utilization(measured: Measured, question: TrainingRow) -> StepFigure:
    """The share of the peak that the row names, else of the 16-bit peak."""
    chip = question.cluster.accelerator
    wide = next((name for name in ("bf16", "fp16") if name in chip.dense_flops), "bf16")
    peak = measured.peak_tflops * 1e12 if measured.peak_tflops else chip.peak(wide)
    flops = _flops(measured, question)
    if measured.quantity == "hfu":
        flops *= _recomputed(measured, question.plan)
    return StepFigure(flops / peak * measured.unit_size, rate=True)


def _recomputed(measured: Measured, plan: TrainingPlan) -> float:
    """FLOP with recomputation over those without: a second forward pass of everything, or none."""
    if plan.recompute == "full":
        return 4 / 3
    if plan.recompute == "none":
        return 1.0
    raise MissingDatum(f"{shown(measured.name)}: what of selective recomputation its source counts is not said")


def source_of(row: Row) -> str:
    """The document that a row's figure is from, without the place inside it."""
    return re.split(r"[,;(]| case ", row.source)[0].strip()


def publisher_of(row: Row) -> str:
    """Who published a row's figure: a repository's owner and name, else the document without the number of its figure
    or table."""
    document = source_of(row)
    repository = re.match(r"[\w.-]+/[\w.-]+", document)
    return repository[0] if repository else re.split(r" (?:Figure|Table|section|sec\.) ", document)[0].strip()
