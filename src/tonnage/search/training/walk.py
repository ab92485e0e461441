"""Memory, time and cost of the plans of a group, by the same walk as a single answer."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tonnage.estimate.bands import training_band
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan_columns import CHUNK
from tonnage.estimate.step_time.time import Timing
from tonnage.formulas.cost import rent_usd
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.search.training.space import Group, Space
from tonnage.search.training.validity import Columns
from tonnage.spec import TrainingPlan

DENSE = 0.5  # of the plans of a part: with fewer valid ones each is walked by itself
WIDE = (
    "tensor_parallel_size",
    "context_parallel_size",
    "expert_parallel_size",
    "expert_tensor_parallel_size",
    "micro_batch_size",
    "sequence_length",
)
OUTER = ("data_parallel_size", "num_microbatches")
Hopeful = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Walked(Struct, frozen=True, eq=False):
    """Figures of plans: arrays of shape (plans,). `row`, `machine`: which of the group's rows, and of the space's
    machines.

    `needed`: bytes of the fullest GPU at its peak, `high` with the high end of the error band; `seconds`, `tokens` and
    `usd`: of a step.
    """

    row: np.ndarray
    machine: np.ndarray
    needed: np.ndarray
    high: np.ndarray
    seconds: np.ndarray
    tokens: np.ndarray
    usd: np.ndarray

    @property
    def plans(self) -> int:
        return len(self.row)


def said(space: Space, group: Group, columns: Columns, row: int, machine: int) -> dict[str, Any]:
    """Every option of one plan that the search chose, by its name in TrainingOptions."""
    sizes = {
        name: int(np.broadcast_to(values, (group.rows, len(space.worlds)))[row, machine])
        for name, values in columns.items()
    }
    if not sizes["global_batch_size"]:
        del sizes["global_batch_size"]
    return {**group.names, "pipeline_parallel_size": group.stages, "virtual_pipeline_size": group.chunks, **sizes}


def template(space: Space, group: Group, columns: Columns, left: np.ndarray) -> TrainingPlan:
    """One plan of the group as a single answer makes it: what its sizes do not decide is the same for all of them."""
    row, machine = np.argwhere(left)[0]
    options = replace(space.options, **said(space, group, columns, int(row), int(machine)))
    return training_plan(space.model, space.machines[machine], options, Question())


def settle(space: Space, group: Group, columns: Columns, left: np.ndarray) -> Group:
    """The group, of which some plans are `left`, without the options that do not apply beside its values of varied
    ones: these are None in `choices`.

    Where such an option is varied too, its first value stands for all of them: the same plan is not tried twice.
    """
    row, machine = np.argwhere(left)[0]
    chosen = said(space, group, columns, int(row), int(machine))
    try:
        _, left_out = space.ask_plan(space.machines[machine], chosen)
    except REFUSALS:
        return group  # the walk says why
    return replace(group, choices={**group.choices, **dict.fromkeys(left_out)}) if left_out else group


def walk(space: Space, group: Group, columns: Columns, left: np.ndarray, hopeful: Hopeful | None = None) -> Walked:
    """Figures of those plans that are `left`. Raises InvalidPlan or MissingDatum where the group as a whole cannot be,
    or is not known.

    `hopeful`: of the seconds of a token of each plan, shape (plans,), and its machine: whether it is of use. Others'
    memory may be left out (infinite): time is walked first, and costs less.
    """
    plan = template(space, group, columns, left)
    row, machine = np.nonzero(left)
    sizes = {name: np.broadcast_to(columns[name], left.shape)[left] for name in (*WIDE, *OUTER)}
    tokens = (
        sizes["sequence_length"] * sizes["micro_batch_size"] * sizes["data_parallel_size"] * sizes["num_microbatches"]
    )
    needed, seconds = np.full(len(row), np.inf), np.empty(len(row))
    for part, mask, several in _parts(columns, left, plan, sizes):
        step = Step(space.model, several, space.largest)
        timing = Timing(space.model, several, space.largest, step, of_update=space.of_updates)
        seconds[part] = np.broadcast_to(timing.seconds, mask.shape)[mask]
        if hopeful is None or hopeful(seconds[part] / tokens[part], machine[part]).any():
            needed[part] = np.broadcast_to(step.walk().needed, mask.shape)[mask]
    usd = rent_usd.evaluate(nodes=space.worlds[machine], tau=seconds, USD_hour=space.usd[machine])
    band = training_band(plan, space.largest)
    return Walked(
        row=row,
        machine=machine,
        needed=needed,
        high=np.ceil(needed * (band.high if band else 1)),
        seconds=seconds,
        tokens=tokens,
        usd=usd,
    )


def _parts(
    columns: Columns, left: np.ndarray, plan: TrainingPlan, sizes: Mapping[str, np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray, TrainingPlan]]:
    """Which of the plans that are left, one plan of arrays for them, bounded in size, and which of its entries they
    are.

    Where most are left, rows and machines are two axes, and what a rank does by itself is walked once for all machines.
    """
    count = len(sizes["micro_batch_size"])
    if count < DENSE * left.size:
        for part in np.array_split(np.arange(count), -(-count // CHUNK)):
            yield (
                part,
                np.ones(len(part), dtype=bool),
                replace(plan, **{name: values[part].astype(np.float64) for name, values in sizes.items()}),
            )
        return
    starts = np.concatenate([[0], np.cumsum(left.sum(axis=1))])
    for rows in np.array_split(np.arange(len(left)), min(-(-left.size // CHUNK), len(left))):
        part = np.arange(starts[rows[0]], starts[rows[-1] + 1])
        yield (
            part,
            left[rows],
            replace(plan, **{name: np.asarray(columns[name][rows], dtype=np.float64) for name in sizes}),
        )


REFUSALS = (InvalidPlan, MissingDatum)


def reason(error: Exception) -> str:
    """The constraint that a whole group breaks, in the words of the check that refused it."""
    return str(error).split(" Got ")[0].rstrip(".: ")
