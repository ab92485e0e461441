"""A deadline turned back into a number of accelerators: at the same global batch, or on a larger machine with the
options as they were given.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from tonnage.estimate.plan.rule import divisors
from tonnage.estimate.plan.schedule import schedule_takes_microbatches
from tonnage.estimate.run.larger_machines import Machines, doublings
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import counted, human
from tonnage.spec import Cluster, TrainingPlan

# ---- The fewest accelerators that make a deadline: only sizes that the plan can use, at the same global batch.

StepTimeAt = Callable[[int], Term]


def smallest_for_deadline(
    deadline: float,
    deadline_text: str,
    plan: TrainingPlan,
    cluster: Cluster,
    seconds_at: Callable[[TrainingPlan], float],
    fits_at: Callable[[int], bool] | None = None,
) -> TrainingPlan | str:
    """The plan with the smallest data_parallel_size that makes the deadline [seconds], or why no number of accelerators
    does.

    Every size is tried, not halved towards: a larger cluster fails more often, so more accelerators may take longer.
    """
    fastest: tuple[float, TrainingPlan] | None = None
    for chosen in usable_plans(plan, cluster):
        if fits_at is not None and not fits_at(int(chosen.data_parallel_size)):
            continue
        seconds = seconds_at(chosen)
        if seconds <= deadline:
            return chosen
        if fastest is None or seconds < fastest[0]:
            fastest = (seconds, chosen)
    if fastest is None:
        return Message(
            "no number of accelerators holds this plan: tensor x pipeline x context = {model_ranks} ranks a "
            "replica, {global_batch_size} to share out, whole nodes of {node_size}.",
            model_ranks=_model_ranks(plan),
            global_batch_size=counted(plan.global_batch_size // plan.micro_batch_size, "micro-batches"),
            node_size=Machines(cluster).node_size,
        )
    seconds, best = fastest
    return Message(
        "no number of accelerators makes the deadline of {said}. The fastest that "
        "{@global_batch_size} {global_batch_size:,} and {@micro_batch_size} {micro_batch_size} "
        "allow is {@data_parallel_size} {data_parallel_size:,} ({world_size}), which takes "
        "{seconds}: fewer tokens or a larger global batch go faster.",
        said=deadline_text or human(deadline, "seconds"),
        global_batch_size=best.global_batch_size,
        micro_batch_size=best.micro_batch_size,
        data_parallel_size=best.data_parallel_size,
        world_size=counted(best.world_size, "accelerators"),
        seconds=human(seconds, "seconds"),
    )


def usable_plans(plan: TrainingPlan, cluster: Cluster) -> Iterator[TrainingPlan]:
    """The same step on fewer and on more accelerators, fewest first: replicas that share out the micro-batches
    evenly, on part of one node or on whole nodes, with what else the plan asks of them.
    """
    total = int(plan.num_microbatches * plan.data_parallel_size)
    node = Machines(cluster).node_size
    for size in divisors(total):
        chosen = replace(plan, data_parallel_size=size, num_microbatches=total // size)
        if (chosen.world_size <= node or chosen.world_size % node == 0) and _allowed(chosen):
            yield chosen


def _allowed(chosen: TrainingPlan) -> bool:
    """Groups that lie inside the data-parallel ranks must still divide them."""
    ranks = chosen.tensor_parallel_size * chosen.context_parallel_size * chosen.data_parallel_size
    experts = chosen.expert_parallel_size * chosen.expert_tensor_parallel_size
    replicas_fill_groups = chosen.data_parallel_size % chosen.replicate_size == 0 and (
        chosen.context_parallel_size * chosen.data_parallel_size % chosen.deepspeed.zero_hpz_partition_size == 0
    )
    return bool(replicas_fill_groups and (experts == 1 or ranks % experts == 0) and schedule_takes_microbatches(chosen))


def _model_ranks(plan: TrainingPlan) -> int:
    return int(plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.context_parallel_size)


# ---- The smallest larger machine that makes it, with the options that were given: where they say no global batch, it
# grows with the machine.

MAX_TIMES = 2048  # a machine of more accelerators than so many times those that were asked about is no answer
LEAST_OF_DIVISION = 0.9  # of the accelerators that division gives: more of them are hardly ever faster each
MAX_TRIED = 24  # machines
FIRST, GROWTH = 8, 1.1  # machines that are tried one after the other, and then how many times the size before


def smallest_in_time(
    cluster: Cluster, times: float, deadline: float, seconds_on: Callable[[Cluster], tuple[float, float] | None]
) -> tuple[Cluster, float] | None:
    """The smallest larger machine of the same accelerators that makes the deadline at the high end of the error band
    too, and its seconds; None where none does. `times`: how many times too long the run takes; `seconds_on`: of the run
    on a machine, and at the high end of the band, None where it does not run there.
    """
    if times > MAX_TIMES:
        return None
    machines = Machines(cluster)
    for size in _sizes(machines.larger(MAX_TIMES), LEAST_OF_DIVISION * times * cluster.size, cluster.size):
        machine = machines.of(size)
        try:
            estimated = seconds_on(machine)
        except TonnageError:
            continue
        if estimated is not None and estimated[1] <= deadline:
            return machine, estimated[0]
    return None


def _sizes(larger: Sequence[int], least: float, own: int) -> list[int]:
    """Sizes to try, of those that are at least so large: the first few, then ever larger steps, and doublings of the
    own size, which share out a given global batch where others do not.
    """
    doubled = set(doublings(own, larger[-1])) if larger else set()
    sizes: list[int] = []
    for size in larger:
        if size >= least and (len(sizes) < FIRST or size >= GROWTH * sizes[-1] or size in doubled):
            sizes.append(size)
    return sizes[:MAX_TRIED]
