"""A whole run from the time of one step: tokens, steps, days, accelerator-hours; and from a deadline or a budget
back.
"""

from collections.abc import Callable
from datetime import date
from typing import Any

from msgspec import Struct

from tonnage.documents.question import Origin
from tonnage.documents.run import InTimeDocument
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import RunOptions, Wanted, wanted
from tonnage.estimate.run.deadline import StepTimeAt, smallest_for_deadline
from tonnage.estimate.run.recovery import spare_accelerators
from tonnage.estimate.run.reliability import Reliability, accelerators, note, note_failures, reliability
from tonnage.formulas import failures as f
from tonnage.formulas import run as g
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.spec import Cluster, TrainingPlan

# Seconds of the whole run of a plan whose step takes so long; and with them, the deadline and how many times too long
# the run takes, the smallest larger machine that makes it.
SecondsOf = Callable[[TrainingPlan, Term], float]
InTime = Callable[[float, float, SecondsOf], InTimeDocument | None]

LEAST_GOODPUT = 0.01  # below this a run is a machine that restarts
MAX_CHECKPOINT_SHARE = 0.1  # of a run: a last checkpoint that takes more is said
EPOCHS = 4  # Muennighoff2023: up to four passes over the same data are nearly as good as new data


class TrainingRun(Struct, frozen=True, kw_only=True):
    """A run. `tokens` are asked for, `steps` whole; `seconds` is the time by the clock, failures and checkpoints in it.

    `accelerators_for_deadline`: the fewest that the plan can use, None where no number makes it;
    `accelerators_by_division`: what the rule of thumb says.
    `meets_deadline`: the smallest larger machine that makes a deadline which this cluster misses.
    `tokens_for_budget`: what the budget buys on this cluster; `deadline_met`, `budget_met`: by this cluster as it is.
    """

    tokens: Term
    steps: Term
    epochs: Term | None = None
    productive_seconds: Term
    seconds: Term
    accelerator_hours: Term
    goodput: Term
    time_between_failures: Term
    failures: Term
    checkpoint_seconds: Term
    checkpoint_interval: Term
    checkpoint_interval_by_young: Term
    restart_seconds: Term
    deadline_met: bool | None = None
    budget_met: bool | None = None
    accelerators_for_deadline: Term | None = None
    accelerators_by_division: Term | None = None
    budget_accelerator_hours: Term | None = None
    tokens_for_budget: Term | None = None
    meets_deadline: InTimeDocument | None = None

    @property
    def figures(self) -> dict[str, Any]:
        """What the document has of the run, by its name; what was not asked is left out."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}


def run(
    step_time: Term,
    plan: TrainingPlan,
    cluster: Cluster,
    options: RunOptions,
    question: Question,
    *,
    checkpoint: Term,
    price: float | None = None,
    step_time_at: StepTimeAt | None = None,
    fits_at: Callable[[int], bool] | None = None,
    in_time: InTime | None = None,
    today: date | None = None,
) -> TrainingRun:
    """What follows from the time of one step [seconds].

    `checkpoint`: bytes of one. `price`: USD per accelerator-hour where no option gives it. `step_time_at`: the step's
    time at another data_parallel_size and the same global batch, which a deadline needs; without it the deadline is
    only compared.
    `fits_at`: whether that plan's memory suffices. `in_time`: the smallest larger machine that makes the deadline.
    `today`: where the deadline is a date.
    """
    want = wanted(options, price, today)
    failures = reliability(step_time, plan, options, checkpoint, cluster)
    _progress(failures, plan)
    note(failures, options, question)
    hours, bought, buys = _bought(want, step_time, plan, failures.goodput, spare_accelerators(options, cluster))
    tokens, steps = _length(want, plan, bought)
    productive = Term.product("productive time", "seconds", steps, step_time)
    seconds = Term.ratio("time of the run", "seconds", productive, failures.goodput)
    _note_last(failures, productive, seconds, question)
    runs = seconds.value * (
        failures.runs_share.value if failures.runs_share else 1
    )  # nothing fails while training waits
    expected = Term.of("failures on the way", f.failures_expected, tau=runs, MTBF=failures.between_failures.value)
    note_failures(failures, expected, options, question)
    paid = plan.world_size + spare_accelerators(options, cluster)
    used = Term.of("accelerator-hours", g.accelerator_hours, n=paid, tau=seconds.value)
    larger = _in_time(want, options, seconds, checkpoint, in_time, cluster)
    fewest, divided = _deadline(
        want, plan, cluster, options, used, larger, checkpoint, steps, step_time_at, fits_at, question
    )
    epochs = _epochs(want, tokens, question)
    _note(want, tokens, seconds, used, hours, options.price_per_accelerator_hour, question)
    return TrainingRun(
        tokens=tokens,
        steps=steps,
        epochs=epochs,
        productive_seconds=productive,
        seconds=seconds,
        accelerator_hours=used,
        goodput=failures.goodput,
        time_between_failures=failures.between_failures,
        checkpoint_seconds=failures.checkpoint,
        failures=expected,
        checkpoint_interval=failures.interval,
        checkpoint_interval_by_young=failures.interval_by_young,
        restart_seconds=failures.restart,
        deadline_met=None if want.deadline is None else bool(seconds.value <= want.deadline),
        budget_met=None if hours is None else _within(used, hours),
        accelerators_for_deadline=fewest,
        accelerators_by_division=divided,
        budget_accelerator_hours=hours,
        tokens_for_budget=buys,
        meets_deadline=larger,
    )


def _progress(failures: Reliability, plan: TrainingPlan) -> None:
    goodput = failures.goodput.value
    if goodput >= LEAST_GOODPUT:
        return
    if failures.goodput_by_daly.value >= LEAST_GOODPUT:
        raise InvalidInput(
            "{@checkpoint_interval} must leave time to train. Got {interval}, which leaves a goodput "
            "of {goodput:.2g}: Daly's optimum is {interval_by_daly}.",
            interval=human(failures.interval.value, "seconds"),
            goodput=goodput,
            interval_by_daly=human(failures.interval_by_daly.value, "seconds"),
        )
    raise InvalidInput(
        "{@accelerator_mtbf}, {@checkpoint_seconds} and {@restart_seconds} leave a goodput of "
        "{goodput:.2g}: {world_size:,} accelerators fail every {between_failures}, sooner than "
        "they save their work. Give faster {@storage_bandwidth}, a shorter {@checkpoint_seconds} "
        "or {@restart_seconds}, or fewer accelerators.",
        goodput=goodput,
        world_size=plan.world_size,
        between_failures=human(failures.between_failures.value, "seconds"),
    )


def _note_last(failures: Reliability, productive: Term, seconds: Term, question: Question) -> None:
    """A run that ends before its first checkpoint is due saves what it trained all the same."""
    write = failures.checkpoint.value
    if productive.value < failures.interval.value and write > MAX_CHECKPOINT_SHARE * seconds.value:
        question.warn(
            Message(
                "the run takes {seconds}, and the checkpoint after it {write} more, which are in neither its "
                "time nor its cost.",
                seconds=human(seconds.value, "seconds"),
                write=human(write, "seconds"),
            )
        )


def _bought(
    want: Wanted, step_time: Term, plan: TrainingPlan, goodput: Term, spare: int
) -> tuple[Term | None, Term | None, Term | None]:
    """Accelerator-hours, whole steps and tokens that the budget buys; nothing without one. `spare`: accelerators of
    spare nodes, which are paid for too.
    """
    paid = plan.world_size + spare
    if want.budget is not None:
        hours = Term.of(
            "accelerator-hours of the budget", g.hours_of_budget, USD_budget=want.budget, USD_hour=want.price
        )
    elif want.hours is not None:
        hours = Term.of("accelerator-hours of the budget", g.hours_given, source="given", n_hours=want.hours)
    else:
        return None, None, None
    steps = Term.of(
        "steps that the budget buys",
        g.steps_of_hours,
        n_hours=hours.value,
        n=paid,
        tau_step=step_time.value,
        eta=goodput.value,
    )
    if steps.value < 1 and want.tokens is None and want.steps is None and want.epochs is None:
        one = g.accelerator_hours(n=paid, tau=step_time.value / goodput.value)
        cost = (
            Message(", {cost}", cost=human(one * want.price, "USD"))
            if want.budget is not None and want.price is not None
            else ""
        )
        name = "budget" if want.budget is not None else "budget_accelerator_hours"
        raise InvalidInput(
            "{name} must buy at least one step, which takes {one:.3g} accelerator-hours{cost}. Got {budget:g}.",
            name=option_name(name),
            one=one,
            cost=cost,
            budget=want.budget or want.hours,
        )
    return hours, steps, Term.product("tokens that the budget buys", "tokens", steps, _per_step(plan))


def _length(want: Wanted, plan: TrainingPlan, bought: Term | None) -> tuple[Term, Term]:
    """Tokens and whole steps of the run."""
    if want.steps is not None or (want.tokens is None and want.epochs is None):
        steps = bought if want.steps is None else Term.of("steps", g.steps_given, source="given", S=want.steps)
        assert steps is not None  # `wanted` makes sure that a budget is given where nothing else is
        return Term.product("tokens", "tokens", steps, _per_step(plan)), steps.named("steps")
    if want.epochs is not None:
        tokens = Term.of("tokens", g.tokens_of_epochs, n_epochs=want.epochs, D_set=want.dataset_tokens)
    else:
        tokens = Term.of("tokens", g.tokens_given, source="given", D=want.tokens)
    return tokens, Term.of(
        "steps",
        g.steps_for_tokens,
        D=tokens.value,
        s=plan.sequence_length,
        b=plan.micro_batch_size,
        m=plan.num_microbatches,
        d=plan.data_parallel_size,
    )


def _per_step(plan: TrainingPlan) -> Term:
    return Term.of(
        "tokens of a step",
        g.tokens_per_step,
        s=plan.sequence_length,
        b=plan.micro_batch_size,
        m=plan.num_microbatches,
        d=plan.data_parallel_size,
    )


def _deadline(
    want: Wanted,
    plan: TrainingPlan,
    cluster: Cluster,
    options: RunOptions,
    used: Term,
    larger: InTimeDocument | None,
    checkpoint: Term,
    steps: Term,
    step_time_at: StepTimeAt | None,
    fits_at: Callable[[int], bool] | None,
    question: Question,
) -> tuple[Term | None, Term | None]:
    """The fewest accelerators that the plan can use and that make the deadline, and what division says."""
    if want.deadline is None:
        return None, None
    divided = Term.of(
        "rule of thumb for the deadline, memory not looked at",
        g.accelerators_by_division,
        basis="rule",
        n_hours=used.value,
        tau=want.deadline,
    )
    if step_time_at is None:
        return None, divided

    def seconds_at(chosen: TrainingPlan) -> float:
        step = step_time_at(chosen.data_parallel_size)
        return float(steps.value * step.value / reliability(step, chosen, options, checkpoint, cluster).goodput.value)

    fewest = smallest_for_deadline(want.deadline, str(options.deadline or ""), plan, cluster, seconds_at, fits_at)
    if isinstance(fewest, str):
        if larger is None:
            question.warn(fewest)
        return None, divided
    return accelerators(fewest).named("accelerators for the deadline"), divided


def _in_time(
    want: Wanted, options: RunOptions, seconds: Term, checkpoint: Term, in_time: InTime | None, cluster: Cluster
) -> InTimeDocument | None:
    """The smallest larger machine that makes a deadline which this one misses; None where no step is known to be fewer
    on it: a number of steps stays what it is.
    """
    if want.deadline is None or in_time is None or seconds.value <= want.deadline:
        return None
    tokens = want.tokens if want.epochs is None else want.epochs * (want.dataset_tokens or 0)
    if tokens is None:
        return None

    def seconds_of(chosen: TrainingPlan, step: Term) -> float:
        steps = g.steps_for_tokens(
            D=tokens,
            s=chosen.sequence_length,
            b=chosen.micro_batch_size,
            m=chosen.num_microbatches,
            d=chosen.data_parallel_size,
        )
        return float(steps * step.value / reliability(step, chosen, options, checkpoint, cluster).goodput.value)

    return in_time(want.deadline, seconds.value / want.deadline, seconds_of)


def _within(used: Term, bought: Term) -> bool:
    """Whether a run takes no more accelerator-hours than were bought, but for rounding."""
    return bool(used.value <= bought.value * (1 + 1e-9))


def _epochs(want: Wanted, tokens: Term, question: Question) -> Term | None:
    if want.dataset_tokens is None:
        return None
    epochs = Term.of("epochs", g.epochs_of_tokens, D=tokens.value, D_set=want.dataset_tokens)
    if epochs.value > EPOCHS:
        question.warn(
            Message(
                "the data set is seen {epochs:.3g} times: beyond {epochs2} epochs the same data teach less "
                "and less (Muennighoff2023).",
                epochs=epochs.value,
                epochs2=EPOCHS,
            )
        )
    return epochs


def _note(
    want: Wanted,
    tokens: Term,
    seconds: Term,
    used: Term,
    hours: Term | None,
    price_given: float | None,
    question: Question,
) -> None:
    """What the question held, and where this cluster does not do it."""
    question.put(
        "tokens",
        tokens.value,
        "given" if want.tokens is not None else "default",
        "" if want.tokens is not None else tokens.text,
    )
    if want.deadline is not None:
        question.put("deadline_seconds", want.deadline, "given")
        if seconds.value > want.deadline:
            question.warn(
                Message(
                    "this cluster needs {seconds}, and the deadline is in {deadline}.",
                    seconds=human(seconds.value, "seconds"),
                    deadline=human(want.deadline, "seconds"),
                )
            )
    if want.budget is not None:
        question.put("budget", want.budget, "given")
        origin: Origin = "catalogue" if price_given is None else "given"
        question.put("price_per_accelerator_hour", want.price, origin)
    if hours is not None and not _within(used, hours):
        question.warn(
            Message(
                "the run takes {used}, and the budget buys {hours}.",
                used=human(used.value, "accelerator-hours"),
                hours=human(hours.value, "accelerator-hours"),
            )
        )
