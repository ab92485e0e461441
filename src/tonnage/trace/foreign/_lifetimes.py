"""Phases of a training step, and categories of allocations from the phases that make and free them.

PyTorch's profiler sorts memory by the flow of data (torch/profiler/_memory_profiler.py); files without it still show
the phases in which an allocation was made and freed. What forward leaves for later are activations, what backward
leaves are gradients, what the optimizer leaves is its state: the recorder sorts in the same way
(`trace/record/train.py`).
"""

from itertools import pairwise

from tonnage.kernel.message import Message
from tonnage.trace.events import Category, Mark
from tonnage.trace.foreign._history import BEFORE, MAX_MARKS, History
from tonnage.trace.program import STAGES

SETUP, FORWARD, BACKWARD, STEP, ZERO = "setup", "forward", "backward", "optimizer step", "zero_grad"
_LEAVES: dict[str, Category] = {FORWARD: "activation", BACKWARD: "gradient", STEP: "optimizer"}
_, AFTER_LOSS, AFTER_BACKWARD, AFTER_STEP = STAGES


def sort_by_lifetime(history: History, *, ended: bool = True) -> bool:
    """Name the stages and sort allocations without a category, where phases are known; returns whether they are.
    `ended`: the last phase was over when recording ended.
    """
    phases = [None if phase == BEFORE else phase for phase in history.phases]
    if not {FORWARD, BACKWARD, STEP} & set(phases):
        return False
    runs = _runs(phases)
    _mark(history, runs, ended)
    _sort(history, runs)
    return True


def _runs(phases: list[str | None]) -> list[tuple[str | None, int]]:
    """Runs of events in one phase, as (phase, first event). An event without a phase belongs to the current run."""
    runs: list[tuple[str | None, int]] = [(None, 0)]
    for position, phase in enumerate(phases):
        if phase is not None and phase != runs[-1][0]:
            runs.append((phase, position))
    return runs


def _mark(history: History, runs: list[tuple[str | None, int]], ended: bool) -> None:
    """Mark where phases change, with the stage names of a traced program."""
    if history.events.marks:
        return
    marks: list[Mark] = []
    step = 1

    def mark(name: str, position: int) -> None:
        marks.append(Mark(position, name if step == 1 else Message("{name} (step {step})", name=name, step=step)))

    stretches = [*runs, (None, len(history.events.order))] if ended else runs
    for (before, _), (phase, position) in pairwise(stretches):
        if before == BACKWARD:
            mark(AFTER_BACKWARD, position)
        elif before == STEP:
            mark(AFTER_STEP, position)
            step += 1
        elif phase == BACKWARD and before is not None:
            mark(AFTER_LOSS, position)
        elif phase == FORWARD and before == SETUP:
            mark("Initial", position)
    if len(marks) <= MAX_MARKS:
        history.events.marks = marks


def _sort(history: History, runs: list[tuple[str | None, int]]) -> None:
    """Make allocations freed in their own phase temporary; those left over get the phase's category."""
    order, categories = history.events.order, history.categories
    made_in: dict[int, tuple[int, str | None]] = {}
    freed_in: dict[int, int] = {}
    ends = [start for _, start in runs[1:]] + [len(order)]
    start = 0
    for number, ((phase, _), end) in enumerate(zip(runs, ends, strict=True)):
        for event in order[start:end]:
            if event >= 0:
                made_in[event] = number, phase
            else:
                freed_in[~event] = number
        start = end
    for allocation, (run, phase) in made_in.items():
        if (
            categories[allocation] is not None
            or phase is None
            or history.events.allocations[allocation].phase == BEFORE
        ):
            continue
        if not history.events.allocations[allocation].phase:
            history.events.allocations[allocation].phase = phase
        if freed_in.get(allocation) == run:
            categories[allocation] = "activation" if allocation in history.recomputed else "temporary"
        else:
            categories[allocation] = _LEAVES.get(phase)
