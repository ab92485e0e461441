"""The part of a run that trains, machine by machine: what failures and checkpoints leave, by the estimate of a run."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.run.checkpoint import saved_bytes
from tonnage.estimate.run.reliability import reliability
from tonnage.estimate.run.run import LEAST_GOODPUT
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.term import Term
from tonnage.search.training.ideal import plan_alone
from tonnage.search.training.space import Space
from tonnage.spec import Cluster

NO_TIME = Term.by(
    "step", 0.0, "seconds", basis="analytic", source="", version="1", procedure="shorter than any checkpoint interval"
)


def goodputs(space: Space, machines: Sequence[Cluster], run: RunOptions) -> np.ndarray:
    """Of each machine; 1 where no run is asked for, 0 where it would fail sooner than it saves its work.

    Steps are taken as shorter than the time between checkpoints: longer ones have less, which the whole answer of a
    plan counts.
    """
    if not run.asked:
        return np.ones(len(machines))
    try:
        _, plan = plan_alone(space, space.choices[0], space.sequences[0])
    except TonnageError:  # the walk says so of each group
        return np.ones(len(machines))
    saved = saved_bytes(space.model, plan)
    found = np.array(
        [
            reliability(NO_TIME, replace(plan, data_parallel_size=machine.size), run, saved).goodput.value
            for machine in machines
        ]
    )
    return np.where(found < LEAST_GOODPUT, 0.0, found)
