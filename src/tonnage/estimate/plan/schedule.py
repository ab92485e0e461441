"""Schedules of a pipeline: which there are, what they ask of a plan, what they keep and what they wait for.

Closed forms are in formulas/pipeline.py. tests/estimate/plan/test_schedules.py runs the orders that PyTorch
makes, and 1F1B's, with times of their own.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce

from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.plan.pipeline_boxes import microbatch_rule, microbatches_per_round
from tonnage.estimate.plan.pipeline_orders import DUAL, PERIODIC, enough, periodic_seconds
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.formulas import memory as g
from tonnage.formulas import pipeline as f
from tonnage.kernel.formula import Number, is_any, maximum, minimum
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.runtimes import TrainingRuntime, training_runtime
from tonnage.spec import TrainingPlan


class Schedule(Struct, frozen=True):
    """`chunks`: on each rank, (least, most); `splits`: backward makes gradients of inputs first and of weights
    later; `v_shaped`: the second chunks of the ranks come in the opposite order, so that the first rank has both
    ends.
    """

    name: str
    chunks: tuple[int, int]
    splits: bool = False
    v_shaped: bool = False


MANY = 2**40
SCHEDULES = {
    made.name: made
    for made in (
        Schedule("gpipe", (1, 1)),
        Schedule("1f1b", (1, MANY)),  # interleaved from two chunks on, as Megatron has it
        Schedule("interleaved-1f1b", (2, MANY)),
        Schedule("interleaved-zero-bubble", (2, MANY), splits=True),
        Schedule("zbv", (2, 2), splits=True, v_shaped=True),
        Schedule("dualpipev", (2, 2), splits=True, v_shaped=True),
        Schedule("zb-h1", (1, 1), splits=True),
        Schedule("zb-h2", (1, 1), splits=True),
        Schedule("dualpipe", (1, 1), splits=True, v_shaped=True),
    )
}
# Other spellings, without signs between words: those of torch.distributed.pipelining, torchtitan and nanotron.
ALSO = {"afab": "gpipe", "zbvzerobubble": "zbv", "zb1p": "zb-h1", "zb2p": "zb-h2"}


@lru_cache(maxsize=64)
def schedule_named(text: str) -> Schedule:
    """A schedule by our name or by that of a framework: zbv, ZBVZeroBubble, Interleaved1F1B."""
    plain = text.lower().replace("-", "").replace("_", "").replace(" ", "").removeprefix("schedule")
    for name, schedule in SCHEDULES.items():
        if plain == name.replace("-", "") or ALSO.get(plain) == name:
            return schedule
    raise unknown("pipeline schedule", text, SCHEDULES)


def schedule_with_chunks(name: str | None, v: int) -> Schedule:
    """The schedule that `name` says, of v chunks on a rank: 1F1B, which is also the default, with several chunks is
    interleaved.
    """
    chosen = schedule_named(name) if name else SCHEDULES["1f1b"]
    return SCHEDULES["interleaved-1f1b"] if chosen.name == "1f1b" and v > 1 else chosen


def runtime_schedule(runtime: TrainingRuntime, name: str | None, v: int) -> Schedule:
    """The schedule that `name` says; without one 1F1B, or the first that the runtime has where that is none of its."""
    usual = "1f1b" if "1f1b" in runtime.schedules else runtime.schedules[0]
    return schedule_with_chunks(name or usual, v)


def schedule_of(plan: TrainingPlan) -> Schedule:
    """The schedule of a plan."""
    return schedule_with_chunks(plan.pipeline_schedule, plan.virtual_pipeline_size)


IN_TWO_DIRECTIONS = "dualpipe"


def as_walked(plan: TrainingPlan) -> TrainingPlan:
    """A plan as it is walked. DualPipe on p ranks holds and does what two pipelines of DualPipeV do on p / 2 ranks
    each, with half of the micro-batches, whose weights are the same: rank i and rank p - 1 - i have the same stages,
    and do the same in opposite directions (DualPipe, dualpipe/dualpipe.py: is_in_second_half; README.md: DualPipeV is
    its cut in half).
    """
    if plan.pipeline_schedule != IN_TWO_DIRECTIONS or plan.virtual_pipeline_size > 1:
        return plan
    return replace(
        plan,
        pipeline_parallel_size=plan.pipeline_parallel_size // 2,
        virtual_pipeline_size=2,
        num_microbatches=plan.num_microbatches // 2,
        data_parallel_size=2 * plan.data_parallel_size,
    )


def default_chunks(o: TrainingOptions) -> int:
    """Chunks on each rank where nobody says: torchtitan's are two where a schedule has several
    (distributed/pipeline_parallel.py).
    """
    return schedule_named(o.pipeline_schedule).chunks[0] if o.pipeline_schedule else 1


def schedule_takes_microbatches(plan: TrainingPlan) -> bool:
    """Whether the schedule of a plan takes its number of micro-batches."""
    rule = microbatch_rule(training_runtime(plan.runtime, plan.runtime_version), schedule_of(plan).name)
    return (
        plan.pipeline_parallel_size == 1
        or rule is None
        or rule.holds(plan.num_microbatches, plan.pipeline_parallel_size)
    )


# ---- what a stage holds ----


def in_flight(plan: TrainingPlan, rank: int) -> Term:
    """Micro-batches' worth of a rank's layers that wait for backward, of a split one for its second half."""
    p, v, m, schedule = (
        plan.pipeline_parallel_size,
        plan.virtual_pipeline_size,
        plan.num_microbatches,
        schedule_of(plan),
    )
    name = "micro-batches in flight"
    if schedule.name == "gpipe":
        return Term.of(name, f.gpipe_microbatches_in_flight, m=m)
    if schedule.name in DUAL:
        return Term.of(name, f.dualpipev_microbatches_in_flight, p=p)
    if schedule.name == "zb-h2":
        return Term.of(name, f.zero_bubble_h2_microbatches_in_flight, p=p, m=m)
    if schedule.splits:
        return Term.of(name, f.zero_bubble_microbatches_in_flight, p=p, m=m)
    if v > 1:
        return Term.of(
            name, g.interleaved_microbatches_in_flight, p=p, i=rank, m=m, v=v, n_turn=microbatches_per_round(m, p)
        )
    return Term.of(name, g.microbatches_in_flight, p=p, i=rank, m=m)


def waiting_for_weights(plan: TrainingPlan, rank: int) -> Term | None:
    """Micro-batches' worth of a rank's layers that keep the gradients of their products' results, from which those
    of weights are made later; None where backward is in one piece.
    """
    schedule, name = schedule_of(plan), "waiting for weight gradients"
    if not schedule.splits:
        return None
    if schedule.name == "zbv":
        return Term.of(name, f.zbv_weight_gradients_waiting, i=rank)
    if schedule.name in DUAL:
        return Term.of(name, f.one_chunk_of_two, x=1)
    if schedule.name == "zb-h2":
        return Term.of(name, f.zero_bubble_h2_weights_waiting, i=rank)
    return Term.of(name, f.weight_gradients_waiting, i=rank, v=plan.virtual_pipeline_size)


# ---- what a stage waits for ----


class Times(Struct, frozen=True):
    """Seconds of one micro-batch on a rank: forward, gradients of inputs with what runs again, gradients of weights."""

    forward: Number
    inputs: Number
    weights: Number

    @property
    def all(self) -> Number:
        return self.forward + self.inputs + self.weights


def bubble(plan: TrainingPlan, stages: Sequence[Times]) -> Term:
    """Seconds of a step in which the slowest rank has no micro-batch to run."""
    name, m, schedule = "pipeline bubble", plan.num_microbatches, schedule_of(plan)
    through, slowest = sum(stage.all for stage in stages), _most([stage.all for stage in stages])
    if schedule.name == "gpipe":
        return Term.of(
            name,
            f.gpipe_bubble_seconds,
            tau=through,
            tau_f=_most([stage.forward for stage in stages]),
            tau_b=_most([stage.inputs + stage.weights for stage in stages]),
            tau_step=slowest,
            m=m,
        )
    if schedule.splits:
        parts = {
            "tau_f": _others([stage.forward for stage in stages]),
            "tau_b": _others([stage.inputs for stage in stages]),
            "tau_w": _others([stage.weights for stage in stages]),
        }
        if schedule.name == "zbv":
            closed = Term.of(name, f.zbv_bubble_seconds, **parts)
        elif schedule.name == "zb-h2":
            closed = Term.of(name, f.zero_bubble_h2_seconds, **parts)
        elif schedule.name in DUAL:
            closed = Term.of(name, f.dualpipev_bubble_seconds, **parts)
        else:
            closed = Term.of(name, f.zero_bubble_seconds, v=plan.virtual_pipeline_size, **parts)
        if schedule.name not in PERIODIC or len(stages) == 1:
            return closed
        tau = in_its_order(schedule.name, plan.virtual_pipeline_size, stages, m)
        return _closed_if_alike(closed, Term.of(name, f.pipeline_wait_seconds, tau=tau, tau_step=slowest, m=m))
    even = Term.of(name, f.bubble_seconds, tau=through, tau_step=slowest, v=plan.virtual_pipeline_size)
    if schedule.name == "interleaved-1f1b":
        if not is_any(m % len(stages) > 0):
            return even
        tau = interleaved_seconds(plan.virtual_pipeline_size, stages, m, even.value + m * slowest)
        return Term.of(name, f.pipeline_wait_seconds, tau=tau, tau_step=slowest, m=m)
    uneven = Term.of(name, f.pipeline_wait_seconds, tau=one_forward_one_backward(stages, m), tau_step=slowest, m=m)
    return _closed_if_alike(even, uneven)


def _closed_if_alike(closed: Term, exact: Term) -> Term:
    """The closed form, which tells more, where it says what the order does."""
    is_equal = not hasattr(exact.value, "ndim") and abs(exact.value - closed.value) <= 1e-9 * closed.value
    return closed if is_equal else exact


def interleaved_seconds(chunks: int, stages: Sequence[Times], m: Number, whole_rounds: Number) -> Number:
    """Seconds of m micro-batches under interleaved 1F1B: `whole_rounds` where the stages divide m, else its order
    played out.
    """
    if not hasattr(m, "ndim"):
        return in_its_order("interleaved-1f1b", chunks, stages, m)
    import numpy as np

    times = [(stage.forward, stage.inputs, stage.weights) for stage in stages]
    shape = np.broadcast_shapes(m.shape, *(np.shape(stage) for parts in times for stage in parts))
    seconds = np.array(np.broadcast_to(whole_rounds, shape))
    rows = np.broadcast_to(m % len(stages) > 0, shape)
    of = [Times(*(np.broadcast_to(stage, shape)[rows] for stage in parts)) for parts in times]
    seconds[rows] = in_its_order("interleaved-1f1b", chunks, of, np.broadcast_to(m, shape)[rows])
    return seconds


def in_its_order(name: str, chunks: int, stages: Sequence[Times], m: Number) -> Number:
    """Seconds of m micro-batches under a schedule whose order has a period, played out pass by pass as PyTorch runs
    it.
    """
    times = [(part.forward, part.inputs, part.weights) for part in stages]
    least = 2 * len(stages) if name in DUAL else 1  # it has no order of fewer: such plans are refused
    if not hasattr(m, "ndim"):
        return periodic_seconds(name, chunks, max(int(m), least), times)
    import numpy as np

    seconds = np.empty(np.broadcast_shapes(m.shape, *(np.shape(part) for parts in times for part in parts)))
    few = {count: enough(name, len(stages), max(int(count), least)) for count in np.unique(m)}
    for played in set(few.values()):  # plans of which as many micro-batches are played out, at once
        rows = np.broadcast_to(np.isin(m, [count for count in few if few[count] == played]), seconds.shape)
        of = [[np.broadcast_to(part, seconds.shape)[rows] for part in parts] for parts in times]
        seconds[rows] = periodic_seconds(
            name, chunks, np.broadcast_to(np.maximum(m, least), seconds.shape)[rows], of, played
        )
    return seconds


def one_forward_one_backward(stages: Sequence[Times], m: Number) -> Number:
    """Seconds of m micro-batches under 1F1B: the longest that any stage takes with what it waits for.

    A stage begins when those before it have passed on the first micro-batch, and ends before they end. The stages after
    it return a gradient once a micro-batch has been through them; meanwhile it has n more micro-batches to run forward,
    and at the end n to run backward. Exact where the slowest stage is the first or the last one and the others are
    alike; else a lower bound, short by a few percent.
    """
    p, total = len(stages), sum(stage.all for stage in stages)
    before: Number = 0
    seconds: list[Number] = []
    for rank, stage in enumerate(stages):
        after, n = total - before - stage.all, minimum(p - 1 - rank, m - 1)
        at_first = maximum(after - n * stage.forward, 0)
        at_last = maximum(after - n * (stage.inputs + stage.weights), 0)
        together = maximum(minimum(m - (p - 1 - rank), 1), 0)  # 0: all forward passes come before the first gradient
        waits = together * (at_first + at_last) + (1 - together) * maximum(at_first, at_last)
        seconds.append(before + m * stage.all + waits)
        before = before + stage.all
    return _most(seconds)


def _most(values: Sequence[Number]) -> Number:
    return reduce(maximum, values)


def _others(values: Sequence[Number]) -> Number:
    """Of all ranks but the slowest."""
    return sum(values) - _most(values)
